"""POST /admin/users: administrators create users."""

import json
import re

import bcrypt
import pytest

from tests.conftest import SERVICE_ROLE_KEY, secret
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, register, sign_in
from tests.support.server import at_once

A_HASH = "$2b$04$cJT8I5oWykZphhb.aipKbemJLtvE7k5268teGFGeLRwagkPL5cp0q"
DAVE = {"email": "dave@example.com"}
UNCONFIRMED = {"email_confirmed_at": None, "confirmed_at": None}


@pytest.fixture
def create(client, service_role):
    return lambda body: client.post("/admin/users", json=body, headers=service_role)


class TestCreatedUser:
    def test_user_needs_only_an_email(self, create, client):
        assert_ok(create(DAVE), user("dave@example.com", **UNCONFIRMED))
        assert_error(sign_in(client, "dave@example.com"), 401, "invalid_credentials")

    def test_user_has_all_given_members(self, create):
        body = {
            "email": "Dave@Example.com",
            "password": PASSWORD,
            "phone": "+49 170 1234567",
            "email_confirm": True,
            "phone_confirm": True,
            "role": "editor",
            "user_metadata": {"name": "Dave"},
            "app_metadata": {"plan": "gold"},
        }
        expected = user(
            "dave@example.com",
            role="editor",
            phone="+491701234567",
            phone_confirmed_at=A_TIMESTAMP,
            user_metadata={"name": "Dave"},
            app_metadata={"plan": "gold", "provider": "email", "providers": ["email", "phone"]},
            identities=[identity("email", "dave@example.com"), identity("phone", "+491701234567")],
        )
        assert_ok(create(body), expected)

    def test_created_user_can_be_read_again(self, create, client, service_role):
        made = create(DAVE | {"phone": "+491701234567", "password": PASSWORD}).json
        assert_ok(client.get(f"/admin/users/{made['id']}", headers=service_role), made)

    @pytest.mark.parametrize("confirm", [{}, {"email_confirm": False}, {"email_confirm": None}])
    def test_user_is_unconfirmed_by_default(self, create, client, confirm):
        assert_ok(create(DAVE | {"password": PASSWORD} | confirm), user("dave@example.com", **UNCONFIRMED))
        assert_error(sign_in(client, "dave@example.com"), 403, "email_not_confirmed")

    def test_confirmed_user_may_sign_in(self, create, client):
        create(DAVE | {"password": PASSWORD, "email_confirm": True})
        assert sign_in(client, "dave@example.com").status_code == 200

    def test_email_and_phone_are_confirmed_separately(self, create):
        made = create(DAVE | {"phone": "+491701234567", "phone_confirm": True}).json
        assert (made["email_confirmed_at"], made["phone_confirmed_at"], made["confirmed_at"]) == (
            None,
            A_TIMESTAMP,
            A_TIMESTAMP,
        )

    def test_missing_phone_is_not_confirmed(self, create):
        assert_ok(create(DAVE | {"phone_confirm": True}), user("dave@example.com", **UNCONFIRMED))

    def test_given_provider_is_ignored(self, create):
        made = create(
            DAVE | {"app_metadata": {"provider": "google", "providers": ["google"], "plan": "gold"}}
        ).json
        assert made["app_metadata"] == {"plan": "gold", "provider": "email", "providers": ["email"]}

    def test_null_means_absent(self, create):
        optional = (
            "password",
            "phone",
            "email_confirm",
            "phone_confirm",
            "role",
            "user_metadata",
            "app_metadata",
        )
        assert_ok(create(DAVE | dict.fromkeys(optional)), user("dave@example.com", **UNCONFIRMED))

    @pytest.mark.parametrize(
        "field",
        ["created_at", "last_sign_in_at", "banned_until", "identities", "aud", "confirmed_at", "data", ""],
    )
    def test_unknown_member_is_refused_by_name(self, create, client, service_role, database, field):
        body = DAVE | {field: {"x": 1}}
        details = f"{field}: is not a member of this body"
        assert_error(create(body), 400, "validation_failed", details=details)
        assert database.count("users") == 0
        dialect = service_role | {"X-Supabase-Api-Version": "2024-01-01"}
        assert client.post("/admin/users", json=body, headers=dialect).status_code == 200

    def test_user_may_have_a_given_id(self, create, client, service_role, alice):
        id = "11111111-2222-4333-8444-ABCDEFABCDEF"
        expected = user("dave@example.com", id=id.lower(), **UNCONFIRMED)
        assert_ok(create(DAVE | {"id": id}), expected)
        assert_ok(client.get(f"/admin/users/{id}", headers=service_role), expected)
        for taken in (id, alice.id):
            assert_error(
                create({"email": "erin@example.com", "id": taken}),
                409,
                "user_already_exists",
                "A user with this id already exists",
            )
        details = "id: must be a UUID"
        assert_error(
            create({"email": "erin@example.com", "id": "1"}), 400, "validation_failed", details=details
        )

    @pytest.mark.parametrize(
        ("duration", "banned_until"),
        [("24h", A_TIMESTAMP), ("permanent", "9999-12-31T23:59:59.000000Z"), ("none", None), (None, None)],
    )
    def test_user_may_be_created_banned(self, create, client, database, duration, banned_until):
        made = create(DAVE | {"password": PASSWORD, "email_confirm": True, "ban_duration": duration})
        assert (made.status_code, made.json["banned_until"]) == (200, banned_until)
        assert sign_in(client, "dave@example.com").status_code == (403 if banned_until else 200)
        assert database.count("audit_log", "action = 'banned'") == (1 if banned_until else 0)

    @pytest.mark.parametrize("variant", ["2a", "2b", "2y"])
    @pytest.mark.parametrize("password", [PASSWORD, "Correct-Horse-1" * 10], ids=["short", "over 72 bytes"])
    def test_user_signs_in_with_the_password_of_a_given_hash(
        self, create, client, database, variant, password
    ):
        made = bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(6)).decode()
        password_hash = made.replace("2b", variant, 1)
        assert create(DAVE | {"password_hash": password_hash, "email_confirm": True}).status_code == 200
        assert_error(sign_in(client, "dave@example.com", "Another-Horse-1"), 401, "invalid_credentials")
        assert sign_in(client, "dave@example.com", password).status_code == 200
        renewed = database.value("SELECT password_hash FROM users")
        assert password_hash not in renewed
        assert sign_in(client, "dave@example.com", password).status_code == 200

    @cases(
        "password_hash",
        [
            *("", "x", PASSWORD, "{SSHA}x", f" {A_HASH}", f"{A_HASH}\n", A_HASH[:-1], A_HASH + "."),
            A_HASH.replace("$04$", "$07$"),
            A_HASH.replace("$04$", "$31$"),
            A_HASH.replace("$04$", "$03$"),
            A_HASH.replace("2b", "2x"),
            # Stray bits at the end of the salt and of the digest.
            f"{A_HASH[:28]}A{A_HASH[29:]}",
            f"{A_HASH[:-1]}A",
        ],
    )
    def test_other_hash_is_refused(self, create, database, password_hash):
        details = "password_hash: must be a bcrypt hash of a cost of 4 to 6"
        self.refused_hash(create, database, password_hash, details)

    def test_hash_with_a_password_is_refused(self, create, database):
        details = "password_hash: must be absent if there is a password"
        self.refused_hash(create, database, A_HASH, details, password=PASSWORD)

    def refused_hash(self, create, database, password_hash, details, **members):
        response = create(DAVE | {"password_hash": password_hash} | members)
        assert_error(response, 400, "validation_failed", details=details)
        assert database.count("users") == 0

    def test_creation_starts_no_session_and_sends_no_mail(self, create, database, mailbox):
        create(DAVE | {"password": PASSWORD, "email_confirm": True})
        assert database.count("sessions") == database.count("one_time_tokens") == 0
        assert mailbox.messages() == []

    def test_sign_up_does_not_replace_a_created_user(self, create, client, service_role):
        made = create(DAVE).json
        client.post("/signup", json=DAVE | {"password": PASSWORD})
        assert_ok(client.get(f"/admin/users/{made['id']}", headers=service_role), made)


class TestAuthorization:
    def test_service_role_key_is_accepted(self, client, service_role):
        assert client.post("/admin/users", json=DAVE, headers=service_role).status_code == 200

    def test_service_role_key_is_accepted_as_apikey(self, client):
        assert client.post("/admin/users", json=DAVE, headers={"apikey": SERVICE_ROLE_KEY}).status_code == 200

    def test_administrator_is_accepted(self, carol):
        assert_ok(carol.sign_in().post("/admin/users", json=DAVE), user("dave@example.com", **UNCONFIRMED))

    def test_administrator_with_a_public_apikey_is_accepted(self, client, carol):
        headers = carol.open_session().authorization | {"apikey": "a key that everybody has"}
        assert client.post("/admin/users", json=DAVE, headers=headers).status_code == 200

    def test_new_and_old_key_are_accepted_during_rotation(self, make_app):
        client = make_app(AUTH_SERVICE_ROLE_KEY=f"{secret('n')},{secret('o')}").test_client()
        for number, key in enumerate((secret("n"), secret("o"))):
            assert (
                client.post(
                    "/admin/users", json={"email": f"user{number}@example.com"}, headers={"apikey": key}
                ).status_code
                == 200
            )
        for key in (secret("x"), f"{secret('n')} {secret('o')}", secret("n")[:-1], secret("n") + "n"):
            assert_error(
                client.post("/admin/users", json=DAVE, headers={"Authorization": f"Bearer {key}"}),
                401,
                "bad_jwt",
                details=None if " " not in key else A_SENTENCE,
            )

    def refused(self, client, database, headers, *error, **members):
        before = database.everything("users", "identities")
        assert_error(client.post("/admin/users", json=DAVE, headers=headers), *error, **members)
        assert database.everything("users", "identities") == before

    @pytest.mark.parametrize("headers", [{}, {"apikey": ""}, {"Authorization": ""}], ids=str)
    def test_missing_credential_is_refused(self, client, database, headers):
        self.refused(
            client,
            database,
            headers,
            401,
            "no_authorization",
            details="Authorization: must be Bearer <token>",
        )

    @cases(
        "key", [SERVICE_ROLE_KEY[:-1], SERVICE_ROLE_KEY + "x", SERVICE_ROLE_KEY.upper(), "x.y.z", "\xfc" * 40]
    )
    def test_wrong_key_is_refused(self, client, database, key):
        before = database.everything()
        for headers in ({"Authorization": f"Bearer {key}"}, {"apikey": key}):
            response = client.post("/admin/users", json=DAVE, headers=headers)
            assert (response.status_code, response.json["error_code"]) == (401, "bad_jwt")
        assert database.everything() == before

    def test_key_in_another_scheme_is_refused(self, client, database):
        self.refused(
            client,
            database,
            {"Authorization": f"Basic {SERVICE_ROLE_KEY}"},
            401,
            "bad_jwt",
            details=A_SENTENCE,
        )
        self.refused(
            client, database, {"Authorization": SERVICE_ROLE_KEY}, 401, "bad_jwt", details=A_SENTENCE
        )

    def test_key_in_the_query_or_body_is_refused(self, client, database):
        before = database.everything()
        for path in (f"/admin/users?apikey={SERVICE_ROLE_KEY}", "/admin/users"):
            response = client.post(path, json=DAVE | {"apikey": SERVICE_ROLE_KEY})
            assert_error(response, 401, "no_authorization", details=A_SENTENCE)
        assert database.everything() == before

    def test_user_is_refused(self, client, database, mallory):
        self.refused(
            client,
            database,
            mallory.sign_in().authorization,
            403,
            "not_admin",
            "Only administrators may do this",
        )

    def test_former_administrator_is_refused(self, client, database, carol):
        session = carol.open_session()
        database.run("UPDATE users SET role = 'authenticated'")
        assert session.claims["role"] == "admin"
        self.refused(client, database, session.authorization, 403, "not_admin")
        # The demotion did not end the session.
        assert session.get("/user").status_code == 200

    def test_new_administrator_is_accepted_at_once(self, client, database, alice):
        session = alice.open_session()
        database.run("UPDATE users SET role = 'admin'")
        assert session.claims["role"] == "authenticated"
        assert session.post("/admin/users", json=DAVE).status_code == 200

    def test_repeated_key_is_400(self, client, database):
        headers = [("apikey", SERVICE_ROLE_KEY), ("apikey", SERVICE_ROLE_KEY)]
        self.refused(
            client, database, headers, 400, "validation_failed", details="apikey: must be given once"
        )

    def test_credential_is_checked_before_the_body(self, client):
        response = client.post("/admin/users", data="{", content_type="application/json")
        assert_error(response, 401, "no_authorization", details=A_SENTENCE)


class TestRoles:
    @pytest.mark.parametrize("role", ["authenticated", "admin", "editor", "a", "a_1", "x" * 32])
    def test_service_role_key_may_set_a_role(self, create, role):
        assert create(DAVE | {"role": role}).json["role"] == role

    @cases(
        "role",
        [
            "service_role",
            "supabase_admin",
            "anon",
            "postgres",
            "Admin",
            "1a",
            "_a",
            "a-b",
            "a b",
            "",
            "x" * 33,
            "admin\n",
            "é",
        ],
    )
    def test_invalid_role_is_refused(self, create, database, role):
        assert_error(create(DAVE | {"role": role}), 400, "validation_failed", details=A_SENTENCE)
        assert database.count("users") == 0

    @pytest.mark.parametrize("role", ["admin", "authenticated", "editor"])
    def test_administrator_may_not_set_a_role(self, carol, database, role):
        response = carol.open_session().post("/admin/users", json=DAVE | {"role": role})
        assert_error(response, 403, "insufficient_permissions", details=A_SENTENCE)
        assert database.count("users") == 1

    def test_administrator_may_send_no_role_or_null(self, carol):
        assert carol.sign_in().post("/admin/users", json=DAVE | {"role": None}).status_code == 200

    def test_created_administrator_may_administer(self, create, client):
        create(DAVE | {"role": "admin", "password": PASSWORD, "email_confirm": True})
        token = sign_in(client, "dave@example.com").json["access_token"]
        response = client.post(
            "/admin/users", json={"email": "erin@example.com"}, headers={"Authorization": f"Bearer {token}"}
        )
        assert response.status_code == 200


class TestRefusals:
    def refused(self, create, database, body, *error, **members):
        before = database.everything()
        assert_error(create(body), *error, **members)
        assert database.everything() == before

    def test_missing_email_is_refused(self, create, database):
        for body in ({}, {"email": None}, {"phone": "+491701234567"}):
            self.refused(create, database, body, 400, "validation_failed", details="email: is required")

    @cases("email", ["dave", "dave@", "@example.com", "dave@@example.com", "dave@example", ""])
    def test_invalid_email_is_refused(self, create, database, email):
        self.refused(create, database, {"email": email}, 400, "validation_failed", details=A_SENTENCE)

    @cases(
        "phone",
        [
            "0170 1234567",
            "+0491701234567",
            "+49",
            "+49170123456789012",
            "+49x1701234567",
            "phone",
            "",
            "+٤٩١٧٠١٢٣٤٥٦٧",
        ],
    )
    def test_invalid_phone_is_refused(self, create, database, phone):
        details = "phone: must be a phone number in E.164 form, such as +491701234567"
        self.refused(create, database, DAVE | {"phone": phone}, 400, "validation_failed", details=details)

    def test_weak_password_is_400(self, create, database):
        response = {"details": A_SENTENCE, "weak_password": {"reasons": ["length", "characters"]}}
        self.refused(create, database, DAVE | {"password": "weak"}, 400, "weak_password", **response)

    @pytest.mark.parametrize("email", ["alice@example.com", "ALICE@Example.com"])
    def test_taken_email_is_refused(self, create, database, alice, email):
        self.refused(
            create,
            database,
            {"email": email},
            409,
            "email_exists",
            "A user with this email address has already been registered",
        )

    def test_taken_phone_is_refused(self, create, database):
        create({"email": "erin@example.com", "phone": "+491701234567"})
        body = DAVE | {"phone": "+49 170 1234567"}
        self.refused(
            create,
            database,
            body,
            409,
            "phone_exists",
            "A user with this phone number has already been registered",
        )

    @pytest.mark.parametrize("field", ["user_metadata", "app_metadata"])
    def test_metadata_over_8_kib_is_refused(self, create, database, field):
        details = f"{field}: must be at most 8 KiB as JSON"
        self.refused(
            create, database, DAVE | {field: {"x": "y" * 8192}}, 400, "validation_failed", details=details
        )

    @pytest.mark.parametrize("field", ["user_metadata", "app_metadata"])
    def test_metadata_of_8_kib_is_accepted(self, create, field):
        room = 8192 - len(json.dumps({"x": ""}))
        assert create(DAVE | {field: {"x": "y" * room}}).status_code == 200

    def test_one_of_fifty_concurrent_requests_creates_the_user(self, server, service_role, database):
        answers = at_once(50, lambda _: server.post("/admin/users", json=DAVE, headers=service_role))
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49
        assert database.count("users") == database.count("identities") == 1


@pytest.mark.parametrize("role", [None, "admin"])
def test_cast_has_the_rows_of_created_users(client, service_role, database, role):
    def rows():
        everything = json.dumps(database.everything(), sort_keys=True)
        database.empty()
        return re.sub(r"[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:.+]+Z?|[./\w]{53}(?=\")", "…", everything)

    register(client, service_role, "alice@example.com", role)
    registered = rows()
    body = {"email": "alice@example.com", "password": PASSWORD, "email_confirm": True, "role": role}
    assert client.post("/admin/users", json=body, headers=service_role).status_code == 200
    assert registered == rows()
