"""An act notifies of its messages after its commit; any other transaction, such as an operator's, in itself."""

import uuid
from contextlib import closing, suppress
from typing import Any

import psycopg2
import pytest

from sql import Database, acts, queries
from sql.pool import BEGIN

INSERT = "INSERT INTO outbox (id, channel, kind, recipient) VALUES (gen_random_uuid(), 'email', 'test', 'a@example.com')"


@pytest.fixture(params=[True, False], ids=["prepared", "unprepared"])
def db(request, database_url, database):
    db = Database(database_url, size=1, prepare=request.param, origin=lambda: {"actor": "service"})
    yield db
    db.close()


@pytest.fixture
def notifications(database_url):
    """Return how many notifications have come since the last call."""
    with closing(psycopg2.connect(database_url)) as listener:
        listener.autocommit = True
        cursor = listener.cursor()
        cursor.execute("LISTEN outbox")

        def count():
            cursor.execute("SELECT 1")
            number = len(listener.notifies)
            listener.notifies.clear()
            return number

        yield count


def write(act):
    message: dict[str, Any] = {"message_id": str(uuid.uuid4()), "kind": "test", "recipient": "a@example.com"}
    message |= dict.fromkeys(("user_id", "message_secret", "token_id"))
    message |= {"message_variables": {}, "lifetime": 60, "longest_delay": 0.0, "is_notice": False}
    act.later(queries.write_message, **message)


def test_act_notifies_of_its_messages_once_it_is_committed(db, database, notifications):
    with acts.begin(db) as act:
        write(act)
        write(act)
        assert queries.ping(act).answer == 1
        assert notifications() == 0
    assert (notifications(), database.count("outbox")) == (1, 2)
    with acts.begin(db) as act:
        queries.ping(act)
    assert notifications() == 0


def test_act_that_is_rolled_back_notifies_of_nothing(db, database, notifications):
    with suppress(ZeroDivisionError), acts.begin(db) as act:
        write(act)
        queries.ping(act)
        1 / 0  # noqa: B018
    assert (notifications(), database.count("outbox")) == (0, 0)


def test_no_notification_is_part_of_the_transaction_of_an_act(database_url, notifications):
    with closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(f"{BEGIN}; {INSERT}; COMMIT")
        assert notifications() == 0
        # The setting ends with the transaction: this one is of a node of the previous release, or an operator.
        cursor.execute(f"BEGIN; {INSERT}; COMMIT")
        assert notifications() == 1
        cursor.execute(INSERT)
        assert notifications() == 1
