"""PUT /admin/users/{id}: changing, confirming, banning and promoting any user."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import SERVICE_ROLE_KEY, secret
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, register, session_of, sign_in
from tests.support.links import OTHER_PHONE, PHONE, hand_in, type_in
from tests.support.server import at_once

NEW = "Another-Horse-1"
FOR_EVER = "9999-12-31T23:59:59.000000Z"


@pytest.fixture
def update(client, service_role):
    return lambda person, body, **options: client.put(
        f"/admin/users/{person.id}", json=body, headers=service_role, **options
    )


@pytest.fixture
def refused(update, database):
    """Assert that an update is refused with an error and changes nothing."""

    def refuse(person, body, *error, **members):
        before = database.everything()
        assert_error(update(person, body), *error, **members)
        assert database.everything() == before

    return refuse


class TestUser:
    def test_absent_fields_stay(self, update, client, service_role, alice):
        before = client.get(f"/admin/users/{alice.id}", headers=service_role).json
        assert_ok(update(alice, {}), before | {"updated_at": A_TIMESTAMP})
        response = client.put(f"/admin/users/{alice.id}", headers=service_role)
        assert_ok(response, before | {"updated_at": A_TIMESTAMP})
        assert response.json["updated_at"] > before["updated_at"]

    def test_many_fields_change_at_once(self, update, client, service_role, alice):
        body = {
            "email": "Alicia@Example.com",
            "email_confirm": True,
            "phone": "+49 170 1234567",
            "phone_confirm": True,
            "password": NEW,
            "role": "editor",
            "user_metadata": {"name": "Alicia"},
            "app_metadata": {"plan": "gold"},
            "ban_duration": "24h",
        }
        expected = user(
            "alicia@example.com",
            id=alice.id,
            role="editor",
            phone="+491701234567",
            phone_confirmed_at=A_TIMESTAMP,
            user_metadata={"name": "Alicia"},
            app_metadata={"plan": "gold", "provider": "email", "providers": ["email", "phone"]},
            identities=[identity("email", "alicia@example.com"), identity("phone", "+491701234567")],
            banned_until=A_TIMESTAMP,
        )
        response = update(alice, body)
        assert_ok(response, expected)
        assert_ok(client.get(f"/admin/users/{alice.id}", headers=service_role), response.json)

    def test_null_means_absent(self, update, client, service_role, alice):
        before = client.get(f"/admin/users/{alice.id}", headers=service_role).json
        body = dict.fromkeys(
            (
                "remove",
                "password",
                "role",
                "email_confirm",
                "phone_confirm",
                "user_metadata",
                "app_metadata",
            )
        )
        assert_ok(update(alice, body), before | {"updated_at": A_TIMESTAMP})

    @cases(
        "name",
        [
            "id",
            "aud",
            "created_at",
            "last_sign_in_at",
            "banned_until",
            "admin_since",
            "is_admin",
            "identities",
            "confirmed_at",
            "data",
            "new_email",
            "password_hash",
            "made_by",
        ],
    )
    def test_unknown_member_is_refused_by_name(self, update, client, service_role, alice, name):
        before = client.get(f"/admin/users/{alice.id}", headers=service_role).json
        response = update(alice, {"role": "editor", name: FOR_EVER})
        details = f"{name}: is not a member of this body"
        assert_error(response, 400, "validation_failed", details=details)
        assert_ok(client.get(f"/admin/users/{alice.id}", headers=service_role), before)

    def test_update_leaves_other_users_unchanged(self, update, alice, bob):
        session = bob.open_session()
        before = session.get("/user").json
        update(alice, {"user_metadata": {"x": 1}, "password": NEW, "ban_duration": "1h", "role": "editor"})
        assert_ok(session.get("/user"), before)

    def test_id_is_case_insensitive(self, client, service_role, alice):
        response = client.put(
            f"/admin/users/{alice.id.upper()}", json={"user_metadata": {"x": 1}}, headers=service_role
        )
        assert (response.json["id"], response.json["user_metadata"]) == (alice.id, {"x": 1})

    @cases("id", [str(uuid.UUID(int=0)), "1", "me", "%00", "0" * 32, "' OR true --"])
    @cases("body", [{"role": "admin"}, {"password": NEW}, {}])
    def test_unknown_or_malformed_id_is_404(self, client, service_role, id, body):
        response = client.put(f"/admin/users/{id}", json=body, headers=service_role)
        assert_error(response, 404, "user_not_found", "User not found")


class TestAddresses:
    def test_new_email_is_set_at_once_unconfirmed(self, update, client, alice):
        response = update(alice, {"email": "alicia@example.com"})
        expected = {
            "email_confirmed_at": None,
            "confirmed_at": None,
            "identities": [identity("email", "alicia@example.com")],
        }
        assert_ok(response, user("alicia@example.com", id=alice.id, **expected))
        assert_error(sign_in(client, alice.email), 401, "invalid_credentials")
        assert_error(sign_in(client, "alicia@example.com"), 403, "email_not_confirmed")

    def test_new_email_may_be_confirmed_in_the_same_request(self, update, client, alice):
        assert_ok(
            update(alice, {"email": "alicia@example.com", "email_confirm": True}),
            user("alicia@example.com", id=alice.id),
        )
        assert sign_in(client, "alicia@example.com").status_code == 200

    def test_current_email_changes_nothing(self, update, client, service_role, alice):
        session = alice.open_session()
        before = session.get("/user").json
        identities = [before["identities"][0] | {"updated_at": A_TIMESTAMP}]
        assert_ok(
            update(alice, {"email": "ALICE@example.com"}),
            before | {"updated_at": A_TIMESTAMP, "identities": identities},
        )
        assert session.get("/user").status_code == 200

    def test_new_email_ends_all_sessions_and_pending_changes(self, update, client, alice, database):
        session = alice.open_session()
        assert (
            session.put("/user", json={"email": "pending@example.com"}).json["new_email"]
            == "pending@example.com"
        )
        response = update(alice, {"email": "alicia@example.com"})
        assert (response.json["new_email"], response.json["email_change_sent_at"]) == (None, None)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert database.count("one_time_tokens", "purpose = 'email_change'") == 0

    def test_taken_email_is_409(self, refused, alice, bob):
        for email in ("bob@example.com", "BOB@Example.com"):
            refused(
                alice,
                {"email": email, "role": "editor"},
                409,
                "email_exists",
                "A user with this email address has already been registered",
            )

    def test_taken_phone_is_409(self, refused, update, alice, bob):
        update(bob, {"phone": "+491701234567"})
        refused(
            alice,
            {"phone": "+49 170 1234567", "role": "editor"},
            409,
            "phone_exists",
            "A user with this phone number has already been registered",
        )

    @cases(
        "body",
        [
            {"email": "alice"},
            {"email": ""},
            {"email": ["a@example.com"]},
            {"phone": "0170"},
            {"phone": ""},
            {"phone": 49},
        ],
    )
    def test_invalid_address_is_400(self, refused, alice, body):
        refused(alice, body | {"role": "editor"}, 400, "validation_failed", details=A_SENTENCE)

    def test_confirmed_phone_signs_in(self, update, client, alice):
        update(alice, {"phone": "+491701234567"})
        body = {"phone": "+491701234567", "password": PASSWORD}
        assert_error(client.post("/token?grant_type=password", json=body), 403, "phone_not_confirmed")
        update(alice, {"phone_confirm": True})
        assert client.post("/token?grant_type=password", json=body).status_code == 200

    def test_one_of_sixteen_users_gets_an_email_set_concurrently(
        self, server, client, service_role, database
    ):
        people = [register(client, service_role, f"user{number}@example.com") for number in range(16)]
        body = {"email": "wanted@example.com"}
        answers = at_once(
            16,
            lambda number: server.put(f"/admin/users/{people[number].id}", json=body, headers=service_role),
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 15


class TestPasswords:
    def test_new_password_signs_in_and_the_old_one_does_not(self, update, alice):
        assert_ok(update(alice, {"password": NEW}), user(alice.email, id=alice.id))
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert alice.try_to_sign_in(NEW).status_code == 200

    def test_new_password_ends_all_sessions_and_voids_all_links(self, update, client, alice, database):
        sessions = [alice.open_session(), alice.open_session()]
        client.post("/recover", json={"email": alice.email})
        update(alice, {"password": NEW})
        for session in sessions:
            assert_error(session.get("/user"), 401, "session_not_found")
            assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert database.count("one_time_tokens") == 0
        assert {row.end_reason for row in database.all("SELECT end_reason FROM sessions")} == {
            "password_changed"
        }

    def test_user_without_a_password_gets_one(self, update, client, service_role):
        id = client.post(
            "/admin/users", json={"email": "dave@example.com", "email_confirm": True}, headers=service_role
        ).json["id"]
        client.put(f"/admin/users/{id}", json={"password": NEW}, headers=service_role)
        assert sign_in(client, "dave@example.com", NEW).status_code == 200

    @cases(
        ("password", "reasons"),
        [
            ("Ab1-", ["length"]),
            ("abcdefgh", ["characters"]),
            ("", ["length", "characters"]),
            ("password", ["characters", "common"]),
        ],
    )
    def test_weak_password_is_400(self, refused, alice, password, reasons):
        members = {"details": A_SENTENCE, "weak_password": {"reasons": reasons}}
        refused(alice, {"password": password, "role": "editor"}, 400, "weak_password", **members)

    def test_address_of_the_user_is_refused_as_password(self, make_app, service_role, alice):
        client = make_app(AUTH_PASSWORD_REQUIREMENTS="").test_client()
        for body in (
            {"password": "Alice@Example.com"},
            {"password": "alicia@example.com", "email": "alicia@example.com"},
        ):
            response = client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
            assert_error(
                response, 400, "weak_password", details=A_SENTENCE, weak_password={"reasons": ["common"]}
            )

    @cases(
        "password",
        [1, True, ["x"], {"x": 1}, "Aa1-" * 257, "Größe-1" * 120],
    )
    def test_invalid_password_is_400(self, refused, alice, password):
        refused(
            alice,
            {"password": password},
            400,
            "validation_failed",
            details="password: must be a string of at most 1024 bytes",
        )

    def test_password_is_not_in_the_response(self, update, alice):
        text = update(alice, {"password": NEW}).text
        assert NEW not in text
        assert "$2" not in text
        assert "password" not in text


class TestConfirmations:
    MOMENT = "2026-01-31T12:00:00.500000Z"

    @pytest.mark.parametrize(
        "sent",
        [MOMENT, "2026-01-31T12:00:00.5Z", "2026-01-31T13:00:00.5+01:00", "2026-01-31T12:00:00.500000+00:00"],
    )
    def test_email_confirmed_at_sets_the_given_time(self, update, alice, sent):
        response = update(alice, {"email_confirmed_at": sent})
        assert_ok(
            response, user(alice.email, id=alice.id, email_confirmed_at=self.MOMENT, confirmed_at=self.MOMENT)
        )

    def test_email_confirmed_at_null_removes_the_confirmation(self, update, alice):
        response = update(alice, {"email_confirmed_at": None})
        assert_ok(response, user(alice.email, id=alice.id, email_confirmed_at=None, confirmed_at=None))
        assert_error(alice.try_to_sign_in(), 403, "email_not_confirmed")
        update(alice, {"email_confirmed_at": self.MOMENT})
        assert alice.try_to_sign_in().status_code == 200

    def test_phone_is_confirmed_separately(self, update, alice):
        update(alice, {"phone": "+491701234567", "email_confirmed_at": None})
        response = update(alice, {"phone_confirmed_at": self.MOMENT})
        assert (
            response.json["email_confirmed_at"],
            response.json["phone_confirmed_at"],
            response.json["confirmed_at"],
        ) == (None, self.MOMENT, self.MOMENT)
        response = update(alice, {"phone_confirmed_at": None})
        assert (response.json["phone_confirmed_at"], response.json["confirmed_at"]) == (None, None)

    def test_confirmed_at_is_the_earlier_confirmation(self, update, alice):
        update(alice, {"phone": "+491701234567"})
        for email, phone in (
            ("2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"),
            ("2026-01-04T00:00:00.000000Z", "2026-01-03T00:00:00.000000Z"),
        ):
            response = update(alice, {"email_confirmed_at": email, "phone_confirmed_at": phone})
            assert response.json["confirmed_at"] == min(email, phone)

    def test_email_confirm_confirms_now(self, update, alice, database):
        update(alice, {"email_confirmed_at": None})
        assert update(alice, {"email_confirm": True}).json["email_confirmed_at"] == A_TIMESTAMP
        assert database.value("SELECT email_confirmed_at > now() - interval '1 minute' FROM users")

    def test_email_confirm_false_keeps_the_confirmation(self, update, alice):
        assert (
            update(alice, {"email_confirm": False, "phone_confirm": False}).json["email_confirmed_at"]
            == A_TIMESTAMP
        )

    @pytest.mark.parametrize("body", [{"phone_confirm": True}, {"phone_confirmed_at": MOMENT}], ids=str)
    def test_missing_phone_is_not_confirmed(self, update, alice, database, body):
        assert_ok(update(alice, body), user(alice.email, id=alice.id))
        assert database.value("SELECT phone_proved FROM users") is False

    @pytest.mark.parametrize("body", [{"email_confirm": True}, {"email_confirmed_at": MOMENT}], ids=str)
    def test_missing_email_is_not_confirmed_and_the_phone_stays(
        self, client, service_role, outbox, database, body
    ):
        client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
        session = session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE).code))
        before = session.get("/user").json
        response = client.put(f"/admin/users/{before['id']}", json=body, headers=service_role)
        assert_ok(response, before | {"updated_at": A_TIMESTAMP})
        assert_ok(session.get("/user"), response.json)
        assert database.value("SELECT email_proved FROM users") is False

    @pytest.mark.parametrize(
        "sent", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z"]
    )
    def test_first_and_last_times_of_the_calendar_are_accepted(self, update, alice, sent):
        assert update(alice, {"email_confirmed_at": sent}).json["email_confirmed_at"].startswith(sent[:19])

    @cases(
        "sent",
        [
            "",
            "now",
            "infinity",
            "-infinity",
            "today",
            "epoch",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-01-31T25:00:00Z",
            "2026-01-31T12:00:00+99:00",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
            "10000-01-01T00:00:00Z",
            "2026-01-31T12:00:00Z; DROP TABLE users",
            "x" * 5000,
            0,
            1.5,
            True,
            [],
            {},
        ],
    )
    @cases("name", ["email_confirmed_at", "phone_confirmed_at"])
    def test_malformed_timestamp_is_400(self, refused, alice, name, sent):
        refused(
            alice,
            {name: sent, "role": "editor"},
            400,
            "validation_failed",
            details=f"{name}: must be an ISO 8601 timestamp with a time zone",
        )

    @cases("value", ["true", 1, 0, "on", [], "2026-01-31T12:00:00Z"])
    @cases("name", ["email_confirm", "phone_confirm"])
    def test_confirmation_that_is_not_a_boolean_is_400(self, refused, alice, name, value):
        refused(alice, {name: value}, 400, "validation_failed", details=f"{name}: must be true or false")


class TestFirstProof:
    """An attacker who signed up with another person's address loses access when an administrator confirms it."""

    @pytest.fixture
    def squatted(self, make_app, service_role):
        """Alice's address, with which Mallory signed up and is signed in, because no confirmation is
        required.
        """
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        assert (
            client.post("/signup", json={"email": "alice@example.com", "password": PASSWORD}).status_code
            == 201
        )
        session = session_of(client, sign_in(client, "alice@example.com"))
        return client, session, f"/admin/users/{session.user['id']}"

    @pytest.mark.parametrize(
        "body", [{"email_confirm": True}, {"email_confirmed_at": "2026-01-31T12:00:00Z"}], ids=str
    )
    def test_first_proof_removes_the_earlier_state(self, squatted, service_role, body):
        client, session, path = squatted
        assert client.put(path, json=body, headers=service_role).status_code == 200
        assert_error(sign_in(client, "alice@example.com"), 401, "invalid_credentials")
        assert_error(session.get("/user"), 401, "session_not_found")

    @pytest.mark.parametrize(
        "body", [{"phone_confirm": True}, {"phone_confirmed_at": "2026-01-31T12:00:00Z"}], ids=str
    )
    def test_phone_removed_by_the_first_proof_is_not_confirmed(self, squatted, service_role, database, body):
        client, _, path = squatted
        client.put(path, json={"phone": PHONE}, headers=service_role)
        response = client.put(path, json=body | {"email_confirm": True}, headers=service_role)
        assert (response.status_code, response.json["phone"], response.json["phone_confirmed_at"]) == (
            200,
            None,
            None,
        )
        assert database.value("SELECT phone_proved FROM users") is False

    def test_phone_set_with_the_first_proof_stays_and_is_confirmed(self, squatted, service_role):
        client, _, path = squatted
        client.put(path, json={"phone": OTHER_PHONE}, headers=service_role)
        response = client.put(
            path, json={"email_confirm": True, "phone": PHONE, "phone_confirm": True}, headers=service_role
        )
        assert (response.json["phone"], response.json["phone_confirmed_at"]) == (PHONE, A_TIMESTAMP)
        assert [each["provider"] for each in response.json["identities"]] == ["email", "phone"]

    def test_password_set_with_the_first_proof_stays(self, squatted, service_role):
        client, _, path = squatted
        client.put(path, json={"email_confirm": True, "password": NEW}, headers=service_role)
        assert_error(sign_in(client, "alice@example.com"), 401, "invalid_credentials")
        assert sign_in(client, "alice@example.com", NEW).status_code == 200

    def test_address_proved_meanwhile_loses_nothing(self, app, client, service_role, outbox, database):
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        id, link = database.value("SELECT id FROM users"), outbox.last().token
        with database.locked("users", id) as lock:
            proof = lock.start(lambda: hand_in(app.test_client(), "signup", link))
            confirmation = lock.start(
                lambda: app.test_client().put(
                    f"/admin/users/{id}", json={"email_confirm": True}, headers=service_role
                )
            )
        assert confirmation.result().status_code == 200
        assert session_of(client, proof.result()).get("/user").status_code == 200
        assert sign_in(client, "dave@example.com").status_code == 200

    def test_address_proved_before_loses_nothing(self, update, alice):
        session = alice.open_session()
        update(alice, {"email_confirm": True})
        assert session.get("/user").status_code == 200
        assert alice.try_to_sign_in().status_code == 200


class TestMetadata:
    @pytest.mark.parametrize("name", ["user_metadata", "app_metadata"])
    def test_metadata_is_merged_by_key_and_null_removes_a_key(self, update, alice, name):
        update(alice, {name: {"a": 1, "b": {"c": 2}, "d": [3]}})
        merged = update(alice, {name: {"b": {"e": 4}, "d": None, "f": False}}).json[name]
        assert {key: merged[key] for key in merged if key not in ("provider", "providers")} == {
            "a": 1,
            "b": {"e": 4},
            "f": False,
        }

    def test_provider_in_app_metadata_is_computed(self, update, alice):
        sent = {"provider": "google", "providers": ["google"], "plan": "gold"}
        expected = {"plan": "gold", "provider": "email", "providers": ["email"]}
        assert update(alice, {"app_metadata": sent}).json["app_metadata"] == expected
        assert update(alice, {"app_metadata": {"provider": None}}).json["app_metadata"] == expected

    @pytest.mark.parametrize("name", ["user_metadata", "app_metadata"])
    def test_merged_metadata_may_be_8_kib(self, refused, update, alice, name):
        update(alice, {name: {"a": "x" * 4000}})
        assert update(alice, {name: {"b": "x" * 4000}}).status_code == 200
        refused(
            alice,
            {name: {"c": "x" * 500}},
            400,
            "validation_failed",
            details=f"{name}: must be at most 8 KiB as JSON",
        )
        refused(
            alice,
            {name: {"c": "x" * 9000}},
            400,
            "validation_failed",
            details=f"{name}: must be at most 8 KiB as JSON",
        )
        room = 8192 - len(json.dumps({"a": "", "b": ""})) - 4000
        assert update(alice, {name: {"a": "x" * room}}).status_code == 200

    @cases("value", ["x", 1, True, [], [{"a": 1}]])
    @cases("name", ["user_metadata", "app_metadata"])
    def test_metadata_that_is_not_an_object_is_400(self, refused, alice, name, value):
        refused(alice, {name: value}, 400, "validation_failed", details=f"{name}: must be an object")

    def test_concurrent_changes_are_all_kept(self, server, client, service_role, alice):
        at_once(
            16,
            lambda number: server.put(
                f"/admin/users/{alice.id}",
                json={"app_metadata": {f"key{number}": number}},
                headers=service_role,
            ),
        )
        kept = client.get(f"/admin/users/{alice.id}", headers=service_role).json["app_metadata"]
        assert {key: value for key, value in kept.items() if key.startswith("key")} == {
            f"key{number}": number for number in range(16)
        }


class TestRoles:
    @pytest.mark.parametrize("role", ["admin", "editor", "authenticated", "a_1", "x" * 32])
    def test_role_is_set(self, update, alice, role):
        assert_ok(update(alice, {"role": role}), user(alice.email, id=alice.id, role=role))

    @cases(
        "role",
        [
            "service_role",
            "supabase_admin",
            "anon",
            "postgres",
            "Admin",
            "",
            "a-b",
            "admin ",
            "admin\n",
            "x" * 33,
            "ádmin",
            1,
            True,
            ["admin"],
        ],
    )
    def test_invalid_role_is_400(self, refused, alice, role):
        refused(alice, {"role": role}, 400, "validation_failed", details=A_SENTENCE)

    def test_promotion_works_at_once_and_records_its_time(self, update, alice, database):
        session = alice.open_session()
        assert_error(session.get("/admin/users"), 403, "not_admin")
        update(alice, {"role": "admin"})
        assert session.get("/admin/users").status_code == 200
        since = database.value("SELECT admin_since FROM users")
        update(alice, {"role": "admin", "user_metadata": {"x": 1}})
        assert database.value("SELECT admin_since FROM users") == since

    def test_demotion_works_at_once_and_keeps_the_session(self, update, carol, database):
        session = carol.open_session()
        update(carol, {"role": "authenticated"})
        assert_error(session.get("/admin/users"), 403, "not_admin")
        assert session.get("/user").status_code == 200
        assert session.refreshed().claims["role"] == "authenticated"
        assert database.value("SELECT admin_since FROM users") is None

    def test_second_promotion_records_its_own_time(self, update, carol, database):
        database.run("UPDATE users SET admin_since = '2020-01-01T00:00:00Z'")
        update(carol, {"role": "authenticated"})
        update(carol, {"role": "admin"})
        assert database.value("SELECT admin_since > '2021-01-01T00:00:00Z' FROM users")


class TestBans:
    @pytest.mark.parametrize(
        ("sent", "lasts"),
        [
            ("24h", timedelta(hours=24)),
            ("7d", timedelta(days=7)),
            ("1h30m", timedelta(minutes=90)),
            ("2w", timedelta(weeks=2)),
            ("90s", timedelta(seconds=90)),
            ("1d1h1m1s", timedelta(days=1, hours=1, minutes=1, seconds=1)),
            ("3600000ms", timedelta(hours=1)),
            ("30m1h", timedelta(minutes=90)),
            ("000001d", timedelta(days=1)),
        ],
    )
    def test_ban_lasts_for_its_duration(self, update, alice, sent, lasts):
        response = update(alice, {"ban_duration": sent})
        assert_ok(response, user(alice.email, id=alice.id, banned_until=A_TIMESTAMP))
        assert abs(
            datetime.fromisoformat(response.json["banned_until"]) - datetime.now(UTC) - lasts
        ) < timedelta(minutes=1)

    def test_ban_may_be_permanent(self, update, alice):
        assert_ok(
            update(alice, {"ban_duration": "permanent"}),
            user(alice.email, id=alice.id, banned_until=FOR_EVER),
        )

    @pytest.mark.parametrize("sent", [None, "none"])
    def test_ban_is_lifted(self, update, alice, sent):
        update(alice, {"ban_duration": "permanent"})
        assert_ok(update(alice, {"ban_duration": sent}), user(alice.email, id=alice.id, banned_until=None))
        assert alice.try_to_sign_in().status_code == 200

    def test_lifting_without_a_ban_changes_nothing(self, update, alice):
        session = alice.open_session()
        assert update(alice, {"ban_duration": None}).json["banned_until"] is None
        assert session.get("/user").status_code == 200

    def test_other_change_keeps_the_ban(self, update, alice):
        update(alice, {"ban_duration": "permanent"})
        assert update(alice, {"user_metadata": {"x": 1}}).json["banned_until"] == FOR_EVER

    def test_new_ban_replaces_the_old_one(self, update, alice):
        update(alice, {"ban_duration": "permanent"})
        assert update(alice, {"ban_duration": "1h"}).json["banned_until"] < "9999"

    def test_banned_user_is_refused_at_once(self, update, alice, database):
        sessions = [alice.open_session(), alice.open_session()]
        update(alice, {"ban_duration": "1h"})
        for session in sessions:
            assert_error(session.get("/user"), 403, "user_banned", "User is banned")
            assert_error(session.refresh(), 400, "user_banned")
        assert_error(alice.try_to_sign_in(), 403, "user_banned", "User is banned")
        assert {row.end_reason for row in database.all("SELECT end_reason FROM sessions")} == {"banned"}

    def test_banned_administrator_is_refused(self, update, carol):
        session = carol.open_session()
        update(carol, {"ban_duration": "1h"})
        assert_error(session.get("/admin/users"), 403, "user_banned", "User is banned")

    @pytest.mark.parametrize("how", ["lifted", "over"])
    def test_lifted_or_expired_ban_does_not_revive_sessions(self, update, alice, database, how):
        session = alice.open_session()
        update(alice, {"ban_duration": "1h"})
        if how == "lifted":
            update(alice, {"ban_duration": None})
        else:
            database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert alice.sign_in().get("/user").status_code == 200

    def test_ban_voids_links_sent_before(self, update, client, mailbox, alice):
        client.post("/recover", json={"email": alice.email})
        link = mailbox.link_for(alice.email)
        update(alice, {"ban_duration": "1h"})
        update(alice, {"ban_duration": None})
        assert client.get(link).status_code == 403

    def test_link_requested_during_a_ban_does_not_sign_in(self, update, client, mailbox, alice, database):
        update(alice, {"ban_duration": "1h"})
        client.post("/recover", json={"email": alice.email})
        for letter in mailbox.messages_to(alice.email):
            for link in [line for line in letter.text.splitlines() if line.startswith("http")]:
                assert "access_token=" not in client.get(link).location
        assert database.count("sessions") == 0

    @cases(
        "sent",
        [
            "",
            "0s",
            "0h0m",
            "-1h",
            "+1h",
            "1",
            "h",
            "1y",
            "1H",
            "1 h",
            " 1h",
            "1h ",
            "1h\n",
            "1.5h",
            "1e3s",
            "1h,30m",
            "\u0662h",
            "\uff11h",
            "Permanent",
            "forever",
            "null",
            "1001y",
            "999999999999w",
            "9999999999999h",
            "999999999999h" * 100,
            "1h; DROP TABLE users",
            "infinity",
            24,
            -1,
            0,
            1.5,
            True,
            False,
            ["24h"],
            {"hours": 24},
        ],
    )
    def test_malformed_duration_is_400(self, refused, alice, sent):
        refused(alice, {"ban_duration": sent, "role": "editor"}, 400, "validation_failed", details=A_SENTENCE)

    def test_log_in_in_progress_during_a_ban_leaves_no_session(
        self, app, update, service_role, alice, database
    ):
        with database.locked("users", alice.id) as lock:
            log_in = lock.start(lambda: alice.try_to_sign_in(client=app.test_client()))
            ban = lock.start(
                lambda: app.test_client().put(
                    f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role
                )
            )
        assert ban.result().status_code == 200
        assert log_in.result().status_code == 200
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_log_in_that_waits_for_a_ban_fails(self, app, service_role, alice, database):
        with database.locked("users", alice.id) as lock:
            ban = lock.start(
                lambda: app.test_client().put(
                    f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role
                )
            )
            log_in = lock.start(lambda: alice.try_to_sign_in(client=app.test_client()))
        assert ban.result().status_code == 200
        assert log_in.result().status_code in (401, 403)
        assert database.count("sessions") == 0

    def test_refresh_that_waits_for_a_ban_fails(self, app, service_role, alice, database):
        session = alice.open_session()
        with database.locked("sessions", session.id) as lock:
            ban = lock.start(
                lambda: app.test_client().put(
                    f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role
                )
            )
            refresh = lock.start(session.on(app.test_client()).refresh)
        assert ban.result().status_code == 200
        assert refresh.result().status_code == 400


CHANGE = {"user_metadata": {"x": 1}, "role": "admin"}


class TestAuthorization:
    def test_service_role_key_is_accepted_as_apikey(self, client, alice):
        assert (
            client.put(
                f"/admin/users/{alice.id}", json=CHANGE, headers={"apikey": SERVICE_ROLE_KEY}
            ).status_code
            == 200
        )

    def test_new_and_old_key_are_accepted_during_rotation(self, make_app, alice):
        client = make_app(AUTH_SERVICE_ROLE_KEY=f"{secret('n')},{secret('o')}").test_client()
        for key, status in (
            (secret("n"), 200),
            (secret("o"), 200),
            (secret("x"), 401),
            (f"{secret('n')},{secret('o')}", 400),
            (SERVICE_ROLE_KEY, 401),
        ):
            assert (
                client.put(
                    f"/admin/users/{alice.id}", json=CHANGE, headers={"Authorization": f"Bearer {key}"}
                ).status_code
                == status
            )

    @pytest.mark.parametrize("caller", ["administrator", "user", "themselves"])
    def test_access_token_is_refused(self, alice, carol, mallory, database, caller):
        session = (carol if caller == "administrator" else mallory).sign_in()
        target = mallory if caller == "themselves" else alice
        before = database.everything()
        for id in (target.id, str(uuid.UUID(int=0)), "nonsense"):
            assert_error(
                session.put(f"/admin/users/{id}", json=CHANGE),
                403,
                "insufficient_permissions",
                "Only the service role key may do this",
            )
        assert database.everything() == before

    def test_missing_credential_is_refused(self, client, alice, database):
        before = database.everything()
        for id in (alice.id, str(uuid.UUID(int=0)), "nonsense"):
            assert_error(
                client.put(f"/admin/users/{id}", json=CHANGE), 401, "no_authorization", details=A_SENTENCE
            )
        assert database.everything() == before

    def test_credential_is_checked_before_the_body(self, client, alice):
        response = client.put(f"/admin/users/{alice.id}", data="{", content_type="application/json")
        assert_error(response, 401, "no_authorization", details=A_SENTENCE)
