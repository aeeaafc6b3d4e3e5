"""Who belongs to an organization, and who may say so (rules 46 to 49), a sentence and an example each."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from auth.rules import organizations
from auth.rules.organizations import Membership, Standing
from auth.rules.sessions import EPOCH
from tests.rules.facts import ALICE, ANONYMOUS, DAY, NOW, UNUSED
from tests.support.cases import cases

ACME = Membership(id="acme", role="admin")
SECURE = Membership(id="secure", role="owner", level="aal2")
FEDERATED = Membership(id="federated", role="member", providers=["sso:1"])
PROVED = replace(ALICE, email_proved=True)
HALF_A_DAY, SECOND = timedelta(hours=12), timedelta(seconds=1)


@dataclass(frozen=True)
class OrganizationProvider:
    tried_at: datetime | None
    is_blocked: bool = False


TRIED = OrganizationProvider(tried_at=NOW)


def standing_of(aal, providers=(), *, age=timedelta(0), age_at_provider=timedelta(0)):
    times = dict.fromkeys(providers, int((NOW - age_at_provider).timestamp()))
    return Standing(aal, times, NOW - age, NOW)


@dataclass(frozen=True, kw_only=True)
class Invitation:
    email: str = "alice@example.com"
    role: str = "member"
    expires_at: datetime = NOW + DAY
    ended_at: datetime | None = None


@cases(
    ("sentence", "aal", "providers", "roles"),
    [
        ("A token says what counts in its session.", "aal1", [], {"acme": "admin"}),
        ("With the level that the organization requires.", "aal2", [], {"acme": "admin", "secure": "owner"}),
        ("Or with its provider.", "aal1", ["sso:1"], {"acme": "admin", "federated": "member"}),
        ("No other one will do.", "aal1", ["sso:2", "google"], {"acme": "admin"}),
        ("A session that lacks a step has none.", "aal0", [], {}),
    ],
)
def test_membership_counts(sentence, aal, providers, roles):
    standing = standing_of(aal, providers)
    assert organizations.roles_in_token([ACME, SECURE, FEDERATED], standing) == roles


@cases(
    ("sentence", "actor", "before", "after", "owners", "is_self", "refusal"),
    [
        ("Owners manage all.", "owner", "admin", "owner", 0, False, None),
        ("Admins those below them.", "admin", "member", "billing", 1, False, None),
        ("They raise nobody to their own rank.", "admin", "member", "admin", 1, False, "organization"),
        ("They remove no admin.", "admin", "admin", None, 1, False, "organization"),
        ("Nor an owner.", "admin", "owner", None, 1, False, "organization"),
        ("Members manage nobody.", "member", "member", None, 1, False, "organization"),
        ("Everybody may leave.", "member", "member", None, 1, True, None),
        ("And nobody may raise himself.", "admin", "admin", "owner", 1, True, "organization"),
        ("The last owner stays.", "owner", "owner", None, 0, True, "last_owner"),
        ("And keeps the role.", "owner", "owner", "member", 0, True, "last_owner"),
        ("One of two may go.", "owner", "owner", None, 1, True, None),
    ],
)
def test_role_is_changed_by_those_above_it(sentence, actor, before, after, owners, is_self, refusal):
    error_key = organizations.refusal_of_change(actor, before, after, owners, is_self=is_self)
    assert (error_key and error_key.partition(".")[0]) == refusal


@cases(
    ("before", "after", "loses"),
    [
        ("admin", "member", True),
        ("owner", "admin", True),
        ("admin", None, True),
        ("admin", "owner", False),
        ("member", "billing", False),
        ("member", None, False),
    ],
)
def test_lowered_membership_takes_its_invitations(before, after, loses):
    assert organizations.loses_invitations(before, after) is loses


@cases(
    ("sentence", "actor", "before", "after", "open_ones", "is_member", "refusal"),
    [
        ("Admins invite.", "admin", None, "member", 0, False, None),
        ("But nobody of their own rank.", "admin", None, "admin", 0, False, "organization"),
        ("Nor do they lower an owner's invitation.", "admin", "owner", "member", 0, False, "organization"),
        ("A user who lost the role invites nobody.", "", None, "member", 0, False, "organization"),
        ("A hundred are open at most.", "owner", None, "member", 100, False, "too_many_invitations"),
        ("One of them may be sent again.", "owner", "member", "admin", 100, False, None),
        ("A member is not invited.", "owner", None, "admin", 0, True, "already_member"),
        ("Nor by an operator.", None, None, "owner", 100, True, "already_member"),
        ("An admin hears first that the role is too high.", "admin", None, "admin", 0, True, "organization"),
        ("An operator has no role.", None, "owner", "member", 0, False, None),
    ],
)
def test_address_is_invited(sentence, actor, before, after, open_ones, is_member, refusal):
    error_key = organizations.refusal_of_invitation(actor, before, after, open_ones, is_member=is_member)
    assert (error_key and error_key.partition(".")[0]) == refusal


@cases(
    ("sentence", "person", "invitation", "memberships", "is_member", "refusal"),
    [
        ("A user who proved the address joins.", PROVED, Invitation(), 49, False, None),
        (
            "A stranger does not.",
            PROVED,
            Invitation(email="bob@example.com"),
            0,
            False,
            "invitation_not_found",
        ),
        (
            "Nor does a user who only typed it.",
            replace(ALICE, email_proved=False),
            Invitation(),
            0,
            False,
            "invitation_not_found",
        ),
        ("It ends at its moment.", PROVED, Invitation(expires_at=NOW), 0, False, "invitation_not_found"),
        ("And with its organization.", PROVED, Invitation(ended_at=NOW), 0, False, "invitation_not_found"),
        ("There must be one.", PROVED, None, 0, False, "invitation_not_found"),
        ("A user is in fifty.", PROVED, Invitation(), 50, False, "too_many_memberships"),
        ("A member may press again.", PROVED, Invitation(), 50, True, None),
    ],
)
def test_invitation_is_accepted(sentence, person, invitation, memberships, is_member, refusal):
    error_key = organizations.refusal_of_acceptance(person, invitation, memberships, is_member=is_member)
    assert error_key == refusal


@cases(
    ("person", "founded", "refusal"),
    [
        (PROVED, 4, None),
        (replace(ALICE, email_proved=False), 0, "email_not_confirmed"),
        (PROVED, 5, "too_many_organizations"),
    ],
)
def test_organization_is_founded(person, founded, refusal):
    assert organizations.refusal_of_founder(person, founded) == refusal


@cases(("memberships", "is_in_fifty"), [(49, False), (50, True)])
def test_user_is_in_fifty_organizations_at_most(memberships, is_in_fifty):
    assert organizations.is_in_fifty(memberships) == is_in_fifty


@cases(
    ("person", "is_allowed"),
    [
        (PROVED, True),
        (replace(UNUSED, made_by="administrator"), True),
        (replace(UNUSED, made_by="oauth", last_sign_in_at=NOW), False),
        (replace(UNUSED, made_by="oauth", email=None), True),
        (replace(UNUSED, made_by="oauth", email_proved=True), True),
        (UNUSED, False),
        (replace(UNUSED, email_proved=True), False),
        (replace(UNUSED, email_proved=True, last_sign_in_at=NOW), True),
        (replace(ANONYMOUS, email_proved=False), False),
    ],
)
def test_user_whom_a_stranger_may_have_made_is_not_added(person, is_allowed):
    assert organizations.may_be_added(person) is is_allowed


@cases(
    ("role", "members", "owners", "outcome"),
    [
        ("member", 2, 1, "leave"),
        ("owner", 3, 1, "leave"),
        ("owner", 2, 0, "refuse"),
        ("owner", 1, 0, "end"),
    ],
)
def test_deletion_of_a_user_leaves_or_ends_an_organization(role, members, owners, outcome):
    assert organizations.what_deletion_does(role, members, owners) == outcome


@cases(
    ("sentence", "providers", "aal", "opened_by", "refusal"),
    [
        ("Its provider opened the session.", ["sso:1"], "aal1", ["sso:1"], None),
        ("One of two is enough.", ["sso:1", "sso:2"], "aal1", ["sso:2"], None),
        ("Another organization's will not do.", ["sso:1"], "aal1", ["sso:3"], "organization_sign_in_needed"),
        ("While all are off, no session counts.", [], "aal1", ["sso:1"], "organization_sign_in_needed"),
        ("Without the requirement, all count.", None, "aal1", [], None),
        ("The level comes first.", ["sso:1"], "aal0", [], "insufficient_aal"),
    ],
)
def test_session_is_refused(sentence, providers, aal, opened_by, refusal):
    membership = Membership(id="acme", role="member", providers=providers)
    assert organizations.refusal_of_session(membership, standing_of(aal, opened_by)) == refusal


@cases(
    ("sentence", "max_age", "age", "refusal"),
    [
        ("Without the requirement, any sign-in counts.", None, 365 * DAY, None),
        ("A younger one counts.", HALF_A_DAY, HALF_A_DAY - SECOND, None),
        ("One of exactly the age does not.", HALF_A_DAY, HALF_A_DAY, "reauthentication_needed"),
        ("An older one does not.", HALF_A_DAY, HALF_A_DAY + SECOND, "reauthentication_needed"),
        ("Nor one of an API key.", HALF_A_DAY, NOW - EPOCH, "reauthentication_needed"),
        ("A clock that was set back refuses nobody.", HALF_A_DAY, -DAY, None),
    ],
)
def test_age_of_sign_in_is_limited(sentence, max_age, age, refusal):
    membership = Membership(id="acme", role="member", max_age=max_age)
    assert organizations.refusal_of_session(membership, standing_of("aal1", age=age)) == refusal


@cases(
    ("sentence", "age", "age_at_provider", "refusal"),
    [
        ("Both are young.", SECOND, 2 * SECOND, None),
        ("A later proof replaces no sign-in at the provider.", SECOND, DAY, "reauthentication_needed"),
        ("Nor the provider's word that it was earlier.", DAY, SECOND, "reauthentication_needed"),
    ],
)
def test_age_counts_from_the_required_provider(sentence, age, age_at_provider, refusal):
    membership = Membership(id="acme", role="member", providers=["sso:1", "sso:2"], max_age=HALF_A_DAY)
    standing = standing_of("aal2", ["sso:2"], age=age, age_at_provider=age_at_provider)
    assert organizations.refusal_of_session(membership, standing) == refusal
    # Any sign-in counts where the organization requires none of its providers.
    free = replace(membership, providers=None)
    assert organizations.counts(free, standing) == (age < HALF_A_DAY)


def test_order_of_requirements_is_level_provider_age():
    membership = Membership(id="acme", role="member", level="aal2", providers=["sso:1"], max_age=HALF_A_DAY)
    refusals = [
        organizations.refusal_of_session(membership, standing_of(aal, providers, age=DAY))
        for aal, providers in [("aal1", []), ("aal2", []), ("aal2", ["sso:1"])]
    ]
    assert refusals == ["insufficient_aal", "organization_sign_in_needed", "reauthentication_needed"]


def test_session_at_any_age_meets_the_age_and_nothing_else():
    old = standing_of("aal1", ["sso:1"], age=365 * DAY, age_at_provider=365 * DAY)
    young, membership = organizations.at_any_age(old), Membership(id="acme", role="member", max_age=DAY)
    assert not organizations.counts(membership, old)
    assert organizations.counts(membership, young)
    assert organizations.counts(replace(membership, providers=["sso:1"]), young)
    assert not organizations.counts(replace(membership, level="aal2"), young)
    assert not organizations.counts(replace(membership, providers=["sso:2"]), young)


@cases(
    ("typed", "name", "is_same"),
    [
        ("Acme", "Acme", True),
        (" acme  inc. ", "Acme Inc.", True),
        ("Mu\u0308ller", "M\u00fcller", True),
        ("STRASSE", "Stra\u00dfe", True),
        ("\uff21cme", "Acme", True),
        ("", "Acme", False),
        ("Acm", "Acme", False),
        ("Acme Inc.", "Acme", False),
    ],
)
def test_name_is_typed_in_any_case_normal_form_and_spacing(typed, name, is_same):
    assert organizations.is_same_name(typed, name) is is_same


@cases(
    ("records", "is_proof"),
    [
        (["latchkey=t0"], True),
        (["v=spf1", " latchkey=t0 "], True),
        (["latchkey=t1"], False),
        (["latchkey=t0x"], False),
        (["t0"], False),
        ([], False),
    ],
)
def test_record_proves_a_domain(records, is_proof):
    assert organizations.is_proof_of_domain(records, "t0") is is_proof


@cases(
    ("sentence", "missing_since", "outcome"),
    [
        ("Owners are told first.", None, "tell"),
        ("Then it is kept.", NOW - 13 * DAY, "keep"),
        ("And lost after fourteen days.", NOW - 14 * DAY, "lose"),
    ],
)
def test_missing_record_gives_a_domain_up(sentence, missing_since, outcome):
    assert organizations.what_missing_record_does(missing_since, NOW) == outcome


@cases(
    ("provider", "turns_on", "is_own_session", "refusal"),
    [
        (TRIED, True, True, None),
        (TRIED, True, False, "provider_not_tried"),
        (replace(TRIED, tried_at=None), True, True, "provider_not_tried"),
        (replace(TRIED, tried_at=None), False, False, None),
        (replace(TRIED, is_blocked=True), True, True, "owner.sso_provider_disabled"),
        (replace(TRIED, is_blocked=True), False, False, "owner.sso_provider_disabled"),
    ],
)
def test_provider_is_changed_by_its_owners(provider, turns_on, is_own_session, refusal):
    error_key = organizations.refusal_of_owners_change(
        provider, turns_on=turns_on, is_own_session=is_own_session
    )
    assert error_key == refusal
