"""Memberships: how a provider's begins, and how each ends (rules 46, 48 and 49)."""

from collections.abc import Sequence
from dataclasses import dataclass

from auth.flows import ends, organizations
from auth.flows.account import removal
from auth.flows.facts import PersonFacts
from auth.flows.links.proving import person_of
from auth.flows.messages.outgoing import notify
from auth.flows.organizations import Member, OrganizationFacts, facts_of, record
from auth.rules import identities
from auth.rules import organizations as rules
from auth.rules.organizations import SignInAfter
from auth.rules.users import has_factor
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Runner, acts, queries
from sql.acts import Act

_BATCH = 100


@dataclass(frozen=True)
class Departure:
    """What becomes of the sign-in of a user who is no member any more: which identities at the organization's
    providers go, and whether one that stays opens the account. `by_mailbox_alone` if else only a mailbox at
    a domain of such a provider signs the user in, without a second step. `may_disconnect` if the user can
    remove one that stays. `may_rejoin` if not a mere sign-in, but a move to a provider makes the user a
    member again.
    """

    lost: "Sequence[queries.ListIdentitiesAtOrganization]"
    sign_in: SignInAfter
    by_mailbox_alone: bool = False
    may_disconnect: bool = False
    may_rejoin: bool = False


def departure_of(asked: Asked, on: Runner, user_id: str, organization_id: str) -> Departure:
    """Return what becomes of a user's sign-in after the membership. An act has the user locked."""
    rows = queries.list_identities_at_organization(on, user_id=user_id, organization_id=organization_id)
    person = found(queries.select_person(on, user_id=user_id, session_id=None), "user_not_found")
    joinable = [
        row
        for row in queries.list_joinable_providers(on, organization_id=organization_id)
        if not organizations.is_provider_off(asked.settings, row)
    ]
    may_rejoin = asked.settings.sso and identities.may_rejoin(person, joinable)
    if not rows:
        return Departure((), "none", may_rejoin=may_rejoin)
    ways = queries.select_ways_to_sign_in(on, user_id=user_id)
    others = set(ways.providers) - {row.provider for row in rows}
    signs_in = removal.signs_in(asked, on, person, others, has_passkey=ways.has_passkey)
    # Where one of them made the account, it is the company's.
    has_moved = all(rules.is_moved(person.created_at, row) for row in rows)
    lost = rows if signs_in and has_moved else []
    has_others = bool(others - {"email"}) or ways.has_passkey or person.password_hash
    is_company = any(identities.domain_of(person.email) in row.domains for row in rows)
    sign_in = rules.sign_in_after([] if lost else rows, has_lost=bool(lost))
    return Departure(
        lost,
        sign_in,
        by_mailbox_alone=signs_in and is_company and not (has_others or has_factor(person)),
        may_disconnect=signs_in and not lost and asked.settings.manual_linking,
        may_rejoin=may_rejoin and sign_in != "joins",
    )


def remove_member(
    asked: Asked, act: Act, organization: OrganizationFacts, user_id: str, *, tells: bool = True
) -> Departure:
    """Remove a locked user, whom the facts are about, from a locked organization, with what ends then.

    The user is told of a lost sign-in, unless the act does not tell.
    """
    departure = departure_of(asked, act, user_id, organization.id)
    if _end_membership(act, user_id, organization.id):
        _record_removed(act, organization, user_id)
        _end_identities(asked, act, organization, user_id, departure, tells=tells)
    return departure


def _end_membership(act: Act, user_id: str, organization_id: str, provider_id: str | None = None) -> bool:
    """End a membership, invitations there that the user sent or got, and sessions of applications that need
    it (rule 49). With a provider, end only a membership that it added. Return whether there was one.
    """
    ids = {"user_id": user_id, "organization_id": organization_id}
    if queries.remove_membership(act, **ids, provider_id=provider_id) is None:
        return False
    queries.withdraw_invitations_by(act, **ids)
    ends.end_refused_sessions(act, user_id)
    return True


def _end_identities(
    asked: Asked,
    act: Act,
    organization: OrganizationFacts,
    user_id: str,
    departure: Departure,
    *,
    tells: bool = True,
) -> None:
    """Remove the identities that go with a membership, and end what their providers opened (rule 49).

    The notice names what was added since the first of them was linked, in sessions of its provider perhaps.
    """
    if not departure.lost:
        return
    person = person_of(act, user_id)
    providers = [row.provider for row in departure.lost]
    queries.remove_ways_to_sign_in(act, user_id=user_id, ids=[], providers=providers)
    ends.end_with_identities(act, user_id, providers)
    for row in departure.lost:
        details = {"provider": row.provider}
        audit.record(act, user_id, person.email, ["identity_unlinked"], ["user.updated"], **details)
    if tells:
        since = min(row.created_at for row in departure.lost)
        variables = {
            "organization": organization.name,
            "added": [row.type for row in queries.list_added_since(act, user_id=user_id, moment=since)],
            "by_mailbox_alone": departure.by_mailbox_alone,
            "may_rejoin": departure.may_rejoin,
        }
        notify(asked, act, person, "identity_unlinked", **variables)


def end_memberships_of_provider(asked: Asked, provider_id: str) -> bool:
    """End some memberships that a deleted provider added, and return whether there are more.

    The last owner's stays, as one that no provider added, and that of a user whom another provider of the
    organization would make a member again: the company changes its provider.
    """
    members = queries.list_members_of_provider(asked.db, provider_id=provider_id, most=_BATCH)
    for member in members:
        user_id, id = member.user_id, member.organization_id
        with acts.on(asked.db, user_id) as act:
            act.lock_organizations([id])
            organization = facts_of(act, id, user_id)
            rows = queries.list_identities_at_organization(act, user_id=user_id, organization_id=id)
            # Another administrator may have turned this one on again.
            others = (
                row
                for row in rows
                if row.provider_id != provider_id and not organizations.is_provider_off(asked.settings, row)
            )
            heir_id = next((row.provider_id for row in others if rules.adds_member(row)), None)
            is_last = organization and rules.is_last_owner(organization.role, organization.other_owners)
            if organization and (heir_id or is_last):
                ids = {"user_id": user_id, "organization_id": id, "provider_id": provider_id}
                queries.keep_membership(act, **ids, heir_id=heir_id)
            elif _end_membership(act, user_id, id, provider_id) and organization:
                _record_removed(act, organization, user_id)
                # The user may have moved to another provider of the organization.
                departure = departure_of(asked, act, user_id, id)
                _end_identities(asked, act, organization, user_id, departure)
    return len(members) == _BATCH


def join_by_provider(act: Act, user: PersonFacts, organization_id: str, provider_id: str, role: str) -> None:
    """Add a locked user to the organization whose provider signs the user in (rule 46).

    A member keeps the role, and a user in fifty stays out.
    """
    organization = facts_of(act, organization_id, user.id)
    number = queries.count_memberships(act, user_id=user.id).total
    if organization is None or organization.role or rules.is_in_fifty(number):
        return
    # Members, who sign in daily, lock nothing. Meanwhile the organization may have ended, and an owner who
    # invites the address would leave a member with an open invitation.
    act.lock_organizations([organization_id])
    organization = facts_of(act, organization_id, user.id)
    if organization is None or organization.role:
        return
    ids = {"user_id": user.id, "organization_id": organization_id, "provider_id": provider_id}
    queries.add_by_provider(act, **ids, role=role)
    record_added(act, organization, user, role, "provider")


def leave_all(asked: Asked, act: Act, user_id: str) -> None:
    """Take a locked user out of all organizations, before the user is deleted.

    Refuse for the last owner of an organization with other members (rule 48); one without others ends.
    """
    if not organizations.is_on(asked.settings):
        return
    ids = [row.id for row in queries.list_memberships(act, user_id=user_id)]
    if not ids:
        return
    act.lock_organizations(ids)
    for id in sorted(ids):
        organization = facts_of(act, id, user_id)
        if organization is None:
            continue
        effect = rules.what_deletion_does(organization.role, organization.members, organization.other_owners)
        if effect == "refuse" and asked.actor != "service_role":
            raise ApiError("last_owner")
        if effect == "end":
            organizations.refuse_key(asked, act, id)
            queries.end_organization(act, id=id)
            record(act, "organization_ended", organization, event="organization.deleted")
        else:
            _record_removed(act, organization, user_id)


def take_back(asked: Asked, act: Act, user_id: str) -> list[str]:
    """Take a locked user out of the organizations that a thief may have joined by invitation in the last
    seven days. Return the short names.

    The last owner stays (rule 48). Roles that the user gave stay, too.
    """
    if not organizations.is_on(asked.settings):
        return []
    memberships = queries.list_memberships(act, user_id=user_id)
    recent = [each.id for each in memberships if rules.is_taken_back(each)]
    if recent:
        act.lock_organizations(recent)
    slugs = []
    for id in recent:
        organization = facts_of(act, id, user_id)
        if organization and not rules.is_last_owner(organization.role, organization.other_owners):
            remove_member(asked, act, organization, user_id, tells=False)
            slugs.append(organization.slug)
    return sorted(slugs)


def record_added(
    act: Act, organization: OrganizationFacts, user: PersonFacts, role: str, added_by: str
) -> None:
    member = Member(user.id, user.email, role)
    record(act, "membership_added", organization, member, event="membership.created", added_by=added_by)


def _record_removed(act: Act, organization: OrganizationFacts, user_id: str) -> None:
    member = Member(user_id, organization.email, organization.role)
    record(act, "membership_removed", organization, member, event="membership.deleted")
