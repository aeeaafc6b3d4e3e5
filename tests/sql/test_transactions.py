"""Transactions of named statements: all of their effects, or none."""

from contextlib import suppress

import psycopg2
import pytest

from sql import Database, queries
from tests.support.cases import cases
from tests.support.checked_rows import statements_run


@pytest.fixture(params=[True, False], ids=["prepared", "unprepared"])
def db(request, database_url, database):
    opened = Database(database_url, size=1, prepare=request.param, origin=lambda: {"actor": "service"})
    yield opened
    opened.close()


def test_statements_take_effect_together_at_commit(db, database, alice, bob):
    run = statements_run()
    with db.transaction() as tx:
        queries.delete_user(tx, user_id=alice.id)
        assert queries.select_addresses(tx, id=alice.id) is None
        assert queries.ping(tx).answer == 1
        assert database.count("users") == 2
    assert database.count("users") == 1
    assert statements_run() - run == 3


def delete_nonsense(tx, database):
    queries.delete_user(tx, user_id="nonsense")


def swallow_an_error(tx, database):
    with suppress(psycopg2.DataError):
        delete_nonsense(tx, database)


def lose_the_connection(tx, database):
    others = "datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()"
    ended = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}"
    assert database.value(ended) == 1
    queries.ping(tx)


@cases(
    ("what", "error", "message"),
    [
        (lambda *_: 1 / 0, ZeroDivisionError, "by zero"),
        (delete_nonsense, psycopg2.DataError, "nonsense"),
        # The commit raises.
        (swallow_an_error, psycopg2.InternalError, "rolled back"),
        (lose_the_connection, psycopg2.OperationalError, "connection"),
    ],
)
def test_failed_transaction_is_rolled_back_and_leaves_the_pool_usable(
    db, database, alice, what, error, message
):
    def fail():
        with db.transaction() as tx:
            queries.delete_user(tx, user_id=alice.id)
            what(tx, database)

    with pytest.raises(error, match=message):
        fail()
    assert queries.ping(db).answer == 1
    assert database.count("users") == 1


def begin(tx, alice):
    return tx.begin_with(queries.select_addresses, id=alice.id)


def test_short_transaction_takes_one_round_trip_for_each_statement(db, database, alice):
    run = statements_run()
    with db.short_transaction("SET LOCAL synchronous_commit = off") as tx:
        assert begin(tx, alice).email == alice.email
        tx.commit_with(queries.record_done, task="task")
    assert database.count("last_done") == 1
    assert statements_run() - run == 2
    assert queries.ping(db).answer == 1


def test_short_transaction_is_rolled_back_without_its_last_statement(db, database, alice):
    with db.short_transaction("SET LOCAL synchronous_commit = off") as tx:
        begin(tx, alice)
        queries.delete_user(tx, user_id=alice.id)
    assert database.count("users") == 1
    assert queries.ping(db).answer == 1


def test_first_statement_that_the_connection_has_lost_is_prepared_again(db, database, alice):
    for _ in range(2):
        with db.short_transaction("SET LOCAL synchronous_commit = off") as tx:
            assert begin(tx, alice).email == alice.email
            tx.commit_with(queries.record_done, task="task")
        with db.pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
    assert database.count("last_done") == 1


@cases(
    ("what", "error", "message"),
    [
        (lambda *_: 1 / 0, ZeroDivisionError, "by zero"),
        (delete_nonsense, psycopg2.DataError, "nonsense"),
        (swallow_an_error, psycopg2.InternalError, "aborted"),
        (lose_the_connection, psycopg2.OperationalError, "connection"),
    ],
)
def test_failed_short_transaction_is_rolled_back_and_leaves_the_pool_usable(
    db, database, alice, what, error, message
):
    def fail():
        with db.short_transaction("SET LOCAL synchronous_commit = off") as tx:
            begin(tx, alice)
            what(tx, database)
            tx.commit_with(queries.record_done, task="task")

    with pytest.raises(error, match=message):
        fail()
    assert queries.ping(db).answer == 1
    assert (database.count("users"), database.count("last_done")) == (1, 0)
