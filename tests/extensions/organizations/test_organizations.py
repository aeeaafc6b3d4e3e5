"""Organizations and their members: /organizations, and what tokens and GET /user say of them."""

import json
import re
from uuid import uuid4

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.answers import A_TIMESTAMP, A_UUID, ANYTHING, assert_error, assert_ok
from tests.support.commands import run_command
from tests.support.factors import set_up
from tests.support.server import at_once
from tests.support.users import session_of, sign_in

OBJECT = {"id": A_UUID, "slug": "acme", "name": "Acme", "requires": {"aal": "aal1"}} | {
    "created_at": A_TIMESTAMP,
    "updated_at": A_TIMESTAMP,
}


def membership(path, role="owner", **changes):
    return {"id": path.rpartition("/")[2], "slug": "acme", "name": "Acme", "role": role} | changes


def test_founder_owns_the_organization_and_the_next_token_says_so(owner, acme, database):
    assert "organizations" not in owner.claims
    assert_ok(owner.get(acme), OBJECT)
    assert owner.get("/user").json["organizations"] == [membership(acme)]
    id = acme.rpartition("/")[2]
    assert owner.refreshed().claims["organizations"] == {id: "owner"}
    assert owner.refreshed().user["organizations"] == [membership(acme)]
    assert owner.get("/organizations").json["data"] == [membership(acme)]
    entries = database.all(
        "SELECT action FROM audit_log WHERE details ? 'organization' ORDER BY at, action DESC"
    )
    assert [entry.action for entry in entries] == ["organization_created", "membership_added"]


def test_organization_is_found_by_its_short_name_too(owner, acme):
    assert owner.get("/organizations/acme").json["id"] == acme.rpartition("/")[2]


@pytest.mark.parametrize("path", ["", "/members", "/invitations", "/audit"])
def test_stranger_and_nobody_see_the_same_404(owner, acme, bob, client, path):
    stranger = bob.open_session(client)
    unknown = "/organizations/3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01"
    for place in (acme, "/organizations/acme", unknown, "/organizations/nothing"):
        assert_error(stranger.get(place + path), 404, "organization_not_found")


def test_member_reads_and_may_change_nothing(acme, owner, join, bob, database):
    session = join(bob, acme)
    assert_ok(session.get(acme), OBJECT)
    members = session.get(f"{acme}/members").json["data"]
    assert [sorted(each) for each in members] == [["name", "role", "user_id"]] * 2
    before = database.everything("organizations", "memberships", "organization_invitations")
    responses = [
        session.put(acme, json={"name": "Evil"}),
        session.delete(acme, json={}),
        session.get(f"{acme}/audit"),
        session.get(f"{acme}/invitations"),
        session.post(f"{acme}/invitations", json={"email": "x@example.com", "role": "member"}),
        session.put(f"{acme}/members/{bob.id}", json={"role": "staff"}),
        session.delete(f"{acme}/members/{owner.user['id']}"),
    ]
    for response in responses:
        assert_error(response, 403, "insufficient_permissions")
    assert database.everything("organizations", "memberships", "organization_invitations") == before


def test_owners_and_admins_see_addresses(acme, owner, join, bob):
    session = join(bob, acme, "admin")
    for each in (owner, session):
        assert {member["email"] for member in each.get(f"{acme}/members").json["data"]} == {
            "alice@example.com",
            "bob@example.com",
        }


def test_owner_does_not_learn_whether_a_user_exists_who_is_no_member(acme, owner, bob):
    for send in (lambda path: owner.put(path, json={"role": "staff"}), owner.delete):
        of_user, of_nobody = (send(f"{acme}/members/{id}") for id in (bob.id, uuid4()))
        assert_error(of_user, 404, "user_not_found")
        assert (of_nobody.status_code, of_nobody.json) == (404, of_user.json)


def test_admin_manages_those_below(acme, owner, join, bob, mallory):
    session = join(bob, acme, "admin")
    join(mallory, acme)
    response = session.put(f"{acme}/members/{mallory.id}", json={"role": "billing"})
    assert_ok(response, {"user_id": mallory.id, "role": "billing"})
    for role in ("admin", "owner"):
        assert_error(
            session.put(f"{acme}/members/{mallory.id}", json={"role": role}), 403, "insufficient_permissions"
        )
        assert_error(
            session.post(f"{acme}/invitations", json={"email": "x@example.com", "role": role}),
            403,
            "insufficient_permissions",
        )
    assert_error(session.delete(f"{acme}/members/{owner.user['id']}"), 403, "insufficient_permissions")
    assert session.delete(f"{acme}/members/{mallory.id}").status_code == 204


def test_removed_member_keeps_the_account_and_loses_the_membership(acme, owner, join, bob, outbox):
    session = join(bob, acme)
    assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    assert_error(session.get(acme), 404, "organization_not_found")
    refreshed = session.refreshed()
    assert "organizations" not in refreshed.claims
    assert "organizations" not in refreshed.get("/user").json
    assert outbox.last(to=bob.email).kind == "membership_removed"


def test_last_owner_neither_leaves_nor_is_lowered_nor_deleted(acme, owner, join, bob, database):
    join(bob, acme)
    path = f"{acme}/members/{owner.user['id']}"
    before = database.everything("memberships", "users")
    for response in (
        owner.delete(path),
        owner.put(path, json={"role": "member"}),
        owner.delete("/user", json={}),
    ):
        assert_error(response, 409, "last_owner")
    assert database.everything("memberships", "users") == before


def test_organization_without_other_members_ends_with_its_owner(acme, owner, database, service_role):
    assert owner.delete("/user", json={}).status_code == 200
    assert database.count("organizations", "ended_at IS NULL") == 0
    assert_error(owner.client.get(acme, headers=service_role), 404, "organization_not_found")


def test_ended_organization_is_named_nowhere(acme, owner, join, bob):
    session = join(bob, acme)
    assert owner.delete(acme, json={}).status_code == 204
    for each in (owner, session):
        assert_error(each.get(acme), 404, "organization_not_found")
        assert "organizations" not in each.refreshed().claims
    assert_error(owner.post("/organizations", json={"name": "Acme", "slug": "acme"}), 409, "slug_exists")


class TestRequirement:
    def test_session_without_the_second_factor_is_no_members(self, acme, owner, join, bob):
        session = join(bob, acme)
        _, raised = set_up(owner)
        assert_ok(
            raised.put(acme, json={"requires": {"aal": "aal2"}}), OBJECT | {"requires": {"aal": "aal2"}}
        )
        assert_error(session.get(acme), 403, "insufficient_aal")
        without_role = membership(acme, requires={"aal": "aal2"})
        del without_role["role"]
        assert session.get("/user").json["organizations"] == [without_role]
        refreshed = session.refreshed()
        assert "organizations" not in refreshed.claims
        assert refreshed.user["organizations"] == [without_role]
        assert raised.refreshed().claims["organizations"] == {acme.rpartition("/")[2]: "owner"}
        assert raised.get("/user").json["organizations"] == [membership(acme)]
        # The account is usable, and everybody may leave.
        assert session.delete(f"{acme}/members/{bob.id}").status_code == 204

    def test_session_that_lacks_a_step_sees_in_get_user_what_its_sign_in_said(
        self, acme, beta, owner, client, alice
    ):
        _, raised = set_up(owner)
        assert raised.put(acme, json={"requires": {"aal": "aal2"}}).status_code == 200
        session = session_of(client, sign_in(client, alice.email))
        assert session.claims["aud"] == "second_step"
        memberships = session.get("/user").json["organizations"]
        assert memberships == session.user["organizations"]
        assert [{"role", "requires"} & each.keys() for each in memberships] == [{"requires"}, {"role"}]

    def test_session_below_a_level_cannot_require_it(self, acme, owner, database):
        assert_error(owner.put(acme, json={"requires": {"aal": "aal2"}}), 403, "insufficient_aal")
        assert database.value("SELECT level FROM organizations") == "aal1"

    def test_session_that_has_lost_its_level_is_no_members(self, acme, owner, database):
        app, raised = set_up(owner)
        assert raised.put(acme, json={"requires": {"aal": "aal2"}}).status_code == 200
        assert raised.delete(f"/factors/{app.id}", json={}).status_code == 200
        # Its access token still says aal2.
        for response in (
            raised.get(acme),
            raised.get(f"{acme}/members"),
            raised.get(f"{acme}/audit"),
            raised.put(acme, json={"name": "Other"}),
            raised.post(f"{acme}/invitations", json={"email": "x@example.com", "role": "member"}),
        ):
            assert_error(response, 403, "insufficient_aal")
        hidden = {"id": acme.rpartition("/")[2], "slug": "acme", "name": "Acme", "requires": {"aal": "aal2"}}
        assert raised.get("/user").json["organizations"] == [hidden]
        assert raised.put("/user", json={"data": {}}).json["organizations"] == [hidden]
        assert raised.get("/organizations").json["data"] == [hidden]
        assert database.value("SELECT name FROM organizations") == "Acme"

    def test_session_that_has_lost_its_level_cannot_require_it(self, acme, owner, database):
        app, raised = set_up(owner)
        assert raised.delete(f"/factors/{app.id}", json={}).status_code == 200
        assert_error(raised.put(acme, json={"requires": {"aal": "aal2"}}), 403, "insufficient_aal")
        assert database.value("SELECT level FROM organizations") == "aal1"


@pytest.mark.parametrize("credential", ["session", "garbage"])
def test_servers_key_as_apikey_beside_a_users_credential_makes_nobody_an_operator(
    acme, owner, bob, client, service_role, database, credential
):
    """A server passes on the header of its user, through a client that always sends the server's own key."""
    token = bob.open_session(client).access_token if credential == "session" else "nonsense"
    key = service_role["Authorization"].removeprefix("Bearer ")
    headers = {"Authorization": f"Bearer {token}", "apikey": key}
    before = database.everything("organizations", "memberships")
    path = f"{acme}/members/{bob.id}"
    error = (404, "organization_not_found") if credential == "session" else (401, "bad_jwt")
    for response in (
        client.get(acme, headers=headers),
        client.get(f"{acme}/audit", headers=headers),
        client.put(path, json={"role": "owner"}, headers=headers),
        client.delete(acme, json={}, headers=headers),
    ):
        assert_error(response, *error)
    if credential == "session":
        assert client.get("/organizations", headers=headers).json["data"] == []
    assert database.everything("organizations", "memberships") == before
    for operator_headers in ({"apikey": key}, service_role, service_role | {"apikey": key}):
        assert client.get(acme, headers=operator_headers).status_code == 200


def test_tokens_and_get_user_say_nothing_while_organizations_are_off(acme, owner, make_app):
    session = owner.on(make_app().test_client())
    assert "organizations" not in session.get("/user").json
    assert "organizations" not in session.refreshed().claims
    for path in ("/organizations", acme, "/user/invitations"):
        assert_error(session.get(path), 404, "feature_disabled")


def test_operator_alone_creates_where_users_may_not(alice, make_app, service_role):
    client = make_app(AUTH_ORGANIZATIONS="admins").test_client()
    session = alice.open_session(client)
    assert_error(session.post("/organizations", json={"name": "Acme"}), 403, "insufficient_permissions")
    body = {"name": "Acme", "owner": alice.id, "app_metadata": {"plan": "team"}}
    response = client.post("/organizations", json=body, headers=service_role)
    assert response.status_code == 201
    assert session.get("/user").json["organizations"][0]["role"] == "owner"


def test_founder_and_owner_set_nothing_of_the_operators(owner, acme, bob, database):
    before = database.everything("organizations", "memberships")
    plan, new = {"app_metadata": {"plan": "team"}}, {"name": "Beta"}
    for field, response in (
        ("app_metadata", owner.post("/organizations", json=new | plan)),
        ("owner", owner.post("/organizations", json=new | {"owner": bob.id})),
        ("app_metadata", owner.put(acme, json=plan)),
        ("slug", owner.put(acme, json={"slug": "beta"})),
    ):
        details = f"{field}: only the service role key sets it"
        assert_error(response, 403, "insufficient_permissions", details=details)
    assert database.everything("organizations", "memberships") == before


@pytest.mark.parametrize("way", ["found", "create for", "add", "import"])
def test_nobody_is_in_more_than_fifty_organizations(
    owner, acme, bob, client, service_role, database, way, tmp_path
):
    database.run(
        "INSERT INTO organizations (id, slug, name)"
        " SELECT gen_random_uuid(), 'o' || n, 'O' FROM generate_series(1, 50) AS n"
    )
    database.run(
        "INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " SELECT %(id)s, id, 'member', 'administrator' FROM organizations WHERE slug <> 'acme'",
        id=bob.id,
    )
    session, new = bob.open_session(client), {"name": "Beta", "slug": "beta"}
    before = database.everything("organizations", "memberships")
    if way == "import":
        file = tmp_path / "organizations.jsonl"
        member = {"user_id": bob.id, "email": bob.email, "role": "owner"}
        file.write_text(json.dumps(new | {"id": str(uuid4()), "members": [member]}))
        assert run_command(client.application, "organizations", "import", str(file)).exit_code == 3
        assert database.everything("memberships") == {"memberships": before["memberships"]}
        return
    response = {
        "found": lambda: session.post("/organizations", json=new),
        "create for": lambda: client.post(
            "/organizations", json=new | {"owner": bob.id}, headers=service_role
        ),
        "add": lambda: client.put(f"{acme}/members/{bob.id}", json={"role": "member"}, headers=service_role),
    }[way]()
    assert_error(response, 422, "too_many_memberships")
    assert database.everything("organizations", "memberships") == before


def test_founder_needs_a_proved_address_and_founds_five(owner, acme, database):
    for number in range(2, 6):
        assert owner.post("/organizations", json={"name": f"Team {number}"}).status_code == 201
    assert_error(owner.post("/organizations", json={"name": "Team 6"}), 422, "too_many_organizations")
    database.run("UPDATE users SET email_proved = false")
    assert_error(owner.post("/organizations", json={"name": "Team 7"}), 403, "email_not_confirmed")


def test_owner_reads_in_the_log_what_was_refused_to_members_and_no_strangers(
    acme, beta, owner, join, bob, mallory, client, database, service_role
):
    for each in (acme, beta):
        session = join(bob, each)
    stranger = mallory.open_session(client)
    for each in (acme, beta, acme):
        assert session.put(each, json={"name": "Evil"}).status_code == 403
        assert stranger.put(each, json={"name": "Evil"}).status_code == 404
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL")
    wrong = {"requires": {"aal": "aal1"}, "current_password": "wrong"}
    assert_error(owner.put(acme, json=wrong), 400, "current_password_invalid", details=ANYTHING)

    def refused(path):
        entries = owner.get(f"{path}/audit").json["data"]
        return {(each["reason"], each["user_id"], each["count"]) for each in entries if each["reason"]}

    of_owner = ("current_password_invalid", owner.user["id"], 1)
    assert refused(acme) == {("insufficient_permissions", bob.id, 2), of_owner}
    assert refused(beta) == {("insufficient_permissions", bob.id, 1)}


def test_owner_reads_in_the_log_what_was_refused_to_an_operator_but_not_to_which_one(
    acme, owner, join, bob, client, parts, database
):
    join(bob, acme)
    database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=bob.id)
    key = make_admin_key(parts, "organizations:write", name="billing-job")
    response = client.delete(f"{acme}/members/{bob.id}", headers=key.headers)
    assert_error(response, 403, "insufficient_permissions")
    newest = owner.get(f"{acme}/audit").json["data"][0]
    assert (newest["reason"], newest["actor"], newest["actor_id"]) == (
        *("insufficient_permissions", "service_role"),
        None,
    )
    assert newest["user_id"] == bob.id
    assert "billing-job" not in str(newest)


def test_owner_does_not_read_in_the_log_which_stranger_an_operator_could_not_add(
    acme, owner, mallory, client, parts, database
):
    database.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=mallory.id)
    key = make_admin_key(parts, "organizations:write", name="billing-job")
    refused = client.put(f"{acme}/members/{mallory.id}", json={"role": "member"}, headers=key.headers)
    assert_error(refused, 403, "insufficient_permissions")
    response = owner.get(f"{acme}/audit")
    newest = response.json["data"][0]
    assert (newest["reason"], newest["user_id"]) == ("insufficient_permissions", None)
    assert mallory.id not in response.text


@pytest.mark.parametrize("role", ["admin", "member", "billing"])
def test_log_is_for_owners(acme, join, bob, role):
    assert_error(join(bob, acme, role).get(f"{acme}/audit"), 403, "insufficient_permissions")


def test_owner_reads_in_the_log_neither_networks_nor_browsers_nor_requests(acme, owner, join, bob, database):
    assert_error(join(bob, acme).put(acme, json={"name": "Evil"}), 403, "insufficient_permissions")
    database.run(
        "UPDATE audit_log SET ip = '192.0.2.9', user_agent = 'Chrome/120.0', request_id = 'request-9'"
    )
    response = owner.get(f"{acme}/audit")
    assert {each["reason"] for each in response.json["data"]} == {None, "insufficient_permissions"}
    for entry in response.json["data"]:
        assert entry.keys() == {
            "id",
            "at",
            "action",
            "reason",
            "count",
            "user_id",
            "actor",
            "actor_id",
            "details",
        }
    assert not any(hidden in response.text for hidden in ("192.0.2.9", "Chrome/120.0", "request-9"))


def test_log_is_counted_up_to_100_000(acme, owner, database):
    database.run(
        "INSERT INTO audit_log (at, action, reason, actor, details)"
        " SELECT now() - number * interval '1 second', 'change_refused', 'insufficient_permissions', 'user',"
        "        jsonb_build_object('organization', jsonb_build_object('id', o.id, 'slug', o.slug))"
        "   FROM organizations AS o, generate_series(1, 100100) AS number"
    )
    first = owner.get(f"{acme}/audit?per_page=100").json
    assert (len(first["data"]), first["pagination"]["total"]) == (100, 100_000)
    assert len(owner.get(f"{acme}/audit?per_page=100&page=1000").json["data"]) == 100
    assert owner.get(f"{acme}/audit?per_page=100&page=1001").json["data"] == []


def test_request_that_changes_nothing_writes_nothing(acme, owner, join, bob, client, service_role, database):
    join(bob, acme, "owner")
    metadata = {"is_paid": True}
    assert client.put(acme, json={"app_metadata": metadata}, headers=service_role).status_code == 200
    tables = ("organizations", "memberships", "organization_invitations", "audit_log", "outbox")
    _, raised = set_up(owner)
    same = {"name": "Acme", "requires": {"aal": "aal1", "own_provider": False}}
    path_of_bob = f"{acme}/members/{bob.id}"
    before = database.everything(*tables)
    for response in (
        raised.put(acme, json=same),
        raised.put(acme, json={}),
        client.put(acme, json={"slug": "acme", "app_metadata": metadata}, headers=service_role),
        raised.put(path_of_bob, json={"role": "owner"}),
        client.put(path_of_bob, json={"role": "owner"}, headers=service_role),
    ):
        assert response.status_code == 200, response.text
    assert database.everything(*tables) == before
    # 1 is not true.
    response = client.put(acme, json={"app_metadata": {"is_paid": 1}}, headers=service_role)
    assert response.status_code == 200
    assert database.value("SELECT app_metadata ->> 'is_paid' FROM organizations") == "1"


@pytest.mark.parametrize("way", ["leaves", "is lowered"])
def test_organization_that_its_founder_gave_away_counts_until_it_ends(owner, acme, join, bob, database, way):
    for number in range(2, 6):
        assert owner.post("/organizations", json={"name": f"Team {number}"}).status_code == 201
    other = join(bob, acme, "owner")
    path = f"{acme}/members/{owner.user['id']}"
    response = owner.delete(path) if way == "leaves" else owner.put(path, json={"role": "member"})
    assert response.status_code in (200, 204)
    assert_error(owner.post("/organizations", json={"name": "Team 6"}), 422, "too_many_organizations")
    assert database.count("organizations") == 5
    # Bob owns it now, and has founded none.
    assert other.post("/organizations", json={"name": "Bob's"}).status_code == 201
    assert other.delete(acme, json={}).status_code == 204
    assert owner.post("/organizations", json={"name": "Team 6"}).status_code == 201


def test_fifty_requests_at_once_found_five(owner, database):
    answers = at_once(
        50, lambda number: owner.post("/organizations", json={"name": f"T{number}"}).status_code
    )
    assert sorted(answers)[:5] == [201] * 5
    assert database.count("organizations") == 5


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": " "}, "name"),
        ({"name": "Acme\u202e"}, "name"),
        ({"name": "Acme", "slug": "Acme!"}, "slug"),
        ({"name": "Acme", "slug": "-acme"}, "slug"),
    ],
)
def test_bad_body_names_its_field_and_changes_nothing(owner, database, body, field):
    response = owner.post("/organizations", json=body)
    assert_error(response, 400, "validation_failed", details=ANYTHING)
    assert response.json["details"].startswith(f"{field}: ")
    assert database.count("organizations") == 0


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Müller GmbH", "muller-gmbh"),
        ("Crédit d'Été", "credit-d-ete"),
        ("Straße 7", "strasse-7"),
        ("\uff21\uff23\uff2d\uff25 \ufb01nance", "acme-finance"),
        # Neither is a letter with an accent, in Unicode.
        ("Sørensen Łódź", "s-rensen-odz"),
        ("株式会社 Acme", "acme"),
        ("株式会社", r"team-[0-9a-f]{6}"),
        ("!?", r"team-[0-9a-f]{6}"),
        ("New", r"new-[0-9a-f]{6}"),
        ("3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01", r"3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01-[0-9a-f]{6}"),
        ("ö" * 100, "o" * 40),
    ],
)
def test_organization_without_a_short_name_gets_one_from_its_name(owner, name, slug):
    response = owner.post("/organizations", json={"name": name})
    assert response.status_code == 201
    assert response.json["name"] == name
    assert re.fullmatch(slug, response.json["slug"])


def test_short_name_that_is_taken_gets_a_suffix_unless_it_was_named(owner, acme, database):
    first, second = (owner.post("/organizations", json={"name": "Acme"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert all(re.fullmatch(r"acme-[0-9a-f]{6}", each.json["slug"]) for each in (first, second))
    assert_error(owner.post("/organizations", json={"name": "Acme", "slug": "acme"}), 409, "slug_exists")
    # One that has ended keeps its short name until its members are removed.
    assert owner.delete(acme, json={}).status_code == 204
    assert owner.post("/organizations", json={"name": "Acme"}).json["slug"] != "acme"
    assert database.count("organizations") == database.count("memberships") == 4


def test_refused_founder_of_a_taken_name_is_refused(owner, acme, database):
    database.run(
        """INSERT INTO organizations (id, slug, name, founded_by)
           SELECT gen_random_uuid(), 'o' || n, 'O', %(id)s FROM generate_series(1, 4) AS n""",
        id=owner.user["id"],
    )
    response = owner.post("/organizations", json={"name": "Acme"})
    assert_error(response, 422, "too_many_organizations")
    assert database.count("organizations") == 5


@pytest.mark.parametrize("slug", ["new", "3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01"])
def test_short_name_is_no_route_and_no_id(owner, slug):
    assert_error(owner.post("/organizations", json={"name": "Acme", "slug": slug}), 409, "slug_exists")


def test_owner_reads_in_the_log_that_an_operator_acted_but_not_which_one(
    owner, acme, client, parts, database, service_role
):
    key = make_admin_key(parts, "organizations:write", name="billing-job")
    assert client.put(acme, json={"name": "Acme 2"}, headers=key.headers).status_code == 200
    database.run(
        "UPDATE audit_log SET details = details || '{\"system_user\": \"root\"}' WHERE actor <> 'user'"
    )
    response = owner.get(f"{acme}/audit")
    assert "billing-job" not in response.text
    assert "root" not in response.text
    by_operator, *_ = response.json["data"]
    assert (by_operator["actor"], by_operator["actor_id"]) == ("service_role", None)
    assert by_operator["details"]["organization"]["slug"] == "acme"
    assert {each["actor_id"] for each in response.json["data"][1:]} == {owner.user["id"]}
    administrator = database.value(
        "SELECT details ->> 'administrator' FROM audit_log WHERE action = 'organization_changed'"
    )
    assert administrator == "key billing-job"


def test_memberships_are_listed_by_short_name_in_pages(owner, acme, alice, client, database):
    database.run(
        """WITH made AS (
             INSERT INTO organizations (id, slug, name)
             SELECT gen_random_uuid(), 'team-' || n, 'Team' FROM generate_series(10, 50) AS n RETURNING id
           ) INSERT INTO memberships (user_id, organization_id, role, added_by)
             SELECT %(id)s, id, 'member', 'administrator' FROM made""",
        id=alice.id,
    )
    slugs = ["acme", *(f"team-{number}" for number in range(10, 51))]

    def assert_page(query, number, size, expected, pages, links):
        response = owner.get(f"/organizations{query}")
        assert [each["slug"] for each in response.json["data"]] == expected
        pagination = {"page": number, "per_page": size, "total": 42, "total_pages": pages}
        assert response.json["pagination"] == pagination
        assert response.headers["X-Total-Count"] == "42"
        listed = re.findall(r'page=(\d+)&per_page=(\d+)>; rel="(\w+)"', response.headers["Link"])
        assert listed == [(str(to), str(size), rel) for rel, to in links.items()]

    assert_page("", 1, 20, slugs[:20], 3, {"first": 1, "next": 2, "last": 3})
    assert_page("?page=2", 2, 20, slugs[20:40], 3, {"first": 1, "prev": 1, "next": 3, "last": 3})
    assert_page("?page=3&per_page=20", 3, 20, slugs[40:], 3, {"first": 1, "prev": 2, "last": 3})
    assert_page("?per_page=50", 1, 50, slugs, 1, {"first": 1, "last": 1})
    assert_page("?page=5&per_page=10", 5, 10, slugs[40:], 5, {"first": 1, "prev": 4, "last": 5})
    assert_page("?page=9", 9, 20, [], 3, {"first": 1, "last": 3})
    assert_error(owner.get("/organizations?page=0"), 400, "validation_failed", details=ANYTHING)
