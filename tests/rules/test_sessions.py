"""When a session has ended, and when its user proved who they are: auth/rules/sessions.py beside SQL."""

from auth.rules import sessions
from tests.support.rule_rows import Case, Compared, Tables, ask, check, decided, insert_users

MUTANTS = [
    ("session.refreshed_at <= now", "session.refreshed_at < now"),
    ("max(begins) <= now", "max(begins) < now"),
    ("max(begins)", "min(begins)"),
    ("session.opened_by is not None or", ""),
    ("again or session.session_created_at\n    return", "session.session_created_at\n    return"),
    ('if session.method == "anonymous" else', "if False else"),
]


def compare(tables: Tables) -> Compared:
    asked = ask(tables, insert_users(tables, tables.cases), dict)
    answers = decided(
        tables,
        """jsonb_build_array(
             end_of(s, (a -> 'lifetime')::integer, (a ->> 'timebox')::float::integer),
             is_live(s, (a -> 'lifetime')::integer, (a ->> 'timebox')::float::integer),
             extract(epoch FROM authenticated_at(s)), extract(epoch FROM proved_at(s)))""",
    )
    return Compared(tables.seed, asked, answers)


def decide(rules, case: Case) -> list[object]:
    user, session, policy, now, _ = case
    end, proved_at = rules.end_of_session(user, session, policy, now), rules.proved_at(session)
    return [
        end,
        end is None,
        rules.authenticated_at(session).timestamp(),
        proved_at and proved_at.timestamp(),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), sessions, decide, MUTANTS)
