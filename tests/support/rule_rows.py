"""Random rows, which SQL and auth/rules decide about, with the facts that are read of them."""

import functools
import importlib.util
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from importlib.abc import InspectLoader
from pathlib import Path
from random import Random, SystemRandom
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import psycopg2
from psycopg2.extras import NamedTupleCursor

from auth.rules.clients import Client
from auth.rules.policy import Policy, Window

# Of most comparisons with the fixed seed, which has to notice mutants, and a quarter with each random one.
CASES = 1000
# RULE_SEEDS=400 compares a hundred thousand random cases.
FIXED_SEED = 1
RANDOM_SEEDS = [SystemRandom().randrange(2, 1 << 32) for _ in range(int(os.environ.get("RULE_SEEDS", "1")))]
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# The limits of all rules. Rows are exactly as old as one, or differ by a microsecond.
EDGES = (5 * MINUTE, 10 * MINUTE, 15 * MINUTE, HOUR, DAY, 7 * DAY, 30 * DAY)
_JITTER = (timedelta(0), timedelta(0), timedelta(microseconds=1), timedelta(microseconds=-1))


class Tables:
    """The tables in one transaction, which is rolled back. Its `now` is that of each statement."""

    def __init__(self, cursor: Any, seed: int) -> None:
        self._cursor = cursor
        self.random = Random(seed)
        self.seed = seed
        self.cases = CASES if seed == FIXED_SEED else CASES // 4
        self.now: datetime = self.all("SELECT now()")[0].now
        # Triggers write copies of user objects, which no rule reads.
        self.run("ALTER TABLE users DISABLE TRIGGER USER; ALTER TABLE identities DISABLE TRIGGER USER;")
        self.run("ALTER TABLE factors DISABLE TRIGGER USER; SET LOCAL enable_seqscan = off")

    def run(self, statement: str, **parameters: Any) -> None:
        self._cursor.execute(statement, parameters)

    def all(self, statement: str, **parameters: Any) -> list[Any]:
        self._cursor.execute(statement, parameters)
        return self._cursor.fetchall()

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        names = ", ".join(sorted({name for row in rows for name in row}))
        self.run(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %(rows)s)",
            rows=json.dumps(rows, default=_as_text),
        )

    def id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def ago(self, *ages: timedelta) -> datetime:
        """Return a moment of one of these ages, or at an edge of it; without ages, of any edge."""
        return self.now - self.one_of(*(ages or EDGES)) - self.one_of(*_JITTER)

    def maybe_ago(self, share: float, *ages: timedelta) -> datetime | None:
        return self.ago(*ages) if self.chance(share) else None


def _as_text(value: Any) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else value.isoformat()


@contextmanager
def random_tables(url: str, seed: int) -> Iterator[Tables]:
    with closing(psycopg2.connect(url, options="-c timezone=UTC")) as connection:
        yield Tables(connection.cursor(cursor_factory=NamedTupleCursor), seed)
        connection.rollback()


class _Mutated(InspectLoader):
    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        return self._source


def mutant(module: ModuleType, old: str, new: str) -> ModuleType:
    """Return a copy of a module with another text at one place."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(old) == 1, f"{old} is there {source.count(old)} times"
    spec = importlib.util.spec_from_loader("a_mutant", _Mutated(source.replace(old, new)))
    assert spec is not None
    assert spec.loader is not None
    changed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(changed)
    return changed


class Compared(NamedTuple):
    """What SQL has decided about each case."""

    seed: int
    cases: Sequence[Any]
    answers: Sequence[Any]

    def differences(self, decide: Callable[[Any], Any]) -> list[Any]:
        """Return what Python decides otherwise, with the seed and the case."""
        pairs = zip(self.cases, self.answers, strict=True)
        return [
            {"seed": self.seed, "python": decided, "sql": answer, "case": case}
            for case, answer in pairs
            if (decided := decide(case)) != answer
        ]


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person as rules take one: a row has these attributes."""

    role: str = "authenticated"
    made_by: str = "signup"
    converted_at: datetime | None = None
    banned_until: datetime | None = None
    oldest_factor_at: datetime | None = None
    has_second_step: bool = False
    email: str | None = None
    email_added_at: datetime = datetime(2025, 10, 1, tzinfo=UTC)
    email_confirmed_at: datetime | None = None
    email_proved: bool = False
    phone: str | None = None
    phone_added_at: datetime = datetime(2025, 10, 1, tzinfo=UTC)
    phone_confirmed_at: datetime | None = None
    phone_proved: bool = False
    last_sign_in_at: datetime | None = None
    password_hash: str | None = None
    is_password_vouched: bool = False
    invited_at: datetime | None = None
    new_email: str | None = None
    new_phone: str | None = None
    app_metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session as rules take one."""

    method: str
    aal: str
    session_created_at: datetime
    refreshed_at: datetime
    ended_at: datetime | None = None
    reauthenticated_at: datetime | None = None
    factor_proved_at: datetime | None = None
    code_given_at: datetime | None = None
    first_passkey_at: datetime | None = None
    opened_by: str | None = None
    resource: str | None = None


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link or code as rules take one."""

    purpose: str
    created_at: datetime
    expires_at: datetime
    spent_at: datetime | None = None
    is_of_sign_up: bool = False
    newer: int = 0
    code_expires_at: datetime | None = None
    browser_hash: memoryview | None = None


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """The settings about confirmed addresses."""

    email_confirm_required: bool = True
    phone_confirm_required: bool = False


def row_to_refresh(user: Person, session: Session, tokens: dict[str, Any], **others: Any) -> Any:
    """Return a row with all facts about a refresh."""
    return SimpleNamespace(**vars(user) | tokens | vars(session) | others)


class Case(NamedTuple):
    """A user with a session, and what else is asked."""

    user: Person
    session: Session
    policy: Policy
    now: datetime
    asked: dict[str, Any]


def insert_users(tables: Tables, number: int) -> list[str]:
    """Insert users with addresses, factors and a session each, and return their ids."""
    users, identities, factors, sessions = [], [], [], []
    for place in range(number):
        users.append(user := _random_user(tables, place))
        for kind in ("email", "phone"):
            if user[kind]:
                identities.append(_identity(tables, user, kind))
        factors += [_factor(tables, user["id"]) for _ in range(tables.one_of(0, 0, 1, 2))]
        sessions.append(_session(tables, user))
    tables.insert("users", users)
    tables.insert("identities", identities)
    tables.insert("factors", factors)
    tables.insert("sessions", sessions)
    return [user["id"] for user in users]


def _random_user(tables: Tables, place: int) -> dict[str, Any]:
    made = ("signup", "administrator", "import", "message", "invitation", "link", "oauth")
    made_by = tables.one_of(*["anonymous"] * 3, *made)
    user = {
        "id": tables.id(),
        "role": tables.one_of("authenticated", "authenticated", "admin", "staff"),
        "made_by": made_by,
        "created_at": tables.ago(),
        "converted_at": tables.maybe_ago(0.5) if made_by == "anonymous" else None,
        "banned_until": tables.one_of(None, None, None, None, tables.ago(timedelta(0)), tables.ago(-HOUR)),
        "last_sign_in_at": tables.maybe_ago(0.4),
        "password_hash": tables.one_of(None, "a hash", "a hash"),
        "password_vouched": tables.one_of(None, False, True),
        "app_metadata": tables.one_of(
            *(
                {},
                {"roles": ["staff"]},
                {"roles": "staff"},
                {"roles": {"staff": True}},
                {"roles": [1, "admin"]},
                {"roles": None},
            ),
        ),
    }
    for kind, value in (("email", f"user-{place}@example.com"), ("phone", f"+49151{place:08}")):
        has_address = tables.chance(0.7)
        confirmed_at = tables.maybe_ago(0.6) if has_address else None
        user |= {
            kind: value if has_address else None,
            f"{kind}_confirmed_at": confirmed_at,
            f"{kind}_proved": confirmed_at is not None and tables.chance(0.6),
        }
    return user


def _identity(tables: Tables, user: dict[str, Any], provider: str) -> dict[str, Any]:
    return {
        "id": tables.id(),
        "user_id": user["id"],
        "provider": provider,
        "subject": user["id"],
        "identity_data": {provider: user[provider]},
        "updated_at": tables.one_of(tables.ago(), tables.ago(), user["created_at"]),
        "created_at": tables.ago(),
    }


def _factor(tables: Tables, owner: str) -> dict[str, Any]:
    kind = tables.one_of("totp", "webauthn", "passkey")
    verified_at = tables.ago(6 * DAY, 7 * DAY, 8 * DAY) if kind == "passkey" or tables.chance(0.7) else None
    id = tables.id()
    credential = id.encode() if kind != "totp" and verified_at else None
    return {
        "id": id,
        "user_id": owner,
        "factor_type": kind,
        "verified_at": verified_at,
        "secret": b"secret" if kind == "totp" else None,
        "credential_id": credential,
        "public_key": credential,
        "sign_count": 0 if credential else None,
    }


def _session(tables: Tables, user: dict[str, Any]) -> dict[str, Any]:
    ended_at = tables.maybe_ago(0.1)
    methods = [
        "password",
        "anonymous",
        "oauth",
        "recovery",
        "recovery",
        "recovery",
        "sign_up",
        "otp",
        "webauthn",
    ]
    methods += ["anonymous"] * 8 if user["made_by"] == "anonymous" else []
    return {
        "id": tables.id(),
        "user_id": user["id"],
        "method": tables.one_of(*methods),
        "aal": tables.one_of("aal1", "aal1", "aal2"),
        "created_at": tables.ago(*EDGES, 5 * MINUTE),
        "refreshed_at": tables.ago(timedelta(0), 10 * MINUTE, HOUR, 30 * DAY),
        "ended_at": ended_at,
        "end_reason": "logout" if ended_at else None,
        "reauthenticated_at": tables.maybe_ago(0.6),
        "factor_proved_at": tables.maybe_ago(0.7, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE),
        "code_given_at": tables.maybe_ago(0.5, 10 * MINUTE, 15 * MINUTE),
        "first_passkey_at": tables.maybe_ago(0.3, 15 * MINUTE),
        "opened_by": tables.id() if tables.chance(0.2) else None,
        "resource": tables.one_of(None, None, "https://api.example.com", "https://other.example.com"),
    }


def ask(tables: Tables, ids: Sequence[str], arguments: Callable[[], dict[str, Any]]) -> list[Case]:
    """Ask about users, with random settings. SQL reads what is asked from the table `cases`, as `a`."""
    asked = [random_policy(tables) | arguments() for _ in ids]
    tables.run("CREATE TEMP TABLE cases (n integer, user_id uuid, a jsonb) ON COMMIT DROP")
    rows = [{"n": n, "user_id": id, "a": asked[n]} for n, id in enumerate(ids)]
    tables.insert("cases", rows)
    sessions = tables.all(
        "SELECT s.* FROM cases AS c JOIN sessions AS s ON s.user_id = c.user_id ORDER BY c.n"
    )
    return [
        Case(user, session_of(session), policy_of(each), tables.now, each)
        for user, session, each in zip(read_users(tables), sessions, asked, strict=True)
    ]


def decided(tables: Tables, expression: str) -> list[Any]:
    """Return what SQL decides about each case, of the user `u`, the session `s` and the arguments `a`."""
    rows = tables.all(
        f"""SELECT {expression} AS answer
              FROM cases AS c
              JOIN users AS u ON u.id = c.user_id
              JOIN sessions AS s ON s.user_id = u.id
             ORDER BY c.n"""
    )
    return [row.answer for row in rows]


_USERS = """
SELECT u.*,
       (SELECT min(f.verified_at) FROM factors AS f WHERE f.user_id = u.id) AS oldest_factor_at,
       (SELECT count(*) FROM factors AS f
         WHERE f.user_id = u.id AND f.factor_type IN ('totp', 'webauthn') AND f.verified_at IS NOT NULL) AS steps,
       (SELECT i.updated_at FROM identities AS i WHERE i.user_id = u.id AND i.provider = 'email') AS email_at,
       (SELECT i.updated_at FROM identities AS i WHERE i.user_id = u.id AND i.provider = 'phone') AS phone_at
  FROM cases AS c
  JOIN users AS u ON u.id = c.user_id
 ORDER BY c.n
"""


def read_users(tables: Tables) -> list[Person]:
    """Return the user of each case."""
    return [user_of(row) for row in tables.all(_USERS)]


def user_of(row: Any) -> Person:
    of_other_names = {
        "email_added_at": row.email_at or row.created_at,
        "phone_added_at": row.phone_at or row.created_at,
        "is_password_vouched": row.password_vouched is True,
        "has_second_step": row.steps > 0,
    }
    names = {each.name for each in fields(Person)} - of_other_names.keys()
    return Person(**of_other_names | {name: getattr(row, name) for name in names})


def session_of(row: Any) -> Session:
    names = {each.name for each in fields(Session)} - {"session_created_at"}
    return Session(session_created_at=row.created_at, **{name: getattr(row, name) for name in names})


def random_policy(tables: Tables) -> dict[str, Any]:
    return {
        "lifetime": tables.one_of(30 * DAY, 30 * DAY, HOUR).total_seconds(),
        "timebox": tables.one_of(None, None, HOUR.total_seconds(), 30 * DAY.total_seconds()),
        "required": tables.one_of("none", "none", "admins", "all"),
        "proof_age": tables.one_of(0, 300, 600, 900),
        "change_age": tables.one_of(None, 0, 0, 600, 3600, 86400),
    }


def policy_of(asked: dict[str, Any]) -> Policy:
    def seconds(name: str) -> timedelta | None:
        return None if asked[name] is None else timedelta(seconds=asked[name])

    return Policy(
        refresh_token_lifetime=timedelta(seconds=asked["lifetime"]),
        refresh_window=Window(most=None, age=HOUR),
        reuse_interval=10 * SECOND,
        session_timebox=seconds("timebox"),
        mfa_required=asked["required"],
        proof_age=timedelta(seconds=asked["proof_age"]),
        change_age=seconds("change_age"),
    )


def moment_of(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def check(
    compared: Compared,
    rules: ModuleType,
    decide: Callable[[Any, Any], Any],
    mutants: Sequence[tuple[str, str]],
) -> None:
    """Fail if Python decides a case otherwise than SQL, or a mutant, a pair of a text and another one, none."""
    assert compared.differences(functools.partial(decide, rules)) == []
    if compared.seed == FIXED_SEED:
        alive = [
            each
            for each in mutants
            if not compared.differences(functools.partial(decide, mutant(rules, *each)))
        ]
        assert alive == [], f"no case tells these from the rule: {alive}"


def insert_clients(tables: Tables, number: int) -> list[str]:
    """Insert applications, and return their ids."""
    clients = [_client(tables) for _ in range(number)]
    tables.insert("oauth_clients", clients)
    return [client["id"] for client in clients]


def _client(tables: Tables) -> dict[str, Any]:
    is_public = tables.chance(0.3)
    secret = tables.one_of("client_secret_basic", "client_secret_post")
    return {
        "id": tables.id(),
        "redirect_uris": [],
        "grant_types": ["authorization_code"],
        "allowed_roles": tables.one_of([], [], ["admin"], ["staff", "another"]),
        "resources": tables.one_of([], ["https://api.example.com"]),
        "is_dynamic": tables.chance(0.3),
        "is_blocked": tables.chance(0.1),
        "token_endpoint_auth_method": "none" if is_public else secret,
        "secret_hash": None if is_public else b"present",
        "previous_secret_hash": tables.one_of(None, b"previous"),
        "previous_secret_expires_at": tables.one_of(None, tables.ago(timedelta(0)), tables.ago(-HOUR)),
        "accepts_either_method": tables.chance(0.3),
    }


def read_clients(tables: Tables) -> dict[str, Any]:
    """Return the rows of applications by their ids."""
    return {row.id: row for row in tables.all("SELECT * FROM oauth_clients")}


def client_of(row: Any) -> Client:
    return Client(
        allowed_roles=frozenset(row.allowed_roles),
        resources=frozenset(row.resources),
        is_dynamic=row.is_dynamic,
        is_blocked=row.is_blocked,
    )
