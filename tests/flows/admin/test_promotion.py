"""A user who becomes an administrator begins anew (rule 20): everything that an administrative key, its link, or a
session that these opened has set ends or is refused, and every other way to sign in is named.
"""

import json
from typing import Any

import pytest

from auth.delivery import janitor
from auth.flows.admin import administrators
from auth.web.asked import Asked
from auth.web.errors import ApiError
from tests.support import devices, oauth, passkeys
from tests.support.admin_keys import NO_ORIGIN, make_admin_key
from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok
from tests.support.api_keys import make_key, use
from tests.support.commands import run_command
from tests.support.factors import set_up
from tests.support.links import EXPIRED, ON_ITS_WAY, PHONE, follow, fragment, hand_in, type_in
from tests.support.openid import REDIRECT_URI, grant, granted_code, make_client
from tests.support.users import MALLORY, NEW_PASSWORD, Person, register, session_of

pytest_plugins = ["tests.support.oauth_fixtures"]
PLANTED = "Planted-Horse-1"
CODES = {"email": "email", "phone": "sms"}
# Ways to sign in, and steps of it, that a session can plant, by their types among `ways_to_sign_in`.
WAYS = ("password", "totp", "passkey", "recovery_codes", "identity")
# Other holdings that a session can plant; they end with every promotion.
HOLDINGS = (
    "api_key",
    "grant",
    "code",
    "device",
    "invitation",
    "adoption",
    "pending_change",
    "undo",
    "network",
)
# Rows from before 0.7.1 do not say by whom something was set.
_UNKNOWN = (
    "UPDATE users SET password_by_key = NULL, password_set_at = NULL",
    *(
        f"UPDATE {table} SET by_key = NULL"
        for table in ("sessions", "identities", "factors", "recovery_codes")
    ),
)
_EIGHT_DAYS_OLD = (
    "UPDATE users SET password_set_at = password_set_at - interval '8 days'",
    "UPDATE identities SET created_at = created_at - interval '8 days', updated_at = updated_at - interval '8 days'",
    "UPDATE factors SET verified_at = verified_at - interval '8 days'",
    "UPDATE recovery_codes SET created_at = created_at - interval '8 days'",
)
AGES = {"an hour": (), "eight days": _EIGHT_DAYS_OLD, "before 0.7.1": _UNKNOWN}
# The sessions that plant.
SESSION_KINDS = ("ordinary session", "session of a key's link", "second session")


@pytest.fixture
def client(make_app):
    return make_app(AUTH_API_KEYS="true").test_client()


def promote(client, service_role, alice, **body):
    return client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)


def link_of(client, parts, email, type="magiclink"):
    """Return the token of a link that an administrative key has generated."""
    key = make_admin_key(parts, "links", name="mailing")
    body = {"type": type, "email": email} | ({"password": PLANTED} if type == "signup" else {})
    return client.post("/admin/generate_link", json=body, headers=key.headers).json["hashed_token"]


def keys_session(client, parts, person):
    """Return a session that the link of an administrative key has opened."""
    return session_of(client, hand_in(client, "magiclink", link_of(client, parts, person.email)))


class Planted:
    """Ways and holdings that a session of Alice's has planted, and whether they still work."""

    def __init__(self, service, alice, database, outbox, session_kind):
        self.client, self.alice, self.database = service.client, alice, database
        session = alice.open_session(service.client)
        if session_kind != "ordinary session":
            session = keys_session(service.client, service.parts, alice)
        if session_kind == "second session":
            assert session.put("/user", json={"password": "First-Horse-1"}).status_code == 200
            session = alice.sign_in("First-Horse-1", service.client)
        self._plant(service, session, outbox)

    def _plant(self, service, session, outbox):
        _, session = set_up(session)
        self.passkey, _ = passkeys.register(session)
        assert session.post("/factors/recovery-codes", json={}).status_code == 200
        oauth.link(service, session, "google")
        assert session.put("/user", json={"password": PLANTED}).status_code == 200
        self.undo = outbox.last(self.alice.email, "password_changed").token
        _, self.key = make_key(session, "CI")
        television = devices.make_television(self.database)
        self.device = devices.begin(self.client, television)
        self.database.run(
            "UPDATE oauth_requests SET user_id = %(user)s, session_id = %(id)s, decision = 'approved'",
            user=self.alice.id,
            id=session.id,
        )
        grant(self.database, self.alice.id, television.id, ["openid", "email"])
        self.grafana = make_client(self.database)
        self.code = granted_code(self.database, self.grafana, session)
        acme = session.post("/organizations", json={"name": "Acme", "slug": "acme"})
        assert acme.status_code == 201, acme.text
        invitation = {"email": "guest@example.com", "role": "member"}
        assert session.post("/organizations/acme/invitations", json=invitation).status_code in (200, 201)
        self.database.run(
            "WITH made AS (INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
            " VALUES (gen_random_uuid(), 'custom:acme', 'Acme', 'https://login.acme.example', 'x', '') RETURNING id)"
            " INSERT INTO identity_provider_adoptions (user_id, provider_id) SELECT %(user)s, id FROM made",
            user=self.alice.id,
        )
        assert session.put("/user", json={"email": MALLORY}).status_code == 200
        self.pending = outbox.last(MALLORY, "email_change").token
        self.database.run(
            "INSERT INTO known_networks (user_id, network, passed_at) VALUES (%(id)s, '192.0.2.99', now())"
            " ON CONFLICT DO NOTHING",
            id=self.alice.id,
        )

    def working(self):
        """Return the names of what still works. The checks that change the user come last."""
        count = self.database.count
        checks = {
            "password": self.alice.try_to_sign_in(PLANTED, self.client).status_code == 200,
            "totp": count("factors", "factor_type = 'totp'") > 0,
            "passkey": passkeys.sign_in_response(self.client, self.passkey).status_code == 200,
            "recovery_codes": count("recovery_codes") > 0,
            "identity": count("identities", "provider = 'google'") > 0,
            "api_key": use(self.client, self.key).status_code == 200,
            "grant": count("oauth_grants") > 0,
            "code": self.grafana.redeem(self.client, self.code, redirect_uri=REDIRECT_URI).status_code == 200,
            "device": self.device.poll().status_code == 200,
            "invitation": count("organization_invitations") > 0,
            "adoption": count("identity_provider_adoptions") > 0,
            "network": count("known_networks", "network = '192.0.2.99'") > 0,
            "pending_change": hand_in(self.client, "email_change", self.pending).status_code == 200,
            "undo": fragment(follow(self.client, "undo", self.undo)) != EXPIRED,
        }
        return {name for name, is_working in checks.items() if is_working}


def named_ways(door, client, service_role, alice):
    """Make Alice an administrator, and return the types of the ways to sign in that were named."""
    if door == "API":
        answer = promote(client, service_role, alice, role="admin")
        assert answer.status_code == 200, answer.text
        ways = answer.json["ways_to_sign_in"]
    else:
        result = run_command(client.application, "create-admin", alice.email, "--yes", "--json")
        assert result.exit_code == 0, result.output
        ways = json.loads(result.stdout)["ways_to_sign_in"]
        assert result.stderr.count(", added ") == len(ways)
    return {way["type"] for way in ways}


@pytest.mark.parametrize("door", ["API", "command"])
@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("session_kind", SESSION_KINDS)
def test_planted_thing_ends_is_refused_or_is_named(
    service, service_role, alice, google, database, outbox, session_kind, age, door
):
    google.person = {"sub": "mallory", "email": "m@gmail.example", "email_verified": True, "name": "M"}
    planted = Planted(service, alice, database, outbox, session_kind)
    for statement in AGES[age]:
        database.run(statement)
    is_named = session_kind == "ordinary session" or age == "before 0.7.1"
    # The address is Alice's own in each case.
    expected = {"email", *(WAYS if is_named else ())}
    assert named_ways(door, service.client, service_role, alice) == expected
    assert planted.working() == expected - {"email"}


def test_everything_planted_works_before_the_promotion(service, alice, google, database, outbox):
    google.person = {"sub": "mallory", "email": "m@gmail.example", "email_verified": True, "name": "M"}
    planted = Planted(service, alice, database, outbox, "ordinary session")
    assert planted.working() == {*WAYS, *HOLDINGS}


class TestWaysToSignIn:
    def test_api_returns_the_ways_with_their_ages_and_what_was_added_lately(
        self, client, service_role, alice, database
    ):
        _, passkey = passkeys.register(alice.open_session(client))
        database.run(
            "UPDATE identities SET created_at = '2025-01-01', updated_at = '2025-01-01';"
            " UPDATE users SET created_at = '2025-01-01', password_set_at = NULL"
        )
        answer = promote(client, service_role, alice, role="admin")
        way = {"type": "passkey", "added_at": A_TIMESTAMP, "label": passkey["friendly_name"]}
        email = {"type": "email", "added_at": "2025-01-01T00:00:00.000000Z", "label": alice.email}
        # Before 0.7.1, its time was not kept.
        password = {"type": "password", "added_at": None, "label": None}
        assert (answer.json["role"], answer.json["ways_to_sign_in"]) == ("admin", [email, way, password])
        assert answer.json["recent_changes"] == [way | {"id": passkey["id"]}]
        second_answer = promote(client, service_role, alice, role="admin")
        assert {"recent_changes", "ways_to_sign_in"} & second_answer.json.keys() == set()
        response = promote(client, service_role, alice, remove=[passkey["id"]])
        assert response.status_code == 200

    def test_nothing_is_returned_with_another_role(self, client, service_role, alice):
        for role in ("editor", "authenticated"):
            assert "ways_to_sign_in" not in promote(client, service_role, alice, role=role).json

    def test_command_lists_the_ways_and_asks_before_the_promotion(self, client, alice, database):
        _, passkey = passkeys.register(alice.open_session(client))
        database.run("UPDATE users SET password_set_at = NULL")
        result = run_command(client.application, "create-admin", alice.email, input="n\n")
        assert (result.exit_code, database.count("users", "role = 'admin'")) == (1, 0)
        lines = result.stderr.splitlines()
        assert [line.split(", added ")[0] for line in lines[:4]] == [
            "alice@example.com signs in with:",
            "  email alice@example.com",
            f"  passkey {passkey['friendly_name']}",
            "  password",
        ]
        assert lines[3] == "  password, added before 0.7.1"
        assert run_command(client.application, "create-admin", alice.email, input="y\n").exit_code == 0
        assert database.count("users", "role = 'admin'") == 1

    def test_what_a_key_has_set_is_listed_as_removed_and_stays_in_the_log(
        self, client, alice, parts, database
    ):
        _, passkey = passkeys.register(keys_session(client, parts, alice))
        result = run_command(client.application, "create-admin", alice.email, "--yes")
        label = f"passkey {passkey['friendly_name']}"
        assert result.exit_code == 0, result.output
        assert f"Removed, because an administrative key has set it: {label}\n" in result.stderr
        details = database.value("SELECT details FROM audit_log WHERE action = 'role_changed'")
        assert details["removed"] == [label]

    def test_command_without_a_terminal_needs_yes(self, client, alice, database):
        result = run_command(client.application, "create-admin", alice.email)
        assert (result.exit_code, "add --yes" in result.stderr) == (1, True)
        assert database.count("users", "role = 'admin'") == 0

    def test_command_refuses_an_address_that_a_key_has_set_without_usage(self, client, alice, parts):
        key = make_admin_key(parts, "users:write")
        for email in (MALLORY, alice.email):
            body = {"email": email, "email_confirm": True}
            assert client.put(f"/admin/users/{alice.id}", json=body, headers=key.headers).status_code == 200
        result = run_command(client.application, "create-admin", alice.email)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        assert result.stderr.startswith("Error: An administrative key has set this email: ")

    def test_way_that_was_added_while_the_operator_read_the_list_is_refused(self, client, alice, parts):
        asked = Asked(parts, NO_ORIGIN, "service_role")
        foreseen = administrators.foreseen(asked, alice.email)
        assert foreseen is not None
        passkeys.register(alice.open_session(client))
        with pytest.raises(ApiError, match="has changed"):
            administrators.appoint(asked, alice.email, None, foreseen.ways)
        assert alice.sign_in(client=client).user["role"] == "authenticated"

    def test_address_that_a_key_took_while_the_operator_read_the_list_is_refused(
        self, client, alice, parts, database
    ):
        # With a passkey, a user keeps a way to sign in when a key takes the address.
        passkeys.register(alice.open_session(client))
        asked, key = Asked(parts, NO_ORIGIN, "service_role"), make_admin_key(parts, "users:write")
        foreseen = administrators.foreseen(asked, alice.email)
        assert foreseen is not None
        for email in (MALLORY, alice.email):
            body = {"email": email}
            assert client.put(f"/admin/users/{alice.id}", json=body, headers=key.headers).status_code == 200
        with pytest.raises(ApiError, match="has set this email"):
            administrators.appoint(asked, alice.email, None, foreseen.ways)
        assert database.count("users", "role = 'admin'") == 0


class TestOtherDoors:
    def test_import_names_the_ways_of_each_administrator_and_changes_no_user(
        self, client, alice, parts, database, tmp_path
    ):
        record = {"role": "admin", "password_hash": parts.passwords.hash(PLANTED), "email_verified": True}
        people = [record | {"email": email} for email in (alice.email, "dave@example.com")]
        path = tmp_path / "users.ndjson"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in people))
        result = run_command(client.application, "users", "import", str(path), "--allow-admins")
        assert result.exit_code == 0, result.output
        (line,) = [line for line in result.stdout.splitlines() if "dave@example.com" in line]
        assert "an administrator, who signs in with password, email of 20" in line
        assert database.value("SELECT role FROM users WHERE email = %(email)s", email=alice.email) != "admin"

    def test_new_user_does_not_take_over_the_one_who_has_the_address(self, client, service_role, alice):
        body = {"email": alice.email, "role": "admin", "email_confirm": True}
        assert client.post("/admin/users", json=body, headers=service_role).status_code == 409

    @pytest.mark.parametrize("scope", ["users:write", "links", "invites", "organizations:write"])
    def test_no_key_promotes(self, client, parts, alice, scope):
        key = make_admin_key(parts, scope)
        assert promote(client, key.headers, alice, role="admin").status_code == 403


class TestPasswordOfAKey:
    @pytest.mark.parametrize("door", ["API", "command"])
    def test_password_of_a_key_ends_with_the_promotion_even_if_its_user_changed_it(
        self, client, service_role, alice, bob, parts, door
    ):
        key = make_admin_key(parts, "users:write")
        for person in (alice, bob):
            response = client.put(
                f"/admin/users/{person.id}", json={"password": PLANTED}, headers=key.headers
            )
            assert response.status_code == 200
        # The key's holder may be the user who changes it.
        response = bob.sign_in(PLANTED, client).put(
            "/user", json={"password": NEW_PASSWORD, "current_password": PLANTED}
        )
        assert response.status_code == 200
        for person in (alice, bob):
            assert named_ways(door, client, service_role, person) == {"email"}
        assert alice.try_to_sign_in(PLANTED, client).status_code == 401
        assert bob.try_to_sign_in(NEW_PASSWORD, client).status_code == 401

    def test_password_stays_a_keys_when_a_session_of_a_node_of_0_7_0_changes_it(
        self, client, service_role, alice, parts, database
    ):
        """A node of 0.7.0 marks no session."""
        key = make_admin_key(parts, "users:write")
        client.put(f"/admin/users/{alice.id}", json={"password": PLANTED}, headers=key.headers)
        session = alice.sign_in(PLANTED, client)
        database.run("UPDATE sessions SET by_key = NULL")
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        assert promote(client, service_role, alice, role="admin").status_code == 200
        assert alice.try_to_sign_in(NEW_PASSWORD, client).status_code == 401

    @pytest.mark.parametrize(
        "bodies",
        [[{"password": NEW_PASSWORD}, {"role": "admin"}], [{"password": NEW_PASSWORD, "role": "admin"}]],
    )
    def test_password_that_the_service_role_key_has_set_stays(
        self, client, service_role, alice, parts, bodies
    ):
        key = make_admin_key(parts, "users:write")
        client.put(f"/admin/users/{alice.id}", json={"password": PLANTED}, headers=key.headers)
        for body in bodies:
            assert promote(client, service_role, alice, **body).status_code == 200
        assert alice.try_to_sign_in(NEW_PASSWORD, client).status_code == 200

    def test_password_stays_a_keys_when_its_entry_in_the_audit_log_is_deleted(
        self, client, service_role, alice, parts, database
    ):
        key = make_admin_key(parts, "users:write")
        client.put(f"/admin/users/{alice.id}", json={"password": PLANTED}, headers=key.headers)
        database.run("UPDATE audit_log SET at = at - interval '401 days'")
        for _ in range(2):
            janitor.keep_house(parts.settings, parts.db, parts.sealer)
        assert database.count("audit_log", "action = 'password_changed'") == 0
        # The hash of another length is no other password.
        database.run("UPDATE users SET password_hash = %(hash)s", hash=parts.passwords.hash(PLANTED))
        assert promote(client, service_role, alice, role="admin").status_code == 200
        assert alice.try_to_sign_in(PLANTED, client).status_code == 401

    def test_link_of_a_key_sets_no_password(self, client, service_role, alice, parts, database):
        key = make_admin_key(parts, "links")
        body = {"type": "recovery", "email": alice.email, "password": PLANTED}
        response = client.post("/admin/generate_link", json=body, headers=key.headers)
        assert_error(response, 403, "insufficient_permissions", details="password: must be absent")
        assert database.count("one_time_tokens") == 0
        assert client.post("/admin/generate_link", json=body, headers=service_role).status_code == 200


def assert_refused(answer, kind):
    assert (answer.status_code, answer.json["error_code"]) == (400, "validation_failed"), answer.text
    assert answer.json["msg"].startswith(f"An administrative key has set this {kind}: ")


class TestAddressOfAKey:
    """An address that a key has set may be that of its holder, who proves it, too."""

    @pytest.fixture
    def change(self, client, alice, parts, database):
        """Change Alice with a key, weeks ago."""
        key = make_admin_key(parts, "users:write")

        def change(**body):
            response = client.put(f"/admin/users/{alice.id}", json=body, headers=key.headers)
            database.run("UPDATE identities SET created_at = '2025-01-01', updated_at = '2025-01-01'")
            return response.status_code

        return change

    def sign_in_by(self, client, outbox, phone):
        assert_ok(client.post("/otp", json={"phone": phone}), ON_ITS_WAY)
        return type_in(client, "sms", phone, outbox.last(kind="sms").code)

    @pytest.mark.parametrize("confirmation", [{}, {"email_confirm": True}], ids=["as it is", "confirmed"])
    def test_account_of_a_keys_holder_with_the_address_of_another_is_refused(
        self, client, service_role, parts, database, confirmation
    ):
        """The holder has an account with a passkey of before, and gives it the address of the boss."""
        holder = register(client, service_role, MALLORY)
        passkey, _ = passkeys.register(holder.open_session(client))
        boss: dict[str, Any] = {"email": "boss@example.com", "email_confirm": True}
        key = make_admin_key(parts, "users:write")
        assert client.put(f"/admin/users/{holder.id}", json=boss, headers=key.headers).status_code == 200
        database.run("UPDATE identities SET updated_at = '2025-01-01'")
        members = {"email": boss["email"], **confirmation} if confirmation else {}
        answer = promote(client, service_role, holder, role="admin", **members)
        assert_refused(answer, "email")
        remedy = f"give boss@example.com ({holder.id}) another one, or delete the user, first"
        assert answer.json["msg"].endswith(remedy)
        for options in ([], ["--yes"]):
            command = run_command(client.application, "create-admin", boss["email"], *options, input="y\n")
            assert (command.exit_code, remedy in command.output) == (2, True)
        assert database.count("users", "role = 'admin'") == 0
        session = passkeys.sign_in(client, passkey)
        assert session.get("/admin/users").status_code == 403
        # The remedy leaves the boss a user of their own.
        body = {"email": MALLORY, "email_confirm": True}
        assert promote(client, service_role, holder, **body).status_code == 200
        env = {"LATCHKEY_ADMIN_PASSWORD": NEW_PASSWORD}
        result = run_command(client.application, "create-admin", boss["email"], env=env)
        assert (result.exit_code, "(new user)" in result.output) == (0, True)
        assert passkeys.sign_in(client, passkey).get("/admin/users").status_code == 403

    @pytest.mark.parametrize("is_used", [True, False])
    def test_phone_that_a_key_has_confirmed_does_not_become_an_administrators(
        self, client, service_role, alice, change, outbox, database, is_used
    ):
        assert change(phone=PHONE, phone_confirm=True) == 200
        if is_used:
            assert self.sign_in_by(client, outbox, PHONE).status_code == 200
        for members in ({}, {"phone": PHONE, "phone_confirm": True}):
            assert_refused(promote(client, service_role, alice, role="admin", **members), "phone")
        command = run_command(client.application, "create-admin", alice.email, "--yes")
        assert (command.exit_code, f"remove it from {alice.email}" in command.output) == (2, True)
        assert database.count("users", "role = 'admin'") == 0
        assert self.sign_in_by(client, outbox, PHONE).json["user"]["role"] == "authenticated"
        promotion = promote(client, service_role, alice, role="admin", phone=None)
        assert (promotion.status_code, promotion.json["phone"]) == (200, None)

    @pytest.mark.parametrize(
        "body",
        [
            {"phone": PHONE},
            {"phone": PHONE, "phone_confirmed_at": "2025-01-01T00:00:00Z"},
            {"email": "mallory@example.com", "email_confirm": True, "phone": None},
        ],
    )
    def test_address_is_refused_however_the_key_has_set_it(self, client, service_role, alice, change, body):
        assert change(**body) == 200
        kind = "email" if "email" in body else "phone"
        assert_refused(promote(client, service_role, alice, role="admin"), kind)

    def test_word_of_a_key_about_a_proved_address_changes_nothing(self, client, service_role, alice, change):
        assert change(email=alice.email, email_confirm=True) == 200
        assert promote(client, service_role, alice, role="admin").status_code == 200

    @pytest.mark.parametrize("kind", ["email", "phone"])
    @pytest.mark.parametrize("door", ["email", "phone", "password", "link"])
    def test_address_changed_by_what_a_key_has_set_counts_as_the_keys(
        self, client, service_role, alice, change, outbox, parts, door, kind
    ):
        """The key's holder signs in, and changes the address as the user."""
        own_address = {"email": "mallory@new.example", "phone": "+4915100000077"}[kind]
        others = {}
        if door == "link":
            session = keys_session(client, parts, alice)
        elif door == "password":
            assert change(password=PLANTED) == 200
            session = alice.sign_in(PLANTED, client)
        else:
            keys_address = {"email": "mallory@example.com", "phone": PHONE}[door]
            assert change(**{door: keys_address, f"{door}_confirm": True}) == 200
            assert_ok(client.post("/otp", json={door: keys_address}), ON_ITS_WAY)
            session = session_of(
                client, type_in(client, CODES[door], keys_address, outbox.last(to=keys_address).code)
            )
            others = {"phone": None} if door == "phone" != kind else {}
        assert session.put("/user", json={kind: own_address}).status_code == 200
        response = type_in(client, f"{kind}_change", own_address, outbox.last(to=own_address).code)
        assert response.status_code == 200, response.text
        refused_kind = "email" if door == "email" else kind
        assert_refused(promote(client, service_role, alice, role="admin", **others), refused_kind)

    def test_password_set_by_an_address_of_a_key_ends_with_the_promotion(
        self, client, service_role, alice, change, outbox
    ):
        keys_address = "mallory@example.com"
        assert change(email=keys_address, email_confirm=True) == 200
        assert_ok(client.post("/recover", json={"email": keys_address}), ON_ITS_WAY)
        session = session_of(
            client, type_in(client, "recovery", keys_address, outbox.last(to=keys_address).code)
        )
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        body = {"email": alice.email, "email_confirm": True}
        assert promote(client, service_role, alice, role="admin", **body).status_code == 200
        assert alice.try_to_sign_in(NEW_PASSWORD, client).status_code == 401

    @pytest.mark.parametrize("way", ["link", "code"])
    def test_address_of_a_keys_link_counts_as_the_keys(self, client, service_role, alice, parts, way):
        key = make_admin_key(parts, "links", name="mailing")
        body = {"type": "email_change", "email": alice.email, "new_email": "mallory@example.com"}
        link = client.post("/admin/generate_link", json=body, headers=key.headers).json
        if way == "link":
            response = client.post(
                "/verify", json={"type": "email_change", "token_hash": link["hashed_token"]}
            )
        else:
            response = type_in(client, "email_change", body["new_email"], link["email_otp"])
        assert (response.status_code, response.json["user"]["email"]) == (200, body["new_email"])
        assert_refused(promote(client, service_role, alice, role="admin"), "email")

    @pytest.mark.parametrize("type", ["signup", "magiclink", "invite"])
    def test_address_that_a_keys_link_proved_first_counts_as_the_keys(
        self, client, service_role, parts, database, type
    ):
        """The holder signs up with the address of the boss, and proves it with a link of the key."""
        boss = {"email": "boss@example.com", "password": PLANTED}
        assert client.post("/signup", json=boss).status_code == 201
        response = hand_in(client, type, link_of(client, parts, boss["email"], type))
        assert response.status_code == 200, response.text
        person = Person(client, response.json["user"]["id"], boss["email"])
        assert_refused(promote(client, service_role, person, role="admin"), "email")
        command = run_command(client.application, "create-admin", person.email, "--yes")
        assert (command.exit_code, database.count("users", "role = 'admin'")) == (2, 0)

    def test_phone_added_in_a_session_that_no_key_can_open_counts_as_the_users(
        self, client, service_role, alice, change, outbox
    ):
        assert change(phone=PHONE, phone_confirm=True) == 200
        assert change(phone=None) == 200
        own_phone = "+4915100000077"
        assert alice.open_session(client).put("/user", json={"phone": own_phone}).status_code == 200
        assert type_in(client, "phone_change", own_phone, outbox.last(to=own_phone).code).status_code == 200
        assert promote(client, service_role, alice, role="admin").status_code == 200

    def test_address_of_a_user_whom_a_key_created_counts_as_the_keys(self, client, service_role, parts):
        key = make_admin_key(parts, "users:write")
        body = {"email": "dave@example.com", "password": PLANTED, "email_confirm": True}
        created_user = client.post("/admin/users", json=body, headers=key.headers).json
        dave = Person(client, created_user["id"], created_user["email"])
        assert dave.try_to_sign_in(PLANTED).status_code == 200
        assert_refused(promote(client, service_role, dave, role="admin"), "email")
        new_email: dict[str, Any] = {"email": "dave@new.example.com", "email_confirm": True}
        assert promote(client, service_role, dave, role="admin", **new_email).status_code == 200
        assert Person(client, dave.id, new_email["email"]).try_to_sign_in(PLANTED).status_code == 401


class TestProductThatMailsLinksOfAKey:
    """Its users sign in as ever. Only becoming an administrator takes something of their own."""

    def test_user_with_an_own_mailbox_is_promoted_and_signs_in_by_it(
        self, client, service_role, alice, parts, outbox
    ):
        assert keys_session(client, parts, alice).get("/user").status_code == 200
        assert promote(client, service_role, alice, role="admin").status_code == 200
        assert_ok(client.post("/magiclink", json={"email": alice.email}), ON_ITS_WAY)
        token = outbox.last(alice.email, "magiclink").token
        assert session_of(client, hand_in(client, "magiclink", token)).get("/admin/users").status_code == 200

    def test_user_with_nothing_of_their_own_is_refused_and_the_error_says_what_to_do(
        self, client, service_role, alice, parts, database
    ):
        passkey, _ = passkeys.register(keys_session(client, parts, alice))
        database.run("UPDATE users SET email_confirmed_at = NULL, email_proved = false, password_hash = NULL")
        answer = promote(client, service_role, alice, role="admin")
        assert_error(answer, 400, "validation_failed", details=None)
        assert answer.json["msg"].endswith(f"delete {alice.email} ({alice.id}) first")
        assert passkeys.sign_in(client, passkey).user["role"] == "authenticated"


def test_former_mailbox_does_not_take_the_administrators_account_back(client, service_role, outbox, database):
    """A *This wasn't me* link of before the promotion."""
    boss = register(client, service_role, MALLORY)
    session = boss.open_session(client)
    assert session.put("/user", json={"email": "boss@example.com"}).status_code == 200
    token = outbox.last("boss@example.com", "email_change").token
    assert fragment(follow(client, "email_change", token))["type"] == "email_change"
    undo = outbox.last(MALLORY, "email_changed").token
    assert promote(client, service_role, boss, role="admin").status_code == 200
    assert fragment(follow(client, "undo", undo)) == EXPIRED
    assert database.value("SELECT email FROM users WHERE id = %(id)s", id=boss.id) == "boss@example.com"


def test_factor_that_nobody_has_used_yet_goes_with_the_promotion(client, service_role, alice, database):
    session = alice.open_session(client)
    assert session.post("/factors", json={"factor_type": "totp"}).status_code == 200
    assert promote(client, service_role, alice, role="admin").status_code == 200
    assert (database.count("factors"), database.count("factor_challenges")) == (0, 0)
