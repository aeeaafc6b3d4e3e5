"""Transactions of named statements: all of their effects, or none."""

from contextlib import suppress

import psycopg2
import pytest

from auth.web.errors import found
from sql import Database, queries
from tests.support.cases import cases
from tests.support.checked_rows import statements_run


@pytest.fixture(params=[True, False], ids=["prepared", "unprepared"])
def db(request, database_url, database):
    db = Database(database_url, size=1, prepare=request.param, origin=lambda: {"actor": "service"})
    yield db
    db.close()


def ban(tx, user_id):
    return queries.set_ban(tx, id=user_id, banned_until="infinity")


def count_banned(database):
    return database.value("SELECT count(*) FROM users WHERE banned_until IS NOT NULL")


def ban_nonsense(tx, _database):
    ban(tx, "nonsense")


def swallow_an_error(tx, database):
    with suppress(psycopg2.DataError):
        ban_nonsense(tx, database)


def lose_the_connection(tx, database):
    others = "datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()"
    statement = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}"
    assert database.value(statement) == 1
    queries.ping(tx)


def test_transaction_begins_with_its_first_statement_and_commits_with_effects_that_are_held(
    db, database, alice
):
    before = statements_run()
    with db.transaction() as tx:
        assert queries.find_holder(tx, address=alice.email).id == alice.id
        tx.later(queries.record_done, task="first")
        tx.later(queries.record_done, task="second")
    assert database.count("last_done") == 2
    assert statements_run() - before == 2
    assert queries.ping(db).answer == 1


def test_effect_that_is_held_is_seen_by_the_next_statement(db, database, alice):
    before = statements_run()
    with db.transaction() as tx:
        tx.later(ban, alice.id)
        assert found(queries.select_person(tx, user_id=alice.id, session_id=None), "").banned_until
    assert count_banned(database) == 1
    assert statements_run() - before == 1


def test_transaction_without_a_statement_sends_nothing(db):
    before = statements_run()
    with db.transaction():
        pass
    assert statements_run() - before == 0
    with db.transaction() as tx:
        tx.later(queries.record_done, task="task")
    assert statements_run() - before == 1


def test_first_statement_that_the_connection_has_lost_is_prepared_again(db, database, alice):
    for _ in range(2):
        with db.transaction() as tx:
            tx.later(queries.record_done, task="task")
            assert queries.find_holder(tx, address=alice.email).id == alice.id
        with db.pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
    assert database.count("last_done") == 1


@cases(
    ("break_transaction", "error", "message"),
    [
        (lambda *_: 1 / 0, ZeroDivisionError, "by zero"),
        (ban_nonsense, psycopg2.DataError, "nonsense"),
        (swallow_an_error, psycopg2.InternalError, "rolled back"),
        (lose_the_connection, psycopg2.OperationalError, "connection"),
        (lambda tx, _: tx.later(ban, "nonsense"), psycopg2.DataError, "nonsense"),
    ],
)
def test_effects_that_are_held_are_rolled_back_with_their_transaction(
    db, database, alice, break_transaction, error, message
):
    def fail():
        with db.transaction() as tx:
            ban(tx, alice.id)
            tx.later(queries.record_done, task="task")
            break_transaction(tx, database)

    with pytest.raises(error, match=message):
        fail()
    assert queries.ping(db).answer == 1
    assert (count_banned(database), database.count("last_done")) == (0, 0)
