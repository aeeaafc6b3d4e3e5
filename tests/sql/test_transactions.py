"""Transactions of named statements: all of their effects, or none."""

from contextlib import suppress

import psycopg2
import pytest

from sql import Database
from tests.support.cases import cases


@pytest.fixture(params=[True, False], ids=["prepared", "unprepared"])
def db(request, database_url, database):
    opened = Database(database_url, size=1, prepare=request.param, origin=lambda: {"actor": "service"})
    yield opened
    opened.close()


def test_statements_take_effect_together_at_commit(db, database, alice, bob):
    with db.transaction() as tx:
        assert tx.run("delete_user", user_id=alice.id) == 1
        assert tx.one("select_addresses", id=alice.id) is None
        assert [row.answer for row in tx.all("ping")] == [1]
        assert database.count("users") == 2
    assert database.count("users") == 1
    assert db.statements_run == 3


def delete_and(db, alice, what):
    """Delete Alice in a transaction, and call `what` inside it."""
    with db.transaction() as tx:
        tx.run("delete_user", user_id=alice.id)
        what(tx)


def delete_nonsense(tx):
    tx.run("delete_user", user_id="nonsense")


@cases(("what", "error"), [(lambda _: 1 / 0, ZeroDivisionError), (delete_nonsense, psycopg2.DataError)])
def test_exception_rolls_back_and_the_connection_stays_usable(db, database, alice, what, error):
    with pytest.raises(error):
        delete_and(db, alice, what)
    assert db.one("ping").answer == 1
    assert database.count("users") == 1


def test_commit_after_a_swallowed_error_raises(db, database, alice):
    def swallow(tx):
        with suppress(psycopg2.DataError):
            delete_nonsense(tx)

    with pytest.raises(psycopg2.InternalError, match="rolled back"):
        delete_and(db, alice, swallow)
    assert database.count("users") == 1


def test_connection_lost_in_a_transaction_is_replaced(db, database, alice):
    others = "datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()"

    def lose(tx):
        assert (
            database.value(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}")
            == 1
        )
        tx.one("ping")

    with pytest.raises(psycopg2.OperationalError):
        delete_and(db, alice, lose)
    assert db.one("ping").answer == 1
    assert database.count("users") == 1
