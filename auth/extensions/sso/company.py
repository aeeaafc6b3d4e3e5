"""The company of a user: the provider of the domain of the user's address, and the move to it."""

from typing import Any

from auth.core.providers.customers import host_of
from auth.extensions.sso import lookup
from auth.flows.admin import providers
from auth.flows.facts import PersonFacts
from auth.flows.sign_in.oauth import NewFlow, write_flow_of_caller
from auth.flows.sign_in.reauthentication import add, admit_caller
from auth.rules import identities
from auth.web.asked import Asked
from auth.web.context import Latchkey
from auth.web.errors import ApiError, found
from sql import acts, queries

MOVE = add("identity")


def of_user(parts: Latchkey, user_id: str) -> "queries.SelectProviderOfUser | None":
    """Return the provider that signs in addresses of the domain of the user's proved address, or None."""
    row = queries.select_provider_of_user(parts.db, user_id=user_id)
    return row if row and lookup.signs_in(parts, row) else None


def of_caller(asked: Asked, person: PersonFacts) -> "queries.SelectProviderOfUser":
    """Return the provider to which the caller may move. Refuse an administrator."""
    row = found(of_user(asked.parts, person.id), "sso_provider_not_found")
    if refusal := identities.refusal_of_administrator(person):
        raise ApiError(refusal)
    return row


def offer(asked: Asked, person: PersonFacts) -> dict[str, Any] | None:
    """Return what the account page says to a user who has not moved to the company's sign-in, or None."""
    row = None if identities.refusal_of_administrator(person) else of_user(asked.parts, person.id)
    return {"domain": row.domain, "host": host_of(row.issuer)} if row and not row.is_linked else None


def begin_move(asked: Asked, provider_id: str, flow: NewFlow) -> None:
    """Begin a sign-in of the caller, after a fresh proof, that moves the account to a provider that is on."""
    with acts.begin(asked.db) as act:
        act.share_provider(provider_id)
        act.lock_users([asked.caller.user_id])
        caller = admit_caller(asked, act, MOVE)
        facts = providers.facts_of(act, provider_id)
        if not facts.enabled:
            raise ApiError("sso_provider_disabled")
        domain = identities.domain_of(caller.email if caller.email_proved else None)
        if refusal := identities.refusal_of_adoption(caller, domain, facts.domains):
            raise ApiError(refusal)
        write_flow_of_caller(asked, act, flow)
