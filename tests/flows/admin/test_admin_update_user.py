"""PUT /admin/users/{id}: changing, confirming, banning and promoting any user."""

from datetime import datetime, timedelta
from typing import ClassVar

import bcrypt
import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, user
from tests.support.cases import cases
from tests.support.elapsed import assert_left
from tests.support.links import PHONE, hand_in
from tests.support.server import at_once
from tests.support.users import PASSWORD, register, session_of, sign_in

FOR_EVER = "9999-12-31T23:59:59.000000Z"
UPDATED = {"updated_at": A_TIMESTAMP}


@pytest.fixture
def get(client, service_role):
    return lambda person: client.get(f"/admin/users/{person.id}", headers=service_role).json


@pytest.fixture
def update(client, service_role):
    return lambda person, body: client.put(f"/admin/users/{person.id}", json=body, headers=service_role)


def test_absent_and_null_fields_stay(update, get, client, service_role, alice):
    before = get(alice)
    names = "remove password role email_confirm phone_confirm user_metadata app_metadata"
    assert_ok(update(alice, {}), before | UPDATED)
    assert_ok(update(alice, dict.fromkeys(names.split())), before | UPDATED)
    assert_ok(update(alice, {"email_confirm": False, "phone_confirm": False}), before | UPDATED)
    response = client.put(f"/admin/users/{alice.id}", headers=service_role)
    assert_ok(response, before | UPDATED)
    assert response.json["updated_at"] > before["updated_at"]


def test_one_of_sixteen_users_gets_an_email_set_concurrently(server, client, service_role):
    ids = [register(client, service_role, f"user{number}@example.com").id for number in range(16)]
    options = {"json": {"email": "wanted@example.com"}, "headers": service_role}
    answers = at_once(16, lambda number: server.put(f"/admin/users/{ids[number]}", **options))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 15


def test_address_of_the_user_is_refused_as_password(make_app, service_role, alice):
    client = make_app(AUTH_PASSWORD_REQUIREMENTS="").test_client()
    new = "alicia@example.com"
    members = {"details": A_SENTENCE, "weak_password": {"reasons": ["common"]}}
    for body in ({"password": "Alice@Example.com"}, {"password": new, "email": new}):
        response = client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)
        assert_error(response, 400, "weak_password", **members)


MOMENT = "2026-01-31T12:00:00.500000Z"


class TestConfirmations:
    @cases(
        ("text", "moment"),
        [
            *((text, MOMENT) for text in (MOMENT, "2026-01-31T12:00:00.5Z", "2026-01-31T13:00:00.5+01:00")),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000Z"),
        ],
    )
    def test_email_confirmed_at_sets_the_given_time(self, update, alice, text, moment):
        expected = user(alice.email, id=alice.id, email_confirmed_at=moment, confirmed_at=moment)
        assert_ok(update(alice, {"email_confirmed_at": text}), expected)

    def test_email_confirmed_at_null_removes_the_confirmation_and_email_confirm_confirms_now(
        self, update, alice, database
    ):
        response = update(alice, {"email_confirmed_at": None})
        assert_ok(response, user(alice.email, id=alice.id, email_confirmed_at=None, confirmed_at=None))
        assert_error(alice.try_to_sign_in(), 403, "email_not_confirmed")
        assert update(alice, {"email_confirm": True}).json["email_confirmed_at"] == A_TIMESTAMP
        assert database.value("SELECT email_confirmed_at > now() - interval '1 minute' FROM users")
        assert alice.try_to_sign_in().status_code == 200

    def test_missing_phone_is_not_confirmed(self, update, alice, database):
        for body in ({"phone_confirm": True}, {"phone_confirmed_at": MOMENT}):
            assert_ok(update(alice, body), user(alice.email, id=alice.id))
            assert database.value("SELECT phone_proved FROM users") is False


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


class TestAddressesInTheDialect:
    """The dialect confirms addresses as GoTrue does, but proves none (rules 7, 10 and 46)."""

    NEW: ClassVar = {"email": "new@example.com", "phone": "+4915112345678"}

    @pytest.mark.parametrize("kind", NEW)
    def test_new_address_of_a_confirmed_one_is_confirmed_and_never_proved(
        self, client, service_role, alice, database, kind
    ):
        client.put(
            f"/admin/users/{alice.id}", json={"phone": PHONE, "phone_confirm": True}, headers=service_role
        )
        columns = f"{kind}_confirmed_at, {kind}_proved"
        before = database.one(f"SELECT {columns} FROM users WHERE id = %(id)s", id=alice.id)
        assert before[1] is True
        body = {kind: self.NEW[kind]}
        response = client.put(f"/auth/v1/admin/users/{alice.id}", json=body, headers=service_role)
        assert (response.status_code, response.json[kind].lstrip("+")) == (200, self.NEW[kind].lstrip("+"))
        after = database.one(f"SELECT {columns} FROM users WHERE id = %(id)s", id=alice.id)
        assert after == (before[0], False)
        credentials = {kind: self.NEW[kind], "password": PASSWORD}
        assert client.post("/token?grant_type=password", json=credentials).status_code == 200

    @pytest.mark.parametrize("path", ["/admin/users", "/auth/v1/admin/users"])
    def test_new_address_is_not_confirmed_natively_nor_where_the_old_one_was_not(
        self, client, service_role, alice, database, path
    ):
        if path != "/admin/users":
            database.run("UPDATE users SET email_confirmed_at = NULL, email_proved = false")
        body = {"email": self.NEW["email"]}
        response = client.put(f"{path}/{alice.id}", json=body, headers=service_role)
        assert (response.status_code, response.json.get("email_confirmed_at")) == (200, None)
        body = {"phone": self.NEW["phone"]}
        response = client.put(f"{path}/{alice.id}", json=body, headers=service_role)
        assert (response.status_code, response.json.get("phone_confirmed_at")) == (200, None)
        assert not database.value("SELECT email_proved OR phone_proved FROM users")


@pytest.mark.parametrize("name", ["user_metadata", "app_metadata"])
def test_concurrent_changes_are_all_kept(server, get, service_role, alice, name):
    def add(number):
        body = {name: {f"key{number}": number}}
        return server.put(f"/admin/users/{alice.id}", json=body, headers=service_role)

    before = get(alice)[name]
    at_once(16, add)
    assert get(alice)[name] == before | {f"key{number}": number for number in range(16)}


def test_promotion_and_demotion_work_at_once_and_only_a_demoted_user_keeps_the_session(
    update, alice, database
):
    session = alice.open_session()
    assert_error(session.get("/admin/users"), 403, "not_admin", "Only administrators can do this")
    update(alice, {"role": "admin"})
    assert_error(session.get("/admin/users"), 401, "session_not_found")
    admin_session = alice.open_session()
    assert admin_session.get("/admin/users").status_code == 200
    assert database.value("SELECT admin_since > now() - interval '1 minute' FROM users")
    # The time of the promotion stays.
    database.run("UPDATE users SET admin_since = '2020-01-01T00:00:00Z'")
    update(alice, {"role": "admin", "user_metadata": {"x": 1}})
    assert database.value("SELECT admin_since = '2020-01-01T00:00:00Z' FROM users")
    admin_session = admin_session.refreshed()
    update(alice, {"role": "authenticated"})
    assert_error(admin_session.get("/admin/users"), 403, "not_admin")
    assert admin_session.claims["role"] == "admin"
    assert admin_session.refreshed().claims["role"] == "authenticated"
    assert database.value("SELECT admin_since FROM users") is None


class TestBans:
    @cases(
        ("text", "duration"),
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
    def test_ban_lasts_for_its_duration(self, update, alice, database, text, duration):
        response = update(alice, {"ban_duration": text})
        assert_ok(response, user(alice.email, id=alice.id, banned_until=A_TIMESTAMP))
        remaining = datetime.fromisoformat(response.json["banned_until"]) - database.now()
        assert_left(remaining.total_seconds(), of=duration.total_seconds())

    def test_permanent_ban_lasts_until_it_is_replaced_or_lifted(self, update, alice):
        expected = user(alice.email, id=alice.id, banned_until=FOR_EVER)
        for duration in (None, "none"):
            assert_ok(update(alice, {"ban_duration": "permanent"}), expected)
            assert update(alice, {"user_metadata": {"x": 1}}).json["banned_until"] == FOR_EVER
            assert update(alice, {"ban_duration": "1h"}).json["banned_until"] < "9999"
            response = update(alice, {"ban_duration": duration, "user_metadata": {"x": None}})
            assert_ok(response, expected | {"banned_until": None})
        assert alice.try_to_sign_in().status_code == 200

    def test_ban_that_is_over_is_shown_nowhere(self, update, alice, client, service_role, database):
        update(alice, {"ban_duration": "1h"})
        database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        session = alice.open_session()
        objects = [
            session.user,
            session.get("/user").json,
            session.refresh().json["user"],
            client.get(f"/admin/users/{alice.id}", headers=service_role).json,
            client.get("/admin/users", headers=service_role).json["data"][0],
            update(alice, {"user_metadata": {"x": 1}}).json,
        ]
        assert [each["banned_until"] for each in objects] == [None] * len(objects)
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
        body = {"password_hash": hash, "password": "Another-Horse-1"}
        assert_error(
            update(alice, body),
            400,
            "validation_failed",
            details="password_hash: must be absent if there is a password",
        )
