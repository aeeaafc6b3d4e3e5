"""Which refresh token is good, and what a refresh changes: auth/rules/refreshing.py beside SQL."""

from datetime import datetime, timedelta
from typing import Any

from auth.rules import refreshing
from tests.support.rule_rows import (
    HOUR,
    SECOND,
    Compared,
    Tables,
    ask,
    check,
    decided,
    insert_clients,
    insert_users,
    row_to_refresh,
)

MUTANTS = [
    (
        "until is not None and datetime.fromisoformat(until) > now",
        "until is not None and datetime.fromisoformat(until) >= now",
    ),
    ("tokens.refreshed_at <= now - reuse_interval", "tokens.refreshed_at < now - reuse_interval"),
    ("tokens.refreshes >= window.most", "tokens.refreshes > window.most"),
    ("window.most and tokens.counted_until > now", "window.most and tokens.counted_until >= now"),
    ("    if until > now:\n        return", "    if until >= now:\n        return"),
    ("refreshes + (window is not None)", "refreshes + 1"),
    ("else tokens.counter - 1", "else tokens.used_counter"),
    ("tokens.used_counter if echo else sent", "sent"),
    ("not echo and tokens.refreshed_at", "tokens.refreshed_at"),
    ("max(sent, tokens.counter) + rotates", "tokens.counter + rotates"),
    ("items() if datetime.fromisoformat(until) > now", "items() if datetime.fromisoformat(until) >= now"),
    ("is not None and until > now:", "is not None and until >= now:"),
    ("tokens.counter > sent + rotates", "tokens.counter >= sent + rotates"),
    ("return None if is_same_client", "return None if True"),
]
# Of a session's columns, those of its refresh tokens.
COLUMNS = "counter, used_counter, successor_counter, refreshed_at, refreshes, counted_until, echoes"
WINDOW = 3600

# What a node of 0.5.2 asks about a refresh that it refuses.
REFUSAL = """
SELECT coalesce(CASE WHEN known.state IN ('user_banned', 'session_expired') THEN known.state
                     WHEN known.state = 'live' AND s.grant_id IS NULL
                     THEN refresh_refusal(s, %(counter)s, %(most)s) END,
                'refresh_token_not_found') AS state
  FROM sessions AS s
  JOIN users AS u ON u.id = s.user_id
 CROSS JOIN caller_state(u, s, NULL, %(lifetime)s, %(timebox)s,
                         s.aal, 'session', %(required)s) AS known (state)
 WHERE s.id = %(id)s
"""

MUTANTS_OF_REFUSALS = [
    ('return "refresh.user_banned"', 'return "refresh.refresh_token_not_found"'),
    ('if end == "session_expired":', "if False:"),
    ("end is not None or row.is_of_client", "end is not None"),
    ("return refusal_of_refresh(row, sent, window, row.now)", "return None"),
]


def compare(tables: Tables) -> Compared:
    ids = insert_users(tables, 2 * tables.cases)
    insert_states(tables, ids)

    def arguments():
        return {
            "sent": tables.one_of(*range(4, 13)),
            "rotates": tables.chance(0.8),
            "reuse": tables.one_of(0, 10),
            "counts": tables.chance(0.7),
            "most": tables.one_of(None, 3, 4),
            "is_same": tables.chance(0.5),
        }

    asked = ask(tables, ids, arguments)
    answers = decided(
        tables,
        f"""(SELECT jsonb_build_array(
                      is_echo(s, sent), refresh_refusal(s, sent, CASE WHEN counts THEN most END), new.counter, new.used_counter,
                      new.successor_counter, extract(epoch FROM new.refreshed_at), new.refreshes,
                      extract(epoch FROM new.counted_until), refreshed_echoes(s, sent, rotates, reuse),
                      refresh_act(jsonb_populate_record(s, to_jsonb(new)), sent, rotates,
                                  jsonb_build_object('ip', CASE WHEN (a -> 'is_same')::boolean THEN NULL
                                                                ELSE '203.0.113.7' END)))
               FROM (SELECT (a -> 'sent')::bigint AS sent, (a -> 'rotates')::boolean AS rotates,
                            (a -> 'reuse')::integer AS reuse, (a ->> 'most')::integer AS most,
                            (a -> 'counts')::boolean AS counts) AS of_case,
                    refreshed(s, sent, rotates, reuse, CASE WHEN counts THEN {WINDOW} END) AS new)""",
    )
    rows = tables.all(f"SELECT {COLUMNS} FROM cases AS c JOIN sessions AS s USING (user_id) ORDER BY c.n")
    return Compared(tables.seed, [(case, row) for case, row in zip(asked, rows, strict=True)], answers)


def insert_states(tables: Tables, ids: list[str]) -> None:
    states = [state(tables) for _ in ids]
    assigned = ", ".join(f"{name} = new.{name}" for name in COLUMNS.split(", "))
    tables.run("CREATE TEMP TABLE states (LIKE sessions) ON COMMIT DROP")
    tables.run(
        "ALTER TABLE states ALTER id DROP NOT NULL, ALTER method DROP NOT NULL, ALTER created_at DROP NOT NULL"
    )
    tables.run("ALTER TABLE states ALTER aal DROP NOT NULL")
    tables.insert("states", [{"user_id": id} | each for id, each in zip(ids, states, strict=True)])
    tables.run(f"UPDATE sessions AS s SET {assigned} FROM states AS new WHERE new.user_id = s.user_id")


def state(tables: Tables) -> dict[str, Any]:
    counter = tables.one_of(7, 8, 9, 10)
    successor = tables.one_of(None, counter, counter, counter, counter - 1)
    until = [tables.now + SECOND, tables.now - SECOND, tables.now]
    others = [
        {str(used): tables.one_of(*until) for used in range(4, 10) if tables.chance(0.3)} for _ in range(2)
    ]
    echoes = {str(counter): others[0], str(counter - 1): others[1]} if tables.chance(0.6) else None
    return {
        "counter": counter,
        "successor_counter": successor,
        "used_counter": None if successor is None else successor - tables.one_of(0, 1, 2, 3),
        "refreshed_at": tables.ago(timedelta(0), 10 * SECOND, HOUR),
        "refreshes": tables.one_of(0, 2, 3, 4),
        "counted_until": tables.ago(timedelta(0), -HOUR),
        "echoes": echoes,
    }


def by_number(echoes: Any) -> dict[int, dict[int, datetime]] | None:
    return echoes and {
        int(counter): {int(used): datetime.fromisoformat(until) for used, until in uses.items()}
        for counter, uses in echoes.items()
    }


def decide(rules, each) -> list[object]:
    case, row = each
    now, asked = case.now, case.asked
    tokens = row
    sent, rotates = asked["sent"], asked["rotates"]
    window = window_of(rules, asked["most"]) if asked["counts"] else None
    new = rules.refreshed(
        tokens,
        sent,
        rotates=rotates,
        reuse_interval=timedelta(seconds=asked["reuse"]),
        window=window,
        now=now,
    )
    refusal = rules.refusal_of_refresh(tokens, sent, window, now)
    return [
        rules.is_echo(tokens, sent, now),
        refusal and refusal.removeprefix("refresh."),
        new.counter,
        new.used_counter,
        new.successor_counter,
        new.refreshed_at.timestamp(),
        new.refreshes,
        new.counted_until.timestamp(),
        by_number(new.echoes),
        rules.act_of_refresh(new, sent, rotates=rotates, is_same_client=asked["is_same"], now=now),
    ]


def compare_refusals(tables: Tables) -> Compared:
    """Each refused refresh is asked about by a statement of its own."""
    ids = insert_users(tables, tables.cases // 2)
    insert_states(tables, ids)
    client = insert_clients(tables, 1)[0]
    grants = [
        {"id": tables.id(), "user_id": id, "client_id": client, "scopes": []}
        for id in ids
        if tables.chance(0.2)
    ]
    tables.insert("oauth_grants", grants)
    tables.run("UPDATE sessions AS s SET grant_id = g.id FROM oauth_grants AS g WHERE g.user_id = s.user_id")
    asked = ask(
        tables, ids, lambda: {"sent": tables.one_of(*range(4, 13)), "most": tables.one_of(None, 3, 4)}
    )
    rows = tables.all(
        f"SELECT s.id, s.grant_id, {COLUMNS} FROM cases AS c JOIN sessions AS s USING (user_id) ORDER BY n"
    )
    answers = [
        tables.all(
            REFUSAL,
            id=row.id,
            counter=case.asked["sent"],
            most=case.asked["most"],
            lifetime=int(case.asked["lifetime"]),
            timebox=case.asked["timebox"] and int(case.asked["timebox"]),
            required=case.asked["required"],
        )[0].state
        for case, row in zip(asked, rows, strict=True)
    ]
    return Compared(tables.seed, list(zip(asked, rows, strict=True)), answers)


def decide_refusal(rules, each) -> str:
    """What nothing refuses is not asked about, and would be told as not found."""
    case, row = each
    is_of_client = row.grant_id is not None
    known = row_to_refresh(case.user, case.session, row._asdict(), is_of_client=is_of_client, now=case.now)
    window = window_of(rules, case.asked["most"])
    refusal = rules.refusal_of_refresh_token(known, case.asked["sent"], window, case.policy)
    return (refusal or "refresh_token_not_found").removeprefix("refresh.")


def window_of(rules, most: int | None) -> Any:
    return rules.Window(most=most, age=timedelta(seconds=WINDOW))


def typed(compared: Compared) -> Compared:
    answers = [[*answer[:8], by_number(answer[8]), answer[9]] for answer in compared.answers]
    return compared._replace(answers=answers)


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(typed(compare(tables)), refreshing, decide, MUTANTS)


def test_python_refuses_as_the_statement_and_no_mutant_does(tables):
    check(compare_refusals(tables), refreshing, decide_refusal, MUTANTS_OF_REFUSALS)
