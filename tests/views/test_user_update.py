"""PUT /user: users change their own account."""

import json
import threading

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, Like, assert_error, assert_ok, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, sign_in
from tests.support.server import at_once, until_served

NEW = "Another-Horse-1"
TOO_LARGE = {"msg": "User metadata is too large", "details": A_SENTENCE}
NEEDED = {"msg": "This needs reauthentication", "details": A_SENTENCE}
# Each with the seconds after a sign-in for which it needs no reauthentication.
each_change = pytest.mark.parametrize(
    ("change", "age"),
    [({"password": NEW}, 86_400), ({"email": "new@example.com"}, 900), ({"phone": "+491701234567"}, 900)],
    ids=str,
)


def older(database, seconds):
    """Move the sign-in of each session into the past."""
    database.run(
        "UPDATE sessions SET created_at = created_at - make_interval(secs => %(seconds)s)", seconds=seconds
    )


def test_response_is_the_whole_user_object(alice):
    expected = user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP, user_metadata={"name": "Alice"})
    session = alice.sign_in()
    response = session.put("/user", json={"data": {"name": "Alice"}})
    assert_ok(response, expected)
    assert_ok(session.get("/user"), response.json)


def test_update_without_a_change_only_sets_updated_at(alice, database):
    session = alice.open_session()
    before = session.get("/user").json
    response = session.put("/user", json={})
    assert_ok(response, before | {"updated_at": A_TIMESTAMP})
    assert response.json["updated_at"] > before["updated_at"]
    assert session.put("/user").status_code == 200


def test_update_changes_only_the_caller(alice, bob, database):
    database.run("UPDATE users SET updated_at = updated_at - interval '1 hour'")
    before = bob.sign_in().get("/user").json
    alice.sign_in().put("/user", json={"data": {"x": 1}, "password": NEW})
    assert bob.sign_in().get("/user").json == before | {
        "last_sign_in_at": A_TIMESTAMP,
        "identities": [before["identities"][0] | {"last_sign_in_at": A_TIMESTAMP}],
    }


@cases(
    "body",
    [
        {"role": "admin"},
        {"app_metadata": {"plan": "gold"}},
        {"user_metadata": {"x": 1}},
        {"id": "00000000-0000-0000-0000-000000000000"},
        {"email_confirmed_at": "2026-01-01T00:00:00Z"},
        {"email_confirm": True},
        {"banned_until": None},
        {"identities": []},
        {"aud": "x"},
        {"is_admin": True},
    ],
)
def test_update_ignores_fields_users_may_not_change(alice, database, body):
    session = alice.open_session()
    before = session.get("/user").json
    assert_ok(session.put("/user", json=body), before | {"updated_at": A_TIMESTAMP})


class TestMetadata:
    """`data` is merged by key; null removes a key."""

    @cases(
        ("before", "change", "after"),
        [
            ({}, {"a": 1}, {"a": 1}),
            ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
            ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
            ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
            ({"a": 1}, {"a": None, "b": None}, {}),
            ({"a": {"x": 1, "y": 2}}, {"a": {"x": 3}}, {"a": {"x": 3}}),
            ({}, {"a": {"x": None}, "b": [None, {"y": None}]}, {"a": {"x": None}, "b": [None, {"y": None}]}),
            ({"a": 1}, {}, {"a": 1}),
            ({"a": 1}, {"a": "null"}, {"a": "null"}),
            ({"a": 1}, {"a": False, "": 0}, {"a": False, "": 0}),
        ],
    )
    def test_data_is_merged_by_key(self, alice, database, before, change, after):
        session = alice.open_session()
        database.run("UPDATE users SET user_metadata = %(before)s", before=json.dumps(before))
        assert session.put("/user", json={"data": change}).json["user_metadata"] == after
        assert session.get("/user").json["user_metadata"] == after

    def test_data_null_changes_nothing(self, alice):
        session = alice.open_session()
        session.put("/user", json={"data": {"a": 1}})
        assert session.put("/user", json={"data": None}).json["user_metadata"] == {"a": 1}

    @pytest.mark.parametrize("letter", ["x", "ü", "😀"])
    def test_data_may_be_8_kib_as_json(self, alice, letter):
        session = alice.open_session()
        room = (8192 - len('{"x": ""}')) // len(letter.encode())
        assert session.put("/user", json={"data": {"x": letter * room}}).status_code == 200
        before = session.get("/user").json
        assert_error(
            session.put("/user", json={"data": {"x": letter * (room + 1)}}),
            400,
            "validation_failed",
            **TOO_LARGE,
        )
        assert session.get("/user").json == before

    def test_oversized_data_is_named_as_the_client_sent_it(self, alice):
        response = alice.open_session().put("/user", json={"data": {"x": "y" * 9000}})
        assert response.json["details"] == "data: must be at most 8 KiB as JSON"

    def test_size_limit_applies_to_the_merged_data(self, alice):
        session = alice.open_session()
        assert session.put("/user", json={"data": {"a": "x" * 5000}}).status_code == 200
        assert_error(
            session.put("/user", json={"data": {"b": "x" * 5000}}), 400, "validation_failed", **TOO_LARGE
        )
        assert session.put("/user", json={"data": {"a": None, "b": "x" * 5000}}).json["user_metadata"] == {
            "b": "x" * 5000
        }

    def test_fifty_concurrent_changes_are_all_kept(self, server, alice):
        session = alice.sign_in()
        answers = at_once(
            50, lambda number: session.on(server).put("/user", json={"data": {f"key{number}": number}})
        )
        assert [answer.status_code for answer in answers] == [200] * 50
        assert session.get("/user").json["user_metadata"] == {f"key{number}": number for number in range(50)}

    def test_fifty_concurrent_changes_stay_within_the_size_limit(self, server, alice, database):
        session = alice.sign_in()
        at_once(
            50, lambda number: session.on(server).put("/user", json={"data": {f"key{number}": "x" * 500}})
        )
        assert database.value("SELECT octet_length(user_metadata::text) FROM users") <= 8192


class TestPassword:
    def test_new_password_signs_in_and_the_old_one_does_not(self, alice):
        assert alice.sign_in().put("/user", json={"password": NEW}).status_code == 200
        assert_error(alice.try_to_sign_in(PASSWORD), 401, "invalid_credentials")
        assert alice.try_to_sign_in(NEW).status_code == 200

    def test_new_password_ends_all_other_sessions(self, alice, database):
        laptop, phone, tablet = (alice.open_session() for _ in range(3))
        laptop.put("/user", json={"password": NEW})
        for ended in (phone, tablet):
            assert_error(ended.get("/user"), 401, "session_not_found")
            assert_error(ended.refresh(), 400, "refresh_token_not_found")
        assert laptop.get("/user").status_code == 200
        assert laptop.refresh().status_code == 200
        assert database.count("sessions", "end_reason = 'password_changed'") == 2

    def test_new_password_keeps_sessions_of_other_users(self, alice, bob):
        other = bob.open_session()
        alice.sign_in().put("/user", json={"password": NEW})
        assert other.get("/user").status_code == 200

    def test_new_password_mails_a_notice(self, alice, mailbox):
        alice.sign_in().put("/user", json={"password": NEW})
        (letter,) = mailbox.messages()
        assert (letter.to, letter.subject) == (alice.email, "Your password was changed")
        assert NEW not in letter.text

    def test_new_password_voids_links(self, make_app, mailbox):
        client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        link = mailbox.link_for("dave@example.com")
        access_token = sign_in(client, "dave@example.com").json["access_token"]
        client.put("/user", json={"password": NEW}, headers={"Authorization": f"Bearer {access_token}"})
        assert "error_code=otp_expired" in client.get(link).location

    def test_user_without_a_password_sets_one(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE users SET password_hash = NULL")
        assert session.put("/user", json={"password": NEW}).status_code == 200
        assert alice.try_to_sign_in(NEW).status_code == 200

    @cases("password", ["short", "correct-horse-1", "CORRECT-HORSE-1", "Correct-Horse", "CorrectHorse1", ""])
    def test_weak_password_is_422(self, alice, database, password):
        session = alice.open_session()
        before = database.everything()
        response = session.put("/user", json={"password": password})
        assert_error(
            response,
            422,
            "weak_password",
            Like("a sentence", r"Password should (be at least 8 characters|contain at least .*)\."),
            A_SENTENCE,
            weak_password={"reasons": response.json["weak_password"]["reasons"]},
        )
        assert database.everything() == before

    def test_current_password_as_new_password_is_422(self, alice, database):
        session = alice.open_session()
        before = database.everything()
        details = "password: must differ from the current one"
        assert_error(session.put("/user", json={"password": PASSWORD}), 422, "same_password", details=details)
        assert database.everything() == before

    def test_password_stays_when_another_change_of_the_request_fails(self, alice, bob, database):
        session = alice.open_session()
        before = database.everything()
        assert_error(session.put("/user", json={"password": NEW, "email": bob.email}), 409, "email_exists")
        assert_error(
            session.put("/user", json={"password": NEW, "data": {"x": "y" * 9000}}),
            400,
            "validation_failed",
            **TOO_LARGE,
        )
        assert database.everything() == before
        assert alice.try_to_sign_in(PASSWORD).status_code == 200

    def test_one_of_two_concurrent_password_changes_wins_and_ends_the_other_session(
        self, app, client, alice, database
    ):
        laptop, phone = alice.open_session(), alice.open_session()
        with database.locked("users", alice.id) as lock:
            first = lock.start(lambda: laptop.on(app.test_client()).put("/user", json={"password": NEW}))
            second = lock.start(
                lambda: phone.on(app.test_client()).put("/user", json={"password": "Second-Horse-1"})
            )
        assert first.result().status_code == 200
        assert_error(second.result(), 401, "session_not_found")
        assert alice.try_to_sign_in(NEW).status_code == 200
        assert_error(alice.try_to_sign_in("Second-Horse-1"), 401, "invalid_credentials")

    @pytest.mark.parametrize(
        ("method", "body"),
        [
            ("PUT", {"email": "mallory@example.com"}),
            ("PUT", {"phone": "+491701234567"}),
            ("PUT", {"data": {"x": 1}}),
            ("DELETE", {}),
        ],
        ids=str,
    )
    def test_request_of_a_session_that_ends_meanwhile_fails(self, app, alice, database, method, body):
        # Mallory holds a stolen session; Alice changes her password while a request of that session waits.
        mine, stolen = alice.open_session(), alice.open_session()
        with database.locked("users", alice.id) as lock:
            change = lock.start(lambda: mine.on(app.test_client()).put("/user", json={"password": NEW}))
            late = lock.start(
                lambda: app.test_client().open(
                    "/user", method=method, json=body, headers=stolen.authorization
                )
            )
        assert change.result().status_code == 200
        assert_error(late.result(), 401, "session_not_found")
        after = mine.get("/user").json
        assert (after["new_email"], after["new_phone"], after["user_metadata"]) == (None, None, {})

    def test_concurrent_password_changes_leave_one_session(self, server, alice):
        sessions = [alice.sign_in() for _ in range(8)]
        at_once(
            8,
            lambda number: until_served(
                lambda: sessions[number].on(server).put("/user", json={"password": f"{NEW}{number}"})
            ),
        )
        alive = [number for number, session in enumerate(sessions) if session.get("/user").status_code == 200]
        assert len(alive) == 1
        assert alice.try_to_sign_in(f"{NEW}{alive[0]}").status_code == 200


class TestAddresses:
    """A changed email or phone is pending until it is verified, and reserves nothing."""

    def test_new_email_is_pending(self, alice, database):
        session = alice.sign_in()
        response = session.put("/user", json={"email": "New@Example.com"})
        expected = user(
            alice.email,
            last_sign_in_at=A_TIMESTAMP,
            new_email="new@example.com",
            email_change_sent_at=A_TIMESTAMP,
        )
        assert_ok(response, expected)
        assert_error(sign_in(alice.client, "new@example.com"), 401, "invalid_credentials")
        assert alice.try_to_sign_in().status_code == 200

    def test_new_phone_is_pending(self, alice):
        session = alice.sign_in()
        response = session.put("/user", json={"phone": "+49 170 1234567"})
        assert_ok(
            response,
            user(
                alice.email,
                last_sign_in_at=A_TIMESTAMP,
                new_phone="+491701234567",
                phone_change_sent_at=A_TIMESTAMP,
            ),
        )

    def test_current_address_is_not_a_change(self, alice):
        session = alice.open_session()
        before = session.get("/user").json
        assert_ok(
            session.put("/user", json={"email": "ALICE@example.com"}), before | {"updated_at": A_TIMESTAMP}
        )

    def test_address_change_keeps_sessions(self, alice):
        laptop, phone = alice.open_session(), alice.open_session()
        laptop.put("/user", json={"email": "new@example.com"})
        assert laptop.get("/user").status_code == phone.get("/user").status_code == 200

    def test_pending_email_does_not_reserve_the_address(self, alice, bob):
        alice.sign_in().put("/user", json={"email": "new@example.com"})
        assert (
            bob.sign_in().put("/user", json={"email": "new@example.com"}).json["new_email"]
            == "new@example.com"
        )
        assert (
            alice.client.post("/signup", json={"email": "new@example.com", "password": PASSWORD}).status_code
            == 201
        )

    def test_taken_email_is_409(self, alice, bob, database):
        session = alice.open_session()
        before = database.everything()
        response = session.put("/user", json={"email": bob.email})
        assert_error(
            response, 409, "email_exists", "A user with this email address has already been registered"
        )
        assert database.everything() == before

    def test_taken_phone_is_409(self, alice, client, service_role, database):
        client.post(
            "/admin/users", json={"email": "dave@example.com", "phone": "+491701234567"}, headers=service_role
        )
        session = alice.sign_in()
        before = database.everything()
        response = session.put("/user", json={"phone": "+491701234567"})
        assert_error(
            response, 409, "phone_exists", "A user with this phone number has already been registered"
        )
        assert database.everything() == before


class TestReauthentication:
    """A session older than AUTH_REAUTHENTICATION_AGE (a day) must give the current password to change it; one
    older than 15 minutes, to change an address.
    """

    @each_change
    def test_young_session_needs_no_reauthentication(self, alice, database, change, age):
        session = alice.open_session()
        older(database, age - 10)
        assert session.put("/user", json=change).status_code == 200

    @each_change
    def test_old_session_needs_reauthentication(self, alice, database, change, age):
        session = alice.open_session()
        older(database, age)
        before = database.everything()
        assert_error(session.put("/user", json=change), 400, "reauthentication_needed", **NEEDED)
        assert database.everything() == before

    @each_change
    def test_current_password_reauthenticates(self, alice, database, change, age):
        session = alice.open_session()
        older(database, age)
        assert session.put("/user", json=change | {"current_password": PASSWORD}).status_code == 200

    def test_current_and_new_password_are_hashed_with_one_admission(
        self, alice, database, parts, monkeypatch
    ):
        session = alice.open_session()
        older(database, 86_400)
        admission = threading.Semaphore(1)
        monkeypatch.setattr(parts.passwords, "_admission", admission)
        monkeypatch.setattr(admission, "release", lambda: None)
        assert session.put("/user", json={"password": NEW, "current_password": PASSWORD}).status_code == 200

    @each_change
    def test_wrong_current_password_is_refused(self, alice, database, change, age):
        session = alice.open_session()
        older(database, age)
        before = database.everything()
        response = session.put("/user", json=change | {"current_password": "Wrong-Horse-1"})
        assert_error(
            response,
            400,
            "current_password_invalid",
            "The current password is wrong",
            "current_password: must be the user's password",
        )
        assert database.everything() == before

    def test_refresh_does_not_make_a_session_younger(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        assert_error(
            session.refreshed().put("/user", json={"password": NEW}), 400, "reauthentication_needed", **NEEDED
        )

    def test_metadata_needs_no_reauthentication(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        assert session.put("/user", json={"data": {"name": "Alice"}}).status_code == 200

    def test_current_email_needs_no_reauthentication(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        assert session.put("/user", json={"email": alice.email}).status_code == 200

    def test_old_session_cannot_probe_whether_an_address_is_taken(self, alice, bob, database):
        session = alice.open_session()
        older(database, 86_400)
        assert_error(
            session.put("/user", json={"email": bob.email}), 400, "reauthentication_needed", **NEEDED
        )

    def test_old_session_cannot_probe_the_current_password_as_a_new_one(self, alice, database, hashes):
        session = alice.open_session()
        older(database, 86_400)
        before = hashes.count
        assert_error(
            session.put("/user", json={"password": PASSWORD}), 400, "reauthentication_needed", **NEEDED
        )
        assert hashes.count == before

    def test_invented_nonce_is_refused(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        response = session.put("/user", json={"password": NEW, "nonce": "123456"})
        assert response.status_code == 400
        assert response.json["error_code"] in ("reauthentication_needed", "reauthentication_not_valid")

    def test_reauthentication_is_ignored_when_not_needed(self, alice):
        session = alice.open_session()
        assert (
            session.put(
                "/user", json={"data": {"x": 1}, "nonce": "123456", "current_password": "Wrong-Horse-1"}
            ).status_code
            == 200
        )
        assert (
            session.put(
                "/user", json={"password": NEW, "nonce": "123456", "current_password": "Wrong-Horse-1"}
            ).status_code
            == 200
        )

    def test_setting_always_requires_reauthentication_of_each_session(self, make_app, alice):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="always").test_client())
        assert_error(session.put("/user", json={"password": NEW}), 400, "reauthentication_needed", **NEEDED)
        assert session.put("/user", json={"password": NEW, "current_password": PASSWORD}).status_code == 200

    def test_setting_never_requires_no_reauthentication(self, make_app, alice, database):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="never").test_client())
        older(database, 10 * 365 * 86_400)
        assert session.put("/user", json={"password": NEW}).status_code == 200

    @pytest.mark.parametrize("change", [{"email": "new@example.com"}, {"phone": "+491701234567"}], ids=str)
    def test_address_needs_a_proof_whatever_the_setting(self, make_app, alice, database, change):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="never").test_client())
        older(database, 900)
        assert_error(session.put("/user", json=change), 400, "reauthentication_needed", **NEEDED)
        assert session.put("/user", json=change | {"current_password": PASSWORD}).status_code == 200

    def test_first_address_of_a_user_without_one_needs_a_proof_too(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE users SET email = NULL, password_hash = NULL")
        older(database, 900)
        for change in ({"email": "new@example.com"}, {"phone": "+491701234567"}):
            assert_error(session.put("/user", json=change), 400, "reauthentication_needed", **NEEDED)

    def test_age_that_requires_reauthentication_is_a_setting(self, make_app, alice, database):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="300").test_client())
        older(database, 290)
        assert session.put("/user", json={"email": "new@example.com"}).status_code == 200
        older(database, 10)
        assert_error(
            session.put("/user", json={"email": "newer@example.com"}),
            400,
            "reauthentication_needed",
            **NEEDED,
        )

    def test_user_without_a_password_cannot_reauthenticate_with_one(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE users SET password_hash = NULL")
        older(database, 86_400)
        response = session.put("/user", json={"password": NEW, "current_password": PASSWORD})
        assert_error(response, 400, "current_password_invalid", details=A_SENTENCE)
