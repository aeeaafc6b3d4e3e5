"""API keys of users: adding, listing and removing them. Signing in with one is in auth/flows/sign_in."""

import json
from collections.abc import Sequence

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.tokens.api_keys import new_key
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.sign_in.reauthentication import add as adding
from auth.flows.sign_in.reauthentication import admit_caller, give_proof
from auth.flows.sign_in.reauthentication import remove as removing
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import acts, queries
from sql.acts import Act


def add(asked: Asked, body: JsonObject) -> JsonObject:
    """Add an API key to the caller, and return it with its `key`."""
    proof = give_proof(asked, body, adding("api_key"))
    id, key = new_key()
    columns = {
        "name": body["name"],
        "key_mac": asked.parts.api_keys.macs(key)[0],
        "scopes": body["scopes"],
        "lifetime": body.get("expires_in"),
    }
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, adding("api_key"), proof=proof)
        if queries.count_api_keys(act, user_id=caller.id).total >= constants.MOST_API_KEYS:
            raise ApiError("too_many_api_keys")
        notify(asked, act, caller, "api_key_added")
        # The key has the level of the session that makes it, and ends with its provider's term.
        own = asked.caller.session_id
        row = queries.write_api_key(act, id=id, user_id=caller.id, session_id=own, aal=caller.aal, **columns)
        details = {"api_key": body["name"], "api_key_id": id, "scopes": " ".join(body["scopes"])}
        audit.record(act, caller.id, caller.email, ["api_key_added"], [], **details)
    return row.object | {"key": key}


def own(asked: Asked) -> list[JsonObject]:
    """Return the caller's API keys, newest first; none where they are disabled."""
    if not asked.settings.api_keys:
        return []
    row = asked.admit_reader(queries.select_api_keys(asked.db, **asked.caller_ids))
    keys: list[JsonObject] = json.loads(row.api_keys)
    return keys


def remove(asked: Asked, id: str) -> None:
    """Remove one of the caller's API keys."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, removing("api_key", id))
        if not remove_own(asked, act, caller, [id]):
            raise ApiError("api_key_not_found")


def remove_any(asked: Asked, user_id: str, id: str) -> None:
    """Remove an API key of any user."""
    with targets.on(asked, user_id) as (act, user):
        if not remove_of(act, user, [id]):
            raise ApiError("api_key_not_found")


def remove_own(asked: Asked, act: Act, caller: PersonFacts, ids: Sequence[str]) -> bool:
    """Remove API keys of the caller, with a notice for each, and return whether there were any."""
    removed = remove_of(act, caller, ids)
    for _ in range(removed):
        notify(asked, act, caller, "api_key_removed")
    return removed > 0


def remove_of(act: Act, user: PersonFacts, ids: Sequence[str]) -> int:
    """Remove API keys of a locked user, and return their number."""
    removed = queries.remove_api_keys(act, user_id=user.id, ids=list(ids))
    for key in removed:
        details = {"api_key": key.name, "api_key_id": key.id}
        audit.record(act, user.id, user.email, ["api_key_removed"], [], **details)
    return len(removed)
