"""Facts with two homes: about random rows, SQL says for sets what auth/rules says of one row. `RULE_SEEDS=400` compares
more rows.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random, SystemRandom
from typing import Any

import psycopg2
import pytest
from psycopg2.extras import NamedTupleCursor

from auth.rules import clients, links, sessions, tokens, users
from tests.rules.facts import DAY, HOUR, MINUTE, POLICY, Link

SEEDS = [1, *(SystemRandom().randrange(2, 1 << 32) for _ in range(int(os.environ.get("RULE_SEEDS", "1"))))]
CASES = 500
ZERO = timedelta(0)
_JITTER = (timedelta(0), timedelta(0), timedelta(microseconds=1), timedelta(microseconds=-1))
ROLES: tuple[dict[str, object], ...] = (
    {},
    {"roles": ["staff"]},
    {"roles": "staff"},
    {"roles": {"staff": True}},
    {"roles": [1, "admin"]},
)


class Tables:
    """The tables in one transaction, which is rolled back."""

    def __init__(self, cursor: Any, seed: int) -> None:
        self._cursor = cursor
        self.seed = seed
        self.random = Random(seed)
        self.now: datetime = self.all("SELECT now()")[0].now
        # Triggers write copies of user objects, which no rule reads.
        self._cursor.execute("ALTER TABLE users DISABLE TRIGGER USER")

    def all(self, statement: str, **parameters: Any) -> list[Any]:
        self._cursor.execute(statement, parameters)
        return self._cursor.fetchall()

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        names = ", ".join(sorted({name for row in rows for name in row}))
        self._cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %s)",
            [json.dumps(rows, default=datetime.isoformat)],
        )

    def id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def ago(self, *ages: timedelta) -> datetime:
        """Return a moment of one of these ages, or a microsecond beside it."""
        return self.now - self.one_of(*ages) - self.one_of(*_JITTER)

    def insert_users(self) -> list[str]:
        origins = ("signup", "signup", "message", "administrator", "anonymous", "anonymous")
        rows = [
            {
                "id": self.id(),
                "role": self.one_of("authenticated", "admin", "staff"),
                "made_by": self.one_of(*origins),
                "converted_at": self.one_of(None, self.ago(HOUR, DAY)),
                "banned_until": self.one_of(None, None, self.ago(ZERO, -HOUR)),
                "created_at": self.now,
                "email_confirmed_at": self.one_of(None, None, self.now),
                "phone_confirmed_at": self.one_of(None, None, self.now),
                "last_sign_in_at": self.one_of(None, None, self.now),
                "password_vouched": self.one_of(None, False, True),
                "app_metadata": self.one_of(*ROLES),
            }
            for _ in range(CASES)
        ]
        self.insert("users", rows)
        return [each["id"] for each in rows]


@pytest.fixture(scope="module")
def _space(all_rows):
    """Rows that were rolled back take space, which scans of later tests would read."""
    yield
    all_rows.truncate()


@pytest.fixture(params=SEEDS, ids=("fixed", *(f"random-{place}" for place in range(1, len(SEEDS)))))
def tables(request, _space, database, database_url) -> Iterator[Tables]:
    with closing(psycopg2.connect(database_url, options="-c timezone=UTC")) as connection:
        yield Tables(connection.cursor(cursor_factory=NamedTupleCursor), request.param)
        connection.rollback()


def check(tables: Tables, rows: Sequence[Any], decide: Callable[[Any], object]) -> None:
    """Fail with each row of which Python says otherwise than its column `answer`."""
    differences = [(decision, row) for row in rows if (decision := decide(row)) != row.answer]
    assert differences == [], f"seed {tables.seed}"
    assert len({str(row.answer) for row in rows}) > 1


def test_user_is_anonymous_banned_invited_or_gives_way(tables):
    tables.insert_users()
    rows = tables.all(
        """SELECT u.*, now(), u.password_vouched IS TRUE AS is_password_vouched,
                  ARRAY[is_anonymous(u), is_banned(u), gives_way(u), has_open_invitation(u)] AS answer
             FROM users AS u"""
    )

    def decide(row: Any) -> list[bool]:
        decided = [users.is_anonymous(row), users.is_banned(row), users.gives_way(row)]
        return [*decided, users.has_open_invitation(row)]

    check(tables, rows, decide)


@pytest.mark.parametrize("timebox", [None, DAY], ids=["no timebox", "timebox"])
def test_session_is_live(tables, timebox):
    policy = replace(POLICY, session_timebox=timebox)
    tables.insert(
        "sessions",
        [
            {
                "id": tables.id(),
                "user_id": owner,
                "method": tables.one_of("password", "anonymous"),
                "aal": "aal1",
                "created_at": tables.ago(HOUR, DAY),
                "refreshed_at": tables.ago(MINUTE, 30 * DAY),
                "ended_at": ended_at,
                "end_reason": ended_at and "logout",
            }
            for owner in tables.insert_users()
            for ended_at in [tables.one_of(None, None, tables.now)]
        ],
    )
    seconds = {"lifetime": 30 * DAY, "timebox": timebox}
    rows = tables.all(
        """SELECT s.*, now(), s.created_at AS session_created_at, u.converted_at,
                  is_live(s, %(lifetime)s, %(timebox)s) AS answer
             FROM sessions AS s JOIN users AS u ON u.id = s.user_id""",
        **{name: age and int(age.total_seconds()) for name, age in seconds.items()},
    )
    check(tables, rows, lambda row: sessions.end_of_session(row, row, policy) is None)


def test_session_was_authenticated_at(tables):
    owner = tables.insert_users()[0]
    sessions_of_owner = [
        {
            "id": tables.id(),
            "user_id": owner,
            "method": tables.one_of("password", "otp", "oauth", "webauthn", "anonymous", "sign_up"),
            "created_at": tables.ago(HOUR, DAY),
            "reauthenticated_at": tables.one_of(None, tables.ago(MINUTE, HOUR, 2 * DAY)),
            "opened_by": tables.one_of(None, None, tables.id()),
        }
        for _ in range(CASES)
    ]
    rows = tables.all(
        "SELECT s.*, s.created_at AS session_created_at, authenticated_at(s) AS answer"
        "  FROM jsonb_populate_recordset(NULL::sessions, %(sessions)s) AS s",
        sessions=json.dumps(sessions_of_owner, default=datetime.isoformat),
    )
    check(tables, rows, sessions.authenticated_at)


def test_api_key_is_live(tables):
    keys = [
        {"id": tables.id(), "expires_at": tables.one_of(None, tables.ago(ZERO, -HOUR))} for _ in range(CASES)
    ]
    rows = tables.all(
        "SELECT k.*, is_live(k) AS answer FROM jsonb_populate_recordset(NULL::api_keys, %(keys)s) AS k",
        keys=json.dumps(keys, default=datetime.isoformat),
    )
    check(tables, rows, lambda row: tokens.end_of_key(row, tables.now) is None)


def test_user_may_use_a_client(tables):
    organizations = [tables.id() for _ in range(3)]
    ended_organization = tables.one_of(*organizations)
    tables.insert(
        "organizations",
        [
            {"id": id, "slug": f"o{place}", "name": "O", "app_metadata": {}, "level": "aal1",
             "created_at": tables.now, "updated_at": tables.now,
             "ended_at": tables.now if id == ended_organization else None}
            for place, id in enumerate(organizations)
        ],
    )  # fmt: skip
    memberships = {
        owner: {id for id in organizations if tables.one_of(False, True)} for owner in tables.insert_users()
    }
    tables.insert(
        "memberships",
        [
            {"user_id": owner, "organization_id": id, "role": "member", "added_by": "founder",
             "created_at": tables.now, "updated_at": tables.now}
            for owner, ids in memberships.items()
            for id in ids
        ],
    )  # fmt: skip
    client_rows = [
        {
            "allowed_roles": tables.one_of([], ["admin"], ["staff", "another"]),
            "resources": tables.one_of([], *([f"https://api.example.com{rest}"] for rest in ("", "/", "?x"))),
            "is_dynamic": tables.one_of(False, True),
            "is_blocked": is_blocked or admits_members,
            "admits_members": admits_members and not is_blocked,
            "organization_id": tables.one_of(*organizations) if admits_members else None,
        }
        for is_blocked, admits_members in (
            (tables.one_of(False, False, True), tables.one_of(False, True)) for _ in range(20)
        )
    ]
    rows = tables.all(
        """SELECT u.*, c.allowed_roles, c.resources, c.is_dynamic, refuses_all(c) AS is_blocked, r.resource,
                  array_remove(ARRAY[c.organization_id, o.id], NULL)::text[] AS organizations,
                  admits(c, u, r.resource, o.id) AS answer
             FROM users AS u, jsonb_populate_recordset(NULL::oauth_clients, %(clients)s) AS c,
                  (VALUES (NULL), ('https://api.example.com'), ('https://api.example.com/'),
                          ('https://api.example.com/?x'), ('https://other.example.com')) AS r (resource),
                  (VALUES (NULL), (%(organization)s)) AS chosen (text),
                  LATERAL (SELECT chosen.text::uuid) AS o (id)""",
        clients=json.dumps(client_rows),
        organization=organizations[0],
    )

    def decide(row: Any) -> bool:
        names = ("allowed_roles", "resources", "organizations")
        sets = {name: frozenset(getattr(row, name)) for name in names}
        client = clients.Client(**sets, is_dynamic=row.is_dynamic, is_blocked=row.is_blocked)
        return clients.may_use(row, client, row.resource, memberships[row.id] - {ended_organization})

    check(tables, rows, decide)


def test_link_is_good(tables):
    tables.insert(
        "one_time_tokens",
        [
            {
                "id": tables.id(),
                "user_id": owner,
                "purpose": tables.one_of("signup", "recovery", "undo"),
                "target": owner,
                "created_at": tables.now - timedelta(seconds=60 * place + tables.random.randrange(300)),
                "expires_at": tables.ago(ZERO, -HOUR, -HOUR),
                "spent_at": tables.one_of(None, None, None, tables.now),
                "user_metadata": tables.one_of(None, None, {}),
                "tries": 0,
            }
            for owner in tables.insert_users()[: CASES // 5]
            for place in range(tables.one_of(1, 4, 8))
        ],
    )
    rows = tables.all("SELECT t.*, is_good_link(t) AS answer FROM one_time_tokens AS t")

    def decide(row: Any) -> bool:
        newer = [
            each
            for each in rows
            if (each.user_id, each.purpose, each.user_metadata) == (row.user_id, row.purpose, None)
            and each.created_at > row.created_at
        ]
        link = Link(
            now=tables.now,
            purpose=row.purpose,
            created_at=row.created_at,
            expires_at=row.expires_at,
            spent_at=row.spent_at,
            is_of_sign_up=row.user_metadata is not None,
            newer=len(newer),
        )
        return links.is_good_link(link)

    check(tables, rows, decide)
