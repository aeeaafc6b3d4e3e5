"""POST /token?grant_type=refresh_token: rotation, reuse and theft of refresh tokens."""

import json

import pytest

from tests.support.answers import A_REFRESH_TOKEN, A_TIMESTAMP, assert_error, assert_ok, token_response, user
from tests.support.checked_rows import statements_run
from tests.support.server import at_once
from tests.support.users import refresh

UNKNOWN = (400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
STOLEN = (400, "refresh_token_already_used", "Invalid Refresh Token: Already Used")
EXPIRED = (400, "session_expired", "Invalid Refresh Token: the session has expired")
MONTH = 30 * 86_400


@pytest.fixture
def sign_in_with(make_app, alice):
    return lambda **settings: alice.sign_in(client=make_app(**settings).test_client())


def age(database, seconds, column="refreshed_at"):
    database.run(
        f"UPDATE sessions SET {column} = {column} - make_interval(secs => %(seconds)s)", seconds=seconds
    )


def assert_ended(session, database, reason="refresh_token_reused"):
    """Assert that no token of a session is accepted any more."""
    assert_error(session.get("/user"), 401, "session_not_found")
    assert_error(session.refresh(), *UNKNOWN)
    assert database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=session.id) == reason


def used_twice(session, database):
    """Use a session's token and, more than a minute later, its successor: another copy of the first is dead."""
    successor = session.refreshed()
    age(database, 61)
    return successor.refreshed()


class TestRefresh:
    def test_refresh_returns_new_tokens_and_the_whole_user_as_it_is_now(self, alice, database):
        session = alice.sign_in()
        response = session.refresh()
        assert_ok(response, token_response(user(alice.email, last_sign_in_at=A_TIMESTAMP)))
        assert response.json["refresh_token"] != session.refresh_token
        assert response.json["access_token"] != session.access_token
        # The earlier access token stays valid.
        assert session.get("/user").status_code == 200
        database.run("""UPDATE users SET user_metadata = '{"name": "Alice"}', role = 'editor'""")
        refreshed = session.refreshed()
        assert (refreshed.user["role"], refreshed.claims["role"]) == ("editor", "editor")
        assert refreshed.claims["user_metadata"] == {"name": "Alice"}

    def test_refresh_continues_the_session_and_does_not_count_as_a_sign_in(self, session, database):
        database.run("UPDATE sessions SET created_at = created_at - interval '1 hour'")
        signed_in_at = database.value("SELECT floor(extract(epoch FROM created_at))::int FROM sessions")
        before = database.everything("users", "identities", "outbox")
        refreshed_session = session.refreshed()
        assert refreshed_session.id == session.id
        assert refreshed_session.claims["amr"] == [{"method": "password", "timestamp": signed_in_at}]
        assert refreshed_session.claims["iat"] > signed_in_at
        assert refreshed_session.claims["jti"] != session.claims["jti"]
        assert database.count("sessions") == 1
        assert database.everything("users", "identities", "outbox") == before


class TestUsedToken:
    """Two tabs or a lost response: a used token is good until its successor is used."""

    def test_used_token_returns_the_current_token_and_only_counts_the_request(self, session, database):
        successor = session.refreshed()
        counts = database.one("SELECT refreshes, counted_until FROM sessions")
        before = database.everything()
        for _ in range(3):
            repeated = session.refreshed()
            assert repeated.refresh_token == successor.refresh_token
            assert repeated.get("/user").status_code == 200
        database.run("UPDATE sessions SET refreshes = refreshes - 3")
        assert database.one("SELECT refreshes, counted_until FROM sessions") == counts
        assert database.everything() == before

    @pytest.mark.parametrize(
        ("settings", "interval"), [({}, 60), ({"AUTH_REFRESH_REUSE_INTERVAL": "30"}, 30)], ids=str
    )
    def test_used_token_returns_a_new_successor_after_the_interval(
        self, sign_in_with, database, settings, interval
    ):
        session = sign_in_with(**settings)
        successor = session.refreshed()
        age(database, interval - 20)
        assert session.refreshed().refresh_token == successor.refresh_token
        assert database.count("audit_log", "action = 'refresh_answer_lost'") == 0
        age(database, 20)
        another = session.refreshed()
        assert another.refresh_token != successor.refresh_token
        (details,) = database.one("SELECT details FROM audit_log WHERE action = 'refresh_answer_lost'")
        assert details == {"session_id": session.id}
        # Within the interval, now that one.
        assert session.refreshed().refresh_token == another.refresh_token
        assert another.refresh().status_code == 200

    def test_copy_from_before_the_interval_ends_the_session_though_others_are_echoes(self, session, database):
        """The interval starts at the token's own use. Later uses of its successors do not extend it."""
        second = session.refreshed()
        age(database, 61)
        third = second.refreshed()
        newest = third.refreshed().refreshed()
        assert third.refreshed().refresh_token == newest.refresh_token
        assert_error(session.refresh(), *STOLEN)
        assert_ended(newest, database)

    def test_late_tab_gets_the_present_token_while_its_own_is_one_of_the_eight_newest_echoes(
        self, session, database
    ):
        tabs = [session]
        for _ in range(10):
            tabs.append(tabs[-1].refreshed())
        newest = tabs.pop()
        for tab in tabs[1:]:
            assert tab.refreshed().refresh_token == newest.refresh_token
        assert newest.refreshed().get("/user").status_code == 200
        assert_error(tabs[0].refresh(), *STOLEN)
        assert_ended(newest, database)

    def test_row_of_a_session_does_not_grow_with_its_refreshes(self, sign_in_with, database):
        session, sizes = sign_in_with(AUTH_RATE_LIMITS_ENABLED="false"), []
        for number in range(40):
            session = session.refreshed()
            if number in (10, 39):
                sizes.append(database.value("SELECT length(echoes::text) FROM sessions"))
        assert abs(sizes[1] - sizes[0]) <= 20

    def test_theft_is_logged_without_the_token(self, sign_in_with, alice, database, capfd):
        session = sign_in_with()
        used_twice(session, database)
        session.refresh()
        log = capfd.readouterr().err
        (event,) = [json.loads(line) for line in log.splitlines() if "refresh_token_reused" in line]
        assert (event["level"], event["session_id"], event["user_id"]) == ("warning", session.id, alice.id)
        assert session.refresh_token not in log


class TestTokenAheadOfTheDatabase:
    """The database was restored from an older backup; the MAC proves that the service issued the token."""

    def test_token_ahead_of_the_database_is_accepted_and_moves_the_counter(self, session, database):
        first = session
        for _ in range(3):
            session = session.refreshed()
        database.run("UPDATE sessions SET counter = 1")
        successor = session.refreshed()
        assert successor.refresh_token == A_REFRESH_TOKEN
        assert database.value("SELECT counter FROM sessions") == 4
        assert session.refreshed().refresh_token == successor.refresh_token
        # A token behind the moved counter counts as stolen.
        assert_error(first.refresh(), *STOLEN)
        assert_ended(successor, database)


class TestWithoutRotation:
    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_REFRESH_TOKEN_ROTATION="false").test_client()

    def test_token_stays_the_same_and_extends_the_session_without_rotation(self, session, database):
        for _ in range(3):
            age(database, MONTH - 1000)
            refreshed = session.refreshed()
            assert refreshed.refresh_token == session.refresh_token
            assert refreshed.access_token != session.access_token


class TestLifetime:
    @pytest.mark.parametrize(
        ("settings", "lifetime"),
        [({}, MONTH), ({"AUTH_REFRESH_TOKEN_LIFETIME": "600"}, 600)],
        ids=["30 days", "a setting"],
    )
    def test_session_expires_a_while_after_its_last_refresh(self, sign_in_with, database, settings, lifetime):
        session = sign_in_with(**settings)
        age(database, lifetime - 60)
        session = session.refreshed()
        age(database, lifetime)
        assert_error(session.refresh(), *EXPIRED)
        assert_error(session.get("/user"), 401, "session_expired")

    def test_timebox_ends_a_session_despite_refreshes(self, sign_in_with, database):
        session = sign_in_with(AUTH_SESSION_TIMEBOX="3600")
        age(database, 3540, "created_at")
        session = session.refreshed()
        assert session.get("/user").status_code == 200
        age(database, 60, "created_at")
        assert_error(session.refresh(), *EXPIRED)
        assert_error(session.get("/user"), 401, "session_expired")

    def test_session_ends_after_400_days_by_default(self, session, database):
        age(database, 400 * 86_400 - 60, "created_at")
        session = session.refreshed()
        age(database, 60, "created_at")
        assert_error(session.refresh(), *EXPIRED)


class TestRefusals:
    @pytest.mark.parametrize("has_hook", [False, True])
    def test_refresh_that_waits_has_the_claims_of_its_user_after_the_wait(
        self, make_app, alice, database, target, has_hook
    ):
        target.answer = lambda event: {"claims": event["claims"]}
        hook = {
            "AUTH_HOOK_CUSTOM_ACCESS_TOKEN": target.url,
            "AUTH_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        }
        session = alice.sign_in(client=make_app(**hook if has_hook else {}).test_client())
        with database.locked("sessions", session.id) as lock:
            future = lock.start(session.refreshed)
            database.run(
                "UPDATE users SET role = 'editor', user_metadata = '{\"name\": \"Al\"}' WHERE id = %(id)s",
                id=alice.id,
            )
        claims = future.result().claims
        assert (claims["role"], claims["user_metadata"]) == ("editor", {"name": "Al"})

    def test_refresh_that_waits_for_a_ban_is_told_of_it(self, session, alice, client, service_role, database):
        with database.locked("sessions", session.id) as lock:
            # First in the queue for the session's row, but already the holder of the user's.
            ban = lock.start(
                lambda: client.put(
                    f"/admin/users/{alice.id}", json={"ban_duration": "24h"}, headers=service_role
                )
            )
            future = lock.start(session.refresh)
        assert ban.result().status_code == 200
        msg = "Invalid Refresh Token: this user is banned"
        assert_error(future.result(), 400, "user_banned", msg)

    def test_token_of_unknown_origin_does_not_reach_the_database(self, client, session, parts):
        before = statements_run()
        for token in ("", "x", "x" * 56, "=" * 56, "x" * 2048, "é" * 56, session.access_token):
            assert_error(refresh(client, token), *UNKNOWN)
        assert statements_run() == before


class TestConcurrency:
    def test_fifty_concurrent_refreshes_with_one_token_return_one_successor(self, server, alice, database):
        session = alice.sign_in()
        answers = at_once(50, lambda _: refresh(server, session.refresh_token))
        assert [answer.status_code for answer in answers] == [200] * 50
        (successor,) = {answer.json["refresh_token"] for answer in answers}
        assert successor != session.refresh_token
        assert database.value("SELECT counter FROM sessions") == 1

    def test_fifty_concurrent_refreshes_after_a_lost_response_return_one_successor(
        self, server, alice, database
    ):
        session = alice.sign_in()
        lost_session = session.refreshed()
        age(database, 61)
        answers = at_once(50, lambda _: refresh(server, session.refresh_token))
        assert [answer.status_code for answer in answers] == [200] * 50
        (successor,) = {answer.json["refresh_token"] for answer in answers}
        assert successor not in (session.refresh_token, lost_session.refresh_token)
        assert database.value("SELECT counter FROM sessions") == 2
        assert database.count("audit_log", "action = 'refresh_answer_lost'") == 1

    def test_used_and_current_token_at_once_end_the_session(self, server, client, alice, database):
        """After a minute: whichever comes first makes the other a second copy."""
        session = alice.sign_in()
        successor = session.refreshed()
        age(database, 61)
        tokens = (session.refresh_token, successor.refresh_token)
        answers = at_once(50, lambda number: refresh(server, tokens[number % 2]))
        codes = [answer.json.get("error_code") for answer in answers]
        assert "refresh_token_already_used" in codes
        assert database.count("audit_log", "action = 'refresh_token_reused'") == 1
        assert_ended(successor.on(client), database)

    def test_replay_among_concurrent_refreshes_ends_the_session(self, server, client, alice, database):
        first = alice.sign_in()
        newest = used_twice(first, database)
        tokens = (newest.refresh_token, first.refresh_token)
        answers = at_once(50, lambda number: refresh(server, tokens[number % 2]))
        codes = [answer.json.get("error_code") for answer in answers]
        assert "refresh_token_already_used" in codes
        assert database.count("audit_log", "action = 'refresh_token_reused'") == 1
        assert set(codes[1::2]) <= {"refresh_token_already_used", "refresh_token_not_found"}
        assert_ended(newest, database)
        for answer in answers[::2]:
            if answer.status_code == 200:
                assert_error(refresh(client, answer.json["refresh_token"]), *UNKNOWN)

    def test_dead_token_waits_for_the_user_without_holding_the_session(self, session, alice, database):
        """Otherwise it would lock itself and a sign-out, which has locked the user."""
        used_twice(session, database)
        with database.locked("users", alice.id) as lock:
            future = lock.start(session.refresh)
            database.run("SELECT FROM sessions FOR UPDATE NOWAIT")
        assert_error(future.result(), *STOLEN)

    def test_no_worker_accepts_tokens_of_an_ended_session(self, server, alice, database):
        session = alice.sign_in()
        # Each worker has seen the tokens and may have cached them.
        answers = at_once(16, lambda _: session.on(server).get("/user"))
        answers += at_once(16, lambda _: session.on(server).refresh())
        assert {answer.status_code for answer in answers} == {200}
        used_twice(session, database)
        session.refresh()
        for answer in at_once(16, lambda _: session.on(server).get("/user")):
            assert_error(answer, 401, "session_not_found")
        for answer in at_once(16, lambda _: session.on(server).refresh()):
            assert_error(answer, *UNKNOWN)
