"""The form that invites several addresses at once, and *Send again*."""

import pytest

from auth.core.addresses import canonical_typed_email
from auth.extensions.organizations.pages import inviting
from tests.support.pages import Visitor, unsigned, words

PATH = "/account/organizations/acme"
# Pages count days by dates.
AT_THE_END_OF = "date_trunc('day', now(), 'UTC') + interval '1 day' * ({days} + 1) - interval '1 second'"
CAROL, DAVE, EVE = "carol@example.com", "dave@example.com", "eve@example.com"


@pytest.fixture
def at_form(acme, alice, browse):
    """Alice's browser, at the form that invites to Acme, which she owns."""
    visitor = browse(alice)
    visitor.visit(f"{PATH}/invite")
    return visitor


@pytest.fixture
def invited(database):
    """Return the addresses with an open invitation."""
    return lambda: [
        row.email for row in database.all("SELECT email FROM organization_invitations ORDER BY email")
    ]


def alert(page):
    return 'aria-invalid="true"' in page.text.partition('name="emails"')[2].partition(">")[0]


def test_each_address_gets_one_mail_and_one_entry_however_they_are_separated(
    at_form, mails, invited, database
):
    page = at_form.press("invite", emails=f"{CAROL}, Dave@Example.com;\n {EVE}\t{CAROL}", role="member")
    assert unsigned(page).endswith(f"{PATH}?done=members_invited#invitations")
    assert "The invitations have been sent." in words(page)
    assert "3 of 100 open" in words(page)
    assert invited() == [CAROL, DAVE, EVE]
    assert database.count("outbox", "kind = 'organization_invitation'") == 3
    rows = database.all(
        "SELECT details ->> 'invited' AS email FROM audit_log WHERE action = 'member_invited'"
    )
    assert sorted(row.email for row in rows) == [CAROL, DAVE, EVE]


def test_word_that_is_no_address_refuses_the_form_and_keeps_what_was_typed(at_form, invited, database):
    typed = f"{CAROL}, bob@ & <{DAVE}>"
    page = at_form.press("invite", emails=typed, role="admin")
    assert page.status == 400
    assert "These aren’t email addresses: bob@ , &" in words(page)
    assert "Nothing has been sent." in words(page)
    assert alert(page)
    assert page.forms[0].fields["emails"] == typed
    assert page.forms[0].fields["role"] == "admin"
    assert invited() == []
    assert database.count("outbox", "kind = 'organization_invitation'") == 0


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (" ,; ", "Enter at least one email address."),
        ("bob@", "bob@ isn’t an email address."),
        (
            " ".join(f"p{n}@example.com" for n in range(21)),
            "You entered 21 addresses. Invite up to 20 at a time.",
        ),
    ],
)
def test_form_says_what_is_wrong_with_the_addresses(at_form, invited, typed, message):
    page = at_form.press("invite", emails=typed, role="member")
    assert page.status == 400
    assert message in words(page)
    assert invited() == []


def test_hundreds_of_addresses_are_counted_and_not_read(at_form, invited, monkeypatch):
    read = []

    def recorded(word):
        read.append(word)
        return canonical_typed_email(word)

    monkeypatch.setattr(inviting, "canonical_typed_email", recorded)
    typed = " ".join(f"a@{chr(0x4E00 + n)}.example" for n in range(500))
    page = at_form.press("invite", emails=typed, role="member")
    assert page.status == 400
    assert "You entered 500 addresses. Invite up to 20 at a time." in words(page)
    assert read == []
    at_form.press("invite", emails=f"{CAROL.upper()} {CAROL} " * 200, role="member")
    assert read == [CAROL.upper()]
    assert invited() == [CAROL]


def test_member_among_the_addresses_is_named_and_the_others_are_sent(
    at_form, acme, join, bob, invited, database
):
    join(bob, acme)
    page = at_form.press("invite", emails=f"{CAROL} {bob.email} {DAVE}", role="billing")
    assert page.status == 409
    text = words(page)
    assert f"Invited: {CAROL} , {DAVE}" in text
    assert (
        "This invitation wasn’t sent: bob@example.com : This person is already a member. Change role" in text
    )
    assert f"{PATH[1:]}/members/{bob.id}" in page.text
    assert page.forms[0].fields["emails"] == bob.email
    assert invited() == [CAROL, DAVE]
    assert database.count("outbox", "kind = 'organization_invitation'") == 3  # the first was Bob's


def test_addresses_beyond_the_limit_of_open_invitations_are_named(at_form, invite, invited, database):
    invite(EVE)
    database.run(
        """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT gen_random_uuid(), id, n || '@example.com', 'member', now() + interval '1 day'
             FROM organizations, generate_series(1, 98) AS n"""
    )
    page = at_form.press("invite", emails=f"{CAROL} {DAVE} {EVE}", role="member")
    text = words(page)
    assert f"Invited: {CAROL} , {EVE}" in text
    assert f"{DAVE} : There are already 100 open invitations. Withdraw some first." in text
    assert len(invited()) == 100
    assert DAVE not in invited()


def test_admin_may_invite_nobody_as_admin_and_nobody_whom_an_owner_has_invited_so(
    acme, join, bob, invite, browse, invited, database
):
    join(bob, acme, "admin")
    invite(EVE, "admin")
    visitor = browse(bob)
    visitor.visit(f"{PATH}/invite")
    page = visitor.press("invite", emails=f"{CAROL} {DAVE}", role="", other_role="admin")
    assert page.status == 403
    assert "Your role in this organization doesn’t allow this." in words(page)
    assert invited() == [EVE]
    page = visitor.press("invite", emails=f"{EVE} {CAROL}", role="member")
    assert f"Invited: {CAROL} Email addresses" in words(page)
    assert f"{EVE} : Your role in this organization doesn’t allow this." in words(page)
    assert (
        database.value("SELECT role FROM organization_invitations WHERE email = %(email)s", email=EVE)
        == "admin"
    )
    assert invited() == [CAROL, EVE]


def test_each_address_counts_in_the_window_of_invitations_and_what_was_sent_is_said(
    make_app, acme, alice, invited, database
):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_INVITE": "2 per hour"}
    visitor = Visitor(make_app(AUTH_ORGANIZATIONS="users", **limits)).with_session_of(alice)
    visitor.visit(f"{PATH}/invite")
    page = visitor.press("invite", emails=f"{CAROL} {DAVE} {EVE}", role="member")
    assert page.status == 429
    assert f"Invited: {CAROL} , {DAVE}" in words(page)
    assert f"{EVE} : Too many attempts. Try again in an hour." in words(page)
    assert invited() == [CAROL, DAVE]
    page = visitor.press("invite", emails=f"{EVE} new@example.com", role="member")
    assert page.status == 429
    assert page.forms[0].fields["emails"] == f"{EVE} new@example.com"
    assert invited() == [CAROL, DAVE]


def test_proof_is_asked_for_before_the_first_owner_is_invited(at_form, invited, database):
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    page = at_form.press("invite", emails=f"{CAROL} {DAVE}", role="owner")
    assert "Confirm it’s you" in words(page)
    assert invited() == []


class TestAnotherRole:
    def test_role_that_nobody_has_yet_is_typed(self, at_form, database):
        at_form.press("invite", emails=CAROL, role="", other_role=" billing ")
        assert "carol@example.com billing" in words(at_form.page)
        assert database.value("SELECT role FROM organization_invitations") == "billing"

    @pytest.mark.parametrize("typed", ["", "Billing", "billing team", "b" * 33, "1st"])
    def test_word_that_is_no_role_is_refused_at_its_field(self, at_form, invited, typed):
        page = at_form.press("invite", emails=CAROL, role="", other_role=typed)
        assert page.status == 400
        assert "Use up to 32 lowercase letters, digits, hyphens and underscores" in words(page)
        assert 'aria-invalid="true"' in page.text.partition('name="other_role"')[2].partition(">")[0]
        assert page.forms[0].fields["emails"] == CAROL
        assert invited() == []

    def test_member_gets_a_role_that_nobody_has_yet(self, acme, join, bob, alice, browse, database):
        join(bob, acme)
        visitor = browse(alice)
        visitor.visit(f"{PATH}/members/{bob.id}")
        visitor.press(f"members/{bob.id}", role="", other_role="billing")
        assert "bob@example.com billing" in words(visitor.page)
        assert database.value("SELECT role FROM memberships WHERE user_id = %(id)s", id=bob.id) == "billing"

    def test_admin_does_not_type_the_role_of_an_owner(self, acme, join, bob, mallory, browse, database):
        join(bob, acme, "admin")
        join(mallory, acme)
        visitor = browse(bob)
        visitor.visit(f"{PATH}/members/{mallory.id}")
        page = visitor.press(f"members/{mallory.id}", role="", other_role="owner")
        assert page.status == 403
        assert database.count("memberships", "role = 'owner'") == 1


class TestSendAgain:
    def test_invitation_gets_seven_more_days_and_a_mail(self, acme, invite, alice, browse, database):
        invite(CAROL, "billing")
        database.run("UPDATE organization_invitations SET expires_at = " + AT_THE_END_OF.format(days=1))
        visitor = browse(alice)
        assert "billing · expires tomorrow" in words(visitor.visit(PATH))
        page = visitor.press("again")
        assert "The invitation is valid for seven more days. We’ll email it again, unless" in words(page)
        assert "billing · expires in 7 days" in words(page)
        assert database.count("outbox", "kind = 'organization_invitation'") == 2
        assert database.count("audit_log", "action = 'member_invited'") == 2

    def test_answer_is_the_same_once_the_window_of_the_address_is_used_up(
        self, make_app, acme, invite, alice, database
    ):
        invite(CAROL)
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_INVITE_PER_ADDRESS": "1 per day"}
        visitor = Visitor(make_app(AUTH_ORGANIZATIONS="users", **limits)).with_session_of(alice)
        visitor.visit(PATH)
        pages = [words(visitor.press("again")), words(visitor.press("again"))]
        assert pages[0] == pages[1]
        assert (
            "We’ll email it again, unless this address has already been sent several invitations today."
            in pages[0]
        )
        assert database.count("outbox", "kind = 'organization_invitation'") == 2

    def test_invitation_that_is_gone_is_said_on_the_page_and_is_not_made_anew(
        self, acme, invite, alice, browse, invited, database
    ):
        id = invite(CAROL)
        database.run("DELETE FROM organization_invitations")
        visitor = browse(alice)
        for act in ("again", "withdraw"):
            visitor.visit(f"{PATH}/name")
            page = visitor.send(f"{PATH}/invitations/{id}/{act}")
            assert page.status == 404
            assert "This invitation is no longer open" in words(page)
            assert "Members 1" in words(page)
        assert invited() == []

    def test_invitation_of_another_organization_is_not_found(
        self, acme, invite, client, bob, browse, database
    ):
        id = invite(CAROL)
        session = bob.open_session(client)
        assert session.post("/organizations", json={"name": "Beta", "slug": "beta"}).status_code == 201
        visitor = browse(bob)
        before = database.everything("organization_invitations", "outbox")
        for act in ("again", "withdraw"):
            visitor.visit("/account/organizations/beta/name")
            page = visitor.send(f"/account/organizations/beta/invitations/{id}/{act}")
            assert page.status == 404
            assert "This invitation is no longer open" in words(page)
            assert CAROL not in page.text
        assert database.everything("organization_invitations", "outbox") == before

    def test_invitations_that_expire_first_stand_first(self, acme, invite, alice, browse, database):
        times = (
            (CAROL, AT_THE_END_OF.format(days=2)),
            (DAVE, "now() + interval '31 minutes'"),
            (EVE, "now() + interval '181 minutes'"),
        )
        for email, time in times:
            invite(email)
            update = f"UPDATE organization_invitations SET expires_at = {time} WHERE email = %(email)s"
            database.run(update, email=email)
        text = words(browse(alice).visit(PATH)).partition("3 of 100 open")[2]
        expected = (
            (DAVE, "expires in less than an hour"), (EVE, "expires in 3 hours"), (CAROL, "expires in 2 days")
        )  # fmt: skip
        places = [text.index(f"{email} Member · {words_of}") for email, words_of in expected]
        assert places == sorted(places)

    def test_admin_has_no_acts_on_the_invitation_of_an_owner(self, acme, join, bob, invite, browse):
        join(bob, acme, "admin")
        invite(EVE, "owner")
        visitor = browse(bob)
        assert "/again" not in visitor.visit(PATH).text
