"""Invitations of organizations are for the user who has proved the address. Their id opens nothing."""

import pytest

from tests.support.answers import A_TIMESTAMP, A_UUID, ANYTHING, assert_error, assert_ok
from tests.support.checked_rows import statements_run
from tests.support.server import at_once
from tests.support.users import PASSWORD

TABLES = ("memberships", "organization_invitations")
DAVE = "dave@example.com"


def invite(session, acme, email, role="member"):
    response = session.post(f"{acme}/invitations", json={"email": email, "role": role})
    assert response.status_code == 201, response.text
    return f"/user/invitations/{response.json['id']}"


def dismiss(way, owner, session, person, acme):
    path = f"{acme}/members/{person.id}"
    response = {
        "remove": lambda: owner.delete(path),
        "lower": lambda: owner.put(path, json={"role": "member"}),
        "leave": lambda: session.delete(path),
    }[way]()
    assert response.status_code in (200, 204)


def test_invited_address_gets_a_mail_without_a_secret_and_joins_by_a_press(owner, acme, bob, client, outbox):
    path, session = invite(owner, acme, bob.email), bob.open_session(client)
    message = outbox.last(to=bob.email)
    assert (message.kind, message.token, message.code) == ("organization_invitation", None, None)
    invitation = {"id": path.rpartition("/")[2], "email": bob.email, "role": "member"}
    invitation |= {"created_at": A_TIMESTAMP, "expires_at": A_TIMESTAMP}
    assert_ok(owner.get(f"{acme}/invitations"), {"invitations": [invitation]})
    organization = {"id": A_UUID, "slug": "acme", "name": "Acme"}
    assert_ok(
        session.get("/user/invitations"), {"invitations": [invitation | {"organization": organization}]}
    )
    assert_ok(session.post(path), organization | {"role": "member"})
    assert session.refreshed().claims["organizations"] == {acme.rpartition("/")[2]: "member"}
    assert_ok(owner.get(f"{acme}/invitations"), {"invitations": []})
    assert_error(session.post(path), 404, "invitation_not_found")


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_stolen_session_makes_nobody_manage_without_a_proof(owner, acme, mallory, client, database, role):
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour', reauthenticated_at = NULL")
    accomplice, path = mallory.open_session(client), f"{acme}/invitations"
    body = {"email": mallory.email, "role": role}
    assert_error(owner.post(path, json=body), 400, "reauthentication_needed", details=ANYTHING)
    wrong = owner.post(path, json=body | {"current_password": "wrong"})
    assert_error(wrong, 400, "current_password_invalid", details=ANYTHING)
    assert database.count("organization_invitations") == 0
    # Members are invited without a proof, but not raised by another invitation.
    response = owner.post(path, json=body | {"role": "member"})
    assert response.status_code == 201
    assert_error(owner.post(path, json=body), 400, "reauthentication_needed", details=ANYTHING)
    assert owner.post(path, json=body | {"current_password": PASSWORD}).status_code == 201
    assert accomplice.post(f"/user/invitations/{response.json['id']}").json["role"] == role


def test_stranger_with_the_id_joins_nothing(owner, acme, bob, mallory, client, database):
    path, before = invite(owner, acme, bob.email), database.everything(*TABLES)
    session = mallory.open_session(client)
    assert session.get("/user/invitations").json == {"invitations": []}
    for response in (session.post(path), session.delete(path), session.post("/user/invitations/nothing")):
        assert_error(response, 404, "invitation_not_found")
    assert database.everything(*TABLES) == before


def test_invitation_beyond_a_limit_does_not_tell_who_has_an_account(make_app, acme, alice, bob, database):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_MAIL_TOTAL": "10 per hour"}
    session = alice.open_session(make_app(AUTH_ORGANIZATIONS="users", **limits).test_client())
    path, body = f"{acme}/invitations", {"role": "member"}
    assert session.post(path, json=body | {"email": "first@example.com"}).status_code == 201
    # The organization's tenth of the total is used up.
    of_nobody, of_user = (session.post(path, json=body | {"email": email}) for email in (DAVE, bob.email))
    assert_error(of_nobody, 429, "over_email_send_rate_limit")
    assert_error(of_user, 429, "over_email_send_rate_limit")
    assert database.count("organization_invitations") == 1


def test_address_that_is_not_proved_joins_nothing(owner, acme, bob, client, database):
    path, session = invite(owner, acme, bob.email), bob.open_session(client)
    database.run("UPDATE users SET email_proved = false WHERE id = %(id)s", id=bob.id)
    assert session.get("/user/invitations").json == {"invitations": []}
    assert_error(session.post(path), 404, "invitation_not_found")


def test_expired_invitation_is_not_found(owner, acme, bob, client, database):
    path, session = invite(owner, acme, bob.email), bob.open_session(client)
    database.run("UPDATE organization_invitations SET expires_at = now()")
    for response in (session.post(path), session.delete(path)):
        assert_error(response, 404, "invitation_not_found")
    assert (
        session.get("/user/invitations").json == owner.get(f"{acme}/invitations").json == {"invitations": []}
    )


def test_invitation_is_declined(owner, acme, bob, client, database):
    path, session = invite(owner, acme, bob.email), bob.open_session(client)
    assert session.delete(path).status_code == 204
    assert_error(session.post(path), 404, "invitation_not_found")
    assert database.count("memberships") == 1


def test_withdrawn_invitation_joins_nobody(owner, acme, bob, client):
    path, session = invite(owner, acme, bob.email), bob.open_session(client)
    assert owner.delete(f"{acme}/invitations/{path.rpartition('/')[2]}").status_code == 204
    assert_error(session.post(path), 404, "invitation_not_found")


def test_invitation_that_is_sent_again_has_the_new_role_and_another_week(owner, acme, bob, client, database):
    first = invite(owner, acme, bob.email, "admin")
    database.run("UPDATE organization_invitations SET expires_at = now() + interval '1 hour'")
    assert invite(owner, acme, bob.email, "billing") == first
    assert database.value("SELECT expires_at > now() + interval '6 days' FROM organization_invitations")
    assert bob.open_session(client).post(first).json["role"] == "billing"


def test_admin_cannot_replace_the_invitation_of_an_owner(owner, acme, join, bob, database):
    session = join(bob, acme, "admin")
    invite(owner, acme, DAVE, "owner")
    before = database.everything(*TABLES)
    response = session.post(f"{acme}/invitations", json={"email": DAVE, "role": "member"})
    assert_error(response, 403, "insufficient_permissions")
    assert database.everything(*TABLES) == before


def test_admin_invites_an_address_whose_invitation_as_owner_has_expired(owner, acme, join, bob, database):
    session = join(bob, acme, "admin")
    invite(owner, acme, DAVE, "owner")
    database.run("UPDATE organization_invitations SET expires_at = now() - interval '1 minute'")
    invite(session, acme, DAVE)
    assert database.one("SELECT role, expires_at > now() AS is_open FROM organization_invitations") == (
        "member",
        True,
    )


@pytest.mark.parametrize("way", ["remove", "lower", "leave"])
def test_invitations_go_with_the_membership_of_their_sender(owner, acme, join, bob, mallory, client, way):
    session = join(bob, acme, "admin")
    path = invite(session, acme, mallory.email)
    dismiss(way, owner, session, bob, acme)
    assert_error(mallory.open_session(client).post(path), 404, "invitation_not_found")


@pytest.mark.parametrize("way", ["remove", "lower", "leave"])
@pytest.mark.parametrize("first", ["owner", "operator"])
def test_invitation_with_another_role_goes_with_the_membership_of_the_owner_who_gave_it(
    owner, acme, join, bob, mallory, client, service_role, first, way
):
    body = {"email": mallory.email, "role": "member"}
    options = {"json": body} if first == "owner" else {"json": body, "headers": service_role}
    response = (owner if first == "owner" else client).post(f"{acme}/invitations", **options)
    assert response.status_code == 201
    session = join(bob, acme, "owner")
    path = invite(session, acme, mallory.email, "owner")
    assert path.endswith(response.json["id"])
    dismiss(way, owner, session, bob, acme)
    assert_error(mallory.open_session(client).post(path), 404, "invitation_not_found")


@pytest.mark.parametrize("role", ["admin", "member"], ids=["with another role", "as it was"])
def test_invitation_that_the_operator_sends_again_is_the_operators_if_the_role_is_another(
    owner, acme, join, bob, mallory, client, service_role, role
):
    session = join(bob, acme, "owner")
    path = invite(session, acme, mallory.email, "member")
    body = {"email": mallory.email, "role": role}
    assert client.post(f"{acme}/invitations", json=body, headers=service_role).status_code == 201
    dismiss("remove", owner, session, bob, acme)
    response = mallory.open_session(client).post(path)
    assert response.status_code == (200 if role == "admin" else 404)


def test_invitation_that_another_owner_only_sends_again_stays_with_the_first(
    owner, acme, join, bob, mallory, client
):
    session, path = join(bob, acme, "owner"), invite(owner, acme, mallory.email, "owner")
    assert invite(session, acme, mallory.email, "owner") == path
    dismiss("remove", owner, session, bob, acme)
    assert mallory.open_session(client).post(path).json["role"] == "owner"


@pytest.mark.parametrize("end", ["ban", "reset", "recovery"])
def test_invitations_end_with_everything_of_their_sender(
    owner, acme, alice, mallory, client, service_role, outbox, end
):
    """A thief with Alice's session invites Mallory; then Alice or the operator ends everything (rule 19)."""
    path = invite(owner, acme, mallory.email, "owner")
    if end == "recovery":
        assert client.post("/recover", json={"email": alice.email}).status_code == 200
        code = outbox.last(to=alice.email).code
        response = client.post("/verify", json={"type": "recovery", "email": alice.email, "token": code})
        headers = {"Authorization": f"Bearer {response.json['access_token']}"}
        body = {"password": "Another-Horse-2"}
        assert client.put("/user", json=body, headers=headers).status_code == 200
    else:
        body = {"ban": {"ban_duration": "permanent"}, "reset": {"password": "Another-Horse-2"}}[end]
        assert client.put(f"/admin/users/{alice.id}", json=body, headers=service_role).status_code == 200
    assert owner.get(f"{acme}/invitations").status_code in (401, 403)
    assert_error(mallory.open_session(client).post(path), 404, "invitation_not_found")


def test_member_with_an_invitation_of_a_node_of_0_7_keeps_the_role(acme, join, bob, database):
    session = join(bob, acme, "admin")
    id = database.value(
        """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT gen_random_uuid(), id, 'bob@example.com', 'billing', now() + interval '1 day'
             FROM organizations RETURNING id::text"""
    )
    assert_ok(session.get("/user/invitations"), {"invitations": []})
    assert session.post(f"/user/invitations/{id}").json["role"] == "admin"


@pytest.mark.parametrize("inviter", ["owner", "admin", "operator"])
def test_member_is_not_invited_again(
    owner, acme, join, bob, mallory, client, service_role, database, inviter
):
    session = join(bob, acme, "billing")
    post = {
        "owner": lambda body: owner.post(f"{acme}/invitations", json=body),
        "admin": lambda body: join(mallory, acme, "admin").post(f"{acme}/invitations", json=body),
        "operator": lambda body: client.post(f"{acme}/invitations", json=body, headers=service_role),
    }[inviter]
    response = post({"email": "Bob@Example.com", "role": "member"})
    assert_error(response, 409, "already_member")
    assert database.count("organization_invitations") == 0
    assert database.count("outbox", "recipient = 'bob@example.com'") == 1
    assert session.refreshed().claims["organizations"] == {acme.rpartition("/")[2]: "billing"}


def test_admin_who_may_not_give_the_role_is_told_that_first(acme, join, bob, owner):
    session = join(bob, acme, "admin")
    response = session.post(f"{acme}/invitations", json={"email": owner.user["email"], "role": "owner"})
    assert_error(response, 403, "insufficient_permissions")


def test_address_that_a_member_has_not_proved_is_invited(owner, acme, join, bob, database):
    join(bob, acme)
    database.run("UPDATE users SET email_proved = false WHERE id = %(id)s", id=bob.id)
    invite(owner, acme, bob.email)
    assert database.count("organization_invitations") == 1


def test_member_of_another_organization_is_invited(owner, acme, beta, join, bob, database):
    join(bob, beta)
    invite(owner, acme, bob.email)
    assert database.count("organization_invitations") == 1


def test_user_whom_the_operator_adds_has_no_invitation_left(
    owner, acme, beta, bob, mallory, client, service_role, database
):
    path = invite(owner, acme, bob.email, "admin")
    for organization, email in ((beta, bob.email), (acme, mallory.email)):
        invite(owner, organization, email)
    added = client.put(f"{acme}/members/{bob.id}", json={"role": "member"}, headers=service_role)
    assert added.status_code == 200
    assert_error(bob.open_session(client).post(path), 404, "invitation_not_found")
    # The invitations of others, and to other organizations, stay.
    assert database.count("organization_invitations") == 2
    assert owner.delete(f"{acme}/members/{bob.id}").status_code == 204
    assert_error(bob.open_session(client).post(path), 404, "invitation_not_found")
    assert database.count("memberships", "role <> 'owner'") == 0


def test_user_who_has_not_proved_an_invited_address_answers_no_invitation(
    owner, acme, bob, client, service_role, database
):
    """Anyone may sign up with the address of another person."""
    invite(owner, acme, bob.email, "admin")
    database.run("UPDATE users SET email_proved = false WHERE id = %(id)s", id=bob.id)
    added = client.put(f"{acme}/members/{bob.id}", json={"role": "member"}, headers=service_role)
    assert added.status_code == 200
    assert database.count("organization_invitations") == 1


@pytest.mark.parametrize("way", ["removed", "leaves"])
def test_invitation_of_an_address_that_a_member_proved_later_goes_with_the_membership(
    owner, acme, join, bob, client, database, way
):
    session = join(bob, acme)
    invitation, other = invite(owner, acme, "b@example.com", "admin"), invite(owner, acme, DAVE)
    database.run("UPDATE users SET email = 'b@example.com' WHERE id = %(id)s", id=bob.id)
    actor = owner if way == "removed" else session
    assert actor.delete(f"{acme}/members/{bob.id}").status_code == 204
    assert_error(session.post(invitation), 404, "invitation_not_found")
    assert database.all("SELECT id::text FROM organization_invitations") == [(other.rpartition("/")[2],)]
    assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0


def test_demoted_admin_does_not_rise_by_an_invitation_of_his_own(owner, acme, join, bob, database):
    session = join(bob, acme, "admin")
    response = session.post(f"{acme}/invitations", json={"email": bob.email, "role": "owner"})
    assert_error(response, 403, "insufficient_permissions")
    assert owner.put(f"{acme}/members/{bob.id}", json={"role": "member"}).status_code == 200
    assert database.count("organization_invitations") == 0


def test_fresh_proof_of_an_owner_costs_no_statement(owner, acme):
    costs = []
    for role in ("member", "admin"):
        invite(owner, acme, f"warm.{role}@example.com", role)
        before = statements_run()
        invite(owner, acme, f"{role}@example.com", role)
        costs.append(statements_run() - before)
    member, admin = costs
    assert member == admin


def test_known_and_unknown_addresses_cost_the_same(owner, acme, bob, database, outbox):
    """Rule 12: rows, messages and answers are equal whether the address has an account or not."""
    answers = [
        owner.post(f"{acme}/invitations", json={"email": email, "role": "member"}).json
        | {"id": "", "email": ""}
        for email in (bob.email, DAVE)
    ]
    known, unknown = answers
    assert sorted(known) == sorted(unknown)
    rows = database.all(
        "SELECT kind, channel, user_id, secret, is_notice FROM outbox WHERE channel = 'email'"
    )
    assert len(rows) == 2
    assert rows[0] == rows[1]


def test_hundred_open_invitations_are_the_limit(owner, acme, database):
    database.run(
        """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT gen_random_uuid(), o.id, n || '@example.com', 'member', now() + interval '1 day'
             FROM organizations AS o, generate_series(1, 100) AS n"""
    )
    response = owner.post(f"{acme}/invitations", json={"email": DAVE, "role": "member"})
    assert_error(response, 422, "too_many_invitations")
    assert (
        owner.post(f"{acme}/invitations", json={"email": "1@example.com", "role": "admin"}).status_code == 201
    )


def test_fifty_memberships_are_the_limit_even_at_once(owner, acme, bob, client, database):
    session = bob.open_session(client)
    database.run(
        """WITH made AS (INSERT INTO organizations (id, slug, name)
                         SELECT gen_random_uuid(), 'team-' || n, 'Team' FROM generate_series(1, 49) AS n
                         RETURNING id)
           INSERT INTO memberships (user_id, organization_id, role, added_by)
           SELECT %(id)s, id, 'member', 'administrator' FROM made""",
        id=bob.id,
    )
    database.run("INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'other', 'Other')")
    database.run(
        """INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT gen_random_uuid(), id, %(email)s, 'member', now() + interval '1 day' FROM organizations
            WHERE slug IN ('acme', 'other')""",
        email=bob.email,
    )
    paths = [f"/user/invitations/{row.id}" for row in database.all("SELECT id FROM organization_invitations")]
    answers = at_once(2, lambda number: session.post(paths[number]).status_code)
    assert sorted(answers) == [200, 422]
    assert len(session.refreshed().claims["organizations"]) == 50


class TestWindows:
    @pytest.fixture
    def client(self, make_app, database):
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_INVITE": "5/hour"}
        return make_app(AUTH_ORGANIZATIONS="users", **limits).test_client()

    def test_invitations_of_one_organization_keep_no_other_and_no_operator_waiting(
        self, client, owner, acme, bob, service_role
    ):
        def send(session, path, email, **options):
            body = {"email": email, "role": "member"}
            return session.post(f"{path}/invitations", json=body, **options)

        session = bob.open_session(client)
        other = f"/organizations/{session.post('/organizations', json={'name': 'Other'}).json['id']}"
        responses = [send(owner, acme, f"x@foreign{number}.example") for number in range(6)]
        assert [each.status_code for each in responses] == [201] * 5 + [429]
        assert_error(responses[5], 429, "over_request_rate_limit")
        assert send(session, other, "y@example.net").status_code == 201
        assert send(client, acme, "w@example.net", headers=service_role).status_code == 201
        response = client.post("/admin/invite", json={"email": "z@example.net"}, headers=service_role)
        assert response.status_code == 200

    def test_invitation_of_an_address_that_others_have_invited_is_written_and_sends_nothing(
        self, client, owner, acme, bob, outbox, service_role
    ):
        body = {"email": "x@foreign.example", "role": "member"}
        session = bob.open_session(client)
        other = f"/organizations/{session.post('/organizations', json={'name': 'Other'}).json['id']}"
        for _ in range(4):
            assert session.post(f"{other}/invitations", json=body).status_code == 201
        response = client.post(f"{acme}/invitations", json=body, headers=owner.authorization)
        invitation = {"id": A_UUID, "created_at": A_TIMESTAMP, "expires_at": A_TIMESTAMP}
        assert_ok(response, body | invitation, status=201)
        # The headers are those of the owner's own window.
        left = (response.headers["X-RateLimit-Limit"], response.headers["X-RateLimit-Remaining"])
        assert left == ("5", "4")
        assert_ok(owner.get(f"{acme}/invitations"), {"invitations": [response.json]})
        assert len(outbox.sent("x@foreign.example")) == 3
        # The operator's invitations are not counted with those of members.
        for path, status in ((f"{acme}/invitations", 201), ("/admin/invite", 200)):
            sent = {"email": body["email"]} if status == 200 else body
            assert client.post(path, json=sent, headers=service_role).status_code == status
        assert len(outbox.sent("x@foreign.example")) == 5

    def test_operators_invitations_share_a_window(self, client, acme, service_role):
        requests = [("/admin/invite", {}), (f"{acme}/invitations", {"role": "member"})] * 3
        responses = [
            client.post(path, json={"email": f"x@foreign{number}.example", **role}, headers=service_role)
            for number, (path, role) in enumerate(requests)
        ]
        assert [each.status_code for each in responses] == [200, 201, 200, 201, 200, 429]
