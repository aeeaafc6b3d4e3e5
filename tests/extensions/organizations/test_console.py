"""/console/organizations: what administrators see and do, each action with a factor."""

import pytest

from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.pages import words

PATH = "/console/organizations"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_ORGANIZATIONS="users", AUTH_CONSOLE="true")


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def submit(act_at):
    """Submit a form with a factor's code, and return the words of the next page."""
    return lambda path, **fields: words(act_at(PATH, path, **fields))


@pytest.fixture
def id(acme):
    return acme.rpartition("/")[2]


def test_organization_is_created_with_an_owner(submit, alice, database):
    assert "Organization created." in submit("new", name="Acme", slug="", owner=alice.email)
    row = database.one(
        "SELECT o.slug, m.user_id, m.role, m.added_by FROM organizations AS o JOIN memberships AS m ON true"
    )
    assert tuple(row) == ("acme", alice.id, "owner", "administrator")


def test_owner_reads_what_was_refused_to_an_administrator_but_not_to_which_one(
    submit, id, acme, owner, database
):
    owner_id = owner.user["id"]
    submit(f"{id}/members/{owner_id}/remove")
    assert database.count("memberships") == 1
    newest = owner.get(f"{acme}/audit").json["data"][0]
    assert (newest["action"], newest["reason"], newest["actor"]) == (
        *("admin_refused", "last_owner"),
        "service_role",
    )
    assert (newest["actor_id"], newest["user_id"]) == (None, None)
    assert newest["details"].keys() == {"organization"}


def test_list_is_searched_and_paged(armed, acme, database):
    database.run(
        "INSERT INTO organizations (id, slug, name) SELECT gen_random_uuid(), 'o' || n, 'Other ' || n FROM generate_series(1, 30) AS n"
    )
    text = words(armed.visit(PATH))
    assert "Acme" not in text
    assert "Acme" in words(armed.visit(armed.link("Next")))
    text = words(armed.visit(f"{PATH}?search=acm"))
    assert "Acme" in text
    assert "Other" not in text
    assert "No organization matches." in words(armed.visit(f"{PATH}?search=nothing"))
    assert "Other" in words(armed.visit(armed.link("Clear")))


def test_list_says_that_members_are_counted_to_a_thousand(acme, armed, database):
    for number, expected in ((998, "999"), (1, "1,000+")):
        database.run(
            f"""WITH made AS (INSERT INTO users (made_by) SELECT 'administrator' FROM generate_series(1, {number}) RETURNING id)
                INSERT INTO memberships (user_id, organization_id, role, added_by)
                SELECT made.id, o.id, 'member', 'administrator' FROM made CROSS JOIN organizations AS o"""
        )
        assert expected in words(armed.visit(PATH))


def test_members_without_a_second_factor_are_counted_among_the_first_thousand(acme, id, armed, database):
    for number, of, effect in (
        (998, "999 of 999", "Takes the access of 999 members without a second factor, until"),
        (20, "1,000 of the first 1,000", "members without a second factor, 1,000 of the first 1,000, until"),
    ):
        database.run(
            f"""WITH made AS (INSERT INTO users (made_by) SELECT 'administrator' FROM generate_series(1, {number}) RETURNING id)
                INSERT INTO memberships (user_id, organization_id, role, added_by)
                SELECT made.id, o.id, 'member', 'administrator' FROM made CROSS JOIN organizations AS o"""
        )
        assert f"Without a second factor {of}" in words(armed.visit(f"{PATH}/{id}"))
        assert effect in words(armed.visit(f"{PATH}/{id}/require"))
    assert "1 organization with 1,000 members or more" in words(armed.visit(f"{PATH}/{id}/end"))


def test_page_says_members_and_who_has_no_second_factor(armed, id, acme, join, bob, owner):
    join(bob, acme, "billing")
    owner.post(f"{acme}/invitations", json={"email": "new@example.com", "role": "member"})
    text = words(armed.visit(f"{PATH}/{id}"))
    for part in (
        "alice@example.com no second factor owner",
        "bob@example.com",
        "billing",
        "2 of 2",
        "new@example.com",
    ):
        assert part in text


def test_member_is_added_changed_and_removed(submit, id, bob, database):
    def role():
        return database.value("SELECT max(role) FROM memberships WHERE user_id = %(id)s", id=bob.id)

    assert "Member added." in submit(f"{id}/add", email=bob.email, role="member")
    assert role() == "member"
    assert "Role changed." in submit(f"{id}/members/{bob.id}/role", role="admin")
    assert role() == "admin"
    assert "Member removed." in submit(f"{id}/members/{bob.id}/remove")
    assert role() is None
    entry = database.one("SELECT actor_id, details FROM audit_log WHERE action = 'membership_removed'")
    assert "administrator" in entry.details


def test_address_is_invited_and_the_invitation_withdrawn(submit, armed, id, database, outbox):
    text = submit(f"{id}/invite", email="New@Example.com ", role="admin")
    assert "Invitation sent." in text
    assert "new@example.com admin until" in text
    message = outbox.last(to="new@example.com")
    assert (message.kind, message.variables["inviter"]) == ("organization_invitation", "carol@example.com")
    row = database.one("SELECT id, role, invited_by FROM organization_invitations")
    assert tuple(row)[1:] == ("admin", None)
    assert "Invitation withdrawn." in submit(f"{id}/invitations/{row.id}/withdraw")
    assert database.count("organization_invitations") == 0
    entries = database.all(
        "SELECT action, details ->> 'administrator' AS by FROM audit_log WHERE strpos(action, 'invit') > 0 ORDER BY at"
    )
    assert [tuple(entry) for entry in entries] == [
        ("member_invited", "carol@example.com"),
        ("invitation_withdrawn", "carol@example.com"),
    ]


def test_member_is_not_invited_again(submit, id, acme, join, bob, database):
    join(bob, acme)
    text = submit(f"{id}/invite", email=bob.email, role="admin")
    assert "This address belongs to a member already; change the member’s role" in text.replace("'", "’")
    assert database.count("organization_invitations") == 0


def test_invitation_of_another_organization_is_not_withdrawn(armed, id, acme, owner, database):
    other = owner.post("/organizations", json={"name": "Other"}).json["id"]
    invitation_id = owner.post(
        f"{acme}/invitations", json={"email": "new@example.com", "role": "member"}
    ).json["id"]
    for path in (f"{other}/invitations/{invitation_id}", f"{id}/invitations/{other}", f"{id}/invitations/x"):
        assert armed.visit(f"{PATH}/{path}/withdraw").status == 404
    database.run("UPDATE organization_invitations SET expires_at = now()")
    assert armed.visit(f"{PATH}/{id}/invitations/{invitation_id}/withdraw").status == 404


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"email": "nobody@example.com", "role": "member"}, "User not found"),
        ({"email": "bob@example.com", "role": "Not A Role"}, "Role must be a lower-case word"),
    ],
)
def test_refused_member_is_not_added(submit, id, bob, database, fields, problem):
    assert problem in submit(f"{id}/add", **fields)
    assert database.count("memberships") == 1


def test_hundred_open_invitations_are_the_limit_in_the_console_too(submit, id, database):
    database.run(
        """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT gen_random_uuid(), o.id, n || '@example.com', 'member', now() + interval '1 day'
             FROM organizations AS o, generate_series(1, 100) AS n"""
    )
    assert "Invitation limit reached" in submit(f"{id}/invite", email="new@example.com", role="member")
    assert database.count("organization_invitations") == 100


def test_requirement_is_made_and_lifted(submit, armed, id, database):
    armed.visit(f"{PATH}/{id}/require")
    assert "1 member without a second factor" in words(armed.page)
    assert "A second factor is now required." in submit(f"{id}/require")
    assert database.value("SELECT level FROM organizations") == "aal2"
    assert "no longer required" in submit(f"{id}/lift")


def test_age_of_sign_ins_is_limited_and_the_limit_lifted(submit, armed, id, database):
    for wrong in ("", "899", "12h"):
        assert "must be 0, or a whole number from 900 to 31536000" in submit(f"{id}/limit", max_age=wrong)
    assert "The age of sign-ins was changed." in submit(f"{id}/limit", max_age="43200")
    assert database.value("SELECT extract(epoch FROM max_age)::int FROM organizations") == 43_200
    assert "Requires a sign-in of the last 12 hours" in words(armed.visit(f"{PATH}/{id}"))
    assert "requires a sign-in of the last 43200 seconds" in words(armed.page)
    assert "recent sign-in" in words(armed.visit(PATH))
    submit(f"{id}/limit", max_age="0")
    assert "requires no recent sign-in" in words(armed.visit(f"{PATH}/{id}"))
    assert database.value("SELECT max_age FROM organizations") is None


def test_name_and_short_name_change(submit, id, database):
    assert "Organization changed." in submit(f"{id}/change", name="Acme Inc.", slug="acme-inc")
    assert tuple(database.one("SELECT name, slug FROM organizations")) == ("Acme Inc.", "acme-inc")


def test_organization_is_ended(submit, armed, id):
    assert "Organization ended." in submit(f"{id}/end")
    assert armed.visit(f"{PATH}/{id}").status == 404


def test_page_of_a_user_says_the_memberships(armed, acme, join, bob):
    join(bob, acme, "billing")
    text = words(armed.visit(f"/console/users/{bob.id}"))
    assert "Organizations Acme billing by an invitation" in text


APPLICATIONS = "/console/applications"
WIKI = {
    "client_name": "Wiki",
    "token_endpoint_auth_method": "none",
    "redirect_uris": "https://wiki.example.com/",
    "authorization_code": "yes",
    "require_pkce": "yes",
    "id_token_signed_response_alg": "RS256",
}


def test_application_admits_the_members_of_an_organization_and_shows_it(act_at, armed, id, database):
    page = act_at(APPLICATIONS, "new", **WIKI, organization_id="nobody")
    assert "There’s no such organization" in words(page)
    text = words(act_at(APPLICATIONS, "new", **WIKI, organization_id="acme"))
    assert "Organization its members alone" in text
    assert "blocked" not in text
    client_id = database.value("SELECT id::text FROM oauth_clients WHERE organization_id = %(id)s", id=id)
    assert f'value="{id}"' in armed.visit(f"{APPLICATIONS}/{client_id}/change").text
    text = words(act_at(APPLICATIONS, f"{client_id}/change", **WIKI, organization_id=""))
    assert "its members alone" not in text
    assert database.one("SELECT organization_id, is_blocked, admits_members FROM oauth_clients") == (
        None,
        False,
        False,
    )


class TestOff:
    """The console of a service whose organizations are off, with an application from before."""

    ADMISSION = "SELECT organization_id::text, is_blocked, admits_members FROM oauth_clients"

    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_CONSOLE="true")

    @pytest.fixture
    def members_only(self, make_app, database, service_role):
        """The path of an application that admits the members of Acme alone."""
        client = make_app(AUTH_ORGANIZATIONS="users").test_client()
        response = client.post("/organizations", json={"name": "Acme", "slug": "acme"}, headers=service_role)
        body = {
            "client_name": "Wiki",
            "client_type": "public",
            "redirect_uris": ["https://wiki.example.com/"],
            "organization_id": response.json["id"],
        }
        client_id = client.post("/admin/oauth/clients", json=body, headers=service_role).json["client_id"]
        return f"{client_id}/change"

    @pytest.mark.parametrize("extra", [{}, {"organization_id": ""}])
    def test_form_saves_its_fields_and_still_admits_the_members_alone(
        self, act_at, armed, members_only, database, extra
    ):
        before = database.one(self.ADMISSION)
        form = armed.visit(f"{APPLICATIONS}/{members_only}")
        assert "The members of one organization alone. This stays while AUTH_ORGANIZATIONS is off." in words(
            form
        )
        assert 'name="organization_id"' not in form.text
        fields = WIKI | {"client_name": "Handbook", "allowed_roles": "staff"} | extra
        text = words(act_at(APPLICATIONS, members_only, **fields))
        assert "Application changed." in text
        assert "its members alone" in text
        assert database.one("SELECT name, allowed_roles FROM oauth_clients") == ("Handbook", ["staff"])
        assert database.one(self.ADMISSION) == before
        assert before[0]

    def test_organization_typed_before_it_was_off_is_refused(self, act_at, armed, members_only, database):
        before = database.everything("oauth_clients")
        for path in ("new", members_only):
            page = act_at(APPLICATIONS, path, **WIKI, organization_id="acme")
            assert "There’s no such organization" in words(page), path
        assert database.everything("oauth_clients") == before


def test_owner_does_not_read_in_the_log_which_administrator_acted(submit, id, acme, owner, carol):
    submit(f"{id}/invite", email="new@example.com", role="member")
    response = owner.get(f"{acme}/audit")
    entry, *_ = response.json["data"]
    assert (entry["action"], entry["actor"], entry["actor_id"]) == ("member_invited", "service_role", None)
    assert carol.email not in response.text


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (0, "All members have a second factor."),
        (1, "Takes the access of 1 member without a second factor"),
        (2, "Takes the access of 2 members without a second factor"),
    ],
)
def test_requirement_says_first_who_loses_access(armed, id, acme, join, bob, database, members, sentence):
    join(bob, acme, "member")
    database.run(
        "DELETE FROM memberships WHERE user_id IN (SELECT user_id FROM memberships ORDER BY user_id LIMIT %(n)s)",
        n=2 - members,
    )
    assert sentence in words(armed.visit(f"{PATH}/{id}/require"))
