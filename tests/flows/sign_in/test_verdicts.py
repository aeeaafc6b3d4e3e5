"""A verdict on a password or code is told only once it is recorded, right or wrong."""

from collections import Counter
from contextlib import contextmanager

import psycopg2
import pytest

from tests.support.answers import assert_error
from tests.support.server import at_once
from tests.support.services import HOME, at
from tests.support.users import PASSWORD, WRONG_PASSWORD

LIMITED = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN": "10000 per minute"}


@pytest.fixture
def limited(make_app):
    return make_app(**LIMITED).test_client()


def log_in(client, email, password):
    body = {"email": email, "password": password}
    return client.post("/token?grant_type=password", json=body, **at(HOME))


@contextmanager
def holding(database, statement):
    """Hold the locks of a statement until the end of the block."""
    with psycopg2.connect(database._url) as holder, holder.cursor() as cursor:
        cursor.execute(statement)
        yield
        holder.rollback()


def counts(database):
    return {row.count for row in database.all("SELECT count FROM failure_counts")}


def test_hundred_parallel_guesses_get_ten_wrong_verdicts_and_none_after_them(limited, alice, database):
    for _ in range(4):
        statuses = Counter(at_once(100, lambda _: log_in(limited, alice.email, WRONG_PASSWORD).status_code))
        assert statuses == {401: 10, 429: 90}
        assert {log_in(limited, alice.email, PASSWORD).status_code for _ in range(3)} == {429}
        database.run("DELETE FROM failure_counts")


class TestWhatIsNotRecorded:
    @pytest.mark.parametrize(
        "lock",
        [
            "LOCK TABLE failure_counts IN ACCESS EXCLUSIVE MODE",
            "LOCK TABLE users IN ACCESS EXCLUSIVE MODE",
            "SELECT FROM users FOR UPDATE",
        ],
    )
    def test_lock_refuses_right_and_wrong_alike_and_locks_nobody_out(
        self, make_app, lock_timeout, alice, database, lock
    ):
        lock_timeout("300ms")
        limited = make_app(fresh=True, **LIMITED).test_client()
        with holding(database, lock):
            answers = at_once(12, lambda _: log_in(limited, alice.email, PASSWORD).status_code)
            assert set(answers) == {503}
        assert counts(database) <= {0}
        with holding(database, lock):
            assert log_in(limited, alice.email, WRONG_PASSWORD).status_code == 503
        assert log_in(limited, alice.email, PASSWORD).status_code == 200

    def test_password_that_cannot_be_recorded_is_neither_right_nor_wrong(self, limited, alice, database):
        database.run(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;"
            "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON failure_counts"
            " FOR EACH ROW EXECUTE FUNCTION full_disk()"
        )
        try:
            for password in (PASSWORD, WRONG_PASSWORD) * 7:
                assert_error(log_in(limited, alice.email, password), 503, "service_unavailable")
        finally:
            database.run("DROP TRIGGER full_disk ON failure_counts; DROP FUNCTION full_disk")
        assert database.count("failure_counts") == 0
        assert log_in(limited, alice.email, PASSWORD).status_code == 200
