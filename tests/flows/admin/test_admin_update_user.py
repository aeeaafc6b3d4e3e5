"""PUT /admin/users/{id}: changing, confirming, banning and promoting any user."""

import json
from datetime import datetime, timedelta

import bcrypt
import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, user
from tests.support.cases import cases
from tests.support.commands import run_command
from tests.support.elapsed import assert_left
from tests.support.links import OTHER_PHONE, PHONE, hand_in, type_in
from tests.support.server import at_once
from tests.support.users import NEW_PASSWORD, PASSWORD, register, session_of, sign_in

FOR_EVER = "9999-12-31T23:59:59.000000Z"
UPDATED = {"updated_at": A_TIMESTAMP}


def _exported(app, tmp_path):
    """Return the one user whom `latchkey users export` writes."""
    path = tmp_path / "users.jsonl"
    assert run_command(app, "users", "export", str(path), "--plaintext").exit_code == 0
    (record,) = [json.loads(line) for line in path.read_text().splitlines() if '"email"' in line]
    return record


@pytest.fixture
def get(client, service_role):
    return lambda person: client.get(f"/admin/users/{person.id}", headers=service_role).json


@pytest.fixture
def update(client, service_role):
    return lambda person, body: client.put(f"/admin/users/{person.id}", json=body, headers=service_role)


@pytest.fixture
def begin_ban(app, service_role, alice):
    """Ban Alice with a separate client, for a thread."""
    body = {"ban_duration": "1h"}
    return lambda: app.test_client().put(f"/admin/users/{alice.id}", json=body, headers=service_role)


class TestUser:
    def test_absent_and_null_fields_stay(self, update, get, client, service_role, alice):
        before = get(alice)
        names = "remove password role email_confirm phone_confirm user_metadata app_metadata"
        assert_ok(update(alice, {}), before | UPDATED)
        assert_ok(update(alice, dict.fromkeys(names.split())), before | UPDATED)
        assert_ok(update(alice, {"email_confirm": False, "phone_confirm": False}), before | UPDATED)
        response = client.put(f"/admin/users/{alice.id}", headers=service_role)
        assert_ok(response, before | UPDATED)
        assert response.json["updated_at"] > before["updated_at"]


class TestAddresses:
    def test_new_email_is_set_at_once_and_confirmed_if_wanted(self, update, client, alice):
        unconfirmed = {"email_confirmed_at": None, "confirmed_at": None}
        expected = user("alicia@example.com", id=alice.id)
        assert_ok(update(alice, {"email": "alicia@example.com"}), expected | unconfirmed)
        assert_error(sign_in(client, alice.email), 401, "invalid_credentials")
        assert_error(sign_in(client, "alicia@example.com"), 403, "email_not_confirmed")
        body = {"email": "alison@example.com", "email_confirm": True}
        assert_ok(update(alice, body), user("alison@example.com", id=alice.id))
        assert sign_in(client, "alison@example.com").status_code == 200

    def test_current_or_confirmed_email_changes_nothing(self, update, alice):
        session = alice.open_session()
        before = session.get("/user").json
        expected = before | UPDATED | {"identities": [before["identities"][0] | UPDATED]}
        assert_ok(update(alice, {"email": "ALICE@example.com"}), expected)
        update(alice, {"email_confirm": True})
        assert session.get("/user").status_code == 200
        assert alice.try_to_sign_in().status_code == 200

    def test_new_email_ends_all_sessions_and_pending_changes(self, update, alice, database):
        session = alice.open_session()
        pending = session.put("/user", json={"email": "pending@example.com"})
        assert pending.json["new_email"] == "pending@example.com"
        response = update(alice, {"email": "alicia@example.com"})
        assert (response.json["new_email"], response.json["email_change_sent_at"]) == (None, None)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert database.count("one_time_tokens", "purpose = 'email_change'") == 0

    def test_confirmed_phone_signs_in_with_a_first_password(self, update, client, alice, database):
        update(alice, {"phone": PHONE})
        body = {"phone": PHONE, "password": NEW_PASSWORD}
        database.run("UPDATE users SET password_hash = NULL")
        update(alice, {"password": NEW_PASSWORD})
        assert_error(client.post("/token?grant_type=password", json=body), 403, "phone_not_confirmed")
        update(alice, {"phone_confirm": True})
        assert client.post("/token?grant_type=password", json=body).status_code == 200

    def test_one_of_sixteen_users_gets_an_email_set_concurrently(self, server, client, service_role):
        ids = [register(client, service_role, f"user{number}@example.com").id for number in range(16)]
        options = {"json": {"email": "wanted@example.com"}, "headers": service_role}
        answers = at_once(16, lambda number: server.put(f"/admin/users/{ids[number]}", **options))
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 15


class TestPasswords:
    def test_new_password_signs_in_ends_all_sessions_and_voids_all_links(
        self, update, get, client, alice, database
    ):
        sessions = [alice.open_session(), alice.open_session()]
        client.post("/recover", json={"email": alice.email})
        before = get(alice)
        assert_ok(update(alice, {"password": NEW_PASSWORD}), before | UPDATED)
        for session in sessions:
            assert_error(session.get("/user"), 401, "session_not_found")
            assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert database.count("one_time_tokens") == 0
        assert set(database.all("SELECT end_reason FROM sessions")) == {("reset_by_admin",)}
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert alice.try_to_sign_in(NEW_PASSWORD).status_code == 200

    def test_address_of_the_user_is_refused_as_password(self, make_app, service_role, alice):
        client = make_app(AUTH_PASSWORD_REQUIREMENTS="").test_client()
        new = "alicia@example.com"
        members = {"details": A_SENTENCE, "weak_password": {"reasons": ["common"]}}
        for body in ({"password": "Alice@Example.com"}, {"password": new, "email": new}):
            response = client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
            assert_error(response, 400, "weak_password", **members)


MOMENT = "2026-01-31T12:00:00.500000Z"


class TestConfirmations:
    @cases(
        ("sent", "moment"),
        [
            *((sent, MOMENT) for sent in (MOMENT, "2026-01-31T12:00:00.5Z", "2026-01-31T13:00:00.5+01:00")),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000Z"),
        ],
    )
    def test_email_confirmed_at_sets_the_given_time(self, update, alice, sent, moment):
        expected = user(alice.email, id=alice.id, email_confirmed_at=moment, confirmed_at=moment)
        assert_ok(update(alice, {"email_confirmed_at": sent}), expected)

    def test_email_confirmed_at_null_removes_the_confirmation_and_email_confirm_confirms_now(
        self, update, alice, database
    ):
        response = update(alice, {"email_confirmed_at": None})
        assert_ok(response, user(alice.email, id=alice.id, email_confirmed_at=None, confirmed_at=None))
        assert_error(alice.try_to_sign_in(), 403, "email_not_confirmed")
        assert update(alice, {"email_confirm": True}).json["email_confirmed_at"] == A_TIMESTAMP
        assert database.value("SELECT email_confirmed_at > now() - interval '1 minute' FROM users")
        assert alice.try_to_sign_in().status_code == 200

    def test_phone_is_confirmed_separately_and_confirmed_at_is_the_earlier(self, update, alice):
        update(alice, {"phone": PHONE})
        first, second = "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"
        for email, phone, confirmed in (
            (first, second, first),
            (second, first, first),
            (None, second, second),
            (None, None, None),
        ):
            changed = update(alice, {"email_confirmed_at": email, "phone_confirmed_at": phone}).json
            assert (changed["email_confirmed_at"], changed["phone_confirmed_at"]) == (email, phone)
            assert changed["confirmed_at"] == confirmed

    def test_missing_phone_is_not_confirmed(self, update, alice, database):
        for body in ({"phone_confirm": True}, {"phone_confirmed_at": MOMENT}):
            assert_ok(update(alice, body), user(alice.email, id=alice.id))
            assert database.value("SELECT phone_proved FROM users") is False

    def test_missing_email_is_not_confirmed_and_the_phone_stays(self, client, service_role, outbox, database):
        client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
        session = session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE).code))
        before = session.get("/user").json
        for body in ({"email_confirm": True}, {"email_confirmed_at": MOMENT}):
            response = client.put(f"/admin/users/{before['id']}", json=body, headers=service_role)
            assert_ok(response, before | UPDATED)
            assert_ok(session.get("/user"), response.json)
            assert database.value("SELECT email_proved FROM users") is False


class TestFirstProof:
    """An attacker who signed up with another person's address loses access when an administrator confirms it."""

    @pytest.fixture
    def squatted(self, make_app, service_role):
        """Alice's address, with which Mallory signed up and is signed in, because no confirmation is
        required: a client, the session, and the update of the user.
        """
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        body = {"email": "alice@example.com", "password": PASSWORD}
        assert client.post("/signup", json=body).status_code == 201
        session = session_of(client, sign_in(client, "alice@example.com"))
        path = f"/admin/users/{session.user['id']}"
        return client, session, lambda body: client.put(path, json=body, headers=service_role)

    @pytest.mark.parametrize("body", [{"phone_confirm": True}, {"phone_confirmed_at": MOMENT}], ids=str)
    def test_phone_removed_by_the_first_proof_is_not_confirmed(self, squatted, database, body):
        _, _, update = squatted
        update({"phone": PHONE})
        response = update(body | {"email_confirm": True})
        assert response.status_code == 200
        assert (response.json["phone"], response.json["phone_confirmed_at"]) == (None, None)
        assert database.value("SELECT phone_proved FROM users") is False

    def test_phone_and_password_set_with_the_first_proof_stay(self, squatted):
        client, _, update = squatted
        update({"phone": OTHER_PHONE})
        changed = update(
            {"email_confirm": True, "phone": PHONE, "phone_confirm": True, "password": NEW_PASSWORD}
        ).json
        assert (changed["phone"], changed["phone_confirmed_at"]) == (PHONE, A_TIMESTAMP)
        assert [each["provider"] for each in changed["identities"]] == ["email", "phone"]
        assert_error(sign_in(client, "alice@example.com"), 401, "invalid_credentials")
        assert sign_in(client, "alice@example.com", NEW_PASSWORD).status_code == 200

    def test_address_proved_meanwhile_loses_nothing(self, app, client, service_role, outbox, database):
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        path, link = f"/admin/users/{database.value('SELECT id FROM users')}", outbox.last().token
        options = {"json": {"email_confirm": True}, "headers": service_role}
        with database.locked("users", path.rpartition("/")[2]) as lock:
            proof = lock.start(lambda: hand_in(app.test_client(), "signup", link))
            confirmation = lock.start(lambda: app.test_client().put(path, **options))
        assert confirmation.result().status_code == 200
        assert session_of(client, proof.result()).get("/user").status_code == 200
        assert sign_in(client, "dave@example.com").status_code == 200


@pytest.mark.parametrize("name", ["user_metadata", "app_metadata"])
class TestMetadata:
    def test_metadata_is_merged_by_key_and_null_removes_a_key(self, update, alice, name):
        before = update(alice, {name: {"a": 1, "b": {"c": 2}, "d": [3]}}).json[name]
        merged = update(alice, {name: {"b": {"e": 4}, "d": None, "f": False}}).json[name]
        expected = before | {"b": {"e": 4}, "f": False}
        del expected["d"]
        assert merged == expected

    def test_merged_metadata_may_be_8_kib(self, update, database, alice, name):
        update(alice, {name: {"a": "x" * 4000}})
        assert update(alice, {name: {"b": "x" * 4000}}).status_code == 200
        before, details = database.everything(), f"{name}: must be at most 8 KiB as JSON"
        for length in (500, 9000):
            response = update(alice, {name: {"c": "x" * length}})
            assert_error(response, 400, "validation_failed", details=details)
        assert database.everything() == before
        space = 8192 - len(json.dumps({"a": "", "b": ""})) - 4000
        assert update(alice, {name: {"a": "x" * space}}).status_code == 200

    def test_concurrent_changes_are_all_kept(self, server, get, service_role, alice, name):
        def add(number):
            body = {name: {f"key{number}": number}}
            return server.put(f"/admin/users/{alice.id}", json=body, headers=service_role)

        before = get(alice)[name]
        at_once(16, add)
        assert get(alice)[name] == before | {f"key{number}": number for number in range(16)}


class TestRoles:
    def test_promotion_and_demotion_work_at_once_and_keep_the_session(self, update, alice, database):
        session = alice.open_session()
        assert_error(session.get("/admin/users"), 403, "not_admin", "Only administrators can do this")
        update(alice, {"role": "admin"})
        assert session.get("/admin/users").status_code == 200
        assert database.value("SELECT admin_since > now() - interval '1 minute' FROM users")
        # The time of the promotion stays.
        database.run("UPDATE users SET admin_since = '2020-01-01T00:00:00Z'")
        update(alice, {"role": "admin", "user_metadata": {"x": 1}})
        assert database.value("SELECT admin_since = '2020-01-01T00:00:00Z' FROM users")
        promoted = session.refreshed()
        update(alice, {"role": "authenticated"})
        assert_error(promoted.get("/admin/users"), 403, "not_admin")
        assert promoted.claims["role"] == "admin"
        assert promoted.refreshed().claims["role"] == "authenticated"
        assert database.value("SELECT admin_since FROM users") is None


class TestBans:
    @cases(
        ("sent", "lasts"),
        [
            ("24h", timedelta(hours=24)),
            ("7d", timedelta(days=7)),
            ("2w", timedelta(weeks=2)),
            ("90s", timedelta(seconds=90)),
            ("1d1h1m1s", timedelta(days=1, hours=1, minutes=1, seconds=1)),
            ("3600000ms", timedelta(hours=1)),
            ("30m1h", timedelta(minutes=90)),
            # A Go duration, as GoTrue takes it.
            ("1.5h", timedelta(minutes=90)),
            ("1h0.5m", timedelta(hours=1, seconds=30)),
            ("000001d", timedelta(days=1)),
        ],
    )
    def test_ban_lasts_for_its_duration(self, update, alice, database, sent, lasts):
        response = update(alice, {"ban_duration": sent})
        assert_ok(response, user(alice.email, id=alice.id, banned_until=A_TIMESTAMP))
        left = datetime.fromisoformat(response.json["banned_until"]) - database.now()
        assert_left(left.total_seconds(), of=lasts.total_seconds())

    def test_permanent_ban_lasts_until_it_is_replaced_or_lifted(self, update, alice):
        expected = user(alice.email, id=alice.id, banned_until=FOR_EVER)
        for lifted_by in (None, "none"):
            assert_ok(update(alice, {"ban_duration": "permanent"}), expected)
            assert update(alice, {"user_metadata": {"x": 1}}).json["banned_until"] == FOR_EVER
            assert update(alice, {"ban_duration": "1h"}).json["banned_until"] < "9999"
            lifted = update(alice, {"ban_duration": lifted_by, "user_metadata": {"x": None}})
            assert_ok(lifted, expected | {"banned_until": None})
        assert alice.try_to_sign_in().status_code == 200

    def test_ban_that_is_over_is_shown_nowhere(
        self, update, alice, client, service_role, app, database, tmp_path
    ):
        update(alice, {"ban_duration": "1h"})
        moved = "UPDATE users SET banned_until = now() - interval '1 second'"
        # The copy of the user object is from during the ban.
        copy = "UPDATE user_objects SET object = (object::jsonb || jsonb_build_object('banned_until', iso_8601(now() - interval '1 second')))::text"
        database.run(f"{moved}; {copy}")
        session = alice.open_session()
        shown = [
            session.user,
            session.get("/user").json,
            session.refresh().json["user"],
            client.get(f"/admin/users/{alice.id}", headers=service_role).json,
            client.get("/admin/users", headers=service_role).json["data"][0],
            _exported(app, tmp_path),
            update(alice, {"user_metadata": {"x": 1}}).json,
        ]
        assert [each["banned_until"] for each in shown] == [None] * len(shown)
        database.run("DELETE FROM audit_log")
        # There is no ban to lift.
        assert update(alice, {"ban_duration": None}).json["banned_until"] is None
        assert database.count("audit_log", "action = 'unbanned'") == 0

    def test_password_of_a_hash_replaces_the_present_one(self, update, alice, database):
        hash = bcrypt.hashpw(b"Another-Horse-1", bcrypt.gensalt(4)).decode()
        session = alice.open_session()
        assert update(alice, {"password_hash": hash}).status_code == 200
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
        assert alice.try_to_sign_in("Another-Horse-1").status_code == 200
        assert database.count("audit_log", "action = 'password_changed'") == 1
        both = {"password_hash": hash, "password": "Another-Horse-1"}
        assert_error(
            update(alice, both),
            400,
            "validation_failed",
            details="password_hash: must be absent if there is a password",
        )

    @pytest.mark.parametrize("how", ["lifted", "over"])
    def test_banned_user_is_refused_at_once_and_sessions_stay_ended_after_the_ban(
        self, update, alice, database, how
    ):
        sessions = [alice.open_session(), alice.open_session()]
        update(alice, {"ban_duration": "1h"})
        for session in sessions:
            assert_error(session.get("/user"), 403, "user_banned", "User is banned")
            assert_error(session.refresh(), 400, "user_banned")
        assert_error(alice.try_to_sign_in(), 403, "user_banned", "User is banned")
        assert set(database.all("SELECT end_reason FROM sessions")) == {("banned",)}
        if how == "lifted":
            update(alice, {"ban_duration": None})
        else:
            database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        for session in sessions:
            assert_error(session.get("/user"), 401, "session_not_found")
            assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert alice.sign_in().get("/user").status_code == 200

    @pytest.mark.parametrize(
        ("order", "statuses"), [(("log-in", "ban"), {200}), (("ban", "log-in"), {401, 403})]
    )
    def test_log_in_during_a_ban_leaves_no_session(self, app, begin_ban, alice, database, order, statuses):
        acts = {"log-in": lambda: alice.try_to_sign_in(client=app.test_client()), "ban": begin_ban}
        with database.locked("users", alice.id) as lock:
            started = {name: lock.start(acts[name]) for name in order}
        assert started["ban"].result().status_code == 200
        assert started["log-in"].result().status_code in statuses
        assert database.count("sessions", "ended_at IS NULL") == 0

    def test_refresh_that_waits_for_a_ban_fails(self, app, begin_ban, alice, database):
        session = alice.open_session()
        with database.locked("sessions", session.id) as lock:
            ban = lock.start(begin_ban)
            refresh = lock.start(session.on(app.test_client()).refresh)
        assert (ban.result().status_code, refresh.result().status_code) == (200, 400)
