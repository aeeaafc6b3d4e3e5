"""Memberships, roles, invitations and domains of organizations (rules 46 to 50)."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from auth.rules.levels import Aal
from auth.rules.policy import FRESH_AGE, RECENT_AGE
from auth.rules.refusals import Refusal
from auth.rules.sessions import EPOCH
from auth.rules.users import Person

# A token says all memberships that count: with roles of 32 characters, the claim is shorter than 4 KiB.
MOST_MEMBERSHIPS = 50
# Organizations that a user has founded and that have not ended, and open invitations of an organization.
MOST_FOUNDED = 5
MOST_INVITATIONS = 100
# Names of domains, proved or not, and providers of an organization.
MOST_DOMAINS = 20
MOST_PROVIDERS = 5
# The seconds within which an organization may require the last sign-in: as long as a proof is fresh, so that
# an owner who has given one can lift the requirement, and a year.
LEAST_AGE, MOST_AGE = int(FRESH_AGE.total_seconds()), 365 * 86_400
# How the TXT record of a domain begins, before its token.
RECORD = "latchkey="
# An organization loses a domain whose record is missing for this time.
_KEPT_WITHOUT_RECORD = timedelta(days=14)
OWNER, ADMIN, MEMBER = "owner", "admin", "member"
# None is no member.
Role = str | None
# Whether the organization's sign-in opens the account of a former member, and makes the user a member again.
# It is `lost` if it opened the account before.
SignInAfter = Literal["none", "lost", "opens", "joins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A role in an organization, which requires a level of the session, a sign-in within `max_age` unless
    None, and one of `providers` unless None: an empty list is a requirement that no session meets.
    """

    id: str
    role: str
    level: Aal = "aal1"
    providers: Sequence[str] | None = None
    max_age: timedelta | None = None


class Standing(NamedTuple):
    """What a session meets requirements with, at `now`: its level, the Unix time at which each provider that
    opened it signed its user in, and when the user last authenticated (`sessions.authenticated_at`).
    """

    aal: Aal
    providers: Mapping[str, int]
    authenticated_at: datetime
    now: datetime


# Nobody has signed in: no membership counts.
NO_STANDING = Standing("", {}, EPOCH, EPOCH)


class AddedMembership(Protocol):
    """A row with a membership, and how the user got it."""

    @property
    def added_by(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def now(self) -> datetime: ...


class OrganizationProvider(Protocol):
    """A row with an organization's provider."""

    @property
    def is_blocked(self) -> bool: ...
    @property
    def tried_at(self) -> datetime | None: ...


class LinkedIdentity(Protocol):
    """A row with an identity. `is_first_proof` if it proved the user's address first."""

    @property
    def created_at(self) -> datetime: ...
    @property
    def is_first_proof(self) -> bool: ...


class AddingProvider(Protocol):
    """A row with an organization's provider, which may add members."""

    @property
    def enabled(self) -> bool: ...
    @property
    def member_role(self) -> str | None: ...


class IdentityAtOrganization(LinkedIdentity, AddingProvider, Protocol):
    """A row with an identity of a user at an organization's provider."""


class Invitation(Protocol):
    """A row with an invitation of an address, and of its organization."""

    @property
    def email(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def expires_at(self) -> datetime: ...
    @property
    def ended_at(self) -> datetime | None: ...


def refusal_of_session(membership: Membership, standing: Standing) -> Refusal | None:
    """Refuse a session without the level, that none of the providers opened, or whose sign-in is older than
    the organization requires.
    """
    if standing.aal < membership.level:
        return "insufficient_aal"
    if membership.providers is not None and standing.providers.keys().isdisjoint(membership.providers):
        return "organization_sign_in_needed"
    if membership.max_age is None or _signed_in_at(membership, standing) > standing.now - membership.max_age:
        return None
    return "reauthentication_needed"


def _signed_in_at(membership: Membership, standing: Standing) -> datetime:
    """When the sign-in was whose age an organization limits.

    One that requires its own provider wants that provider's word: with a proof given here since, a former
    employee would stay a member.
    """
    if membership.providers is None:
        return standing.authenticated_at
    newest = max(standing.providers[name] for name in membership.providers if name in standing.providers)
    return min(standing.authenticated_at, datetime.fromtimestamp(newest, UTC))


def at_any_age(standing: Standing) -> Standing:
    """Return the standing of the session if its sign-in were recent enough for every organization."""
    return standing._replace(now=EPOCH)


def counts(membership: Membership, standing: Standing) -> bool:
    """Rule 47: whether a membership counts in a session."""
    return refusal_of_session(membership, standing) is None


def roles_in_token(memberships: Iterable[Membership], standing: Standing) -> dict[str, str]:
    """Rule 47: the roles that a token says, by organization: all that count."""
    return {each.id: each.role for each in memberships if counts(each, standing)}


def may_manage(actor: Role, before: Role, after: Role) -> bool:
    """Rule 48: owners manage all, admins those below them."""
    if actor == OWNER:
        return True
    return actor == ADMIN and not (manages(before) or manages(after))


def manages(role: Role) -> bool:
    """Whether a role may manage others. Members need a fresh proof to give it or invite to it."""
    return role in (OWNER, ADMIN)


def refusal_of_change(
    actor: Role, before: Role, after: Role, other_owners: int, *, is_self: bool
) -> Refusal | None:
    """Refuse to change a role, of a member `before`, `after` the change.

    A member may leave, and an organization keeps an owner (rule 48). `actor` is the role of the user who
    asks. Without a user, the service role key asks, and may do all of it.
    """
    if not (is_self and after is None) and not may_manage(actor, before, after):
        return "organization.insufficient_permissions"
    return "last_owner" if is_last_owner(before, other_owners) and after != OWNER else None


def is_last_owner(role: Role, other_owners: int) -> bool:
    return role == OWNER and not other_owners


def loses_invitations(before: Role, after: Role) -> bool:
    """Rule 49: a membership that is lost or lowered takes the invitations that its user sent."""
    return manages(before) and _rank(after) < _rank(before)


def is_moved(account_created_at: datetime, identity: LinkedIdentity) -> bool:
    """Rule 49: whether an account is older than its identity at the organization's provider, which then goes
    with the membership.

    A provider that made the account made both at one moment. What somebody prepared for the address, such as
    a request for a code, is no account before the first proof.
    """
    return account_created_at < identity.created_at and not identity.is_first_proof


def adds_member(provider: AddingProvider) -> bool:
    """Whether a sign-in with an organization's provider makes its user a member."""
    return provider.enabled and provider.member_role is not None


def sign_in_after(kept: Iterable[IdentityAtOrganization], *, has_lost: bool) -> SignInAfter:
    """What the organization's sign-in does for a former member who kept these identities.

    One that is off counts, too: once it is on again, it opens the account of a user who was told otherwise.
    """
    roles = [identity.member_role for identity in kept]
    if any(roles):
        return "joins"
    if roles:
        return "opens"
    return "lost" if has_lost else "none"


def refusal_of_invitation(
    actor: Role, before: Role, after: str, invitations: int, *, is_member: bool
) -> Refusal | None:
    """Refuse an invitation with a role; `before` is that of an open one for the same address.

    `actor` is the role of the member who invites, None for an operator. `invitations` is the number of open
    ones, and `is_member` whether a member has proved the address: who may invite sees the members' addresses.
    """
    if actor is not None and not may_manage(actor, before, after):
        return "organization.insufficient_permissions"
    if is_member:
        return "already_member"
    return "too_many_invitations" if before is None and invitations >= MOST_INVITATIONS else None


def is_open_to(person: Person, invitation: Invitation) -> bool:
    """Rule 46: an invitation is for a proved address."""
    is_for = person.email_proved and person.email == invitation.email
    return is_for and invitation.expires_at > person.now and invitation.ended_at is None


def refusal_of_acceptance(
    person: Person, invitation: Invitation | None, memberships: int, *, is_member: bool
) -> Refusal | None:
    """Refuse an invitation that is not open to the user, as if there were none.

    `memberships` is the number of the user's.
    """
    if invitation is None or not is_open_to(person, invitation):
        return "invitation_not_found"
    return "too_many_memberships" if not is_member and is_in_fifty(memberships) else None


def is_in_fifty(memberships: int) -> bool:
    """Rule 47: a user is in fifty organizations at most, even if an administrator adds the user."""
    return memberships >= MOST_MEMBERSHIPS


def refusal_of_founder(person: Person, founded: int) -> Refusal | None:
    """Refuse a founder who has not proved an email, or has founded too many organizations."""
    if not person.email_proved:
        return "email_not_confirmed"
    return "too_many_organizations" if founded >= MOST_FOUNDED else None


def may_be_added(person: Person) -> bool:
    """Whether an administrator may add a user.

    A user whom a stranger may have made is deleted without a question once the owner of the address proves
    it, unless the user has signed in. A provider's user may have an address that the provider has not
    verified, and that the administrator takes for its owner's.
    """
    if person.made_by == "oauth":
        return person.email is None or person.email_proved
    if person.made_by not in ("signup", "message", "anonymous"):
        return True
    return person.email_proved and person.last_sign_in_at is not None


def what_deletion_does(role: Role, members: int, other_owners: int) -> Literal["refuse", "end", "leave"]:
    """Rule 48: the last owner may not be deleted while there are other members. Without any, the organization
    ends.
    """
    if is_last_owner(role, other_owners):
        return "refuse" if members > 1 else "end"
    return "leave"


def is_proof_of_domain(records: Iterable[str], token: str) -> bool:
    """Rule 50: whether one of the TXT records has the token that the organization got for the domain."""
    return f"{RECORD}{token}" in (record.strip() for record in records)


def what_missing_record_does(
    missing_since: datetime | None, now: datetime
) -> Literal["tell", "keep", "lose"]:
    """Rule 50: owners are told that the record of a domain is missing, and lose it after fourteen days."""
    if missing_since is None:
        return "tell"
    return "lose" if now - missing_since >= _KEPT_WITHOUT_RECORD else "keep"


def refusal_of_owners_change(
    provider: OrganizationProvider, *, turns_on: bool, is_own_session: bool
) -> Refusal | None:
    """An owner leaves a provider alone that an operator has disabled, and turns one on if `may_turn_on`."""
    if provider.is_blocked:
        return "owner.sso_provider_disabled"
    if turns_on and not may_turn_on(is_tested=provider.tried_at is not None, is_own_session=is_own_session):
        return "provider_not_tried"
    return None


def may_turn_on(*, is_tested: bool, is_own_session: bool) -> bool:
    """Whether an owner may turn a provider on: one that has signed an owner in as it is set up now
    (`is_tested`), in a session that it opened (`is_own_session`).
    """
    return is_tested and is_own_session


def refusal_of_loss(*, before: bool, after: bool) -> Refusal | None:
    """An organization that requires its own sign-in keeps a provider that is on and has a domain: no owner
    could undo the loss.
    """
    return "own_sign_in_required" if before and not after else None


def is_same_name(typed: str, name: str) -> bool:
    """Whether an owner has typed the organization's name, in any case, normal form and spacing."""
    return _folded(typed) == _folded(name)


def is_taken_back(membership: AddedMembership) -> bool:
    """Whether *This wasn't me* ends a membership: one that the user accepted in the last seven days."""
    is_recent = membership.created_at >= membership.now - RECENT_AGE
    return membership.added_by == "invitation" and is_recent


def _folded(text: str) -> str:
    # Folding can undo the normal form.
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _rank(role: Role) -> int:
    return {None: 0, ADMIN: 2, OWNER: 3}.get(role, 1)
