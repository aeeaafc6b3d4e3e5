"""What decides about a token: auth/rules/deciding.py beside the digest of SQL, for each column that changes."""

from typing import Any

from auth.flows import facts
from auth.rules import deciding
from auth.rules.deciding import Deciding
from sql import shipped
from tests.support.rule_rows import Compared, Tables, check, insert_users

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
# A ban decides only while it lasts.
OTHERS["banned_until"] = "CASE WHEN banned_until > now() THEN NULL ELSE now() + interval '1 hour' END"
IDS = ("id", "user_id")
OTHER_TABLES = {
    "an identity": """INSERT INTO identities (user_id, provider, subject, identity_data)
                      SELECT id, 'github', id, '{}' FROM users""",
    "an app": """INSERT INTO factors (id, user_id, factor_type, secret) SELECT gen_random_uuid(), id, 'totp', 'x'
                   FROM users""",
    "a passkey": """INSERT INTO factors (id, user_id, factor_type, verified_at, credential_id, public_key, sign_count)
                    SELECT gen_random_uuid(), id, 'passkey', now(), id::text::bytea, 'x', 0 FROM users""",
    "a ban that is over": "UPDATE users SET banned_until = now() - interval '1 hour'",
    "a name of a factor": "UPDATE factors SET friendly_name = id::text",
    "a use of a factor": "UPDATE factors SET last_used_at = now()",
}

DECIDING = {
    "sessions.aal",
    "sessions.amr",
    "sessions.ended_at",
    "sessions.factor_id",
    "sessions.id",
    "sessions.user_id",
    "users.app_metadata",
    "users.banned_until",
    "users.converted_at",
    "users.created_at",
    "users.email",
    "users.email_confirmed_at",
    "users.id",
    "users.made_by",
    "users.phone",
    "users.phone_confirmed_at",
    "users.role",
}
OTHER_COLUMNS = {
    "sessions.auth_time",
    "sessions.code_given_at",
    "sessions.counted_until",
    "sessions.counter",
    "sessions.created_at",
    "sessions.echoes",
    "sessions.end_reason",
    "sessions.factor_proved_at",
    "sessions.first_passkey_at",
    "sessions.grant_id",
    "sessions.identity_id",
    "sessions.ip",
    "sessions.method",
    "sessions.opened_by",
    "sessions.reauthenticated_at",
    "sessions.refreshed_at",
    "sessions.refreshes",
    "sessions.resource",
    "sessions.scopes",
    "sessions.successor_counter",
    "sessions.used_counter",
    "sessions.user_agent",
    "users.admin_since",
    "users.confirmation_sent_at",
    "users.email_change_sent_at",
    "users.email_proved",
    "users.first_factor_at",
    "users.invited_at",
    "users.last_sign_in_at",
    "users.new_email",
    "users.new_phone",
    "users.password_hash",
    "users.password_leaked_at",
    "users.password_vouched",
    "users.phone_change_sent_at",
    "users.phone_proved",
    "users.sign_up_hash",
    "users.signup_user_agent",
    "users.updated_at",
    "users.user_metadata",
}


def compare(tables: Tables) -> Compared:
    insert_users(tables, tables.cases // 20)
    tables.run(
        "ALTER TABLE sessions DROP CONSTRAINT sessions_ended_check, DROP CONSTRAINT sessions_grant_id_fkey"
    )
    columns = columns_of(tables)
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


def columns_of(tables: Tables) -> list[Any]:
    return tables.all(
        """SELECT table_name AS table, column_name AS name, data_type AS type
             FROM information_schema.columns
            WHERE table_schema = 'public' AND table_name IN ('users', 'sessions')"""
    )


def digests_of(tables: Tables) -> list[str]:
    rows = tables.all(
        """SELECT what_decides(user_object(u)::text, s) AS digest
             FROM users AS u JOIN sessions AS s ON s.user_id = u.id ORDER BY u.id"""
    )
    return [row.digest for row in rows]


def read(tables: Tables) -> list[Deciding]:
    """Return the facts that the statement reads, for all users and at the time that the digest takes."""
    statement = shipped()["select_deciding"].direct.replace("clock_timestamp()", "now()")
    of_each = statement.replace("%(user_id)s::uuid", "own.user_id").replace("%(session_id)s::uuid", "own.id")
    rows = tables.all(
        f"SELECT f.* FROM sessions AS own CROSS JOIN LATERAL ({of_each}) AS f ORDER BY own.user_id"
    )
    return [facts.deciding_of(row) for row in rows]


def decide(rules, each) -> bool:
    _, before, after = each
    return rules.still_decides(before, after)


def test_python_says_what_decides_as_the_digest_and_no_mutant_does(tables):
    compared = compare(tables)
    check(compared, deciding, decide, MUTANTS)
    changing = {name for name, before, after in compared.cases if before != after}
    assert changing & {*DECIDING, *OTHER_COLUMNS} == DECIDING - {
        "users.id",
        "sessions.id",
        "sessions.user_id",
    }


def test_each_column_of_users_and_sessions_is_known_to_decide_or_not(tables):
    """A new column needs an answer: should a token be refused if it changes while the hook is asked?"""
    assert {f"{column.table}.{column.name}" for column in columns_of(tables)} == DECIDING | OTHER_COLUMNS
