"""PUT /user and DELETE /user: users change or delete their own account."""

import json
import uuid

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, DAY, assert_error, assert_ok, user
from tests.support.cases import cases
from tests.support.links import PHONE, hand_in
from tests.support.server import at_once
from tests.support.users import NEW_PASSWORD, PASSWORD, WRONG_PASSWORD, session_of, sign_in

EMAIL_CHANGE = {"email": "new@example.com"}
PHONE_CHANGE = {"phone": PHONE}
TOO_LARGE = (400, "validation_failed", "User metadata is too large")
TOO_LARGE_DETAILS = "data: must be at most 8 KiB as JSON"


def put(session, **change):
    return session.put("/user", json=change)


def age_sessions(database, seconds):
    database.run(
        "UPDATE sessions SET created_at = created_at - make_interval(secs => %(seconds)s)", seconds=seconds
    )


def assert_needed(response):
    details = {"msg": "This needs reauthentication", "details": A_SENTENCE}
    assert_error(response, 400, "reauthentication_needed", **details)


@pytest.fixture
def session(alice):
    return alice.open_session()


@pytest.fixture
def unchanged(session, bob, database):
    """Assert that the requests of a test change nothing."""
    before = database.everything()
    yield
    assert database.everything() == before


def test_response_is_the_whole_user_object_and_other_users_stay(alice, bob, database):
    statement = "SELECT users::text FROM users WHERE id = %(id)s"
    before = database.value(statement, id=bob.id)
    session = alice.sign_in()
    response = put(session, data={"name": "Alice"}, password=NEW_PASSWORD)
    members = {"last_sign_in_at": A_TIMESTAMP, "user_metadata": {"name": "Alice"}}
    assert_ok(response, user(alice.email, id=alice.id, **members))
    assert_ok(session.get("/user"), response.json)
    assert database.value(statement, id=bob.id) == before


class TestMetadata:
    """`data` is merged by key; null removes a key."""

    @cases(
        ("before", "change", "after"),
        [
            ({}, {"a": 1}, {"a": 1}),
            ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
            ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
            ({"a": {"x": 1, "y": 2}}, {"a": {"x": 3}}, {"a": {"x": 3}}),
            ({}, {"a": {"x": None}, "b": [None, {"y": None}]}, {"a": {"x": None}, "b": [None, {"y": None}]}),
            ({"a": 1}, {}, {"a": 1}),
            ({"a": 1}, None, {"a": 1}),
            ({"a": 1}, {"a": "null"}, {"a": "null"}),
            ({"a": 1}, {"a": False, "": 0}, {"a": False, "": 0}),
        ],
    )
    def test_data_is_merged_by_key(self, session, database, before, change, after):
        database.run("UPDATE users SET user_metadata = %(before)s", before=json.dumps(before))
        assert put(session, data=change).json["user_metadata"] == after
        assert session.get("/user").json["user_metadata"] == after

    @pytest.mark.parametrize("letter", ["x", "ü", "😀"])
    def test_merged_data_may_be_8_kib_as_json(self, session, letter):
        space = (8192 - len('{"x": ""}')) // len(letter.encode())
        assert put(session, data={"x": letter * space}).status_code == 200
        before = session.get("/user").json
        for data in ({"x": letter * (space + 1)}, {"y": letter}):
            assert_error(put(session, data=data), *TOO_LARGE, details=TOO_LARGE_DETAILS)
        assert session.get("/user").json == before
        assert put(session, data={"x": None, "y": letter}).json["user_metadata"] == {"y": letter}

    def test_fifty_concurrent_changes_are_all_kept(self, server, alice):
        session = alice.sign_in()
        answers = at_once(50, lambda number: put(session.on(server), data={f"key{number}": number}))
        assert [answer.status_code for answer in answers] == [200] * 50
        assert session.get("/user").json["user_metadata"] == {f"key{number}": number for number in range(50)}

    def test_fifty_concurrent_changes_stay_within_the_size_limit(self, server, alice, database):
        session = alice.sign_in()
        at_once(50, lambda number: put(session.on(server), data={f"key{number}": "x" * 500}))
        assert database.value("SELECT octet_length(user_metadata::text) FROM users") <= 8192


class TestPassword:
    def test_new_password_ends_the_other_sessions_of_the_user(self, alice, bob, mailbox, database):
        laptop, phone, tablet = (alice.open_session() for _ in range(3))
        bobs_session = bob.open_session()
        assert put(laptop, password=NEW_PASSWORD).status_code == 200
        assert_error(alice.try_to_sign_in(PASSWORD), 401, "invalid_credentials")
        assert alice.try_to_sign_in(NEW_PASSWORD).status_code == 200
        for other in (phone, tablet):
            assert_error(other.get("/user"), 401, "session_not_found")
            assert_error(other.refresh(), 400, "refresh_token_not_found")
        assert [session.get("/user").status_code for session in (laptop, bobs_session)] == [200, 200]
        assert laptop.refresh().status_code == 200
        assert database.count("sessions", "end_reason = 'password_changed'") == 2
        (letter,) = mailbox.messages()
        assert (letter.to, letter.subject) == (alice.email, "Your password was changed")
        assert NEW_PASSWORD not in letter.text

    @pytest.mark.usefixtures("unchanged")
    def test_weak_password_is_422(self, session):
        requirement = "must be at least 8 characters, and contain at least one character of each"
        details = f"password: {requirement}: uppercase, numbers, symbols"
        weak = {"reasons": ["length", "characters"]}
        response = put(session, password="wkhq")
        assert_error(response, 422, "weak_password", details=details, weak_password=weak)

    @pytest.mark.usefixtures("unchanged")
    def test_current_password_or_a_failing_other_change_keeps_the_password(self, session, bob):
        details = "password: must differ from the current one"
        assert_error(put(session, password=PASSWORD), 422, "same_password", details=details)
        assert_error(put(session, password=NEW_PASSWORD, email=bob.email), 409, "email_exists")
        response = put(session, password=NEW_PASSWORD, data={"x": "y" * 9000})
        assert_error(response, *TOO_LARGE, details=TOO_LARGE_DETAILS)

    @pytest.mark.usefixtures("unchanged")
    def test_change_that_fails_does_not_tell_whether_the_password_is_the_current_one(
        self, session, bob, hashes
    ):
        refusals = [{"email": bob.email}, {"data": {"x": "y" * 9000}}, {"remove": [str(uuid.uuid4())]}]
        for refusal in refusals:
            answers = []
            for password in (PASSWORD, NEW_PASSWORD):
                before = hashes.count
                response = put(session, password=password, **refusal)
                answers.append((response.status_code, response.json["error_code"], hashes.count - before))
            assert answers[0] == answers[1]

    def test_one_of_two_concurrent_changes_wins_and_ends_the_other_session(self, app, alice, database):
        laptop, phone = (alice.open_session().on(app.test_client()) for _ in range(2))
        with database.locked("users", alice.id) as lock:
            first = lock.start(lambda: put(laptop, password=NEW_PASSWORD))
            second = lock.start(lambda: put(phone, password="Second-Horse-1"))
        assert first.result().status_code == 200
        assert_error(second.result(), 401, "session_not_found")
        assert alice.try_to_sign_in(NEW_PASSWORD).status_code == 200
        assert_error(alice.try_to_sign_in("Second-Horse-1"), 401, "invalid_credentials")


def delete(session, **body):
    return session.delete("/user", json=body)


class TestReauthentication:
    """A session older than AUTH_REAUTHENTICATION_AGE (a day) must give the current password to change it or
    to delete the user; one older than 15 minutes, to change an address.
    """

    @pytest.mark.parametrize(
        ("send", "body", "age"),
        [
            (put, {"password": NEW_PASSWORD}, DAY),
            (put, EMAIL_CHANGE, 900),
            (put, PHONE_CHANGE, 900),
            (delete, {}, DAY),
        ],
        ids=["password", "email", "phone", "deletion"],
    )
    def test_old_session_needs_the_current_password(self, session, database, send, body, age):
        age_sessions(database, age)
        before = database.everything()
        assert_needed(send(session, **body))
        response = send(session, **body, current_password=WRONG_PASSWORD)
        msg, details = "The current password is wrong", "current_password: must be the user's password"
        assert_error(response, 400, "current_password_invalid", msg, details)
        assert database.everything() == before
        assert send(session, **body, current_password=PASSWORD).status_code == 200

    def test_old_session_cannot_probe_addresses_or_the_password(self, session, bob, database, hashes):
        age_sessions(database, DAY)
        before = hashes.count
        for change in ({"email": bob.email}, {"password": PASSWORD}):
            assert_needed(put(session, **change))
            assert_needed(put(session.refreshed(), **change))
        assert hashes.count == before

    def test_recovery_is_the_proof_for_the_new_password(self, make_app, alice, database, outbox):
        """Within the lifetime of a code: the user cannot give the forgotten password."""
        client = make_app(AUTH_REAUTHENTICATION_AGE="always").test_client()

        def recover():
            client.post("/recover", json={"email": alice.email})
            return session_of(client, hand_in(client, "recovery", outbox.last(alice.email, "recovery").token))

        session = recover()
        age_sessions(database, 9 * 60)
        for change in (EMAIL_CHANGE, PHONE_CHANGE):
            assert_needed(put(session, **change))
        assert_needed(delete(session))
        assert put(session, password=NEW_PASSWORD).status_code == 200
        late_session = recover()
        age_sessions(database, 10 * 60)
        assert_needed(put(late_session, password=PASSWORD))
        assert sign_in(client, alice.email, NEW_PASSWORD).status_code == 200

    def test_age_that_requires_reauthentication_is_a_setting(self, make_app, alice, database):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="300").test_client())
        age_sessions(database, 290)
        assert put(session, **EMAIL_CHANGE).status_code == 200
        age_sessions(database, 10)
        assert_needed(put(session, email="newer@example.com"))


def test_deletion_removes_the_user_and_nobody_else(alice, bob, client, service_role, database):
    session, other, bobs_session = alice.open_session(), alice.open_session(), bob.open_session()
    before = bobs_session.get("/user").json
    assert_ok(session.delete("/user"), {"message": "User deleted", "timestamp": A_TIMESTAMP})
    for deleted_session in (session, other):
        assert_error(deleted_session.get("/user"), 401, "user_not_found")
        assert_error(deleted_session.refresh(), 400, "refresh_token_not_found")
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
    assert_error(session.delete("/user"), 401, "user_not_found")
    assert_error(client.get(f"/admin/users/{alice.id}", headers=service_role), 404, "user_not_found")
    assert_ok(bobs_session.get("/user"), before)
    assert bobs_session.delete("/user", json={}).status_code == 200
    for table in ("users", "identities", "sessions", "one_time_tokens"):
        assert database.count(table) == 0
    response = client.post("/admin/users", json={"email": alice.email}, headers=service_role)
    assert (response.status_code, response.json["id"] != alice.id) == (200, True)
