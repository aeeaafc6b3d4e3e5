"""No act waits for a lock that comes before one which it holds, in the order of sql/acts.py: acts never wait for each
other in a circle.

The rows of one kind are locked for a request, which stops where it needs one. What it holds then must come before.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import connection as Connection

from auth.delivery import janitor
from tests.support.expired import fill as fill_expired
from tests.support.fake_provider import Apple, FakeProvider
from tests.support.openid import insert_client
from tests.support.processes import PATIENT_GUNICORN, wait_until
from tests.support.tables import Rows
from tests.system.faults import (
    console_conversations,
    conversations,
    extension_conversations,
    factor_conversations,
    page_conversations,
)
from tests.system.faults.conversations import Ask, Prepare, Stage

KINDS = {
    "counts": ["failure_counts"],
    "providers": ["identity_providers"],
    "clients": ["oauth_clients"],
    "users": ["users"],
    "administrators": [],
}
# Of no user, or written in a transaction of their own before the act.
OF_NOBODY = ["request_counts", "schema_version", "openid_keys", "key_fingerprints", "last_done"]
ADMINISTRATORS = 7239004121
# Requests that lock nothing.
READ: tuple[str, ...] = (
    "get_",
    "list_",
    "introspect",
    "userinfo",
    "linking_page",
    "authorize",
    "begin_authorization",
    "dev_inbox",
    "oauth_token, client_credentials",
)
# Of an operator, about nobody who signs in.
READ += ("create_webhook", "update_webhook", "delete_webhook", "redeliver_event", "test_webhook")


class Order:
    """Plays a request, which waits for each kind of rows in turn."""

    def __init__(self, rows: Rows, url: str) -> None:
        self._rows, self._url = rows, url
        names = rows.all("SELECT format('%%I', tablename) AS name FROM pg_tables WHERE schemaname = 'public'")
        counted = {*OF_NOBODY, *(table for tables in KINDS.values() for table in tables)}
        self._rest = sorted({row.name for row in names} - counted)

    def violations(self, ask: Ask, kind: str, whole: bool) -> list[str]:
        """Return what the request holds that comes after `kind`, each time that it waits for it.

        With `whole`, tables are locked, again for the request's next transaction; else the rows that are there, once: a
        statement stops only where it needs the row.
        """
        found = []
        with ExitStack() as stack:
            threads = stack.enter_context(ThreadPoolExecutor())
            holders = [stack.enter_context(closing(psycopg2.connect(self._url))) for _ in range(2)]
            self._lock(holders[0], kind, whole)
            asked = threads.submit(ask)
            while self._has_stopped(asked):
                found += self._held_after(kind)
                if not whole:
                    holders[0].rollback()
                    break
                following = threads.submit(self._lock, holders[1], kind, whole)
                wait_until(lambda: self._rows.waiting() == 2)
                holders[0].rollback()
                following.result(timeout=20)
                holders.reverse()
            for holder in holders:
                holder.rollback()
            answer = asked.result(timeout=20)
            assert answer.status_code < 500, answer.get_data(as_text=True)
        return found

    def _has_stopped(self, asked: "Future[Any]") -> bool:
        wait_until(lambda: asked.done() or self._rows.waiting() == 1)
        return not asked.done()

    def _lock(self, holder: Connection, kind: str, whole: bool) -> None:
        tables = KINDS[kind]
        how = "LOCK TABLE {} IN EXCLUSIVE MODE" if whole else "SELECT FROM {} FOR UPDATE"
        statements = [how.format(table) for table in tables] or [
            f"SELECT pg_advisory_xact_lock({ADMINISTRATORS})"
        ]
        with holder.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def _held_after(self, kind: str) -> list[str]:
        """Return the tables of later kinds of which a row is locked: a probe that skips locked rows finds fewer."""
        kinds = list(KINDS)
        tables = [table for later in kinds[kinds.index(kind) + 1 :] for table in KINDS[later]] + self._rest
        probe = "SELECT '{0}' WHERE (SELECT count(*) FROM {0}) <> (SELECT count(*) FROM (SELECT FROM {0} FOR UPDATE SKIP LOCKED) AS free)"
        with closing(psycopg2.connect(self._url)) as connection, connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(probe.format(table) for table in tables))
            held = [f"{table} before {kind}" for (table,) in cursor]
        if kind == "administrators":
            return held
        lock = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint << 32 | objid::bigint = %(lock)s"
        return held + [f"administrators before {kind}" for _ in self._rows.all(lock, lock=ADMINISTRATORS)]


@pytest.fixture(scope="module")
def providers() -> Iterator[tuple[FakeProvider, Apple]]:
    with ExitStack() as stack:
        google, apple = stack.enter_context(FakeProvider("google")), stack.enter_context(Apple())
        for provider in (google, apple):
            provider.person = {"sub": "alice-there", "email": "alice@example.com", "email_verified": True}
        yield google, apple


@pytest.fixture(scope="module")
def served(serve, providers) -> Iterator[Any]:
    settings = {name: value for provider in providers for name, value in provider.settings().items()}
    settings |= dict.fromkeys(
        (
            "ANONYMOUS_ENABLED",
            "PROVIDER_GOOGLE_LINK_BY_EMAIL",
            "OAUTH_DYNAMIC_REGISTRATION",
            "API_KEYS",
            "SSO",
        ),
        "true",
    )
    named = {name if name.startswith("AUTH_") else f"AUTH_{name}": value for name, value in settings.items()}
    with serve(PATIENT_GUNICORN, AUTH_WORKERS="1", **named) as (_, client):
        yield client


@pytest.fixture
def stage(served, database, outbox, providers) -> Stage:
    return Stage(served, database, outbox, *providers)


@pytest.fixture(scope="module")
def order(all_rows, database_url) -> Order:
    return Order(all_rows, database_url)


FLOWS: dict[str, Prepare] = {
    name: prepare
    for requests in (
        *(conversations.REQUESTS, factor_conversations.REQUESTS, page_conversations.REQUESTS),
        *(extension_conversations.REQUESTS, extension_conversations.LONG_REQUESTS),
        console_conversations.REQUESTS,
    )
    for name, prepare in requests.items()
    if not name.startswith(READ)
}


@pytest.mark.parametrize("name", FLOWS)
def test_request_holds_nothing_that_comes_after_what_it_waits_for(stage, order, name):
    found = []
    for kind in KINDS:
        for whole in (True, False) if KINDS[kind] else (True,):
            stage.rows.empty()
            found += order.violations(FLOWS[name](stage), kind, whole)
    assert found == []


@pytest.mark.parametrize("remove", [*janitor.REMOVALS], ids=lambda remove: remove.__name__)
def test_janitor_holds_nothing_that_comes_after_what_it_waits_for(stage, order, parts, remove):
    def ask() -> Any:
        janitor.clean(parts.db, [remove])
        return SimpleNamespace(status_code=200)

    found = []
    for kind in KINDS:
        stage.rows.empty()
        fill_expired(stage.rows, 2)
        found += order.violations(ask, kind, True)
    assert found == []
    # It has waited in vain for none of them: whatever was locked is removed now.
    assert janitor.clean(parts.db, [remove]) == 0


def test_act_that_locks_in_another_order_is_found(stage, order, database_url):
    stage.alice()
    insert_client(stage.rows)

    def ask() -> Any:
        with closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT FROM users FOR UPDATE")
            cursor.execute("SELECT FROM oauth_clients FOR SHARE")
        return SimpleNamespace(status_code=200)

    for whole in (True, False):
        assert order.violations(ask, "clients", whole) == ["users before clients"]
        assert order.violations(ask, "users", whole) == []
