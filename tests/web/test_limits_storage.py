"""The storage of request counts in Postgres, used as the limits library tests its own storages."""

import time
from collections.abc import Callable, Iterator

import psycopg2
import pytest
from flask.cli import FlaskGroup
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

import sql
from auth.web.limits import PostgresStorage
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.processes import free_port
from tests.support.server import at_once

PER_MINUTE = RateLimitItemPerMinute(3)


@pytest.fixture
def new_storage(database, database_url) -> Iterator[Callable[[], PostgresStorage]]:
    """Make a storage with its own connections, as another process would."""
    made = []

    def make() -> PostgresStorage:
        made.append(sql.Database(database_url, size=8))
        return PostgresStorage(db=made[-1])

    yield make
    for each in made:
        each.close()


@pytest.fixture
def storage(new_storage) -> PostgresStorage:
    return new_storage()


@pytest.fixture
def limiter(storage) -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(storage)


@pytest.fixture
def age(database) -> Callable[[str, float], None]:
    """Move the end of a key's window."""
    moved = "UPDATE request_counts SET expires_at = expires_at - make_interval(secs => %(seconds)s)"
    return lambda key, seconds: database.run(f"{moved} WHERE key = %(key)s", key=key, seconds=seconds)


def in_seconds(seconds):
    return pytest.approx(time.time() + seconds, abs=15)


class TestStorage:
    def test_incr_counts_each_key_separately(self, storage):
        assert storage.check() is True
        assert (storage.get("a"), storage.get_expiry("a")) == (0, in_seconds(0))
        assert [storage.incr("a", 60, amount) for amount in (1, 1, 4, 2)] == [1, 2, 6, 8]
        storage.incr("b", 60, 5)
        assert (storage.get("a"), storage.get("b"), storage.get("A")) == (8, 5, 0)

    def test_key_may_contain_any_character(self, storage):
        network = "LIMITER/2001:db8::/64/login/30/5/minute"
        for key in (network, "a" * 1000, "a b'\";--", "Größe/漢", "%s %(key)s :key $1"):
            storage.incr(key, 60)
            assert storage.incr(key, 60) == storage.get(key) == 2
            storage.clear(key)
            assert storage.get(key) == 0

    def test_window_starts_with_the_first_count_and_ends(self, storage, age):
        storage.incr("a", 60)
        assert storage.get_expiry("a") == in_seconds(60)
        age("a", 40)
        storage.incr("a", 60)
        assert storage.get_expiry("a") == in_seconds(20)
        age("a", 21)
        assert (storage.get("a"), storage.incr("a", 86_400 * 365)) == (0, 1)
        assert storage.get_expiry("a") == in_seconds(86_400 * 365)

    def test_clear_deletes_one_key_and_reset_all(self, storage):
        for key in "abc":
            storage.incr(key, 60)
        storage.clear("a")
        storage.clear("never there")
        assert [storage.get(key) for key in "abc"] == [0, 1, 1]
        assert storage.reset() == 2
        assert [storage.get(key) for key in "abc"] == [0, 0, 0]

    def test_concurrent_counts_are_all_counted(self, storage):
        counts = at_once(16, lambda _: [storage.incr("a", 60) for _ in range(10)])
        assert sorted(count for each in counts for count in each) == list(range(1, 161))

    def test_concurrent_counts_at_the_end_of_a_window_start_one_window(self, storage, age, database):
        storage.incr("a", 60, 1000)
        age("a", 61)
        counts = at_once(8, lambda _: [storage.incr("a", 60) for _ in range(5)])
        assert sorted(count for each in counts for count in each) == list(range(1, 41))
        assert database.count("request_counts") == 1

    def test_clock_is_that_of_the_database(self, storage, monkeypatch):
        storage.incr("a", 60)
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert storage.get_expiry("a") == pytest.approx(60, abs=15)
        assert storage.incr("a", 60) == 2

    def test_reading_writes_nothing(self, storage, database):
        storage.incr("a", 60)
        before = database.everything()
        storage.get("a")
        storage.get_expiry("a")
        storage.check()
        assert database.everything() == before

    def test_storage_is_found_by_its_scheme(self):
        assert isinstance(storage_from_string("postgresql://"), PostgresStorage)

    def test_failures_are_counted_in_a_logged_table(self, database):
        kinds = database.all(
            "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('request_counts', 'failure_counts')"
        )
        assert dict(kinds) == {"request_counts": "u", "failure_counts": "p"}


class TestFixedWindow:
    """The strategy that we use."""

    def test_strategy_allows_the_limit_again_after_the_window(self, limiter, age):
        assert limiter.get_window_stats(PER_MINUTE, "a").remaining == 3
        for remaining, is_allowed in ((2, True), (1, True), (0, True), (0, False)):
            assert limiter.test(PER_MINUTE, "a") is is_allowed
            assert limiter.hit(PER_MINUTE, "a") is is_allowed
            stats = limiter.get_window_stats(PER_MINUTE, "a")
            assert (stats.remaining, stats.reset_time) == (remaining, in_seconds(60))
        age(PER_MINUTE.key_for("a"), 61)
        assert [limiter.hit(PER_MINUTE, "a") for _ in range(4)] == [True, True, True, False]
        limiter.clear(PER_MINUTE, "a")
        assert limiter.hit(PER_MINUTE, "a")

    def test_processes_share_the_counts_which_survive_them(self, new_storage):
        storages = [new_storage() for _ in range(4)]
        limiters = [FixedWindowRateLimiter(storage) for storage in storages]
        allowed = at_once(16, lambda n: sum(limiters[n % 4].hit(PER_MINUTE, "a") for _ in range(5)))
        assert sum(allowed) == 3
        for storage in storages:
            storage.db.close()
        assert not FixedWindowRateLimiter(new_storage()).hit(PER_MINUTE, "a")

    @pytest.mark.parametrize("strategy", [MovingWindowRateLimiter, SlidingWindowCounterRateLimiter])
    def test_storage_refuses_other_strategies(self, storage, strategy):
        with pytest.raises(NotImplementedError):
            strategy(storage)


@cases("call", [("incr", "a", 60), ("get", "a"), ("get_expiry", "a"), ("clear", "a")])
def test_unreachable_database_raises_an_error_of_the_storage_or_a_wrapped_one(call):
    name, *arguments = call
    absent = sql.Database(f"postgresql://postgres@127.0.0.1:{free_port()}/x", size=1)
    storage, wrapping = (
        PostgresStorage(db=absent),
        PostgresStorage(db=absent, wrap_exceptions=True),
    )
    assert storage.check() is False
    assert storage.base_exceptions is psycopg2.Error
    with pytest.raises(psycopg2.Error):
        getattr(storage, name)(*arguments)
    with pytest.raises(StorageError):
        getattr(wrapping, name)(*arguments)


def test_limited_request_runs_one_statement(make_app):
    app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
    for path, body, status, statements, remaining in (
        ("/token?grant_type=refresh_token", {"refresh_token": "x"}, 400, 0, None),
        ("/login-admin", {}, 400, 1, "29"),
    ):
        before = statements_run()
        response = app.test_client().post(path, json=body)
        assert (response.status_code, statements_run() - before) == (status, statements)
        assert response.headers.get("X-RateLimit-Remaining") == remaining


def test_command_of_the_extension_shows_the_limits(app):
    flask = FlaskGroup(create_app=lambda: app)
    result = app.test_cli_runner().invoke(flask, ["limiter", "limits"])
    assert result.exception is None
    assert "per 5 minute" in result.output
