"""What gives a token now: auth/rules/tokens.py beside SQL."""

from datetime import timedelta
from typing import get_args

from auth.rules import levels, tokens
from auth.web import callers
from tests.support.rule_rows import (
    HOUR,
    Compared,
    Tables,
    ask,
    check,
    client_of,
    decided,
    insert_clients,
    insert_users,
    moment_of,
    read_clients,
)

MUTANTS = [
    ("is not None and expires_at <= now", "is not None and expires_at > now"),
    ('    if is_banned(user, now):\n        return "user_banned"\n', ""),
    ('return "insufficient_aal" if is_below else None', "return None"),
    ("key.expires_at <= now", "key.expires_at < now"),
    ("client is None or not may_use(user, client, resource)", "client is None"),
    ("lacks_step(user, session.aal, policy)", "False"),
    ("key is not None and lacks_step(user, key.aal, policy)", "False"),
]


def compare(tables: Tables) -> Compared:
    ids = insert_users(tables, tables.cases)
    known = insert_clients(tables, 300)
    tables.insert("api_keys", [api_key(tables, id) for id in ids if tables.chance(0.9)])

    def arguments():
        expires_at = tables.one_of(None, None, tables.ago(timedelta(0)), tables.ago(HOUR), tables.ago(-HOUR))
        return {
            "client_id": tables.one_of(None, *known),
            "expires_at": None if expires_at is None else int(expires_at.timestamp()),
            "has_session": tables.chance(0.95),
            "aal": tables.one_of("aal0", "aal1", "aal2"),
            "level": tables.one_of(*get_args(levels.Level)),
        }

    asked = ask(tables, ids, arguments)
    answers = decided(
        tables,
        """(SELECT jsonb_build_array(
                     caller_state(u, CASE WHEN (a -> 'has_session')::boolean THEN s END, expires, lifetime, timebox,
                                  a ->> 'aal', a ->> 'level', a ->> 'required'),
                     client_state(u, s, k, expires, lifetime, timebox, a ->> 'required'),
                     api_key_state(u, own, expires, a ->> 'required'),
                     own.id IS NOT NULL AND is_live(own))
              FROM (SELECT (a ->> 'expires_at')::bigint AS expires, (a -> 'lifetime')::integer AS lifetime,
                           (a ->> 'timebox')::float::integer AS timebox) AS of_settings
              LEFT JOIN oauth_clients AS k ON k.id = (a ->> 'client_id')::uuid
              LEFT JOIN api_keys AS own ON own.user_id = u.id)""",
    )
    rows = read_clients(tables)
    keys = {row.user_id: row for row in tables.all("SELECT user_id, aal, expires_at FROM api_keys")}
    callers = tables.all(
        """SELECT f.*
             FROM cases AS c
             LEFT JOIN sessions AS s ON s.user_id = c.user_id AND (c.a -> 'has_session')::boolean
            CROSS JOIN caller_facts(c.user_id, s.id) AS f
            ORDER BY c.n"""
    )
    cases = [
        (case, rows.get(case.asked["client_id"]), keys.get(id), caller)
        for case, id, caller in zip(asked, ids, callers, strict=True)
    ]
    return Compared(tables.seed, cases, answers)


def api_key(tables: Tables, owner: str) -> dict[str, object]:
    return {
        "id": tables.id(),
        "user_id": owner,
        "name": "CI",
        "key_mac": b"",
        "scopes": [],
        "aal": tables.one_of("aal1", "aal2"),
        "expires_at": tables.one_of(None, tables.ago(timedelta(0)), tables.ago(-HOUR)),
    }


def decide(rules, each) -> list[object]:
    (user, session, policy, now, asked), client_row, key_row, caller_row = each
    expires_at = moment_of(asked["expires_at"])
    client = client_row and client_of(client_row)
    key = key_row and rules.ApiKey(aal=key_row.aal, expires_at=key_row.expires_at)
    caller = caller_row, callers.session_of(caller_row)
    refusals = [
        rules.refusal_of_session(*caller, expires_at, asked["aal"], asked["level"], policy, caller_row.now),
        rules.refusal_of_client_session(user, session, session.resource, client, expires_at, policy, now),
        rules.refusal_of_api_key(user, key, expires_at, policy, now),
    ]
    return [*(refusal or "live" for refusal in refusals), rules.end_of_key(key, now) is None]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), tokens, decide, MUTANTS)
