"""Acts lock first, in one order, and read their facts after that."""

import uuid

import pytest

from auth.rules.counts import Limit
from auth.web.errors import found
from sql import Database, acts, queries
from sql.pool import NotInTime
from tests.support.cases import cases


@pytest.fixture
def db(database_url, database):
    db = Database(database_url, size=3, origin=lambda: {"actor": "service"})
    yield db
    db.close()


def record(act):
    limit = Limit(kind="totp", subject=str(uuid.uuid4()), network="192.0.2.1", amount=5, seconds=60)
    return act.record_verdict([limit], is_right=False)


@cases(
    ("first", "second"),
    [
        (lambda act: act.lock_users([]), record),
        (lambda act: act.lock_users([]), lambda act: act.lock_users([])),
        (lambda act: act.lock_users([]), lambda act: act.share_client(None)),
        (lambda act: act.share_client(None), lambda act: act.share_provider(None)),
        (lambda act: act.lock_administrators(), lambda act: act.lock_users([])),
    ],
)
def test_act_cannot_lock_out_of_order(db, first, second):
    with acts.begin(db) as act:
        first(act)
        with pytest.raises(RuntimeError, match="in the order of"):
            second(act)


@cases(("is_dropped", "error"), [(False, RuntimeError), (True, LookupError)])
def test_refusal_after_a_verdict_is_a_programming_error_unless_nobody_may_learn_it(
    db, database, is_dropped, error
):
    def refuse():
        with acts.begin(db) as act:
            record(act)
            if is_dropped:
                act.drop_verdict()
            raise LookupError

    with pytest.raises(error):
        refuse()
    assert database.count("failure_counts") == 0


def test_facts_are_those_that_the_previous_holder_of_the_lock_wrote(db, database, alice):
    def read():
        with acts.on(db, alice.id) as act:
            person = found(
                act.read(queries.select_person, user_id=alice.id, session_id=None), "user_not_found"
            )
            assert act.acted_at == person.now
            return person

    with database.locked("users", alice.id, "UPDATE users SET role = 'editor' WHERE id = %s") as change:
        future = change.start(read)
        before_commit = database.now()
    person = future.result()
    assert person.role == "editor"
    assert person.now > before_commit


def test_act_begins_again_when_what_was_looked_up_gets_another_owner(db, alice, bob):
    owners = iter([[alice.id], [bob.id], [bob.id], [bob.id]])
    with acts.on_found(db, lambda _: next(owners)) as (act, ids):
        assert ids == [bob.id]
        assert queries.select_addresses(act, id=bob.id) is not None


def test_act_gives_up_when_the_owner_has_changed_three_times(db, alice, bob):
    owners = iter([[alice.id], [bob.id]] * 3)
    with pytest.raises(NotInTime), acts.on_found(db, lambda _: next(owners)):
        pass
    assert next(owners, None) is None


def test_statement_of_an_act_does_not_run_without_one(db):
    with pytest.raises(RuntimeError, match="writes for an act"):
        queries.delete_user(db, user_id=None, because=None)


def lock(parts, session):
    return acts.refresh(parts.db, queries.lock_session, session_id=session.id, ip=None, user_agent=None)


def test_refresh_commits_asynchronously_and_cannot_contain_another_act(parts, session):
    with lock(parts, session) as (tx, _row):
        with tx._lend() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("off",)
        with pytest.raises(RuntimeError, match="within another one"), acts.begin(parts.db):
            pass


def test_refresh_reads_the_session_as_the_previous_holder_of_the_lock_wrote_it(parts, database, session):
    def read():
        with lock(parts, session) as (_, row):
            return row

    with database.locked("sessions", session.id, "UPDATE sessions SET counter = 7 WHERE id = %s") as change:
        future = change.start(read)
        before_commit = database.now()
    row = future.result()
    assert row.counter == 7
    assert row.now > before_commit
