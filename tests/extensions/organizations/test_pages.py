"""Organizations on our pages: what founders, members, invited people and strangers see and do."""

import pytest

from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD

PATH = "/account/organizations/acme"
NEW = "new@example.com"
UNKNOWN = "/account/organizations/nowhere"


@pytest.fixture
def at_acme(acme, alice, browse):
    """Alice's browser, at the page of Acme, which she owns."""
    visitor = browse(alice)
    visitor.visit(PATH)
    return visitor


class TestFounding:
    def test_founder_gets_to_the_page_of_the_organization(self, alice, browse, database):
        visitor = browse(alice)
        visitor.visit("/account")
        visitor.visit(visitor.link_to("account/organizations/new"))
        visitor.press("account/organizations/new", name="Acme & Söhne", slug="acme")
        text = words(visitor.page)
        assert "The organization has been created." in text
        assert "Acme & Söhne" in text
        assert "alice@example.com You Owner" in text
        assert database.count("memberships", "role = 'owner' AND added_by = 'founder'") == 1

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"name": "Acme", "slug": "acme"}, "This short name is taken."),
            ({"name": "Other", "slug": "Not A Slug"}, "Use lowercase letters, digits and hyphens."),
            ({"name": "Other", "slug": "join"}, "This short name is taken."),
            ({"name": "n" * 101, "slug": "other"}, "Use 1 to 100 visible characters."),
        ],
    )
    def test_refused_form_keeps_what_was_typed(self, at_acme, database, fields, message):
        at_acme.visit("/account/organizations/new")
        at_acme.press("account/organizations/new", **fields)
        assert message in words(at_acme.page)
        assert at_acme.page.forms[0].fields["name"] == fields["name"]
        assert database.count("organizations") == 1

    def test_field_takes_as_long_a_name_as_the_api(self, at_acme, database):
        longest = "n" * 100
        for path in ("account/organizations/new", f"{PATH[1:]}/name"):
            assert (
                'name="name" type="text" autocomplete="off" maxlength="100"' in at_acme.visit(f"/{path}").text
            )
            at_acme.press(path, name=longest)
        assert database.count("organizations", f"name = '{longest}'") == 2

    def test_nobody_founds_where_only_the_operator_does(self, make_app, alice, database):
        visitor = Visitor(make_app(AUTH_ORGANIZATIONS="admins")).with_session_of(alice)
        assert visitor.visit("/account").text.count("New organization") == 0
        visitor.visit("/account/organizations/new")
        visitor.press("account/organizations/new", name="Acme", slug="acme")
        assert database.count("organizations") == 0

    def test_with_the_setting_off_there_is_no_page(self, make_app, alice):
        visitor = Visitor(make_app()).with_session_of(alice)
        assert "Organizations" not in visitor.visit("/account").text
        for path in ("/account/organizations/new", PATH, "/organizations/acme/join"):
            assert visitor.visit(path).status == 404


class TestStranger:
    PAGES = (
        "",
        "/name",
        "/requirement",
        "/end",
        "/leave",
        "/invite",
        "/members/{id}",
        "/members/{id}/remove",
    )

    @pytest.mark.parametrize("path", PAGES)
    def test_stranger_sees_for_an_organization_what_is_at_an_unknown_one(self, acme, bob, browse, path):
        visitor = browse(bob)
        path = path.format(id=bob.id)
        hidden, unknown = (visitor.visit(place + path) for place in (PATH, UNKNOWN))
        assert (hidden.status, unknown.status) == (404, 404)
        assert words(hidden) == words(unknown)
        assert "Page not found" in words(hidden)

    @pytest.mark.parametrize("path", PAGES[1:4] + PAGES[5:])
    def test_member_finds_no_page_that_manages(self, acme, join, bob, alice, browse, path):
        join(bob, acme)
        visitor = browse(bob)
        assert visitor.visit(PATH).status == 200
        assert visitor.visit(PATH + path.format(id=alice.id)).status == 404

    def test_member_sees_names_without_addresses(self, acme, join, bob, browse, database):
        join(bob, acme)
        database.run(
            """UPDATE users SET user_metadata = '{"name": "Ada"}' WHERE email = 'alice@example.com'"""
        )
        text = words(browse(bob).visit(PATH))
        assert "Ada" in text
        assert "alice@example.com" not in text
        assert "Invitations" not in text

    def test_form_of_a_member_changes_nothing(self, acme, join, bob, alice, browse, database):
        join(bob, acme)
        visitor = browse(bob)
        visitor.visit("/account/organizations/new")
        before = database.everything("organizations", "memberships", "organization_invitations")
        fields = {"name": "x", "emails": NEW, "role": "member", "aal": "aal2"}
        for path in self.PAGES[1:4] + self.PAGES[5:]:
            path = path.format(id=alice.id)
            assert visitor.send(PATH + path, **fields).status in (403, 404), path
            visitor.visit("/account/organizations/new")
        assert database.everything("organizations", "memberships", "organization_invitations") == before

    def test_refusal_that_the_page_hides_is_in_the_log(self, acme, join, bob, mallory, browse, database):
        join(bob, acme)
        for person in (bob, mallory):
            visitor = browse(person)
            visitor.visit("/account/organizations/new")
            assert visitor.send(f"{PATH}/name", name="Evil").status == 404
        rows = database.all(
            "SELECT reason, user_id FROM audit_log WHERE action = 'change_refused' ORDER BY at"
        )
        assert [(row.reason, row.user_id) for row in rows] == [
            ("insufficient_permissions", bob.id),
            ("organization_not_found", mallory.id),
        ]


class TestManaging:
    def test_owner_invites_and_withdraws(self, at_acme, mails, database):
        at_acme.visit(at_acme.link_to("account/organizations/acme/invite"))
        at_acme.press(f"{PATH[1:]}/invite", emails="Bob@Example.com ", role="admin")
        text = words(at_acme.page)
        assert "The invitation has been sent." in text
        assert "bob@example.com Admin" in text
        assert mails.last("bob@example.com", "organization_invitation").variables["organization"] == "Acme"
        at_acme.press("withdraw")
        assert "The invitation has been withdrawn." in words(at_acme.page)
        assert database.count("organization_invitations") == 0

    def test_page_names_a_member_who_is_invited_again_and_leads_to_the_role(
        self, at_acme, acme, join, bob, database
    ):
        join(bob, acme)
        at_acme.visit(f"{PATH}/invite")
        at_acme.press(f"{PATH[1:]}/invite", emails=" Bob@Example.com", role="admin")
        assert at_acme.page.status == 409
        assert "This person is already a member. Change role" in words(at_acme.page)
        assert 'aria-invalid="true"' in at_acme.page.text.partition('name="emails"')[2].partition(">")[0]
        at_acme.visit(at_acme.link_to("account/organizations/acme/members/"))
        assert "Role of bob@example.com" in words(at_acme.page)
        assert database.count("organization_invitations") == 0

    def test_admin_who_invites_an_owner_again_finds_no_way_to_the_role(self, acme, join, bob, alice, browse):
        join(bob, acme, "admin")
        visitor = browse(bob)
        visitor.visit(f"{PATH}/invite")
        visitor.press(f"{PATH[1:]}/invite", emails=alice.email, role="member")
        assert (visitor.page.status, "Change role" in words(visitor.page)) == (409, False)

    def test_admin_may_not_invite_an_owner(self, acme, join, bob, browse, database):
        join(bob, acme, "admin")
        visitor = browse(bob)
        visitor.visit(f"{PATH}/invite")
        assert 'value="owner"' not in visitor.page.text
        visitor.press(f"{PATH[1:]}/invite", emails=NEW, role="owner")
        assert "Your role in this organization doesn’t allow this." in words(visitor.page)
        assert database.count("organization_invitations") == 0

    def test_refusal_beyond_the_tenth_of_a_network_speaks_of_invitations(
        self, make_app, acme, alice, database
    ):
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_MAIL_TOTAL": "10 per hour"}
        app = make_app(AUTH_ORGANIZATIONS="users", **limits)
        visitor = Visitor(app).with_session_of(alice)
        for _ in range(2):
            visitor.visit(f"{PATH}/invite")
            visitor.press(f"{PATH[1:]}/invite", emails=NEW, role="member")
        assert visitor.page.status == 429
        assert "We can’t send another invitation yet. Try again in" in words(visitor.page)
        assert database.count("outbox", "kind = 'organization_invitation'") == 1

    def test_owner_changes_a_role_and_removes(self, acme, join, bob, at_acme, database):
        join(bob, acme)
        at_acme.visit(f"{PATH}/members/{bob.id}")
        at_acme.press(f"members/{bob.id}", role="admin")
        assert "The role has been saved." in words(at_acme.page)
        assert database.value("SELECT role FROM memberships WHERE user_id = %(id)s", id=bob.id) == "admin"
        at_acme.visit(at_acme.link_to(f"{PATH[1:]}/members/{bob.id}/remove"))
        assert "Remove bob@example.com from Acme ?" in words(at_acme.page)
        at_acme.press("remove")
        assert "The member has been removed." in words(at_acme.page)
        assert database.count("memberships") == 1

    def test_removal_says_the_address_of_a_member_whom_it_calls_by_name(
        self, acme, join, bob, at_acme, database
    ):
        join(bob, acme)
        database.run(
            """UPDATE users SET user_metadata = '{"name": "Bob Bell"}' WHERE id = %(id)s""", id=bob.id
        )
        page = words(at_acme.visit(f"{PATH}/members/{bob.id}/remove"))
        assert "Remove Bob Bell from Acme ? bob@example.com Their account stays." in page

    def test_role_is_changed_only_after_a_proof(self, acme, join, bob, at_acme, database):
        join(bob, acme)
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        at_acme.visit(f"{PATH}/members/{bob.id}")
        assert "Confirm it’s you" in words(at_acme.page)
        at_acme.press("account/confirm", current_password=PASSWORD)
        assert "Role of bob@example.com" in words(at_acme.page)
        at_acme.press(f"members/{bob.id}", role="owner")
        assert database.count("memberships", "role = 'owner'") == 2

    def test_owner_is_invited_only_after_a_proof_and_a_member_without(self, acme, at_acme, database):
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        for email, role in ((NEW, "member"), ("owner@example.com", "owner")):
            at_acme.visit(f"{PATH}/invite")
            at_acme.press("invite", emails=email, role=role)
            assert database.count("organization_invitations") == 1
        assert "Confirm it’s you" in words(at_acme.page)
        at_acme.press("account/confirm", current_password=PASSWORD)
        at_acme.press("invite", emails="owner@example.com", role="owner")
        assert database.count("organization_invitations", "role = 'owner'") == 1

    def test_role_of_the_application_can_be_chosen_once_it_is_in_use(self, acme, join, bob, mallory, at_acme):
        join(bob, acme, "billing")
        join(mallory, acme)
        at_acme.visit(f"{PATH}/members/{mallory.id}")
        assert 'value="billing"' in at_acme.page.text

    def test_owner_renames(self, at_acme):
        at_acme.visit(f"{PATH}/name")
        at_acme.press("name", name="Acme Inc.")
        assert "Acme Inc." in words(at_acme.page)

    def test_last_owner_may_not_leave_and_others_may(self, acme, join, bob, at_acme, browse, database):
        at_acme.visit(f"{PATH}/leave")
        at_acme.press("leave")
        assert "An organization needs an owner." in words(at_acme.page)
        join(bob, acme)
        visitor = browse(bob)
        visitor.visit(f"{PATH}/leave")
        visitor.press("leave")
        assert "You’ve left the organization." in words(visitor.page)
        assert database.count("memberships") == 1

    def test_owner_ends_the_organization(self, at_acme, acme, database):
        at_acme.visit(f"{PATH}/end")
        at_acme.press("end", confirmation="Acme")
        assert "The organization has been deleted." in words(at_acme.page)
        assert "Acme" not in words(at_acme.page)
        assert at_acme.visit(PATH).status == 404

    def test_page_lists_fifty_members(self, acme, at_acme, database):
        database.run(
            """WITH made AS (INSERT INTO users (email, email_proved, made_by)
                 SELECT 'm' || n || '@example.com', true, 'administrator' FROM generate_series(1, 55) AS n RETURNING id)
               INSERT INTO memberships (user_id, organization_id, role, added_by)
               SELECT made.id, o.id, 'member', 'administrator' FROM made, organizations AS o"""
        )
        assert at_acme.visit(PATH).text.count("/remove") == 49
        assert "Members 56 Invite" in words(at_acme.page)
        assert "1\N{EN DASH}50 of 56 Next" in words(at_acme.page)
        at_acme.visit(at_acme.link_to("?page=2"))
        assert at_acme.page.text.count("/remove") == 6
        assert "51\N{EN DASH}56 of 56 Previous" in words(at_acme.page)


class TestData:
    def test_file_of_a_user_has_own_memberships_and_nobody_else(
        self, acme, join, bob, browse, invite, mallory
    ):
        join(bob, acme, "billing")
        invite(mallory.email)
        data = browse(bob).visit("/account/data")
        assert '"role": "billing"' in data.text
        assert '"added_by": "invitation"' in data.text
        for other in ("alice@example.com", mallory.email):
            assert other not in data.text
        assert "Acme" in browse(mallory).visit("/account/data").text


@pytest.mark.parametrize("leads", [True, False])
def test_form_that_invites_a_member_leads_to_the_role_that_the_caller_may_change(
    acme, join, alice, bob, mallory, browse, database, leads
):
    join(bob, acme, "admin")
    join(mallory, acme)
    other = mallory if leads else alice
    visitor = browse(bob)
    visitor.visit("/account/organizations/acme/invite")
    page = visitor.press("account/organizations/acme/invite", emails=other.email, role="member")
    assert page.status == 409
    assert (f"organizations/acme/members/{other.id}" in page.text) is leads
    assert database.count("organization_invitations") == 0
