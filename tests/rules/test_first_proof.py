"""What the first proof of an address keeps: auth/rules/first_proof.py beside what SQL does."""

from typing import Any

from auth.rules import first_proof, links
from tests.support.rule_rows import Compared, Tables, ask, check, decided, insert_users

HERE = "203.0.113.7"

PROOFS = ("signup", "sms_signup", "invite", "magiclink", "recovery", "provider", "administrator", "undo")
PURPOSES = ("signup", "sms_signup", "invite", "magiclink", "recovery", "sms")
MUTANTS = [
    ('proof == "administrator" and person.made_by != "signup"', "False"),
    ("other.confirmed_at > own.added_at", "other.confirmed_at >= own.added_at"),
    ("    if own.is_proved:\n        return False\n", ""),
    ('return proof == "administrator" and not', "return not"),
    ('("signup", "link") or', '("signup", "link", "import") or'),
    ("or person.is_password_vouched", ""),
    ("proof not in OF_SIGN_UPS or person", "person"),
]
MUTANTS_OF_LINKS = [
    ("is_first and is_shown and", "is_first and"),
    ("carries_password and (is_own or", "carries_password and (False or"),
    ("is_own or proof not in OF_SIGN_UPS", "is_own"),
]
MUTANTS_OF_DISPUTES = [
    ("is_unused_sign_up(person, now) and not", "not"),
    ("not (has_same_password and has_same_data)", "not has_same_password"),
    ("not (has_same_password and has_same_data)", "not has_same_data"),
]
# What the user holds, in this order: the password, data, identities, factors, the other address, and sessions.
HELD = """jsonb_build_array(
  u.password_hash, u.user_metadata,
  ARRAY(SELECT i.provider FROM identities AS i WHERE i.user_id = u.id ORDER BY i.provider),
  (SELECT count(*) FROM factors AS f WHERE f.user_id = u.id),
  CASE a ->> 'kind' WHEN 'email' THEN u.phone ELSE u.email END,
  (SELECT count(*) FROM sessions AS s WHERE s.user_id = u.id AND s.ended_at IS NULL))"""


def insert(tables: Tables) -> list[str]:
    ids = insert_users(tables, tables.cases)
    tables.insert(
        "identities",
        [
            {"id": tables.id(), "user_id": id, "provider": "github", "subject": id, "identity_data": {}}
            for id in ids
            if tables.chance(0.5)
        ],
    )
    # A confirmation that is exactly as old as the identity of the other address.
    tables.run(
        """UPDATE identities AS i
              SET updated_at = CASE i.provider WHEN 'email' THEN u.phone_confirmed_at ELSE u.email_confirmed_at END
             FROM users AS u
            WHERE u.id = i.user_id AND i.provider <> 'github' AND right(u.id::text, 1) < '4'
              AND u.phone_confirmed_at IS NOT NULL AND u.email_confirmed_at IS NOT NULL"""
    )
    return ids


def compare(tables: Tables) -> Compared:
    ids = insert(tables)
    own = {row.id: row for row in tables.all("SELECT id, email, phone FROM users")}
    numbers = iter(range(len(ids)))

    def arguments():
        number, kind = next(numbers), tables.one_of("email", "phone")
        new = f"new-{number}@example.com" if kind == "email" else f"+49171{number:08}"
        present = getattr(own[ids[number]], kind)
        is_new = present is None or tables.chance(0.2)
        return {"kind": kind, "value": new if is_new else present, "proof": tables.one_of(*PROOFS)}

    asked = ask(tables, ids, arguments)
    before = decided(tables, HELD)
    keeps = decided(tables, "keeps_password(u)")
    first = decided(tables, "prove_address(u.id, a ->> 'kind', a ->> 'value', a ->> 'proof')")
    after = decided(tables, HELD)
    cases = list(zip(asked, before, strict=True))
    return Compared(tables.seed, cases, list(zip(first, after, keeps, strict=True)))


def decide(rules, each) -> tuple[bool, Any, bool]:
    case, before = each
    kind, value, proof = (case.asked[name] for name in ("kind", "value", "proof"))
    is_first = rules.is_first_proof(case.user, kind, value, proof)
    held = kept(rules, case.user, kind, proof, before) if is_first else unchanged(kind, before)
    return is_first, held, rules.keeps_password(case.user, "signup")


def kept(rules, user, kind: str, proof: str, before: list[Any]) -> list[Any]:
    password = before[0] if rules.keeps_password(user, proof) else None
    return [password, before[1], [kind], 0, None, 0]


def unchanged(kind: str, before: list[Any]) -> list[Any]:
    return [*before[:2], sorted({*before[2], kind}), *before[3:]]


def compare_links(tables: Tables) -> Compared:
    """Of an address that is the user's."""
    ids = insert(tables)
    own = {row.id: row for row in tables.all("SELECT id, email, phone FROM users")}
    ids = [id for id in ids if own[id].email or own[id].phone]
    places = iter(ids)

    def arguments():
        user = own[next(places)]
        kind = tables.one_of(*(each for each in ("email", "phone") if getattr(user, each)))
        return {
            "token": tables.id(),
            "kind": kind,
            "value": getattr(user, kind),
            "proof": tables.one_of(*PURPOSES),
            "is_shown": tables.chance(0.5),
            "password": tables.one_of(None, "another hash"),
            "data": tables.one_of(None, {"from": "the link"}),
            "was_mailed": tables.chance(0.5),
        }

    asked = ask(tables, ids, arguments)
    tables.run(
        """INSERT INTO one_time_tokens (id, user_id, purpose, target, expires_at, password_hash, user_metadata)
           SELECT (a ->> 'token')::uuid, user_id, a ->> 'proof', a ->> 'value', now(), a ->> 'password',
                  nullif(a -> 'data', 'null')
             FROM cases;
           INSERT INTO outbox (id, user_id, kind, channel, recipient, one_time_token_id)
           SELECT gen_random_uuid(), user_id, 'recovery', 'email', a ->> 'value', (a ->> 'token')::uuid
             FROM cases WHERE (a -> 'was_mailed')::boolean"""
    )
    before = decided(tables, HELD)
    methods = decided(
        tables, "(SELECT method_of(t) FROM one_time_tokens AS t WHERE t.id = (a ->> 'token')::uuid)"
    )
    told = decided(
        tables,
        f"""(SELECT jsonb_build_array(c.is_first, c.sets_password)
               FROM confirm_address((a ->> 'token')::uuid, a ->> 'kind', (a -> 'is_shown')::boolean, true,
                                    '{HERE}') AS c)""",
    )
    after = decided(tables, HELD)
    cases = list(zip(asked, before, methods, strict=True))
    return Compared(tables.seed, cases, list(zip(told, after, strict=True)))


def decide_links(rules, each) -> tuple[list[bool], Any]:
    case, before, method = each
    proof = case.asked["proof"]
    is_first, held, _ = decide(rules, (case, before))
    is_own = rules.is_own_sign_up(
        is_first=is_first, is_shown=case.asked["is_shown"], carries_data=case.asked["data"] is not None
    )
    sets = rules.sets_password(proof, is_own=is_own, carries_password=case.asked["password"] is not None)
    held[0] = case.asked["password"] if sets else held[0]
    held[1] = case.asked["data"] if is_own else held[1]
    if links.ends_everything(proof, was_mailed=case.asked["was_mailed"]):
        held[5] = 0
    assert method == links.method_of_session(proof, was_mailed=case.asked["was_mailed"])
    return [is_first, sets], held


def compare_disputes(tables: Tables) -> Compared:
    """Of the sign-ups of an address: what left its password and data nobody's until 0.5.2."""
    ids = insert_users(tables, tables.cases)
    tables.run(
        """UPDATE users SET user_metadata = '{"name": "Alice"}' WHERE right(id::text, 2) < '80';
           UPDATE users
              SET made_by = 'signup', last_sign_in_at = NULL, password_vouched = NULL, banned_until = NULL,
                  email_confirmed_at = NULL, email_proved = false, phone_confirmed_at = NULL, phone_proved = false
            WHERE right(id::text, 1) < '8'"""
    )
    known = {row.id: row for row in tables.all("SELECT id, password_hash, user_metadata FROM users")}
    asked = ask(
        tables,
        ids,
        lambda: {
            "password": tables.one_of(None, "a hash", "a hash", "another hash"),
            "data": tables.one_of({}, {"name": "Alice", "none": None}, {"name": "Mallory"}),
        },
    )
    changed = tables.all(
        """UPDATE users AS u
              SET password_hash = CASE WHEN u.password_hash = a ->> 'password' THEN a ->> 'password' END,
                  sign_up_hash = coalesce(a ->> 'password', own_hash(u)), user_metadata = '{}'
             FROM cases AS c
            WHERE u.id = c.user_id AND is_unused_sign_up(u)
              AND (u.password_hash, u.user_metadata)
                  IS DISTINCT FROM (a ->> 'password', merge_metadata('{}', a -> 'data'))
           RETURNING u.id"""
    )
    disputed = {row.id for row in changed}
    cases = [(case, known[id]) for case, id in zip(asked, ids, strict=True)]
    return Compared(tables.seed, cases, [id in disputed for id in ids])


def decide_dispute(rules, each) -> bool:
    case, row = each
    data = {name: value for name, value in case.asked["data"].items() if value is not None}
    return rules.disputes_sign_up(
        case.user,
        has_same_password=row.password_hash == case.asked["password"],
        has_same_data=row.user_metadata == data,
        now=case.now,
    )


def test_python_disputes_the_sign_ups_that_sql_did_and_no_mutant_does(tables):
    check(compare_disputes(tables), first_proof, decide_dispute, MUTANTS_OF_DISPUTES)


def test_python_keeps_what_sql_keeps_and_no_mutant_does(tables):
    check(compare(tables), first_proof, decide, MUTANTS)


def test_python_makes_of_a_link_what_sql_does_and_no_mutant_does(tables):
    check(compare_links(tables), first_proof, decide_links, MUTANTS_OF_LINKS)
