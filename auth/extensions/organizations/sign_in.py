"""The sign-in of an organization: the providers that its owners set up, try and turn on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from auth.core.text.names import PREFIX
from auth.extensions.organizations import access
from auth.extensions.organizations.access import Seen
from auth.flows.admin import providers
from auth.flows.admin.provider_settings import WantedProvider
from auth.flows.admin.providers import Door
from auth.flows.facts import PersonFacts
from auth.flows.sign_in.reauthentication import admit_caller
from auth.rules import identities, organizations
from auth.rules.organizations import OWNER
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import acts, queries
from sql.acts import Act


def listed(asked: Asked, name: str) -> list[dict[str, Any]]:
    seen = access.see(asked, name, OWNER)
    rows = queries.list_providers_of_organization(asked.db, organization_id=seen.id)
    return [providers.described(asked, row) for row in rows]


def shown(asked: Asked, name: str, provider: str) -> dict[str, Any]:
    seen = access.see(asked, name, OWNER)
    return providers.described(asked, providers.found_provider(asked, provider, seen.id))


def connect(asked: Asked, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Connect a provider, which is off until an owner has tried it. Return its object."""
    seen = access.see(asked, name, OWNER)
    return providers.create(asked, {**body, "enabled": False}, _door(asked, seen, body))


def restore(asked: Asked, name: str, id: str, body: Mapping[str, Any]) -> None:
    """Connect an imported provider by its id, which its redirect URI has. Tells nobody."""
    door = _door(asked, access.see(asked, name, OWNER))
    providers.create(asked, {**body, "enabled": False}, door, id=id, is_blocked=body["is_blocked"])


def change(asked: Asked, name: str, provider: str, body: Mapping[str, Any]) -> dict[str, Any]:
    seen = access.see(asked, name, OWNER)
    return providers.change(asked, provider, body, _door(asked, seen, body))


def delete(asked: Asked, name: str, provider: str, body: Mapping[str, Any]) -> None:
    """Delete a provider. The memberships that it added end, but the last owner's."""
    seen = access.see(asked, name, OWNER)
    providers.delete(asked, provider, _door(asked, seen, body))


def of_member(asked: Asked, name: str, provider: str) -> "queries.SelectIdentityProvider":
    """Return a provider of an organization of the caller, whose membership need not count."""
    return providers.found_provider(asked, provider, access.see_own(asked, name).id)


@contextmanager
def press(asked: Asked, row: "queries.SelectIdentityProvider") -> Iterator[tuple[Act, PersonFacts]]:
    """Let a provider of `of_member` sign in the member who presses, after a fresh proof. The act that this
    yields writes the flow.

    An owner also tries one that is off, unless an operator has disabled it.
    """
    with acts.begin(asked.db) as act:
        act.share_provider(row.id)
        act.lock_users([asked.caller.user_id])
        caller = admit_caller(asked, act, access.CHANGE)
        held = providers.facts_of(act, row.id)
        role = queries.select_membership_role(act, organization_id=row.organization_id, user_id=caller.id)
        if role is None or (role.role != OWNER and not held.enabled):
            raise ApiError("organization.insufficient_permissions")
        if held.is_blocked:
            raise ApiError("owner.sso_provider_disabled")
        domain = identities.domain_of(caller.email if caller.email_proved else None)
        if refusal := identities.refusal_of_adoption(caller, domain, held.domains):
            raise ApiError(refusal)
        yield act, caller


def _door(asked: Asked, seen: Seen, body: Mapping[str, Any] | None = None) -> Door:
    """Return the door to the providers of an organization. With a `body`, owners need a fresh proof."""
    is_operator, given = access.is_operator(asked), access.give_proof(asked, body)

    @contextmanager
    def begin(id: str) -> Iterator[Act]:
        sent, before = dict(body or {}), partial(Act.lock_provider, id=id)
        with (
            access.locked(asked, seen, body=sent, given=given, before=before) as (act, known, _),
            access.keeping_a_way_in(asked, act, known),
        ):
            yield act

    def check(
        act: Act, known: "queries.SelectProviderFacts | None", provider: WantedProvider, id: str
    ) -> None:
        proved = queries.list_proved_domains(act, organization_id=seen.id).domains
        # It has others from an operator.
        if not set(provider.domains).difference(known.domains if known else ()) <= set(proved):
            raise ApiError("domain_not_proved")
        if known is None:
            here = queries.list_providers_of_organization(act, organization_id=seen.id)
            if len(here) >= organizations.MOST_PROVIDERS:
                raise ApiError("too_many_providers")
        elif not is_operator:
            # Another issuer is another provider, which nobody has tried.
            turns_on = provider.enabled and (not known.enabled or provider.issuer != known.issuer)
            is_own = f"{PREFIX}{id}" in asked.caller.providers
            if why := organizations.refusal_of_owners_change(known, turns_on=turns_on, is_own_session=is_own):
                raise ApiError(why)

    return Door(begin, seen.id, is_owners=not is_operator, check=check)
