"""Storages of request counts: tested as the limits library tests its own, and the guarantees of ours."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest
import redis
from flask.cli import FlaskGroup
from limits import RateLimitItemPerDay, RateLimitItemPerHour, RateLimitItemPerMinute, parse
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage, Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

import sql
from auth.web.limits import PostgresStorage
from tests.support.cases import cases
from tests.support.processes import free_port
from tests.support.server import at_once

PER_MINUTE = RateLimitItemPerMinute(3)


class Postgres:
    """Our storage with its own connections. Tests move time in the rows."""

    def __init__(self, database: Any, url: str) -> None:
        self.rows = database
        self._url = url
        self._databases: list[sql.Database] = []

    def new(self) -> PostgresStorage:
        self._databases.append(sql.Database(self._url, size=8))
        return PostgresStorage(database=self._databases[-1])

    def age(self, storage: Storage, key: str, seconds: float) -> None:
        self.rows.run(
            "UPDATE request_counts SET expires_at = expires_at - make_interval(secs => %(seconds)s) WHERE key = %(key)s",
            key=key,
            seconds=seconds,
        )

    def end(self) -> None:
        for database in self._databases:
            database.close()


class Memory:
    """The library's storage in memory."""

    def new(self) -> MemoryStorage:
        return MemoryStorage()

    def age(self, storage: Any, key: str, seconds: float) -> None:
        storage.expirations[key] -= seconds

    def end(self) -> None:
        pass


class RedisServer:
    """The library's storage in Redis."""

    def __init__(self, server: Any) -> None:
        self._server = server
        with server.client() as client:
            client.flushall()

    def new(self) -> RedisStorage:
        return RedisStorage(self._server.url)

    def age(self, storage: Any, key: str, seconds: float) -> None:
        with self._server.client() as client:
            left = client.pttl(storage.prefixed_key(key))
            client.pexpire(storage.prefixed_key(key), int(left - seconds * 1000))

    def end(self) -> None:
        pass


@pytest.fixture(params=["postgresql", "memory", "redis"])
def place(request) -> Iterator[Any]:
    if request.param == "postgresql":
        made: Any = Postgres(request.getfixturevalue("database"), request.getfixturevalue("database_url"))
    else:
        made = Memory() if request.param == "memory" else RedisServer(request.getfixturevalue("redis_server"))
    yield made
    made.end()


@pytest.fixture
def storage(place) -> Storage:
    return place.new()


@pytest.fixture
def limiter(storage) -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(storage)


class TestStorage:
    def test_incr_counts_each_key_separately(self, storage):
        assert storage.get("a") == 0
        assert storage.get_expiry("a") == pytest.approx(time.time(), abs=15)
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

    def test_window_starts_with_the_first_count_and_ends(self, storage, place):
        storage.incr("a", 60)
        assert storage.get_expiry("a") == pytest.approx(time.time() + 60, abs=15)
        place.age(storage, "a", 40)
        storage.incr("a", 60)
        assert storage.get_expiry("a") == pytest.approx(time.time() + 20, abs=15)
        place.age(storage, "a", 21)
        assert storage.get("a") == 0
        assert storage.incr("a", 60) == 1
        assert storage.get_expiry("a") == pytest.approx(time.time() + 60, abs=15)

    def test_window_may_be_long(self, storage):
        storage.incr("a", 86_400 * 365)
        assert storage.get_expiry("a") == pytest.approx(time.time() + 86_400 * 365, abs=15)

    def test_clear_deletes_one_key(self, storage):
        storage.incr("a", 60)
        storage.incr("b", 60)
        storage.clear("a")
        storage.clear("never there")
        assert (storage.get("a"), storage.get("b")) == (0, 1)
        assert storage.incr("a", 60) == 1

    def test_reset_deletes_all_keys(self, storage, limiter):
        for amount in range(1, 11):
            limiter.hit(RateLimitItemPerMinute(amount))
        # The library's storage in memory returns no number.
        assert storage.reset() in (10, None)
        assert limiter.get_window_stats(RateLimitItemPerMinute(10)).remaining == 10

    def test_check_succeeds(self, storage):
        assert storage.check() is True

    def test_concurrent_counts_are_all_counted(self, storage):
        counts = at_once(16, lambda _: [storage.incr("a", 60) for _ in range(10)])
        assert sorted(count for each in counts for count in each) == list(range(1, 161))
        assert storage.get("a") == 160


class TestFixedWindow:
    """The strategy that we use, with each storage."""

    def test_strategy_allows_the_limit_again_after_the_window(self, limiter, storage, place):
        assert [limiter.hit(PER_MINUTE, "a") for _ in range(5)] == [True, True, True, False, False]
        place.age(storage, PER_MINUTE.key_for("a"), 40)
        assert not limiter.hit(PER_MINUTE, "a")
        place.age(storage, PER_MINUTE.key_for("a"), 21)
        assert [limiter.hit(PER_MINUTE, "a") for _ in range(4)] == [True, True, True, False]

    def test_strategy_returns_the_remaining_requests_and_the_reset_time(self, limiter):
        assert limiter.get_window_stats(PER_MINUTE, "a").remaining == 3
        for remaining in (2, 1, 0, 0):
            limiter.hit(PER_MINUTE, "a")
            stats = limiter.get_window_stats(PER_MINUTE, "a")
            assert stats.remaining == remaining
            assert stats.reset_time == pytest.approx(time.time() + 60, abs=15)

    def test_test_does_not_count(self, limiter):
        for allowed in (True, True, True, False):
            assert limiter.test(PER_MINUTE, "a") is allowed
            assert limiter.test(PER_MINUTE, "a") is allowed
            assert limiter.hit(PER_MINUTE, "a") is allowed

    def test_cost_counts_as_several(self, limiter):
        assert limiter.hit(PER_MINUTE, "a", cost=2)
        assert not limiter.test(PER_MINUTE, "a", cost=2)
        assert not limiter.hit(PER_MINUTE, "a", cost=2)
        assert not limiter.hit(PER_MINUTE, "b", cost=4)

    def test_clear_allows_again(self, limiter):
        once = RateLimitItemPerMinute(1)
        assert [limiter.hit(once, "a"), limiter.hit(once, "a"), limiter.hit(once, "b")] == [True, False, True]
        limiter.clear(once, "a")
        assert [limiter.hit(once, "a"), limiter.hit(once, "b")] == [True, False]

    def test_limits_and_identifiers_count_separately(self, limiter):
        periods = (RateLimitItemPerMinute(1), RateLimitItemPerHour(1), RateLimitItemPerDay(1))
        for item in (*periods, RateLimitItemPerMinute(1, 5), parse("2 per minute")):
            for identifiers in (("a",), ("b",), ("a", "b"), ("a b",)):
                assert limiter.hit(item, *identifiers)

    def test_concurrent_hits_do_not_exceed_the_limit(self, limiter):
        hundred = RateLimitItemPerMinute(100)
        allowed = at_once(16, lambda _: sum(limiter.hit(hundred, "a") for _ in range(20)))
        assert sum(allowed) == 100


class TestPostgresStorage:
    """The storage in Postgres has one count for all processes, which survives them."""

    @pytest.fixture
    def place(self, database, database_url) -> Iterator[Postgres]:
        place = Postgres(database, database_url)
        yield place
        place.end()

    def test_storage_is_found_by_its_scheme(self):
        assert isinstance(storage_from_string("postgresql://"), PostgresStorage)

    @pytest.mark.parametrize("strategy", [MovingWindowRateLimiter, SlidingWindowCounterRateLimiter])
    def test_storage_refuses_other_strategies(self, storage, strategy):
        with pytest.raises(NotImplementedError):
            strategy(storage)

    def test_processes_share_the_counts_which_survive_them(self, place):
        limiters = [FixedWindowRateLimiter(place.new()) for _ in range(4)]
        allowed = at_once(16, lambda n: sum(limiters[n % 4].hit(PER_MINUTE, "a") for _ in range(5)))
        assert sum(allowed) == 3
        place.end()
        assert not FixedWindowRateLimiter(place.new()).hit(PER_MINUTE, "a")

    def test_concurrent_counts_at_the_end_of_a_window_start_one_window(self, storage, place):
        storage.incr("a", 60, 1000)
        place.age(storage, "a", 61)
        counts = at_once(8, lambda _: [storage.incr("a", 60) for _ in range(5)])
        assert sorted(count for each in counts for count in each) == list(range(1, 41))
        assert place.rows.count("request_counts") == 1

    def test_clock_is_that_of_the_database(self, storage, database, monkeypatch):
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

    def test_limited_request_runs_one_statement(self, make_app):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true")
        run = app.extensions["latchkey"].db
        before = run.statements_run
        response = app.test_client().post("/token?grant_type=refresh_token", json={"refresh_token": "x"})
        assert (response.status_code, run.statements_run - before) == (400, 0)
        before = run.statements_run
        response = app.test_client().post("/login-admin", json={})
        assert (response.headers["X-RateLimit-Remaining"], run.statements_run - before) == ("29", 1)

    def test_failures_are_counted_in_a_logged_table(self, database):
        kinds = dict(
            database.all(
                "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('request_counts', 'failure_counts')"
            )
        )
        assert kinds == {"request_counts": "u", "failure_counts": "p"}


class TestUnreachableServer:
    """A storage that is unreachable raises its `base_exceptions`, or wraps them."""

    @pytest.fixture(params=["postgresql", "redis"])
    def absent(self, request) -> Any:
        port = free_port()
        if request.param == "redis":
            return lambda **options: RedisStorage(f"redis://127.0.0.1:{port}", retry=None, **options)  # type: ignore[arg-type]
        return lambda **options: PostgresStorage(
            database=sql.Database(f"postgresql://postgres@127.0.0.1:{port}/x", size=1), **options
        )

    def test_check_fails(self, absent):
        assert absent().check() is False

    @cases("call", [("incr", "a", 60), ("get", "a"), ("get_expiry", "a"), ("clear", "a")])
    def test_errors_are_of_the_storage_or_wrapped(self, absent, call):
        name, *arguments = call
        storage = absent()
        assert issubclass(storage.base_exceptions, psycopg2.Error | redis.RedisError)
        with pytest.raises(storage.base_exceptions):
            getattr(storage, name)(*arguments)
        with pytest.raises(StorageError):
            getattr(absent(wrap_exceptions=True), name)(*arguments)


@pytest.mark.parametrize("arguments", [["config"], ["limits"]], ids=" ".join)
def test_command_of_the_extension_shows_the_limits(app, arguments):
    flask = FlaskGroup(create_app=lambda: app)
    result = app.test_cli_runner().invoke(flask, ["limiter", *arguments])
    assert result.exception is None
    assert "per 5 minute" in result.output or "PostgresStorage" in result.output
