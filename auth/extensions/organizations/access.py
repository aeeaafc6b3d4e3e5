"""Who may see an organization and act on it: for the API, pages, console and commands.

A member acts by the role (rule 48), the service role key and administrators of the service without one.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from auth.core.json_bodies import JsonObject
from auth.flows.admin import targets
from auth.flows.facts import PersonFacts
from auth.flows.organizations import OrganizationFacts, as_seen, facts_of, listed, membership_of, named
from auth.flows.sign_in import reauthentication
from auth.flows.sign_in.reauthentication import WantedChange, admit_caller
from auth.rules import organizations
from auth.rules.levels import Aal
from auth.rules.organizations import Role
from auth.rules.proofs import Proof
from auth.web.asked import Asked
from auth.web.callers import aal_of
from auth.web.errors import ApiError, found
from sql import acts, queries
from sql.acts import Act

CHANGE = WantedChange("change", "organization")


@dataclass(frozen=True)
class Seen:
    """An organization that the caller may see. `role` and `aal`, the level of the session, are the caller's,
    None for an operator; an act demands one of `demanded` again, if there are any.
    """

    id: str
    slug: str
    role: Role
    requires: object
    object: str
    aal: Aal | None = None
    demanded: Sequence[str] = ()


def is_operator(asked: Asked) -> bool:
    """Whether a key of the service's operator, a command or an administrator in the console asks."""
    return asked.actor in ("service_role", "admin_key") or asked.administrator is not None


def see(asked: Asked, name: str, *roles: str) -> Seen:
    """Return an organization by its id or short name. Refuse who is no member, or has none of these roles."""
    if is_operator(asked):
        known = found(queries.select_organization(asked.db, **named(name)), "organization_not_found")
        _note(asked, known.id, known.slug)
        return Seen(known.id, known.slug, None, {}, known.organization_object)
    seen = see_own(asked, name)
    admit_session(asked, seen.aal, seen.id, seen.role or "", seen.requires)
    if roles and seen.role not in roles:
        raise ApiError("organization.insufficient_permissions")
    return replace(seen, demanded=roles)


def see_own(asked: Asked, name: str) -> Seen:
    """Return an organization of the caller, also while the membership does not count."""
    row = asked.admit_reader(queries.select_member(asked.db, **asked.caller_ids, **named(name)))
    if row.id is None:
        raise ApiError("organization_not_found")
    _note(asked, row.id, row.slug)
    aal = aal_of(row, asked.caller)
    return Seen(row.id, row.slug or "", row.membership, row.requires, row.organization_object or "", aal)


def own(asked: Asked) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the caller's memberships, as the session sees them, and the open invitations."""
    row = asked.admit_reader(queries.select_own_organizations(asked.db, **asked.caller_ids))
    aal, providers = aal_of(row, asked.caller), asked.caller.providers
    seen = [as_seen(each, aal, providers) for each in listed(row.memberships)]
    return seen, json.loads(row.invitations)


def see_by_id(asked: Asked, id: str) -> "queries.SelectOrganization":
    return found(queries.select_organization(asked.db, id=id, slug=None), "organization_not_found")


@contextmanager
def on_user(
    asked: Asked,
    user_id: str | None,
    *wanted: WantedChange,
    given: Proof | None = None,
    before: Callable[[Act], object] = lambda _: None,
) -> "Iterator[tuple[Act, PersonFacts | None]]":
    """Run an act with the caller and a user locked, and yield the caller, None for an operator. `before`
    takes the locks that come before users.
    """
    if is_operator(asked):
        with targets.begin(asked) as act:
            before(act)
            act.lock_users([user_id])
            yield act, None
        return
    with acts.begin(asked.db) as act:
        before(act)
        act.lock_users([asked.caller.user_id, user_id])
        yield act, admit_caller(asked, act, *wanted, proof=given)


def give_proof(asked: Asked, body: Mapping[str, Any] | None) -> Proof | None:
    """Check the proof in a body, and return its kind; None if it needs none, as operators do."""
    if body is None or is_operator(asked):
        return None
    return reauthentication.give_proof(asked, dict(body), CHANGE)


@contextmanager
def locked(
    asked: Asked,
    seen: Seen,
    user_id: str | None = None,
    *,
    body: JsonObject | None = None,
    given: Proof | None = None,
    is_leaving: bool = False,
    before: Callable[[Act], object] = lambda _: None,
) -> "Iterator[tuple[Act, OrganizationFacts, PersonFacts | None]]":
    """Run an act on an organization, which is locked after its caller and a user. With a `body`, the caller
    needs a proof of the last 15 minutes, unless it was `given`.
    """
    wanted = [] if body is None or is_operator(asked) else [CHANGE]
    given = given or (give_proof(asked, body) if body else None)
    with on_user(asked, user_id, *wanted, given=given, before=before) as (act, caller):
        act.lock_organizations([seen.id])
        row = facts_of(act, seen.id, user_id, caller and caller.id)
        known = found(row, "organization_not_found")
        if caller:
            role = found(known.actor_role, "organization_not_found")
            if not is_leaving:
                admit_session(asked, aal_of(caller, asked.caller), known.id, role, known.requires)
            if seen.demanded and role not in seen.demanded:
                raise ApiError("organization.insufficient_permissions")
        yield act, known, caller


def admit_session(asked: Asked, aal: Aal | None, id: str, role: str, requires: object) -> None:
    """Refuse a session of a level in which a membership does not count."""
    membership = membership_of({"id": id, "role": role, "requires": requires})
    refusal = organizations.refusal_of_session(membership, aal or "", asked.caller.providers)
    if refusal == "organization_sign_in_needed":
        raise ApiError(refusal, members={"providers": membership.providers})
    if refusal:
        raise ApiError(refusal)


def demand_operator(asked: Asked, body: JsonObject, *names: str) -> None:
    """Refuse a body with one of these members, unless an operator sends it."""
    refused = next((name for name in names if name in body), None)
    if refused and not is_operator(asked):
        raise ApiError(
            "organization.insufficient_permissions", f"{refused}: only the service role key sets it"
        )


@contextmanager
def keeping_a_way_in(asked: Asked, act: Act, known: OrganizationFacts) -> Iterator[None]:
    """Refuse an owner's change of providers or domains that leaves no provider to sign in with, while the
    organization requires one.
    """

    def has_way_in() -> bool:
        return queries.select_way_in(act, organization_id=known.id).is_there

    if is_operator(asked) or not known.needs_own_provider:
        yield
        return
    before = has_way_in()
    yield
    if refusal := organizations.refusal_of_loss(before=before, after=has_way_in()):
        raise ApiError(refusal)


def _note(asked: Asked, id: str, slug: str | None) -> None:
    """Have a refusal name the organization, whose owners read it in its log."""
    asked.note_details(organization={"id": id, "slug": slug})
