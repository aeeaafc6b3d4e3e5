"""Access tokens of clients: which the database says are good now."""

from auth.core.tokens.client_tokens import ClientCaller
from auth.flows import facts
from auth.rules import tokens
from auth.rules.clients import Client
from auth.rules.refusals import Refusal
from auth.web import callers
from auth.web.context import latchkey
from sql import queries


def refusal_of(row: "queries.SelectClientCaller", known: ClientCaller) -> Refusal | None:
    """Return why the access token of a session gives nothing, or None."""
    return tokens.refusal_of_client_session(
        row,
        callers.session_of(row),
        row.resource,
        facts.client_of(row),
        callers.moment_of(known.expires_at),
        latchkey.policy,
        row.now,
    )


def is_good_without_session(known: ClientCaller) -> bool:
    """Whether the access token that a client got for itself is good."""
    row = queries.select_client_token(latchkey.db, client_id=known.client_id)
    if row is None:
        return False
    client = Client(grant_types=frozenset(row.grant_types), is_blocked=row.is_blocked)
    return tokens.refusal_of_client(client, callers.moment_of(known.expires_at), row.now) is None
