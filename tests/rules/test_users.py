"""What follows from one user alone: auth/rules/users.py beside what SQL decides."""

from auth.rules import users
from tests.support.rule_rows import CASES, Case, Compared, Tables, ask, check, decided, insert_users

MUTANTS = [
    ("user.banned_until > now", "user.banned_until >= now"),
    (" and user.converted_at is None\n", "\n"),
    ("is not None and address.is_proved", "is not None and address.confirmed_at is not None"),
    ("address.value == value and address.is_proved", "address.value == value"),
    ('("signup", "message") or', '("signup", "message", "link") or'),
    ("return not is_banned(user, now) and", "return"),
    ('user.made_by == "signup" and', ""),
    ('"phone" in confirmed_kinds', "True"),
]


def compare(tables: Tables) -> Compared:
    def arguments():
        return {
            "value": tables.one_of("user-1@example.com", "user-2@example.com", "+4915100000003"),
            "provider": tables.one_of("email", "phone", "github"),
            "email_required": tables.chance(0.5),
            "phone_required": tables.chance(0.5),
            "admin_only": tables.chance(0.3),
        }

    asked = ask(tables, insert_users(tables, CASES), arguments)
    answers = decided(
        tables,
        """jsonb_build_array(
             is_anonymous(u), is_banned(u), has_verified_factor(u.id), gives_way(u), is_unused_sign_up(u),
             is_proved(u, 'email'), is_proved(u, 'phone'),
             coalesce(has_proved(u, coalesce(u.email, a ->> 'value')), false),
             coalesce(has_proved(u, coalesce(u.phone, a ->> 'value')), false),
             coalesce(has_proved(u, a ->> 'value'), false),
             sign_in_refusal(u, a ->> 'provider', (a -> 'email_required')::boolean,
                             (a -> 'phone_required')::boolean, (a -> 'admin_only')::boolean))""",
    )
    return Compared(tables.seed, asked, answers)


def decide(rules, case: Case) -> list[object]:
    user, _, _, now, asked = case
    own = [
        user.email.value if user.email else asked["value"],
        user.phone.value if user.phone else asked["value"],
    ]
    kinds = frozenset(kind for kind in ("email", "phone") if asked[f"{kind}_required"])
    return [
        rules.is_anonymous(user),
        rules.is_banned(user, now),
        rules.has_factor(user),
        rules.gives_way(user, now),
        rules.is_unused_sign_up(user, now),
        rules.is_proved(user, "email"),
        rules.is_proved(user, "phone"),
        *(rules.has_proved(user, value) for value in [*own, asked["value"]]),
        rules.refusal_of_sign_in(user, asked["provider"], kinds, admin_only=asked["admin_only"], now=now),
    ]


def test_python_decides_as_sql_and_no_mutant_does(tables):
    check(compare(tables), users, decide, MUTANTS)
