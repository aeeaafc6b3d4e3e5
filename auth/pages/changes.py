"""What was added to the account in the last seven days, perhaps by someone other than the owner."""

from typing import Any

from flask import Blueprint, Response

from auth.account import removal
from auth.account.changes import change_user
from auth.context import latchkey
from auth.net.redirects import with_query
from auth.pages.page import address, ago, page, provider, text, to_own
from auth.pages.problems import Problem, form
from auth.pages.sign_in import destination
from auth.sign_in.browser_sessions import signed_in
from auth.web import Level, form_schemas, guard
from auth.web.input import known_id, read_form

blueprint = Blueprint("changes", __name__)

_KINDS = {
    "email": ("forms", "email"),
    "phone": ("forms", "phone"),
    "totp": ("second_step", "app_name"),
    "webauthn": ("second_step", "key_name"),
    "passkey": ("account", "passkey"),
}


def _form(problem: Problem | None = None) -> Response:
    guard.live_caller()
    to = destination()
    return page(
        "account_changes.html",
        script=True,
        here=f"/{to.path('account/changes')}",
        to=to,
        problem=problem,
        changes=[_shown(change) for change in removal.list_recent(latchkey.db, guard.caller_id())],
        may_take_back=removal.may_take_back(),
    )


@blueprint.get("/account/changes")
@signed_in(Level.SESSION)
def show_changes() -> Response:
    """Show what was added, even to a user who cannot pass a second step that a thief has added."""
    return _form()


@blueprint.post("/account/changes")
@form("user_changes", _form, level=Level.SESSION, refusal="change_refused")
def remove_change() -> Response:
    change_user({"remove": [known_id(read_form(form_schemas.IdForm())["id"], "not_found")]})
    return to_own(with_query(destination().path("account/changes"), {"done": "removed"}))


@blueprint.post("/account/changes/undo")
@form("user_changes", _form, level=Level.SESSION, refusal="change_refused")
def undo_changes() -> Response:
    """Undo what was added while no notice of it could be mailed."""
    removal.take_back()
    return to_own("account/changes?done=removed")


def _shown(change: dict[str, Any]) -> dict[str, Any]:
    kind, label = change["type"], change["label"] or ""
    if kind == "identity":
        name, _, label = label.partition(" ")
        title = provider(name)["title"]
    else:
        title = text(*_KINDS[kind])
    return {
        "id": change["id"],
        "title": title,
        "label": address(label) if label else "",
        "added": ago(change["added_at"]),
    }
