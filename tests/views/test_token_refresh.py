"""POST /token?grant_type=refresh_token: rotation, reuse and theft of refresh tokens."""

import json

import psycopg2
import pytest

import sql
from tests.support.answers import A_REFRESH_TOKEN, A_TIMESTAMP, assert_error, assert_ok, token_response, user
from tests.support.cases import cases
from tests.support.cast import refresh
from tests.support.server import at_once

ENDED = "Invalid Refresh Token: Refresh Token Not Found"
STOLEN = "Invalid Refresh Token: Already Used"


def age(database, seconds, column="refreshed_at"):
    """Move a timestamp of each session into the past."""
    database.run(
        f"UPDATE sessions SET {column} = {column} - make_interval(secs => %(seconds)s)", seconds=seconds
    )


def assert_ended(client, session, database, reason):
    """Assert that no token of a session is accepted any more."""
    assert_error(session.get("/user"), 401, "session_not_found")
    assert_error(refresh(client, session.refresh_token), 400, "refresh_token_not_found", ENDED)
    assert database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=session.id) == reason


def test_refresh_returns_new_tokens_and_the_whole_user(alice):
    session = alice.sign_in()
    response = session.refresh()
    assert_ok(response, token_response(user(alice.email, last_sign_in_at=A_TIMESTAMP)))
    assert response.json["refresh_token"] != session.refresh_token
    assert response.json["access_token"] != session.access_token


def test_refresh_continues_the_session(alice, database):
    session = alice.open_session()
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour'")
    signed_in_at = database.value("SELECT floor(extract(epoch FROM created_at))::int FROM sessions")
    next_one = session.refreshed()
    assert next_one.id == session.id
    assert next_one.claims["amr"] == [{"method": "password", "timestamp": signed_in_at}]
    assert next_one.claims["iat"] > signed_in_at
    assert next_one.claims["jti"] != session.claims["jti"]
    assert database.count("sessions") == 1


def test_refresh_does_not_count_as_a_sign_in(alice, database):
    session = alice.open_session()
    before = database.everything("users", "identities", "outbox")
    session.refresh()
    assert database.everything("users", "identities", "outbox") == before


def test_session_can_be_refreshed_any_number_of_times(alice):
    session = alice.open_session()
    for _ in range(20):
        session = session.refreshed()
    assert session.get("/user").status_code == 200


def test_refresh_returns_the_changed_user(alice, database):
    session = alice.open_session()
    database.run("""UPDATE users SET user_metadata = '{"name": "Alice"}', role = 'editor'""")
    refreshed = session.refreshed()
    assert (refreshed.user["role"], refreshed.claims["role"]) == ("editor", "editor")
    assert refreshed.claims["user_metadata"] == {"name": "Alice"}


def test_earlier_access_token_stays_valid_after_a_refresh(alice):
    session = alice.open_session()
    session.refresh()
    assert session.get("/user").status_code == 200


def test_credentials_in_headers_are_ignored(client, alice):
    body = {"refresh_token": alice.open_session().refresh_token}
    response = client.post(
        "/token?grant_type=refresh_token",
        json=body,
        headers={"Authorization": "Bearer expired", "apikey": "x"},
    )
    assert response.status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "grant_type=refresh%5Ftoken",
        "%67rant_type=refresh_token",
        "grant_type=refresh_token&",
        "lang=en&grant_type=refresh_token",
    ],
)
def test_query_may_be_encoded_in_any_way(client, alice, query):
    assert (
        client.post(f"/token?{query}", json={"refresh_token": alice.sign_in().refresh_token}).status_code
        == 200
    )


class TestReuse:
    """Two tabs or a lost response: within AUTH_REFRESH_REUSE_INTERVAL (60 s) a used token returns its
    successor.
    """

    def test_reused_token_returns_the_current_token_and_only_counts_the_request(self, alice, database):
        session = alice.open_session()
        successor = session.refreshed()
        counted = database.one("SELECT refreshes, counted_until FROM sessions")
        before = database.everything()
        for _ in range(3):
            again = session.refreshed()
            assert again.refresh_token == successor.refresh_token
            assert again.get("/user").status_code == 200
        database.run("UPDATE sessions SET refreshes = refreshes - 3")
        assert database.one("SELECT refreshes, counted_until FROM sessions") == counted
        assert database.everything() == before

    def test_reused_token_works_until_the_interval_has_passed(self, alice, database):
        session = alice.open_session()
        successor = session.refreshed()
        age(database, 40)
        assert session.refreshed().refresh_token == successor.refresh_token

    def test_reused_token_ends_the_session_after_the_interval(self, client, alice, database):
        session = alice.open_session()
        successor = session.refreshed()
        age(database, 60)
        assert_error(session.refresh(), 400, "refresh_token_already_used", STOLEN)
        assert_ended(client, successor, database, "refresh_token_reused")
        assert_ended(client, session, database, "refresh_token_reused")

    def test_reuse_interval_is_a_setting(self, make_app, alice, database):
        client = make_app(AUTH_REFRESH_REUSE_INTERVAL="30").test_client()
        session = alice.sign_in(client=client)
        successor = session.refreshed()
        age(database, 10)
        assert session.refreshed().refresh_token == successor.refresh_token
        age(database, 20)
        assert_error(session.refresh(), 400, "refresh_token_already_used", STOLEN)

    def test_reuse_interval_of_zero_allows_each_token_once(self, make_app, alice, database):
        client = make_app(AUTH_REFRESH_REUSE_INTERVAL="0").test_client()
        session = alice.sign_in(client=client)
        successor = session.refreshed()
        assert_error(session.refresh(), 400, "refresh_token_already_used", STOLEN)
        assert_ended(client, successor, database, "refresh_token_reused")

    def test_reused_token_ends_the_session_when_its_successor_was_used_too(self, client, alice, database):
        session = alice.open_session()
        newest = session.refreshed().refreshed()
        assert_error(session.refresh(), 400, "refresh_token_already_used", STOLEN)
        assert_ended(client, newest, database, "refresh_token_reused")

    def test_theft_keeps_other_sessions_of_the_user(self, alice, database):
        phone, laptop = alice.open_session(), alice.open_session()
        laptop.refreshed().refreshed()
        assert_error(laptop.refresh(), 400, "refresh_token_already_used", STOLEN)
        assert phone.get("/user").status_code == 200
        assert phone.refresh().status_code == 200

    def test_theft_is_logged_without_the_token(self, make_app, alice, capfd):
        client = make_app().test_client()
        session = alice.sign_in(client=client)
        session.refreshed().refreshed()
        session.refresh()
        log = capfd.readouterr().err
        (event,) = [json.loads(line) for line in log.splitlines() if "refresh_token_reused" in line]
        assert (event["level"], event["session_id"], event["user_id"]) == ("warning", session.id, alice.id)
        assert session.refresh_token not in log


class TestTokenAheadOfTheDatabase:
    """The database was restored from an older backup; the MAC proves that the service issued the token."""

    def test_token_ahead_of_the_database_is_accepted_and_moves_the_counter(self, alice, database):
        session = alice.open_session()
        for _ in range(3):
            session = session.refreshed()
        database.run("UPDATE sessions SET counter = 1")
        successor = session.refreshed()
        assert successor.refresh_token == A_REFRESH_TOKEN
        assert database.value("SELECT counter FROM sessions") == 4
        assert session.refreshed().refresh_token == successor.refresh_token

    def test_token_behind_the_moved_counter_counts_as_stolen(self, client, alice, database):
        first = alice.open_session()
        newest = first.refreshed().refreshed()
        database.run("UPDATE sessions SET counter = 0")
        newest = newest.refreshed()
        assert_error(first.refresh(), 400, "refresh_token_already_used", STOLEN)
        assert_ended(client, newest, database, "refresh_token_reused")


@pytest.mark.parametrize(
    ("counter", "setting"), [(1, "off"), (0, "on")], ids=["a rotation", "the end of a session"]
)
def test_only_a_plain_rotation_commits_asynchronously(alice, database_url, counter, setting):
    session = alice.open_session()
    session.refresh()
    statement = sql.load_statements()["refresh_session"]
    values = {
        "session_id": session.id,
        "counter": counter,
        "rotation": True,
        "reuse_interval": 0,
        "refresh_limit_seconds": 300,
        "refresh_token_lifetime": 60,
        "origin": {"actor": "anonymous"},
    }
    connection = psycopg2.connect(database_url)
    with connection.cursor() as cursor:
        cursor.execute(statement.direct, dict.fromkeys(statement.parameters) | values)
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == (setting,)
    connection.close()


class TestWithoutRotation:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_REFRESH_TOKEN_ROTATION="false").test_client()

    def test_token_stays_the_same_and_valid_without_rotation(self, client, alice, database):
        session = alice.open_session()
        for _ in range(3):
            age(database, 3600)
            refreshed = session.refreshed()
            assert refreshed.refresh_token == session.refresh_token
            assert refreshed.access_token != session.access_token

    def test_refresh_extends_the_session_without_rotation(self, client, alice, database):
        session = alice.open_session()
        for _ in range(2):
            age(database, 2_591_000)
            assert session.refresh().status_code == 200

    def test_token_rotated_earlier_still_counts_as_stolen_without_rotation(
        self, client, app, alice, database
    ):
        rotating = app.test_client()
        first = alice.sign_in(client=rotating)
        newest = first.refreshed().refreshed()
        assert_error(refresh(client, first.refresh_token), 400, "refresh_token_already_used", STOLEN)
        assert_ended(client, newest, database, "refresh_token_reused")


class TestLifetime:
    EXPIRED = "Invalid Refresh Token: the session has expired"

    def test_session_expires_30_days_after_its_last_refresh(self, alice, database):
        session = alice.open_session()
        age(database, 30 * 86400 - 60)
        session = session.refreshed()
        age(database, 30 * 86400)
        assert_error(session.refresh(), 400, "session_expired", self.EXPIRED)
        assert_error(session.get("/user"), 401, "session_expired")

    def test_session_lifetime_is_a_setting(self, make_app, alice, database):
        client = make_app(AUTH_REFRESH_TOKEN_LIFETIME="600").test_client()
        session = alice.sign_in(client=client)
        age(database, 590)
        session = session.refreshed()
        age(database, 600)
        assert_error(session.refresh(), 400, "session_expired", self.EXPIRED)

    def test_timebox_ends_a_session_despite_refreshes(self, make_app, alice, database):
        client = make_app(AUTH_SESSION_TIMEBOX="3600").test_client()
        session = alice.sign_in(client=client)
        age(database, 3590, "created_at")
        session = session.refreshed()
        assert session.get("/user").status_code == 200
        age(database, 10, "created_at")
        assert_error(session.refresh(), 400, "session_expired", self.EXPIRED)
        assert_error(session.get("/user"), 401, "session_expired")

    def test_session_age_is_unlimited_without_a_timebox(self, alice, database):
        session = alice.open_session()
        age(database, 10 * 365 * 86400, "created_at")
        assert session.refresh().status_code == 200

    def test_reused_token_of_an_expired_session_does_not_end_it(self, alice, database):
        session = alice.open_session()
        session.refreshed().refreshed()
        age(database, 30 * 86400)
        before = database.everything()
        assert_error(session.refresh(), 400, "session_expired", self.EXPIRED)
        assert database.everything() == before


class TestRefusals:
    def test_refresh_is_refused_after_log_out(self, client, alice, database):
        session = alice.open_session()
        session.post("/logout")
        assert_ended(client, session, database, "logout")

    def test_refresh_is_refused_after_deletion_of_the_user(self, alice):
        session = alice.open_session()
        session.delete("/user")
        assert_error(session.refresh(), 400, "refresh_token_not_found", ENDED)

    def test_refresh_of_a_banned_user_is_refused(self, alice, database):
        session = alice.open_session()
        database.run("UPDATE users SET banned_until = now() + interval '1 day'")
        before = database.everything()
        assert_error(session.refresh(), 400, "user_banned", "Invalid Refresh Token: this user is banned")
        assert database.everything() == before

    @pytest.mark.parametrize(
        ("body", "details"),
        [
            ({}, "refresh_token: is required"),
            ({"refresh_token": None}, "refresh_token: is required"),
            ({"refresh_token": 1}, "refresh_token: must be a string"),
        ],
    )
    def test_missing_token_is_400(self, client, body, details):
        assert_error(
            client.post("/token?grant_type=refresh_token", json=body),
            400,
            "validation_failed",
            details=details,
        )

    @cases("token", ["", "x", "x" * 56, "=" * 56, "x" * 2048, "é" * 56])
    def test_token_of_unknown_origin_does_not_reach_the_database(self, client, parts, token):
        before = parts.db.statements_run
        response = refresh(client, token)
        assert_error(
            response, 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"
        )
        assert parts.db.statements_run == before

    def test_access_token_is_refused_as_refresh_token(self, client, alice):
        response = refresh(client, alice.open_session().access_token)
        assert_error(
            response, 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"
        )


class TestConcurrency:
    def test_fifty_concurrent_refreshes_with_one_token_return_the_same_successor(
        self, server, alice, database
    ):
        session = alice.sign_in()
        answers = at_once(50, lambda _: refresh(server, session.refresh_token))
        assert [answer.status_code for answer in answers] == [200] * 50
        assert len({answer.json["refresh_token"] for answer in answers}) == 1
        assert answers[0].json["refresh_token"] != session.refresh_token
        assert database.value("SELECT counter FROM sessions") == 1

    def test_replay_among_concurrent_refreshes_ends_the_session(self, server, client, alice, database):
        first = alice.sign_in()
        newest = first.refreshed().refreshed()
        answers = at_once(
            50, lambda number: refresh(server, first.refresh_token if number % 2 else newest.refresh_token)
        )
        for answer in answers[1::2]:
            assert answer.json["error_code"] in ("refresh_token_already_used", "refresh_token_not_found")
        assert [answer.json["error_code"] for answer in answers if answer.status_code == 400].count(
            "refresh_token_already_used"
        ) == 1
        assert_ended(client, newest, database, "refresh_token_reused")
        for answer in answers[::2]:
            if answer.status_code == 200:
                assert_error(
                    refresh(client, answer.json["refresh_token"]), 400, "refresh_token_not_found", ENDED
                )

    def test_chain_of_refreshes_works_across_workers(self, server, alice):
        session = alice.sign_in().on(server)
        for _ in range(10):
            session = session.refreshed()
        assert session.get("/user").status_code == 200

    @pytest.mark.parametrize("end", ["log-out", "deletion", "password change", "theft"])
    def test_no_worker_accepts_tokens_of_an_ended_session(self, server, alice, end):
        other = alice.sign_in()
        session = alice.sign_in()
        # Each worker has seen the tokens and may have cached them.
        assert {answer.status_code for answer in at_once(16, lambda _: session.on(server).get("/user"))} == {
            200
        }
        assert {answer.status_code for answer in at_once(16, lambda _: session.on(server).refresh())} == {200}
        if end == "log-out":
            other.post("/logout")
        elif end == "deletion":
            other.delete("/user")
        elif end == "password change":
            other.put("/user", json={"password": "Another-Horse-1"})
        else:
            session.refreshed().refreshed()
            session.refresh()
        for answer in at_once(16, lambda _: session.on(server).get("/user")):
            assert_error(answer, 401, "user_not_found" if end == "deletion" else "session_not_found")
        for answer in at_once(16, lambda _: session.on(server).refresh()):
            assert_error(answer, 400, "refresh_token_not_found", ENDED)
