"""Which link or code is good: auth/rules/links.py beside SQL."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from auth.rules import links
from tests.support.rule_rows import (
    DAY,
    HOUR,
    MINUTE,
    Compared,
    Link,
    Tables,
    ask,
    check,
    decided,
    insert_users,
    read_users,
)

HERE = "203.0.113.7"
BROWSERS = (None, None, b"this browser", b"another browser")
PURPOSES = ("signup", "magiclink", "recovery", "undo")
MUTANTS = [
    ("link.expires_at <= now", "link.expires_at < now"),
    ("link.newer < _WORKING_LINKS", "link.newer <= _WORKING_LINKS"),
    ("or link.is_of_sign_up or", "or"),
    ('link.purpose == "undo" or', ""),
]
MUTANTS_OF_CODES = [
    ("link.code_expires_at > now", "link.code_expires_at >= now"),
    ("link.purpose not in purposes or", ""),
    ("code.browser_hash is None or bytes", "code.browser_hash is not None and bytes"),
    ("return max(", "return min("),
]
MUTANTS_OF_FACTORS = [
    ("verified_at <= now - RECENT_AGE", "verified_at < now - RECENT_AGE"),
    ("removed_at > now - RECENT_AGE and", ""),
    ("has_proved(other, address) for", "other.email is not None for"),
]

MUTANTS_OF_MAILS = [
    ("    if is_banned(person, now):\n        return False\n", ""),
    ("return person.email_confirmed_at is None", "return True"),
    ("return all(gives_way(holder, now) for holder in holders)", "return not [*holders]"),
    ('_CHANGES = ("email_change", "phone_change")', '_CHANGES = ("email_change",)'),
    ("is_unused_sign_up(person, now)\n", "gives_way(person, now)\n"),
    ('return purpose == "email_change" and', "return"),
]

# Whether 0.5.2 offers to decline a link.
OFFERED = """
SELECT CASE %(purpose)s WHEN 'signup' THEN is_unused_sign_up(u)
                        WHEN 'email_change' THEN is_anonymous(u) OR (u.email IS NULL AND u.phone IS NULL)
                        ELSE false END AS can_be_declined
  FROM users AS u
 WHERE u.id = %(id)s
"""


# What decided until 0.5.2 whether a message was sent.
MAILS_SQL = """
SELECT NOT is_banned(u)
         AND CASE %(purpose)s WHEN 'signup' THEN u.email_confirmed_at IS NULL
                              WHEN 'sms_signup' THEN u.phone_confirmed_at IS NULL
                              ELSE %(purpose)s NOT IN ('email_change', 'phone_change') OR NOT EXISTS (
                                SELECT FROM users AS o
                                 WHERE (o.email = %(email)s OR o.phone = %(phone)s) AND NOT gives_way(o)) END
         AS is_due
  FROM users AS u
 WHERE CASE %(purpose)s WHEN 'email_change' THEN u.new_email = %(email)s
                        WHEN 'phone_change' THEN u.new_phone = %(phone)s
                        ELSE u.email = %(email)s OR u.phone = %(phone)s END
 LIMIT 1
"""


def insert_tokens(tables: Tables, ids: list[str]) -> None:
    tokens = []
    for id in ids:
        purposes = tables.one_of(PURPOSES, PURPOSES[:1], PURPOSES[-1:])
        tokens += [token(tables, id, purposes, place) for place in range(tables.one_of(1, 3, 5, 7))]
    tables.insert("one_time_tokens", tokens)


def token(tables: Tables, owner: str, purposes: Sequence[str], place: int) -> dict[str, Any]:
    has_code = tables.chance(0.7)
    code = tables.one_of(b"right", b"right", b"wrong") if has_code else None
    return {
        "id": tables.id(),
        "user_id": owner,
        "purpose": tables.one_of(*purposes),
        "target": owner,
        "created_at": tables.now - timedelta(seconds=60 * place + tables.random.randrange(300) + place / 100),
        "expires_at": tables.ago(timedelta(0), -HOUR, -HOUR),
        "spent_at": tables.maybe_ago(0.2, MINUTE),
        "user_metadata": tables.one_of(None, None, {}),
        "code_mac": code,
        "code_expires_at": tables.ago(timedelta(0), -HOUR, -HOUR) if code else None,
        "browser_hash": tables.one_of(*BROWSERS),
    }


def link_of(row: Any, rows: list[Any]) -> Any:
    newer = [
        each
        for each in rows
        if each.purpose == row.purpose and each.user_metadata is None and each.created_at > row.created_at
    ]
    return Link(
        purpose=row.purpose,
        created_at=row.created_at,
        expires_at=row.expires_at,
        spent_at=row.spent_at,
        is_of_sign_up=row.user_metadata is not None,
        newer=len(newer),
        code_expires_at=row.code_expires_at,
        browser_hash=row.browser_hash,
    )


def tokens_of(tables: Tables) -> dict[str, list[Any]]:
    owned: dict[str, list[Any]] = {}
    for row in tables.all("SELECT t.*, is_good_link(t) AS is_good FROM one_time_tokens AS t ORDER BY id"):
        owned.setdefault(row.user_id, []).append(row)
    return owned


def compare(tables: Tables) -> Compared:
    insert_tokens(tables, insert_users(tables, tables.cases // 4))
    owned = tokens_of(tables)
    cases = [(tables.now, row, rows) for rows in owned.values() for row in rows]
    return Compared(tables.seed, cases, [row.is_good for _, row, _ in cases])


def decide(rules, each) -> bool:
    now, row, rows = each
    return rules.is_good_link(link_of(row, rows), now)


def compare_codes(tables: Tables) -> Compared:
    """Codes of one address, whose user has a code for each."""
    ids = insert_users(tables, tables.cases // 2)
    insert_tokens(tables, ids)
    owned = tokens_of(tables)
    asked = ask(
        tables,
        ids,
        lambda: {
            "purposes": [each for each in PURPOSES if tables.chance(0.6)],
            "browser": tables.one_of(None, b"this browser".decode()),
        },
    )
    answers = decided(
        tables,
        f"""(SELECT spent.id
               FROM use_code(u.id::text, ARRAY['right'::bytea],
                             ARRAY(SELECT jsonb_array_elements_text(a -> 'purposes')),
                             convert_to(a ->> 'browser', 'UTF8'), '{HERE}',
                             ARRAY[1000, 60, 1000, 60, 1000, 60]) AS spent)""",
    )
    cases = [(case, owned[id]) for case, id in zip(asked, ids, strict=True)]
    return Compared(tables.seed, cases, answers)


def decide_code(rules, each) -> str | None:
    case, rows = each
    asked = case.asked
    codes = {id(link): (link, row) for row in rows if row.code_mac and (link := link_of(row, rows))}
    newest = rules.code_for_browser(
        [link for link, _ in codes.values()], asked["browser"] and asked["browser"].encode()
    )
    if newest is None:
        return None
    link, row = codes[id(newest)]
    is_open = rules.is_open_code(link, bytes(row.code_mac) == b"right", asked["purposes"], case.now)
    return row.id if is_open else None


def compare_notices(tables: Tables) -> Compared:
    """Of the links of notices: whose the address is, and for which factors they ask."""
    ids = insert_users(tables, tables.cases // 2)
    removed = [removal(tables, id) for id in ids if tables.chance(0.7)]
    tables.insert("one_time_tokens", removed)
    asked = ask(
        tables,
        ids,
        lambda: {"target": tables.one_of(*(f"user-{place}@example.com" for place in range(20)))},
    )
    answers = decided(
        tables,
        """jsonb_build_array(
             (SELECT comes_back(t) FROM jsonb_populate_record(NULL::one_time_tokens, jsonb_build_object(
                'user_id', u.id, 'target', a ->> 'target')) AS t),
             ARRAY(SELECT asked.id FROM asked_factors(u.id) AS asked ORDER BY asked.id))""",
    )
    users = list(zip(ids, read_users(tables), strict=True))[:20]
    present = tables.all("SELECT id, user_id, verified_at FROM factors")
    cases = [
        (
            case,
            [user for id, user in users if id != owner],
            [row for row in present if row.user_id == owner],
            [row["restores"] | row for row in removed if row["user_id"] == owner],
        )
        for case, owner in zip(asked, ids, strict=True)
    ]
    return Compared(tables.seed, cases, answers)


def removal(tables: Tables, owner: str) -> dict[str, Any]:
    removed_at = tables.ago(timedelta(0), DAY, 7 * DAY, 8 * DAY)
    return {
        "id": tables.id(),
        "user_id": owner,
        "purpose": "undo",
        "target": "",
        "created_at": removed_at,
        "expires_at": removed_at + 7 * DAY,
        "restores": {
            "id": tables.id(),
            "user_id": owner,
            "factor_type": "totp",
            "provider": "factor",
            "verified_at": removed_at - tables.one_of(6 * DAY, 7 * DAY, 8 * DAY),
        },
    }


def decide_notices(rules, each) -> list[object]:
    case, others, present, removed = each
    asked = [row.id for row in present if rules.asks_for_factor(row.verified_at, case.now)]
    asked += [
        row["restores"]["id"]
        for row in removed
        if rules.asks_for_removed_factor(row["verified_at"], row["created_at"], case.now)
    ]
    return [rules.comes_back(others, case.asked["target"]), sorted(asked)]


def test_python_finds_the_same_links_good_and_no_mutant_does(tables):
    check(compare(tables), links, decide, MUTANTS)


def test_python_finds_the_same_code_open_and_no_mutant_does(tables):
    check(compare_codes(tables), links, decide_code, MUTANTS_OF_CODES)


def test_python_undoes_as_sql_and_no_mutant_does(tables):
    check(compare_notices(tables), links, decide_notices, MUTANTS_OF_FACTORS)


def compare_mails(tables: Tables) -> Compared:
    """Each message is asked for by a statement of its own."""
    ids = insert_users(tables, tables.cases // 2)
    # Half of them give way.
    tables.run(
        """UPDATE users
              SET made_by = CASE WHEN right(id::text, 1) < '4' THEN 'signup' ELSE 'message' END,
                  last_sign_in_at = NULL, password_vouched = NULL, banned_until = NULL,
                  email_confirmed_at = NULL, email_proved = false, phone_confirmed_at = NULL, phone_proved = false
            WHERE right(id::text, 1) < '8'"""
    )
    rows = tables.all("SELECT id, email, phone FROM users ORDER BY id")
    known = {row.id: row for row in rows}
    asked = ask(
        tables,
        ids,
        lambda: {
            "purpose": tables.one_of("signup", "sms_signup", "magiclink", "email_change", "phone_change"),
            "new": tables.random.randrange(len(rows)),
        },
    )
    users = {id: case.user for id, case in zip(ids, asked, strict=True)}
    cases, answers = [], []
    for id, case in zip(ids, asked, strict=True):
        row, purpose = known[id], case.asked["purpose"]
        # The new address is that of another user, if there is one.
        other = rows[case.asked["new"]]
        email, phone = (other.email, other.phone) if other.id != id else (None, None)
        new = {"new_email": email or "new@example.com", "new_phone": phone or "+4917100000000"}
        tables.run(
            """UPDATE users SET new_email = NULL, new_phone = NULL WHERE new_email IS NOT NULL;
               UPDATE users SET new_email = %(new_email)s, new_phone = %(new_phone)s WHERE id = %(id)s""",
            id=id,
            **new,
        )
        address: dict[str, Any] = {
            "email_change": {"email": new["new_email"], "phone": None},
            "phone_change": {"email": None, "phone": new["new_phone"]},
        }.get(purpose, {"email": row.email, "phone": row.phone})
        mails = tables.all(MAILS_SQL, purpose=purpose, **address)
        (seen,) = tables.all(OFFERED, id=id, purpose=purpose)
        is_taken = {"email_change": email, "phone_change": phone}.get(purpose)
        held = [users[other.id]] if is_taken else []
        if mails:
            cases.append((case, held))
            answers.append([mails[0].is_due, seen.can_be_declined])
    return Compared(tables.seed, cases, answers)


def decide_mails(rules, each) -> list[bool]:
    case, holders = each
    purpose = case.asked["purpose"]
    return [
        rules.is_due(purpose, case.user, holders, case.now),
        rules.can_be_declined(purpose, case.user, case.now),
    ]


def test_python_finds_the_same_mails_due_and_no_mutant_does(tables):
    check(compare_mails(tables), links, decide_mails, MUTANTS_OF_MAILS)
