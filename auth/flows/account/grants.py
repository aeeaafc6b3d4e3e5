"""Users' grants to applications: one for each user and client."""

import json
from collections.abc import Sequence

from auth.core.json_bodies import JsonObject
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.sign_in.reauthentication import admit_caller
from auth.flows.sign_in.reauthentication import remove as removing
from auth.web import audit
from auth.web.asked import Asked
from sql import acts, queries
from sql.acts import Act


def own(asked: Asked) -> list[JsonObject]:
    """Return the caller's grants, newest first; none where applications are disabled."""
    if not asked.settings.oauth_server:
        return []
    row = asked.admit_reader(queries.select_grants(asked.db, **asked.caller_ids))
    grants: list[JsonObject] = json.loads(row.grants)
    return grants


def add(
    asked: Asked,
    act: Act,
    person: PersonFacts,
    client: "queries.SelectClient",
    scopes: Sequence[str],
    redirect_uris: Sequence[str],
    request: "queries.SelectOauthRequest | queries.SelectDeviceRequest",
    *,
    is_first: bool,
) -> None:
    """Give a client's grant these scopes and redirect URIs by a request, in the locked caller's session."""
    of_grant = {"scopes": scopes, "redirect_uris": redirect_uris}
    queries.write_grant(act, user_id=person.id, client_id=client.id, **of_grant)
    if is_first:
        # A stranger may have chosen the name of a dynamic client.
        name = None if client.is_dynamic else client.name
        notify(asked, act, person, "application_added", application=name)
    details = {"client_id": client.id, "client": client.name, "scopes": " ".join(request.scopes)}
    audit.record(act, person.id, person.email, ["grant_added"], [], **details, resource=request.resource)


def remove(act: Act, person: PersonFacts, *, ids: Sequence[str] = (), client_id: str | None = None) -> bool:
    """Remove grants of the locked user, by ids or client, with their sessions. Return whether any existed."""
    rows = queries.remove_grants(act, user_id=person.id, ids=list(ids), client_id=client_id)
    for row in rows:
        details = {"client_id": row.client_id, "client": row.name}
        audit.record(act, person.id, person.email, ["grant_removed"], [], **details)
    return bool(rows)


def withdraw(asked: Asked, client_id: str) -> bool:
    """Remove the caller's grant to a client, and return whether there was one."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        grant = queries.select_grant(act, user_id=asked.caller.user_id, client_id=client_id)
        caller = admit_caller(asked, act, removing("grant", grant.id if grant else ""))
        return remove(act, caller, client_id=client_id)
