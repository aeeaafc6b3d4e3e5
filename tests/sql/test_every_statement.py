"""Rules of all statements."""

import contextlib
import re

import psycopg2
import pytest
from psycopg2.extras import NamedTupleCursor

from auth.core import settings
from auth.rules.levels import Level
from auth.rules.tokens import refusal_of_session
from auth.web import callers
from auth.web.context import policy_of
from tests.source.test_structure import STATEMENTS

PLANNED = "SELECT name, custom_plans FROM pg_prepared_statements"


@pytest.mark.parametrize(
    "statement",
    [statement for statement in STATEMENTS.values() if "caller_id" in statement.parameters],
    ids=lambda statement: statement.name,
)
def test_read_for_a_caller_returns_the_facts_that_refuse_it(statement, alice, bob, database, database_url):
    """A statement reads the caller and this session alone, and no session of another user."""
    own_session, foreign_session = alice.open_session(), bob.open_session()
    database.run("UPDATE users SET banned_until = now() + interval '1 hour' WHERE id = %(id)s", id=bob.id)
    values = dict.fromkeys(statement.parameters) | {"caller_id": alice.id, "refresh_token_lifetime": 3600}
    with contextlib.closing(psycopg2.connect(database_url)) as connection:
        cursor = connection.cursor(cursor_factory=NamedTupleCursor)
        for session, refusal in ((own_session, "insufficient_aal"), (foreign_session, "session_not_found")):
            cursor.execute(statement.direct, values | {"caller_session_id": session.id})
            assert [_refusal(row) for row in cursor] == [refusal]


@pytest.mark.parametrize(
    "statement",
    [statement for statement in STATEMENTS.values() if "with_organizations" in statement.parameters],
    ids=lambda statement: statement.name,
)
def test_plan_of_a_statement_prepared_with_organizations_off_has_no_part_for_them(statement, database_url):
    with contextlib.closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
        # A plan with the values of one execution would leave out what these do not need.
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        cursor.execute(statement.prepare({"with_organizations"}), {"with_organizations": False})
        cursor.execute(
            f"EXPLAIN {statement.execute({'with_organizations'})}", dict.fromkeys(statement.parameters)
        )
        plan = "\n".join(line for (line,) in cursor)
    assert re.search(r" on (users|oauth_requests) ", plan)
    # Postgres leaves this filter of a part whose condition is false.
    assert (
        re.findall(r" on (?:memberships|organizations|identity_providers) |One-Time Filter: false", plan)
        == []
    )


def test_lock_of_users_is_not_planned_at_each_execution(parts, alice):
    """Postgres keeps a plan after five executions, unless it takes plans with the values for much cheaper."""
    # This is the mode of a service; the Postgres of the tests keeps every plan. The pool lends this connection to each request.
    _run(parts, "SET plan_cache_mode = auto")
    before = dict(_run(parts, PLANNED))
    session = alice.sign_in()
    for _ in range(8):
        assert session.put("/user", json={"data": {"name": "Alice"}}).status_code == 200
    after = dict(_run(parts, f"RESET plan_cache_mode; {PLANNED}"))
    assert after["lock_users"] - before.get("lock_users", 0) <= 5


def _run(parts, text):
    with parts.db.pool.connection() as connection, connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []


def _refusal(row):
    policy = policy_of(settings.load("/dev/null", missing_secrets="ignore"))
    return refusal_of_session(row, callers.session_of(row), None, "aal1", Level.SECOND_FACTOR, policy)
