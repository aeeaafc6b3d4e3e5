"""Which access tokens of applications are good now, and their claims."""

from typing import Any

from auth.core.tokens.client_tokens import ClientCaller
from auth.core.tokens.jws import InvalidAccessToken
from auth.extensions.openid.memberships import present_claims, standing_of
from auth.flows import facts, organizations
from auth.rules import tokens
from auth.rules.clients import Client, spelled_in
from auth.rules.policy import Policy
from auth.rules.refusals import Refusal
from auth.web import callers
from auth.web.context import Latchkey
from sql import queries


def claims_now(parts: Latchkey, token: str, asking: "queries.SelectClient | None") -> dict[str, Any] | None:
    """Return the claims of a client's access token. Without a client, the service role key is asking."""
    try:
        claims = parts.client_tokens.claims(token)
        caller = parts.client_tokens.caller_of(claims)
    except InvalidAccessToken:
        return None
    if asking and caller.client_id != asking.id and not spelled_in(asking.resources, caller.audience):
        return None
    if caller.session_id is None:
        row = queries.select_client(parts.db, id=caller.client_id)
        if row is None:
            return None
        client = Client(grant_types=frozenset(row.grant_types), is_blocked=row.is_blocked)
        is_good = not tokens.refusal_of_client(client, callers.moment_of(caller.expires_at), row.now)
        return claims if is_good else None
    session = queries.select_client_caller(parts.db, **caller.parameters)
    if session is None or session.aal is None or refusal_of(session, caller, parts.policy):
        return None
    # A session loses the level that came from a removed factor.
    return present_claims(claims | {"acr": min(claims["acr"], session.aal)}, session)


def refusal_of(row: "queries.SelectClientCaller", caller: ClientCaller, policy: Policy) -> Refusal | None:
    """Return why the access token of a session gives nothing, or None."""
    return tokens.refusal_of_client_session(
        row,
        callers.session_of(row),
        row.resource,
        facts.client_of(row),
        callers.moment_of(caller.expires_at),
        policy,
        organizations.counting(row.memberships, standing_of(row)),
    )
