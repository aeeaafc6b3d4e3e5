"""What decides about a token: auth/rules/deciding.py beside the digest of SQL, for each column that changes."""

from typing import Any

from auth.rules import deciding
from auth.rules.users import is_anonymous, is_banned
from tests.support.rule_rows import Compared, Tables, check, insert_users, user_of

MUTANTS = [("told == present", "told.role == present.role"), ("told == present", "True")]
CHANGES = {
    "text": "'changed'",
    "boolean": "NOT coalesce({0}, false)",
    "timestamp with time zone": "now() - interval '1 hour'",
    "jsonb": """'{{"changed": true}}'""",
    "bigint": "coalesce({0}, 0) + 1",
    "integer": "coalesce({0}, 0) + 1",
    "uuid": "gen_random_uuid()",
    "inet": "'203.0.113.9'",
    "ARRAY": "'{{changed}}'",
}
# Of columns with a constraint.
OTHERS = {"made_by": "'anonymous'", "end_reason": "'banned'", "email": "id::text", "phone": "id::text"}
IDS = ("id", "user_id")
OTHER_TABLES = {
    "an identity": """INSERT INTO identities (user_id, provider, subject, identity_data)
                      SELECT id, 'github', id, '{}' FROM users""",
    "an app": """INSERT INTO factors (id, user_id, factor_type, secret) SELECT gen_random_uuid(), id, 'totp', 'x'
                   FROM users""",
    "a passkey": """INSERT INTO factors (id, user_id, factor_type, verified_at, credential_id, public_key, sign_count)
                    SELECT gen_random_uuid(), id, 'passkey', now(), id::text::bytea, 'x', 0 FROM users""",
    "a name of a factor": "UPDATE factors SET friendly_name = id::text",
    "a use of a factor": "UPDATE factors SET last_used_at = now()",
}


def compare(tables: Tables) -> Compared:
    insert_users(tables, tables.cases // 20)
    tables.run(
        "ALTER TABLE sessions DROP CONSTRAINT sessions_ended_check, DROP CONSTRAINT sessions_grant_id_fkey"
    )
    columns = tables.all(
        """SELECT table_name AS table, column_name AS name, data_type AS type
             FROM information_schema.columns
            WHERE table_schema = 'public' AND table_name IN ('users', 'sessions')"""
    )
    changes = dict(OTHER_TABLES)
    for column in columns:
        if column.name not in IDS:
            changed = OTHERS.get(column.name) or CHANGES[column.type].format(column.name)
            changes[f"{column.table}.{column.name}"] = f"UPDATE {column.table} SET {column.name} = {changed}"
    assert len(changes) > 50
    before, digests = read(tables), digests_of(tables)
    cases, answers = [], []
    for name, statement in changes.items():
        tables.run("SAVEPOINT before")
        tables.run(statement)
        cases += [(name, *each) for each in zip(before, read(tables), strict=True)]
        pairs = zip(digests, digests_of(tables), strict=True)
        answers += [digest == present for digest, present in pairs]
        tables.run("ROLLBACK TO before")
    return Compared(tables.seed, cases, answers)


def digests_of(tables: Tables) -> list[str]:
    rows = tables.all(
        """SELECT what_decides(user_object(u)::text, s) AS digest
             FROM users AS u JOIN sessions AS s ON s.user_id = u.id ORDER BY u.id"""
    )
    return [row.digest for row in rows]


def read(tables: Tables) -> list[Any]:
    users = tables.all(
        """SELECT u.*, now() AS moment, NULL::timestamptz AS oldest_factor_at, 0 AS steps, NULL AS email_at,
                  NULL AS phone_at,
                  ARRAY(SELECT i.provider FROM identities AS i WHERE i.user_id = u.id
                         ORDER BY i.created_at, i.provider) AS providers
             FROM users AS u ORDER BY u.id"""
    )
    sessions = tables.all("SELECT * FROM sessions ORDER BY user_id")
    factors: dict[str, list[Any]] = {}
    for row in tables.all("SELECT * FROM factors WHERE factor_type <> 'passkey' ORDER BY created_at, id"):
        factors.setdefault(row.user_id, []).append(row)
    return [(user, session, factors.get(user.id, [])) for user, session in zip(users, sessions, strict=True)]


def facts_of(rules, rows: Any) -> Any:
    row, session, factors = rows
    user = user_of(row)
    return rules.Deciding(
        id=row.id,
        role=row.role,
        email=row.email,
        email_confirmed_at=row.email_confirmed_at,
        phone=row.phone,
        phone_confirmed_at=row.phone_confirmed_at,
        app_metadata=row.app_metadata,
        banned_until=row.banned_until if is_banned(user, row.moment) else None,
        is_anonymous=is_anonymous(user),
        created_at=row.created_at,
        providers=tuple(row.providers),
        factors=tuple(
            rules.DecidingFactor(
                id=each.id,
                factor_type=each.factor_type,
                friendly_name=each.friendly_name,
                is_verified=each.verified_at is not None,
                created_at=each.created_at,
                updated_at=each.updated_at,
            )
            for each in factors
        ),
        session=rules.DecidingSession(
            id=session.id,
            aal=session.aal,
            ended_at=session.ended_at,
            factor_id=session.factor_id,
            amr=session.amr,
        ),
    )


def decide(rules, each) -> bool:
    _, before, after = each
    return rules.still_decides(facts_of(rules, before), facts_of(rules, after))


def test_python_says_what_decides_as_the_digest_and_no_mutant_does(tables):
    check(compare(tables), deciding, decide, MUTANTS)
