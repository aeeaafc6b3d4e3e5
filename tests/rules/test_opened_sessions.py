"""What a new session ends, and where every step was passed: auth/rules beside SQL."""

from datetime import timedelta
from typing import Any

from auth.rules import levels, sessions
from tests.support.rule_rows import DAY, HOUR, MINUTE, Compared, Tables, ask, check, insert_users

HERE = "203.0.113.7"
MUTANTS = [
    ("reverse=True)[most - 1 :]", "reverse=True)[most:]"),
    ("key=created_at.__getitem__, reverse=True", "key=created_at.__getitem__"),
    ("        if end_of_session(user, session, policy, now) is None\n    }", "    }"),
]
MUTANTS_OF_STEPS = [('aal >= "aal2" or not user.has_second_step', "True")]


def compare(tables: Tables) -> Compared:
    ids = insert_users(tables, tables.cases)
    asked = ask(tables, ids, lambda: {"most": tables.one_of(1, 2, 3)})
    others = [session(tables, id, place) for id in ids for place in range(tables.one_of(0, 2, 4))]
    tables.insert("sessions", others)
    held: dict[str, list[sessions.OpenSession]] = {id: [] for id in ids}
    for row in tables.all("SELECT *, created_at AS session_created_at FROM sessions WHERE ended_at IS NULL"):
        known = {
            name: getattr(row, name) for name in ("id", "method", "aal", "session_created_at", "refreshed_at")
        }
        held[row.user_id].append(sessions.OpenSession(**known))
    tables.all(
        f"""SELECT begun.id
              FROM (SELECT * FROM cases ORDER BY n OFFSET 0) AS c,
                   begin_session(gen_random_uuid(), c.user_id, 'password', NULL, '{HERE}', NULL,
                                 (a -> 'most')::integer, (a -> 'lifetime')::integer,
                                 (a ->> 'timebox')::float::integer) AS begun"""
    )
    rows = tables.all(
        """SELECT ARRAY(SELECT s.id::text FROM sessions AS s
                         WHERE s.user_id = c.user_id AND s.end_reason = 'too_many_sessions' ORDER BY s.id) AS ended,
                  EXISTS (SELECT FROM known_networks AS n WHERE n.user_id = c.user_id) AS is_known
             FROM cases AS c ORDER BY n"""
    )
    cases = [(case, held[id]) for case, id in zip(asked, ids, strict=True)]
    return Compared(tables.seed, cases, rows)


def session(tables: Tables, owner: str, place: int) -> dict[str, Any]:
    """A session with another time than those of its user."""
    age = tables.one_of(MINUTE, HOUR, DAY, 30 * DAY) + timedelta(microseconds=10 * (place + 1))
    ended_at = tables.maybe_ago(0.1)
    return {
        "id": tables.id(),
        "user_id": owner,
        "method": tables.one_of("password", "anonymous"),
        "aal": "aal1",
        "created_at": tables.now - age,
        "refreshed_at": tables.ago(MINUTE, HOUR, 30 * DAY),
        "counter": 0,
        "refreshes": 0,
        "counted_until": tables.now,
        "ended_at": ended_at,
        "end_reason": "logout" if ended_at else None,
    }


def decide_ends(rules, each) -> list[str]:
    case, held = each
    return sorted(rules.sessions_beyond(case.user, held, case.asked["most"], case.policy, case.now))


def decide_steps(rules, each) -> bool:
    return rules.passes_every_step(each[0].user, "aal1")


def test_python_ends_sessions_as_sql_and_no_mutant_does(tables):
    compared = compare(tables)
    check(compared._replace(answers=[row.ended for row in compared.answers]), sessions, decide_ends, MUTANTS)
    known = [row.is_known for row in compared.answers]
    check(compared._replace(answers=known), levels, decide_steps, MUTANTS_OF_STEPS)
