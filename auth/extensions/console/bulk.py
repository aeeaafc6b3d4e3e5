"""Actions on up to 500 users at once, in chunks that the browser requests one after the other."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg2
from flask import Blueprint, Response, request

from auth.core.text.labels import counted
from auth.extensions.console.users import Query, find_few, matching
from auth.flows.admin import lists, messages
from auth.flows.admin.user_actions import ACTIONS, Many, UserAction
from auth.html import forms
from auth.html.admin.access import administrator, changing, explain, require_proof
from auth.html.admin.actions import Action, Subject, serve
from auth.html.admin.console_page import console_page
from auth.html.admin.subjects import all_users
from auth.html.page import redirect_to_own
from auth.html.problems import Problem
from auth.web import fields, guard
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.error_handlers import as_api_error
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from auth.web.input import canonical_id, check, read_query
from auth.web.schemas import Input
from sql import acts, queries

blueprint = Blueprint("bulk", __name__)

MOST = 500
# About a second of deletions. A hook may take two seconds for each invitation, and proxies time out.
_CHUNK, _SECONDS = 100, 10.0
# The number of names in a confirmation.
_NAMES_SHOWN = 10
# Errors about one user, after which the action continues with the other users, whatever their status: a hook
# chooses its own.
_TARGET_ERRORS = {"target.insufficient_permissions", "hook_refused", "invited.over_email_send_rate_limit"}

_ListForm = Input.of(emails=fields.LongText(required=True), groups=fields.Groups(load_default=list))


def _chosen_users() -> Subject:
    """Return the ticked users, or all that match the filters of the list."""
    ids: list[str] | None
    if request.method == "POST":
        ids = request.form.get("ids", "").split(",")
    elif "all" in request.args:
        # Find them like the list: a search in the order of ids may take longer.
        ids, _least = find_few(matching(read_query(Query)))
    else:
        ids = request.args.getlist("id")
    if ids is None or len(ids) > MOST:
        raise ApiError("validation_failed", f"ids: must be at most {MOST} users")
    row = queries.select_chosen(latchkey.db, ids=[id for id in ids if is_uuid(id)])
    hidden = {"ids": ",".join(row.ids)}
    name = counted(len(row.ids), "user") if row.ids else "Users"
    return Subject(name, "console/users", row, hidden, has_effect=row.changeable > 0)


def _effects(many: Many, row: "queries.SelectChosen") -> Iterator[str]:
    if not row.ids:
        yield "No users are chosen. Choose them in the list first."
        return
    others = len(row.names) - _NAMES_SHOWN
    yield ", ".join(row.names[:_NAMES_SHOWN]) + (f" and {others} more." if others > 0 else ".")
    if row.changeable:
        yield (many.effect if row.sessions else many.effect_signed_out).format(
            users=counted(row.changeable, "user"),
            sessions=counted(row.sessions, "session"),
            nobody="None of them is signed in." if row.changeable > 1 else "They aren’t signed in.",
        )
    if row.api_keys and many.effect_on_keys:
        yield many.effect_on_keys.format(keys=counted(row.api_keys, "API key"))
    if administrators := len(row.ids) - row.changeable:
        yield f"Leaves {counted(administrators, 'administrator')} unchanged."


def _columns(users: Subject, form: Iterable[str]) -> dict[str, Any]:
    if not users.has_effect:
        raise ApiError("validation_failed", "ids: must be at least one user")
    return {"targets": users.row.ids, "options": {name: request.form[name] for name in form}}


def _start(name: str, _asked: Asked, _subject: Subject, columns: dict[str, Any]) -> Response:
    bulk = queries.create_bulk_act(latchkey.db, user_id=guard.caller_id(), act=name, **columns)
    return redirect_to_own(f"console/bulk/{bulk.id}")


def _confirmation(name: str, action: UserAction, many: Many) -> Action:
    return Action.of(
        action,
        title=f"{many.title} these users",
        effects=lambda users: _effects(many, users.row),
        undo=many.undo,
        do=partial(_start, name),
        takes_metadata=True,
        check=_columns,
        template="act_ban.html" if name == "ban" else "act.html",
    )


_INVITING = {
    "invite-list": Action(
        title="Invite people",
        effects=lambda _list: [
            "Creates a user for each address and sends a link that is valid for seven days."
        ],
        undo="Sent emails can’t be recalled. Deleting a user voids the link.",
        do=partial(_start, "invite"),
        takes_metadata=True,
        form=_ListForm,
        check=lambda _list, form: {
            "targets": lists.emails_in(form["emails"]),
            "options": {"groups": form["groups"]},
        },
        template="act_invite_list.html",
    )
}

_ON_CHOSEN = {
    name: _confirmation(name, action, action.many) for name, action in ACTIONS.items() if action.many
}
serve(blueprint, "/console/users/chosen", _ON_CHOSEN, _chosen_users)
serve(blueprint, "/console/users", _INVITING, all_users)


@blueprint.get("/console/bulk/<bulk_id>")
@administrator
def show_bulk(bulk_id: str) -> Response:
    require_proof()
    return _page(_find(bulk_id), goes_on=forms.signed_value("done") != "elsewhere")


@blueprint.post("/console/bulk/<bulk_id>")
@administrator
@changing
def work_on(bulk_id: str) -> Response:
    """Work on the next targets. Each has its own transaction, which also marks it as done.

    So a repeated request does nothing twice.
    """
    bulk, until = _find(bulk_id), time.monotonic() + _SECONDS
    for position in range(bulk.position, min(bulk.position + _CHUNK, len(bulk.targets))):
        try:
            _do(bulk, bulk.targets[position], partial(_claim, id=bulk.id, position=position))
        except _AlreadyDone:
            # The other request continues. The page of this request would repeat it, up to the limit.
            return redirect_to_own(f"console/bulk/{bulk.id}", "elsewhere")
        except (ApiError, psycopg2.Error) as exception:
            error = as_api_error(exception)
            is_of_all = error.key not in _TARGET_ERRORS
            if is_of_all and error.status == 429:
                return _page(_find(bulk_id), explain(error))
            if is_of_all and error.status in (401, 403):
                raise
            refusal = {"target": bulk.targets[position], "why": error.msg}
            queries.advance_bulk_act(latchkey.db, refusal=refusal, id=bulk.id, position=position)
            if error.status >= 500:
                break  # this target may have taken long, and so may the next
        if time.monotonic() >= until:
            break
    return redirect_to_own(f"console/bulk/{bulk.id}")


def _do(bulk: "queries.SelectBulkAct", target: str, claim: Callable[[acts.Act], object]) -> None:
    asked = replace(current_asked(), claim=claim)
    if bulk.act == "invite":
        messages.invite(asked, messages.invitation(target, bulk.options["groups"]))
    else:
        action = ACTIONS[bulk.act]
        action.flow(asked, target, check(action.form, bulk.options))


class _AlreadyDone(Exception):
    """Another request works on the same targets."""


def _claim(act: acts.Act, id: str, position: int) -> None:
    if not queries.advance_bulk_act(act, id=id, position=position, refusal=None):
        raise _AlreadyDone


def _find(bulk_id: str) -> "queries.SelectBulkAct":
    id = canonical_id(bulk_id, "not_found")
    return found(queries.select_bulk_act(latchkey.db, id=id, user_id=guard.caller_id()), "not_found")


def _page(bulk: "queries.SelectBulkAct", problem: Problem | None = None, *, goes_on: bool = True) -> Response:
    many = ACTIONS[bulk.act].many if bulk.act in ACTIONS else None
    refused_targets = {refusal["target"] for refusal in bulk.refused}
    done_targets = [target for target in bulk.targets[: bulk.position] if target not in refused_targets]
    return console_page(
        "bulk.html",
        status=problem.status if problem else 200,
        section="console/users",
        bulk=bulk,
        title=many.title if many else "Invite",
        past=many.past if many else "invited",
        # The addresses of users that still exist.
        names=queries.select_chosen(latchkey.db, ids=done_targets).names if many else done_targets,
        problem=problem,
        goes_on=goes_on and not problem,
    )
