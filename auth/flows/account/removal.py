"""Removing addresses, identities and recent additions."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from auth.core.json_bodies import JsonObject
from auth.core.text.moments import iso_8601
from auth.core.text.names import PREFIX
from auth.core.tokens.access_tokens import providers_in
from auth.flows import ends, facts, organizations
from auth.flows.account import api_keys, grants
from auth.flows.factors import factors
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.sign_in.oauth import name_of_customers
from auth.rules import identities, proofs
from auth.rules.identities import refusal_of_unlinking
from auth.rules.proofs import is_recent
from auth.rules.refusals import Refusal
from auth.rules.remaining import can_sign_in
from auth.rules.users import ADDRESS_KINDS
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Runner, queries
from sql.acts import Act

_FACTORS = ("totp", "webauthn", "passkey")


def list_recent(on: Runner, user_id: str) -> list[JsonObject]:
    """Return `recent_changes`: additions to a user in the last seven days, and passkeys that were not used
    yet, oldest first.
    """
    return [
        {"id": row.id, "type": row.type, "added_at": iso_8601(row.added_at), "label": row.label}
        for row in _recent_rows(on, user_id)
    ]


def _recent_rows(on: Runner, user_id: str) -> "list[queries.ListAdditions]":
    rows = queries.list_additions(on, user_id=user_id)
    return [
        row
        for row, addition in zip(rows, facts.additions_of(rows), strict=True)
        if is_recent(addition, row.now)
    ]


def refusal_of_customer(
    on: Runner, user_id: str, provider: str, opened_by: Collection[str]
) -> Refusal | None:
    """Say why a user cannot remove the identity of a customer's provider in a session of these providers."""
    has_left = has_left_organization(on, user_id, provider)
    return refusal_of_unlinking(has_left=has_left, is_own_session=provider in opened_by)


def has_left_organization(on: Runner, user_id: str, provider: str) -> bool:
    """Whether the provider is of an organization that the user has left, or has not joined."""
    row = queries.select_provider_facts(on, id=provider.removeprefix(PREFIX))
    organization_id = row and row.organization_id
    role = queries.select_membership_role(on, organization_id=organization_id, user_id=user_id)
    return organization_id is not None and role is None


class Removed(NamedTuple):
    """What an act removes: identities, by their providers, and factors. `takes_way` if a way to sign in is
    among them. Second factors and unused passkeys are none.
    """

    providers: list[str]
    factor_ids: list[str]
    takes_way: bool


def removed(act: Act, user_id: str, providers: Sequence[str], ids: Sequence[str]) -> Removed:
    """Return what an act removes, which names providers and the ids of recent additions."""
    recent = {row.id: row for row in _recent_rows(act, user_id)} if ids else {}
    if not recent.keys() >= set(ids):
        raise ApiError("validation_failed", "remove: must be ids of recent_changes")
    rows = queries.list_ways_to_sign_in(act, user_id=user_id, ids=ids) if ids else []
    factor_ids = [id for id in ids if recent[id].type in _FACTORS]
    ways = sorted({*providers, *(row.provider for row in rows)})
    takes_passkey = any(recent[id].type == "passkey" and not recent[id].is_unused for id in ids)
    return Removed(ways, factor_ids, bool(ways) or takes_passkey)


def take_away(
    asked: Asked,
    act: Act,
    caller: PersonFacts,
    providers: Sequence[str] = (),
    *,
    ids: Sequence[str] = (),
) -> str | None:
    """Remove identities and recent additions of a caller whom `admit_caller` has let through. End the other
    sessions, unless only grants and API keys are removed. Return the remaining email.
    """
    providers, factor_ids, takes_way = removed(act, caller.id, providers, ids)
    email = None if "email" in providers else caller.email
    for provider in providers:
        if provider.startswith(PREFIX) and (
            refusal := refusal_of_customer(act, caller.id, provider, providers_in(caller.amr))
        ):
            raise ApiError(refusal)
        if provider not in ADDRESS_KINDS and not asked.settings.manual_linking:
            raise ApiError("manual_linking_disabled")
        if provider in ADDRESS_KINDS:
            notify(asked, act, caller, f"{provider}_changed")
            entries = ["email_removed" if provider == "email" else "phone_removed"]
            audit.record(act, caller.id, email, entries, [], **{f"old_{provider}": getattr(caller, provider)})
        else:
            shown = {"provider": provider, "provider_name": name_of_customers(act, provider)}
            notify(asked, act, caller, "identity_unlinked", **shown)
            audit.record(act, caller.id, email, ["identity_unlinked"], [], provider=provider)
    if factor_ids:
        factors.remove_recent(asked, act, caller, factor_ids)
    grants.remove(act, caller, ids=ids)
    api_keys.remove_own(asked, act, caller, ids)
    if providers or factor_ids:
        queries.remove_ways_to_sign_in(act, user_id=caller.id, ids=[], providers=providers)
        if takes_way:
            check_remaining(asked, act, caller.id)
        # An attacker who added the removed credential may have signed in with it.
        ends.end_and_void(act, caller.id, asked.caller.session_id, "way_to_sign_in_removed")
        ends.end_with_identities(act, caller.id, providers)
    return email


def has_recent_factor(asked: Asked, user_id: str) -> bool:
    """Whether a thief may have added a factor or passkey in the last seven days."""
    return any(row.type in _FACTORS and not row.is_unused for row in _recent_rows(asked.db, user_id))


def may_remove_recent(asked: Asked, caller: PersonFacts) -> bool:
    """Whether the caller may remove at least one recent addition, with a proof."""
    session, now = facts.own_session_of(caller), caller.now
    additions = facts.additions_of(queries.list_additions(asked.db, user_id=caller.id))
    removals = [
        proofs.Change(verb="remove", kind=each.kind, added_at=each.added_at)
        for each in additions
        if is_recent(each, now)
    ]
    return session is not None and any(
        proofs.may_do(each, caller, session, asked.caller.aal, asked.policy) for each in removals
    )


def check_remaining(asked: Asked, act: Act, user_id: str, *others: str) -> None:
    """Refuse if a locked user could no longer sign in. Of the `others`, `password` counts even for an
    unproved address.
    """
    if not remains(asked, act, user_id, *others):
        raise ApiError("single_identity_not_deletable")


def remains(asked: Asked, act: Act, user_id: str, *others: str) -> bool:
    """Whether a locked user can sign in."""
    person = found(queries.select_person(act, user_id=user_id, session_id=None), "user_not_found")
    ways = queries.select_ways_to_sign_in(act, user_id=user_id)
    return signs_in(asked, act, person, ways.providers, *others, has_passkey=ways.has_passkey)


def signs_in(
    asked: Asked,
    on: Runner,
    person: PersonFacts,
    providers: Collection[str],
    *others: str,
    has_passkey: bool,
) -> bool:
    """Whether a user can sign in with identities at these providers, a passkey, or the `others`."""
    settings = asked.settings
    enabled = {
        "email": settings.email_enabled,
        "phone": settings.offers_phone,
        "passkey": settings.passkeys_enabled,
    }
    usable = [*others, *asked.parts.providers, *(name for name, is_enabled in enabled.items() if is_enabled)]
    usable += [name for name in providers if _is_usable_of_customer(asked, on, name, person)]
    return can_sign_in(person, providers, has_passkey, usable)


def _is_usable_of_customer(asked: Asked, on: Runner, name: str, person: PersonFacts) -> bool:
    """Whether this is the provider of a customer that signs in its user now."""
    if not (name.startswith(PREFIX) and asked.settings.sso):
        return False
    provider = queries.select_provider_facts(on, id=name.removeprefix(PREFIX))
    if provider is None or organizations.is_provider_off(asked.settings, provider):
        return False
    return identities.refusal_of_customer(provider, person.email) is None
