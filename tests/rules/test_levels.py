"""Levels and second steps: auth/rules/levels.py beside SQL."""

from typing import get_args

from auth.rules import levels
from tests.support.rule_rows import Case, Compared, Tables, ask, check, decided, insert_users

MUTANTS = [
    ("registered_at > now", "registered_at >= now"),
    ('aal != "aal0" and', ""),
    ("return not is_anonymous(user)", "return True"),
    ('("aal1", "aal2", "proof")', '("aal2", "proof")'),
    ("user.oldest_factor_at > moment", "user.oldest_factor_at < moment"),
    ('aal >= "aal2" or not user.has_second_step', "not user.has_second_step"),
    ('("aal2", "proof", "enrol") and has_factor', '("aal2", "proof") and has_factor'),
]


def compare(tables: Tables) -> Compared:
    def arguments():
        return {
            "aal": tables.one_of("aal0", "aal1", "aal2"),
            "level": tables.one_of(*get_args(levels.Level)),
        }

    asked = ask(tables, insert_users(tables, tables.cases), arguments)
    answers = decided(
        tables,
        """jsonb_build_array(
             level_of(s, a ->> 'aal'), must_have_step(u, a ->> 'required'),
             lacks_step(u, s.aal, a ->> 'required', has_second_step(u.id)),
             lacks_level(u, s, a ->> 'aal', a ->> 'level', a ->> 'required'),
             s.aal = 'aal2' OR NOT has_second_step(u.id),
             CASE WHEN EXISTS (SELECT FROM factors WHERE user_id = u.id AND verified_at <= s.created_at)
                  THEN 'aal2' ELSE 'aal1' END)""",
    )
    return Compared(tables.seed, asked, answers)


def decide(rules, case: Case) -> list[object]:
    user, session, policy, now, asked = case
    return [
        rules.level_of(session, asked["aal"], now),
        rules.must_have_step(user, policy),
        rules.lacks_step(user, session.aal, policy),
        rules.lacks_level(user, session, asked["aal"], asked["level"], policy, now),
        rules.passes_every_step(user, session.aal),
        rules.level_at(user, session.session_created_at),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), levels, decide, MUTANTS)
