"""POST /admin/users: administrators create users."""

import json
import re

import bcrypt
import pytest
from argon2 import PasswordHasher

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, INVALID, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.environment import secret
from tests.support.links import PHONE
from tests.support.server import at_once
from tests.support.users import PASSWORD, register, sign_in

A_HASH = "$2b$04$cJT8I5oWykZphhb.aipKbemJLtvE7k5268teGFGeLRwagkPL5cp0q"
DAVE = {"email": "dave@example.com"}
UNCONFIRMED = user("dave@example.com", email_confirmed_at=None, confirmed_at=None)
ERIN = {"email": "erin@example.com", "identities": [identity("email", "erin@example.com")]}


@pytest.fixture
def create(client, service_role):
    return lambda body: client.post("/admin/users", json=body, headers=service_role)


@pytest.fixture
def assert_refused(create, database):
    """Assert that a body is refused with an error and changes nothing."""

    def refuse(body, *error, **members):
        before = database.everything()
        assert_error(create(body), *error, **members)
        assert database.everything() == before

    return refuse


class TestCreatedUser:
    def test_user_needs_only_an_email(self, create, client, service_role, database, mailbox):
        response = create(DAVE)
        assert_ok(response, UNCONFIRMED)
        assert_error(sign_in(client, "dave@example.com"), 401, "invalid_credentials")
        assert database.count("sessions") == database.count("one_time_tokens") == 0
        assert mailbox.messages() == []
        # A sign-up does not replace the user.
        client.post("/signup", json=DAVE | {"password": PASSWORD})
        assert_ok(client.get(f"/admin/users/{response.json['id']}", headers=service_role), response.json)

    def test_addresses_are_confirmed_separately_and_a_missing_phone_is_not(self, create):
        created_user = create(DAVE | {"phone": PHONE, "phone_confirm": True}).json
        times = [created_user[name] for name in ("email_confirmed_at", "phone_confirmed_at", "confirmed_at")]
        assert times == [None, A_TIMESTAMP, A_TIMESTAMP]
        # Null means absent.
        names = "password phone email_confirm role user_metadata app_metadata ban_duration"
        erin = {"email": "erin@example.com"} | dict.fromkeys(names.split()) | {"phone_confirm": True}
        assert_ok(create(erin), UNCONFIRMED | ERIN)

    @pytest.mark.parametrize("field", ["created_at", "banned_until", "identities", "aud", "data", ""])
    def test_unknown_member_is_refused_by_name(self, assert_refused, client, service_role, field):
        body = DAVE | {field: {"x": 1}}
        assert_refused(body, *INVALID, details=f"{field}: is not a member of this body")
        dialect = service_role | {"X-Supabase-Api-Version": "2024-01-01"}
        assert client.post("/admin/users", json=body, headers=dialect).status_code == 200

    def test_user_may_have_a_given_id(self, create, assert_refused, client, service_role, alice):
        id = "11111111-2222-4333-8444-ABCDEFABCDEF"
        expected = UNCONFIRMED | {"id": id.lower()}
        assert_ok(create(DAVE | {"id": id}), expected)
        assert_ok(client.get(f"/admin/users/{id}", headers=service_role), expected)
        erin, msg = {"email": "erin@example.com"}, "A user with this id already exists"
        for taken_id in (id, alice.id):
            assert_refused(erin | {"id": taken_id}, 409, "user_already_exists", msg)
        assert_refused(erin | {"id": "1"}, *INVALID, details="id: must be a UUID")

    @pytest.mark.parametrize(
        ("duration", "banned_until"),
        [("24h", A_TIMESTAMP), ("permanent", "9999-12-31T23:59:59.000000Z"), ("none", None)],
    )
    def test_user_may_be_created_banned(self, create, client, database, duration, banned_until):
        response = create(DAVE | {"password": PASSWORD, "email_confirm": True, "ban_duration": duration})
        assert (response.status_code, response.json["banned_until"]) == (200, banned_until)
        assert sign_in(client, "dave@example.com").status_code == (403 if banned_until else 200)
        assert database.count("audit_log", "action = 'banned'") == (1 if banned_until else 0)


class TestPasswordHash:
    @pytest.mark.parametrize("variant", ["2a", "2b", "2y"])
    @pytest.mark.parametrize("password", [PASSWORD, "Correct-Horse-1" * 10], ids=["short", "over 72 bytes"])
    def test_user_signs_in_with_the_password_of_a_given_hash(
        self, create, client, database, variant, password
    ):
        own_hash = bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(6)).decode()
        password_hash = own_hash.replace("2b", variant, 1)
        assert create(DAVE | {"password_hash": password_hash, "email_confirm": True}).status_code == 200
        assert_error(sign_in(client, "dave@example.com", "Another-Horse-1"), 401, "invalid_credentials")
        assert sign_in(client, "dave@example.com", password).status_code == 200
        assert password_hash not in database.value("SELECT password_hash FROM users")
        assert sign_in(client, "dave@example.com", password).status_code == 200

    @cases(
        "password_hash",
        [
            *("", "x", PASSWORD, "{SSHA}x", f" {A_HASH}", f"{A_HASH}\n", A_HASH[:-1], A_HASH + "."),
            *(A_HASH.replace("$04$", cost) for cost in ("$07$", "$31$", "$03$")),
            A_HASH.replace("2b", "2x"),
            # Stray bits at the end of the salt and of the digest.
            f"{A_HASH[:28]}A{A_HASH[29:]}",
            f"{A_HASH[:-1]}A",
            # Hashes of Django and passlib whose base64 cannot be read, or whose N is no power of 2.
            *(
                "pbkdf2_sha256$1$salt$b",
                "$pbkdf2-sha256$1$s$b",
                "pbkdf2_sha1$1$salt$é",
                "scrypt$0$salt$8$1$b",
            ),
            # A hash that would take too long.
            f"$argon2id$v=19$m=65536,t=99,p=1$c29tZXNhbHRzb21lc2FsdA${'A' * 43}",
        ],
    )
    def test_other_hash_is_refused(self, assert_refused, password_hash):
        assert_refused(DAVE | {"password_hash": password_hash}, *INVALID, details=A_SENTENCE)

    def test_user_signs_in_with_the_password_of_an_argon2_hash_and_it_is_renewed(
        self, create, client, database
    ):
        """The hash has the format of the import, or that of Django."""
        own_hash = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
        for prefix in ("", "argon2"):
            database.run("DELETE FROM users")
            assert (
                create(DAVE | {"password_hash": prefix + own_hash, "email_confirm": True}).status_code == 200
            )
            assert database.value("SELECT password_hash FROM users") == own_hash
            assert_error(sign_in(client, "dave@example.com", "Another-Horse-1"), 401, "invalid_credentials")
            assert sign_in(client, "dave@example.com", PASSWORD).status_code == 200
            assert "argon2" not in database.value("SELECT password_hash FROM users")


@cases(
    ("body", "details"),
    [
        *((body, "email: is required") for body in ({}, {"email": None}, {"phone": PHONE})),
        (
            DAVE | {"password_hash": A_HASH, "password": PASSWORD},
            "password_hash: must be absent if there is a password",
        ),
    ],
)
def test_body_without_an_email_or_with_two_passwords_is_refused(assert_refused, body, details):
    assert_refused(body, *INVALID, details=details)


class TestAuthorization:
    """Checks that tests/web/test_access_matrix.py does not make for all routes."""

    def test_new_and_old_key_are_accepted_during_rotation(self, make_app):
        new, old = secret("n"), secret("o")
        client = make_app(AUTH_SERVICE_ROLE_KEY=f"{new},{old}").test_client()
        keys = {new: 200, old: 200, new[:-1]: 401, f"{new},{old}": 400, f"{new} {old}": 401, secret("x"): 401}
        for key, status in keys.items():
            body, headers = {"email": f"{key[0]}@example.com"}, {"Authorization": f"Bearer {key}"}
            assert client.post("/admin/users", json=body, headers=headers).status_code == status


def test_one_of_fifty_concurrent_requests_creates_the_user(server, service_role, database):
    answers = at_once(50, lambda _: server.post("/admin/users", json=DAVE, headers=service_role))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49
    assert database.count("users") == database.count("identities") == 1


@pytest.mark.parametrize("role", [None, "admin"])
def test_cast_has_the_rows_of_created_users(create, client, service_role, database, role):
    def rows():
        everything = json.dumps(database.everything(), sort_keys=True)
        database.empty()
        return re.sub(r"[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:.+]+Z?|[./\w]{53}(?=\")", "…", everything)

    register(client, service_role, "alice@example.com", role)
    rows_of_cast = rows()
    body = {"email": "alice@example.com", "password": PASSWORD, "email_confirm": True, "role": role}
    assert create(body).status_code == 200
    assert rows_of_cast == rows()
