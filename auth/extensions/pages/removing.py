"""Removing something from the account: a page shows the consequences, and its button removes."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from flask import Blueprint, Response, request
from markupsafe import Markup

from auth.core.text.names import PREFIX
from auth.extensions.pages.account import name_of, row_of
from auth.extensions.pages.factors import own_steps
from auth.extensions.pages.profile import own_user
from auth.flows.account import grants, identities
from auth.flows.account.api_keys import own as own_api_keys
from auth.flows.account.api_keys import remove as remove_api_key
from auth.flows.account.changes import change_user
from auth.flows.account.removal import list_recent
from auth.flows.factors import factors, recovery_codes
from auth.flows.passkeys import passkeys
from auth.flows.sign_in.reauthentication import WantedChange, remove, require
from auth.html import form_schemas
from auth.html.browser_sessions import signed_in
from auth.html.destinations import destination
from auth.html.page import address, application, page, provider_title, redirect_to_own, sentences, text
from auth.html.problems import Problem, form
from auth.rules.users import ADDRESS_KINDS
from auth.web import Level, audited, guard
from auth.web.asked import Asked, current_asked
from auth.web.context import latchkey
from auth.web.errors import found
from auth.web.input import canonical_id, check
from sql import queries

blueprint = Blueprint("removing", __name__)

# The messages of the account page after the removal of a factor or passkey.
_MESSAGES = {"totp": "factor_removed", "webauthn": "key_removed", "passkey": "passkey_removed"}


class _Removal(NamedTuple):
    """What the page shows: the `name` of the object, and what `follows`.

    `change` is what the session must be allowed to do. The page `back` comes next, and shows the message
    `done`. `forgets` is the id of a factor whose credential the browser may forget then.
    """

    name: str
    follows: Markup
    change: WantedChange
    run: Callable[[], Any]
    back: str
    done: str
    forgets: str = ""


def _step(asked: Asked, id: str) -> _Removal:
    steps = own_steps()
    step = found(next((each for each in steps if each["id"] == id), None), "not_found")
    factor_ids = [each["id"] for each in steps if each.get("status") != "unverified"]
    is_last, type = factor_ids == [id], step["type"]
    if type == "passkey":
        change, run = remove("passkey", id), partial(passkeys.remove, asked, id, {})
    else:
        change, run = remove("factor", id), partial(factors.remove, asked, id, {})
    text_names = ["passkey"] if type == "passkey" else [] if is_last else ["factor"]
    if is_last:
        has_codes = recovery_codes.status(asked).remaining > 0
        text_names += ["last_factor_with_codes" if has_codes else "last_factor"]
    name, texts = name_of(type, step["friendly_name"]), (text("removal", key) for key in text_names)
    return _Removal(name, sentences(*texts), change, run, "account#security", _MESSAGES[type], id)


def _identity(asked: Asked, id: str) -> _Removal:
    identities.require_manual_linking(asked)
    ways = queries.list_ways_to_sign_in(latchkey.db, user_id=guard.caller_id(), ids=[id])
    way = found(next(iter(ways), None), "not_found").provider
    name, run = provider_title(way), partial(identities.unlink, asked, id)
    effect = text("removal", "identity", provider=name)
    if way.startswith(PREFIX):
        effect = text("departure", "disconnected")
    follows = sentences(effect, text("removal", "change"))
    return _Removal(name, follows, remove("identity", id), run, "account#connected", "disconnected")


def _application(asked: Asked, id: str) -> _Removal:
    # AUTH_OAUTH_SERVER=false hides the grants that are still in the database.
    clients = (each["client"] for each in grants.own(asked) if each["client"]["id"] == id)
    name = application(found(next(clients, None), "not_found")["name"])
    grant = queries.select_grant(latchkey.db, user_id=guard.caller_id(), client_id=id)
    change = remove("grant", found(grant, "not_found").id)
    follows = text("removal", "application", application=name)
    return _Removal(
        name, follows, change, partial(grants.withdraw, asked, id), "account", "application_removed"
    )


def _api_key(asked: Asked, id: str) -> _Removal:
    key = next((each for each in own_api_keys(asked) if each["id"] == id), None)
    name = application(found(key, "not_found")["name"])
    follows, run = text("removal", "api_key"), partial(remove_api_key, asked, id)
    return _Removal(name, follows, remove("api_key", id), run, "account#api_keys", "api_key_removed")


def _address(asked: Asked, kind: str) -> _Removal:
    user = own_user()
    identity = next((each for each in user["identities"] if each["provider"] == kind), None)
    id, name = found(identity, "not_found")["id"], address(user[kind])
    follows, run = text("account", "remove_hint", address=name), partial(identities.unlink, asked, id)
    return _Removal(name, follows, remove("identity", id), run, "account", f"{kind}_removed")


def _change(asked: Asked, id: str) -> _Removal:
    changes = {change["id"]: change for change in list_recent(latchkey.db, guard.caller_id())}
    change = found(changes.get(id), "not_found")
    row = row_of(change)
    kind = {"grant": "application", "api_key": "api_key"}.get(change["type"])
    is_of_provider = change["type"] == "identity"
    parts = (row["title"], row["label"]) if is_of_provider else (row["label"] or row["title"],)
    name = Markup(" ").join(filter(None, parts))
    done = f"{kind}_removed" if kind else "removed"
    follows = text("removal", kind or "change", application=name)
    back, run = destination().path("account/changes"), partial(change_user, asked, {"remove": [id]})
    return _Removal(name, follows, remove(None, id), run, back, done)


_FINDERS = {
    "factor": _step,
    "passkey": _step,
    "identity": _identity,
    "application": _application,
    "api_key": _api_key,
    "change": _change,
}


def _requested_removal() -> _Removal:
    """Return the removal that the request asks for. Refuse if it needs a proof first."""
    values = check(form_schemas.RemovalForm, request.values.to_dict())
    kind, id = values["kind"], values.get("id", "")
    asked, is_address = current_asked(), kind in ADDRESS_KINDS
    removal = _address(asked, kind) if is_address else _FINDERS[kind](asked, canonical_id(id, "not_found"))
    require(asked, removal.change)
    return removal


@blueprint.get("/account/remove")
@signed_in(Level.SESSION)
def show_removal(problem: Problem | None = None) -> Response:
    removal, to = _requested_removal(), destination()
    back = to.path("account/changes") if request.values["kind"] == "change" else "account"
    template = "account_remove.html"
    return page(template, script=True, here=None, problem=problem, removal=removal, back=back, to=to)


@blueprint.post("/account/remove")
@form("remove", shown=show_removal, level=Level.SESSION)
@audited("change_refused")
def submit_removal() -> Response:
    removal = _requested_removal()
    removal.run()
    return redirect_to_own(removal.back, removal.done, removed=removal.forgets)
