"""What follows from one user alone: auth/rules/users.py beside SQL."""

import math

from auth.rules import users
from tests.support.rule_rows import Case, Compared, Tables, ask, check, decided, insert_users

MUTANTS = [
    ("user.banned_until > now", "user.banned_until >= now"),
    (" and user.converted_at is None\n", "\n"),
    ("return person.email_proved if kind", "return person.email_confirmed_at is not None if kind"),
    ("(person.email == value and person.email_proved)", "person.email == value"),
    ('("signup", "message") or', '("signup", "message", "link") or'),
    ("return not is_banned(person, now) and", "return"),
    ('person.made_by == "signup" and', ""),
    (' and person.role != "admin"', ""),
    ("person.invited_at is None or person.password_hash is not None", "person.invited_at is None"),
    ("return person.email is None or person.email_confirmed_at is None\n", "return True\n"),
]
MUTANTS_OF_BANS = [
    ("_FOREVER = datetime(9999, 12, 31, 23, 59, 59", "_FOREVER = datetime(9999, 12, 31, 23, 59, 58"),
    ("if not seconds:", "if seconds is None:"),
    ("round(seconds * 1e6)", "int(seconds * 1e6)"),
]


def compare(tables: Tables) -> Compared:
    def arguments():
        return {
            "value": tables.one_of("user-1@example.com", "user-2@example.com", "+4915100000003"),
        }

    ids = insert_users(tables, tables.cases)
    tables.run(
        """UPDATE users SET invited_at = created_at WHERE right(id::text, 1) < '8';
           UPDATE users
              SET role = 'admin', made_by = 'message', last_sign_in_at = NULL, password_vouched = NULL,
                  banned_until = NULL, email_confirmed_at = NULL, email_proved = false,
                  phone_confirmed_at = NULL, phone_proved = false
            WHERE right(id::text, 1) = 'a'"""
    )
    asked = ask(tables, ids, arguments)
    answers = decided(
        tables,
        """jsonb_build_array(
             is_anonymous(u), is_banned(u), has_verified_factor(u.id), gives_way(u), is_unused_sign_up(u),
             gives_way(u) AND u.role <> 'admin',
             is_proved(u, 'email'), is_proved(u, 'phone'),
             coalesce(has_proved(u, coalesce(u.email, a ->> 'value')), false),
             coalesce(has_proved(u, coalesce(u.phone, a ->> 'value')), false),
             coalesce(has_proved(u, a ->> 'value'), false),
             gives_way(u) AND u.role <> 'admin',
             u.invited_at IS NOT NULL AND u.email_confirmed_at IS NULL AND u.password_hash IS NULL)""",
    )
    return Compared(tables.seed, asked, answers)


def decide(rules, case: Case) -> list[object]:
    user, _, _, now, asked = case
    own = [
        user.email or asked["value"],
        user.phone or asked["value"],
    ]
    return [
        rules.is_anonymous(user),
        rules.is_banned(user, now),
        rules.has_factor(user),
        rules.gives_way(user, now),
        rules.is_unused_sign_up(user, now),
        rules.is_replaced(user, now),
        rules.is_proved(user, "email"),
        rules.is_proved(user, "phone"),
        *(rules.has_proved(user, value) for value in [*own, asked["value"]]),
        rules.is_replaced(user, now),
        rules.has_open_invitation(user),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), users, decide, MUTANTS)


def compare_bans(tables: Tables) -> Compared:
    """From a millisecond to 1000 years, with nine digits after the point as bodies may have them."""

    def seconds() -> float:
        length = tables.one_of(0.001, 1, 60, 3600, 86_400, 1000 * 365 * 86_400)
        return round(tables.random.random() * length, tables.one_of(0, 3, 6, 9))

    lengths = [None, 0.0, math.inf, *(seconds() for _ in range(tables.cases))]
    rows = tables.all(
        "SELECT end_of_ban(seconds) AS ends_at, now() AS now FROM unnest(%(all)s::float[])"
        " WITH ORDINALITY AS ban (seconds, place) ORDER BY place",
        all=lengths,
    )
    cases = [(length, row.now) for length, row in zip(lengths, rows, strict=True)]
    return Compared(tables.seed, cases, [row.ends_at for row in rows])


def test_ban_ends_as_in_sql_and_no_mutant_does(tables):
    check(compare_bans(tables), users, lambda rules, case: rules.end_of_ban(*case), MUTANTS_OF_BANS)
