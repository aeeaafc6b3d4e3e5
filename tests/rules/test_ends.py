"""What ends: auth/rules/ends.py beside what SQL ends for the same reason."""

import itertools
from collections.abc import Iterable
from dataclasses import asdict, astuple
from typing import Any, get_args

from auth.rules import ends
from tests.support.rule_rows import Compared, Tables, check, insert_clients, insert_users

MUTANTS = [
    ('"too_many_sessions": "alone"', '"too_many_sessions": "this"'),
    ('"others_signed_out": "others"', '"others_signed_out": "this"'),
    ('"logout": "this"', '"logout": "everything"'),
    ('reach="all", keys_up_to="aal2", with_grants=True', 'reach="all", keys_up_to="aal2"'),
    ('keys_up_to="aal2"', 'keys_up_to="aal1"'),
    ('reach="all", keys_up_to="aal1"', 'reach="others", keys_up_to="aal1"'),
    ('reach="all", keys_up_to="aal1"', 'reach="all"'),
    ('reach=size if has_session else "all"', "reach=size"),
]
# With the grants before their sessions.
TABLES = (
    "oauth_grants",
    "sessions",
    "authorization_codes",
    "oauth_requests",
    "api_keys",
    "identity_provider_adoptions",
)
# What is left of a user.
LEFT = """
SELECT jsonb_build_array(
  ARRAY(SELECT s.id FROM sessions AS s WHERE s.user_id = u.id AND s.ended_at IS NULL ORDER BY s.id),
  ARRAY(SELECT s.id FROM sessions AS s WHERE s.user_id = u.id AND s.end_reason = %(reason)s ORDER BY s.id),
  ARRAY(SELECT c.id FROM authorization_codes AS c WHERE c.user_id = u.id ORDER BY c.id),
  ARRAY(SELECT r.id FROM oauth_requests AS r WHERE r.user_id = u.id ORDER BY r.id),
  ARRAY(SELECT k.id FROM api_keys AS k WHERE k.user_id = u.id ORDER BY k.id),
  ARRAY(SELECT g.id FROM oauth_grants AS g WHERE g.user_id = u.id ORDER BY g.id),
  ARRAY(SELECT a.user_id FROM identity_provider_adoptions AS a WHERE a.user_id = u.id)) AS left
  FROM users AS u WHERE u.id = %(user_id)s"""

END = """end_holdings(%(user_id)s, %(session_id)s, %(reason)s, %(reach)s, %(keys_up_to)s, %(with_grants)s, now())"""


def insert_holdings(tables: Tables, number: int) -> dict[str, list[str]]:
    """Insert users with sessions that opened others, codes, requests, keys, grants and moves; return the
    sessions of each."""
    ids, sessions = insert_users(tables, number), {}
    clients, provider = insert_clients(tables, 3), tables.id()
    tables.run(
        """INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)
           VALUES (%(id)s, 'custom:acme', 'Acme', 'https://login.acme.example', 'x', '')""",
        id=provider,
    )
    held: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for place, id in enumerate(ids):
        (first,) = tables.all("SELECT id, created_at FROM sessions WHERE user_id = %(id)s", id=id)
        own = sessions[id] = [first.id]
        own_grants = [
            {"id": tables.id(), "user_id": id, "client_id": client, "scopes": [], "granted_at": tables.now}
            for client in clients
            if tables.chance(0.5)
        ]
        held["oauth_grants"] += own_grants
        for _ in range(tables.one_of(0, 2, 4, 6)):
            ended_at = tables.maybe_ago(0.1)
            row: dict[str, Any] = {
                "id": tables.id(),
                "user_id": id,
                "method": "otp",
                "aal": "aal1",
                "counter": 0,
            }
            row |= {"opened_by": tables.one_of(None, *own, *own, tables.id()), "created_at": tables.now}
            row |= {"refreshed_at": tables.now, "refreshes": 0, "counted_until": tables.now}
            row |= {"ended_at": ended_at, "end_reason": "logout" if ended_at else None}
            row["grant_id"] = tables.one_of(None, *(grant["id"] for grant in own_grants))
            held["sessions"].append(row)
            own.append(row["id"])
        for _ in range(tables.one_of(0, 1, 3)):
            code: dict[str, Any] = {
                "id": tables.id(),
                "user_id": id,
                "code_challenge": "",
                "method": "password",
            }
            code |= {"session_id": tables.one_of(None, None, own[0]), "created_at": tables.now}
            code |= {"opened_by": tables.one_of(None, *own), "expires_at": tables.now}
            held["authorization_codes"].append(code | {"code_hash": code["id"].encode()})
            request: dict[str, Any] = {
                "id": tables.id(),
                "user_id": id,
                "client_id": tables.one_of(*clients),
                "scopes": [],
            }
            request |= {"session_id": tables.one_of(None, *own), "expires_at": tables.now, "prompts": []}
            request |= {"opened_session_id": tables.one_of(None, None, own[0]), "created_at": tables.now}
            request |= {"browser_hash": b"", "redirect_uri": "", "id_hash": request["id"].encode()}
            held["oauth_requests"].append(request)
            key: dict[str, Any] = {
                "id": tables.id(),
                "user_id": id,
                "name": "",
                "key_mac": b"",
                "scopes": [],
                "refreshes": 0,
            }
            key |= {"aal": tables.one_of("aal1", "aal2"), "created_at": tables.now}
            held["api_keys"].append(key | {"counted_until": tables.now})
        if place % 2:
            held["identity_provider_adoptions"].append(
                {"user_id": id, "provider_id": provider, "adopted_at": tables.now}
            )
    for table, rows in held.items():
        tables.insert(table, rows)
    return sessions


def compare(tables: Tables) -> Compared:
    sessions, reasons = insert_holdings(tables, tables.cases // 4), itertools.cycle(get_args(ends.Reason))
    cases = [
        {"user_id": id, "reason": reason, "session_id": tables.one_of(None, *own, *own, tables.id())}
        for (id, own), reason in zip(sessions.items(), reasons, strict=False)
    ]
    answers = [left_by(tables, "end_access(%(user_id)s, %(session_id)s, %(reason)s)", case) for case in cases]
    done: dict[Any, Any] = {}
    return Compared(tables.seed, [(tables, done, case) for case in cases], answers)


def left_by(tables: Tables, end: str, given: dict[str, Any]) -> Any:
    """Return whether a session has ended, and what is left."""
    tables.run("SAVEPOINT before")
    (ended,) = tables.all(f"SELECT {end} AS ended", **given)
    (row,) = tables.all(LEFT, user_id=given["user_id"], reason=given["reason"])
    tables.run("ROLLBACK TO SAVEPOINT before")
    return ended.ended, row.left


def decide(rules, each) -> Any:
    tables, done, case = each
    end = rules.what_ends(case["reason"], has_session=case["session_id"] is not None)
    key = case["user_id"], astuple(end)
    if key not in done:
        done[key] = left_by(tables, END, case | asdict(end))
    return done[key]


def test_python_ends_what_sql_ends_and_no_mutant_does(tables):
    check(compare(tables), ends, decide, MUTANTS)


def test_batches_end_what_the_functions_of_the_release_before_end(tables):
    """Sessions at applications that refuse the user, and everything of a restored database."""
    sessions = insert_holdings(tables, tables.cases // 10)
    tables.run("UPDATE oauth_clients SET allowed_roles = ARRAY['staff']")
    lost = ends.what_ends("access_lost", has_session=True)
    restored = ends.what_ends("restored", has_session=False)
    for previous, present, end in (
        (
            "end_lost_access(u)",
            "end_refused_sessions(u, %(reason)s, %(reach)s, %(keys_up_to)s, %(with_grants)s, now())",
            lost,
        ),
        (
            "end_access(u.id, NULL, 'restored')",
            "end_holdings(u.id, NULL, %(reason)s, %(reach)s, %(keys_up_to)s, %(with_grants)s, now())",
            restored,
        ),
    ):
        assert left_of_all(tables, sessions, previous, end) == left_of_all(tables, sessions, present, end)


def left_of_all(tables: Tables, ids: Iterable[str], call: str, end: ends.End) -> list[Any]:
    """Return what a call for each user leaves, which ends something of some users."""
    tables.run("SAVEPOINT before")
    before = [tables.all(LEFT, user_id=id, reason=end.reason) for id in ids]
    tables.run(f"SELECT {call} FROM users AS u", **asdict(end))
    left = [tables.all(LEFT, user_id=id, reason=end.reason) for id in ids]
    tables.run("ROLLBACK TO SAVEPOINT before")
    assert left != before
    return left


def test_sizes_are_those_of_the_release_before(database):
    rows = database.all("SELECT reason, size FROM end_sizes()")
    assert {row.reason: row.size for row in rows} == ends.SIZES
