"""The storage of request counts in Postgres."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace

import psycopg2
import pytest
from limits.errors import StorageError

import sql
from auth.web import limits
from auth.web.limits import PostgresStorage
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.processes import free_port
from tests.support.server import at_once


@pytest.fixture
def use_database(monkeypatch) -> Callable[[sql.Database], None]:
    """Return a function that lets storages use a database."""
    return lambda db: monkeypatch.setattr(limits, "latchkey", SimpleNamespace(db=db))


@pytest.fixture
def storage(use_database, database, database_url) -> Iterator[PostgresStorage]:
    with closing(sql.Database(database_url, size=8)) as db:
        use_database(db)
        yield PostgresStorage()


@pytest.fixture
def move_window(database) -> Callable[[str, float], None]:
    """Return a function that moves the end of a key's window into the past."""
    statement = "UPDATE request_counts SET expires_at = expires_at - make_interval(secs => %(seconds)s)"
    return lambda key, seconds: database.run(f"{statement} WHERE key = %(key)s", key=key, seconds=seconds)


def in_seconds(seconds):
    return pytest.approx(time.time() + seconds, abs=15)


class TestStorage:
    def test_storage_counts_each_key_separately(self, storage):
        assert storage.check() is True
        assert (storage.get("a"), storage.get_expiry("a")) == (0, in_seconds(0))
        assert [storage.incr("a", 60, amount) for amount in (1, 1, 4, 2)] == [1, 2, 6, 8]
        storage.incr("b", 60, 5)
        assert (storage.get("a"), storage.get("b"), storage.get("A")) == (8, 5, 0)

    def test_concurrent_counts_are_all_counted(self, storage):
        counts = at_once(16, lambda _: [storage.incr("a", 60) for _ in range(10)])
        assert sorted(count for each in counts for count in each) == list(range(1, 161))

    def test_concurrent_counts_at_the_end_of_a_window_start_one_window(self, storage, move_window, database):
        storage.incr("a", 60, 1000)
        move_window("a", 61)
        counts = at_once(8, lambda _: [storage.incr("a", 60) for _ in range(5)])
        assert sorted(count for each in counts for count in each) == list(range(1, 41))
        assert database.count("request_counts") == 1

    def test_clock_is_that_of_the_database(self, storage, monkeypatch):
        storage.incr("a", 60)
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert storage.get_expiry("a") == pytest.approx(60, abs=15)
        assert storage.incr("a", 60) == 2

    def test_failures_are_counted_in_a_logged_table(self, database):
        kinds = database.all(
            "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('request_counts', 'failure_counts')"
        )
        assert dict(kinds) == {"request_counts": "u", "failure_counts": "p"}


@cases("call", [("incr", "a", 60), ("get", "a"), ("get_expiry", "a")])
def test_unreachable_database_raises_an_error_of_the_storage_or_a_wrapped_one(call, use_database):
    name, *arguments = call
    use_database(sql.Database(f"postgresql://postgres@127.0.0.1:{free_port()}/x", size=1))
    storage, wrapping = PostgresStorage(), PostgresStorage(wrap_exceptions=True)
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
