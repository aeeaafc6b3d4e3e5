"""The account: devices, connected accounts, recent additions, the data as a file, and its deletion."""

import json
from itertools import chain
from typing import Any

from flask import Blueprint, Response, request

from auth.core.text import names, user_agents
from auth.core.text.names import PREFIX
from auth.extensions.pages.confirm import require_proof
from auth.extensions.pages.factors import own_ways, steps_of
from auth.extensions.pages.passkeys import own_passkeys, signals
from auth.extensions.pages.profile import own_user
from auth.flows.account import api_keys, grants, identities, removal
from auth.flows.account.changes import delete_caller
from auth.flows.messages.outgoing import own_url
from auth.flows.sessions.ending import end_session, sign_out
from auth.flows.sign_in import oauth
from auth.html import browser_sessions, form_schemas, forms
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination
from auth.html.page import (
    address,
    application,
    chosen_language,
    has_text,
    page,
    provider,
    provider_title,
    redirect_to_own,
    text,
)
from auth.html.problems import Problem, form, problem_of_redirect
from auth.rules.users import ADDRESS_KINDS
from auth.web import Level, audited, g, guard
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import canonical_id, read_form
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("account", __name__)

_MOST_ACTIVITY = 10_000
# The texts for the types of recent additions.
_KINDS = {
    "email": ("forms", "email"),
    "phone": ("forms", "phone"),
    "totp": ("second_step", "app_name"),
    "webauthn": ("second_step", "key_name"),
    "passkey": ("account", "passkey"),
    "grant": ("account", "application"),
    "api_key": ("account", "api_key"),
}


@blueprint.get("/account")
@signed_in(Level.AAL2)
def show_account() -> Response:
    asked, user, done = current_asked(), own_user(), forms.signed_value("done")
    person, ways = asked.live_caller(), own_ways()
    addresses = {kind: address(user[kind] or "") for kind in ADDRESS_KINDS}
    return page(
        "account.html",
        script=True,
        here="/account",
        user=user,
        own_name=names.of_user(user["user_metadata"]),
        has_password=person.password_hash is not None,
        password_leaked=person.password_leaked_at is not None,
        sessions=_devices(),
        providers=[_provider(name, user) for name in [*latchkey.providers, *_left_providers(user)]],
        tabs={
            name: tab
            for each in latchkey.extensions
            for name, tab in each.account_tabs(person).items()
            if tab is not None
        },
        notice=text("done", done, **addresses) if has_text("done", done) else None,
        problem=problem_of_redirect(),
        steps=[_step(each) for each in steps_of(ways)],
        has_steps=bool(ways.apps or ways.keys or ways.has_passkey),
        signals=signals(person) if latchkey.settings.offers_passkeys else {},
        recovery_codes=ways.recovery_codes,
        changes=len(removal.list_recent(asked.db, person.id)),
    )


@blueprint.get("/account/data")
@signed_in(Level.AAL2)
@limited("download_data", key=guard.caller_on_network)
def download_data() -> Response:
    asked = current_asked()
    activity = queries.list_activity(latchkey.db, user_id=guard.caller_id(), most=_MOST_ACTIVITY).entries
    data = {
        "user": own_user(),
        "sessions": _sessions()[0],
        "passkeys": own_passkeys(),
        "applications": grants.own(asked),
        "api_keys": api_keys.own(asked),
        **dict(chain.from_iterable(each.data().items() for each in latchkey.extensions)),
        "activity": json.loads(activity),
    }
    response = JsonResponse(json.dumps(data, ensure_ascii=False, indent=2))
    response.headers["Content-Disposition"] = 'attachment; filename="account.json"'
    return response


@blueprint.get("/account/delete")
@signed_in(Level.AAL2)
def show_deletion(problem: Problem | None = None) -> Response:
    require_proof()
    return page("account_delete.html", script=True, here="/account/delete", problem=problem, user=own_user())


@blueprint.post("/account/delete")
@form("delete_user", shown=show_deletion, level=Level.AAL2)
@audited("change_refused")
def delete_account() -> Response:
    require_proof()
    read_form(form_schemas.DeletionForm)
    delete_caller(current_asked(), {})
    return browser_sessions.forget(redirect_to_own("account/deleted", "deleted"))


@blueprint.get("/account/deleted")
def show_deleted() -> Response:
    if forms.signed_value("done") != "deleted":
        return redirect_to_own("sign-in")
    return page("account_deleted.html", here=request.full_path)


@blueprint.post("/account/sessions/end")
@form("end_session", level=Level.AAL2)
def end_device() -> Response:
    session_id = canonical_id(read_form(form_schemas.IdForm)["id"], "device.not_found")
    # It is not an error if the session has ended meanwhile.
    end_session(current_asked(), session_id)
    if session_id == g.caller.session_id:
        return redirect_to_own("sign-in")
    return redirect_to_own("account#devices", "device")


@blueprint.post("/account/sessions/end-others")
@form("log_out", level=Level.AAL2)
def end_other_devices() -> Response:
    sign_out(current_asked(), "others")
    return redirect_to_own("account#devices", "devices")


@blueprint.post("/account/connect")
@form("connect_identity", level=Level.PROOF)
@audited("change_refused")
def connect_provider() -> Response:
    return _connect()


@blueprint.get("/account/connect")
@signed_in(Level.PROOF)
@limited("connect_identity", key=guard.caller_on_network)
def continue_to_connect() -> Response:
    """Continue after the proof that the form asked for."""
    return Response() if request.method == "HEAD" else _connect()


def _connect() -> Response:
    """Begin to link an identity; the page that confirms this names the account."""
    asked = current_asked()
    identities.require_manual_linking(asked)
    chosen_provider = oauth.provider_named(asked, request.values.get("provider", ""))
    target = {"redirect_to": f"{latchkey.settings.base_url}/account", "code_challenge": None}
    state = identities.begin(asked, chosen_provider, **target, scopes=None, proof=None)
    return redirect_to_own(own_url(latchkey.settings, "link-identity", {"flow": state}).rpartition("/")[2])


@blueprint.get("/account/changes")
@signed_in(Level.SESSION)
def show_changes() -> Response:
    """Show recent additions, even to a user who cannot pass a thief's second step."""
    person, to = current_asked().live_caller(), destination()
    return page(
        "account_changes.html",
        script=True,
        here=f"/{to.path('account/changes')}",
        to=to,
        changes=[row_of(change) for change in removal.list_recent(latchkey.db, person.id)],
        done=forms.signed_value("done"),
    )


def name_of(kind: str, name: str = "") -> str:
    """Return the user's name for a factor or passkey, else its kind."""
    return application(name) if name else text(*_KINDS[kind])


def row_of(change: dict[str, Any]) -> dict[str, Any]:
    kind, label = change["type"], change["label"] or ""
    if kind == "identity":
        name, _, label = label.partition(" ")
        title = provider_title(name)
    else:
        title = text(*_KINDS[kind])
    return {
        "id": change["id"],
        "title": title,
        "label": application(label) if kind in ("grant", "api_key") else address(label) if label else "",
        "added_at": change["added_at"],
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    name, kind = name_of(step["type"], step["friendly_name"]), text(*_KINDS[step["type"]])
    return step | {"name": name, "kind": kind if step["friendly_name"] not in ("", kind) else None}


def _sessions() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the sessions, the current one first, and the ids of those that opened sessions for
    applications."""
    asked = current_asked()
    row = asked.admit_reader(
        queries.select_sessions(asked.db, page_size=1000, page_offset=0, **asked.caller_ids)
    )
    return sorted(json.loads(row.sessions), key=lambda session: not session["current"]), row.openers


def _devices() -> list[dict[str, Any]]:
    """Return the sessions for the page: by their last use, those of applications below the session
    that opened them."""
    (sessions, openers), language = _sessions(), chosen_language()
    sessions.sort(key=lambda session: (session["current"], session["refreshed_at"]), reverse=True)
    places = {session["id"]: place for place, session in enumerate(sessions)}
    for session in sessions:
        opener = openers.get(session["id"])
        session["is_opened"] = opener in places
        session["place"] = places[opener if opener in places else session["id"]]
        name = user_agents.device(session["user_agent"], language) or text("account", "unknown_device")
        session["name"] = text("account", "application") if session["is_opened"] else name
        is_phone = user_agents.browser_and_system(session["user_agent"])[1] in ("iOS", "Android")
        session["mark"] = f"marks/{'phone' if is_phone else 'computer'}.svg"
    return sorted(sessions, key=lambda session: (session["place"], session["is_opened"]))


def _left_providers(user: dict[str, Any]) -> list[str]:
    """Return the providers of organizations that the user has left, which can still open the account."""
    provider_names = [each["provider"] for each in user["identities"]]
    return [
        name
        for name in provider_names
        if name.startswith(PREFIX) and removal.has_left_organization(latchkey.db, user["id"], name)
    ]


def _provider(name: str, user: dict[str, Any]) -> dict[str, Any]:
    identity = next((each for each in user["identities"] if each["provider"] == name), None)
    data = identity["identity_data"] if identity else {}
    return provider(name) | {
        "title": provider_title(name),
        "identity_id": identity and identity["id"],
        "is_of_customer": name.startswith(PREFIX),
        "opened_session": name in current_asked().caller.providers,
        "known_as": data.get("email") or data.get("name"),
    }
