"""The janitor removes expired rows in batches, one janitor at a time, without sequential scans."""

from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from auth.delivery import janitor
from auth.delivery.deliverer import Deliverer
from sql.pool import connect
from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.cast import PASSWORD, refresh
from tests.support.deliverers import RunningDeliverer
from tests.support.links import OTHER_PHONE, PHONE, assert_dead, assert_signs_in, follow, later
from tests.support.plans import STATEMENTS, analyze, plan_of
from tests.support.processes import wait_until

DAY = 86_400
MANY = 20_000
CONSTANTS = {
    "refresh_token_lifetime": 30 * DAY,
    "session_timebox": None,
    "audit_retention": 400,
    "unconfirmed_retention": 30,
    "origin": '{"actor": "service"}',
    "give_up": 3 * DAY,
}


def fill(database, count, ages):
    """Insert `count` rows into each table that the janitor cleans; `ages` is SQL for how long ago row
    `number` expired.
    """
    statements = [
        "INSERT INTO users (id, email, made_by) VALUES ('11111111-1111-1111-1111-111111111111', 'dave@example.com', 'administrator') ON CONFLICT DO NOTHING",
        "UPDATE schema_version SET applied_at = '2026-01-01'",
    ]
    user, numbers = (
        "'11111111-1111-1111-1111-111111111111'::uuid",
        f"FROM generate_series(1, {count}) AS number, LATERAL (SELECT now() - ({ages}) AS due) AS at",
    )
    for table, columns, values in (
        ("request_counts", "key, count, expires_at", "'k' || number, 1, due"),
        ("failure_counts", "key, count, expires_at", "'k' || number, 1, due"),
        (
            "one_time_tokens",
            "id, user_id, purpose, target, expires_at",
            f"gen_random_uuid(), {user}, 'recovery', 'x', due",
        ),
        (
            "authorization_codes",
            "user_id, code_hash, code_challenge, method, expires_at",
            f"{user}, sha256(number::text::bytea), 'c', 'otp', due",
        ),
        (
            "oauth_flows",
            "id, state_hash, provider, secrets, expires_at",
            "gen_random_uuid(), sha256(number::text::bytea), 'acme', '', due",
        ),
        ("spent_id_tokens", "token_hash, expires_at", "sha256(number::text::bytea), due - interval '1 hour'"),
        (
            "outbox",
            "id, kind, outcome, finished_at",
            "gen_random_uuid(), 'none', 'none', due - interval '30 days'",
        ),
        ("known_networks", "user_id, network, seen_at", f"{user}, number::text, due - interval '365 days'"),
        ("audit_log", "action, actor, at", "'signed_in', 'user', due - interval '400 days'"),
        ("users", "email, made_by, created_at", "'u' || number, 'signup', due - interval '30 days'"),
        ("users", "made_by, created_at", "'anonymous', due - interval '30 days'"),
        ("factor_challenges", "purpose, expires_at", "'passkey_authentication', due"),
        # Each has its own user, because a factor is copied with all others of its user.
        ("users", "id, email, made_by", "md5(number::text)::uuid, 'f' || number, 'administrator'"),
        (
            "factors",
            "id, user_id, factor_type, secret, created_at",
            "gen_random_uuid(), md5(number::text)::uuid, 'totp', '', due - interval '5 minutes'",
        ),
        # Ended sessions, and sessions that were not refreshed.
        (
            "sessions",
            "user_id, method, ended_at, end_reason",
            f"{user}, 'otp', due - interval '30 days', 'logout'",
        ),
        (
            "sessions",
            "user_id, method, created_at, refreshed_at",
            f"{user}, 'otp', due - interval '61 days', due - interval '60 days'",
        ),
    ):
        # Fewer users: the plans of cascades, made for empty tables, read all deleted rows for each.
        some = " WHERE number <= 1200" if table in ("users", "factors") else ""
        statements.append(f"INSERT INTO {table} ({columns}) SELECT {values} {numbers}{some}")
    database.insert_many(";".join(statements))


# The indexes with which the statements find expired rows.
INDEXES = {
    "delete_expired_request_counts": "request_counts_expires_at",
    "delete_expired_failure_counts": "failure_counts_expires_at",
    "delete_expired_one_time_tokens": "one_time_tokens_expires_at",
    "delete_expired_authorization_codes": "authorization_codes_expires_at",
    "delete_expired_oauth_flows": "oauth_flows_expires_at",
    "delete_expired_id_tokens": "spent_id_tokens_expires_at",
    "delete_expired_factor_challenges": "factor_challenges_expires_at",
    "delete_unverified_factors": "factors_unverified",
    "delete_old_sessions": "sessions_ended_at",
    "delete_expired_sessions": "sessions_created_at",
    "finish_stale_events": "outbox_events",
    "delete_old_messages": "outbox_finished",
    "delete_old_networks": "known_networks_seen_at",
    "delete_old_audit_rows": "audit_log_at",
    "delete_unused_users": "users_unproved",
    "delete_anonymous_users": "users_anonymous",
}
TABLES = (
    *(
        "request_counts",
        "failure_counts",
        "one_time_tokens",
        "authorization_codes",
        "oauth_flows",
        "spent_id_tokens",
    ),
    *("outbox", "known_networks", "audit_log", "sessions", "users", "factor_challenges", "factors"),
)
# Neither the user of the other rows, nor rows that the janitor writes.
OTHERS = {"users": "made_by = 'administrator'", "audit_log": "action = 'user_deleted'"}


def left(database):
    counts = {table: database.count(table, f"NOT ({OTHERS.get(table, 'false')})") for table in TABLES}
    return {table: count for table, count in counts.items() if count}


class TestCleaning:
    def test_only_expired_rows_are_removed(self, parts, database):
        fill(database, 4, "CASE WHEN number <= 3 THEN interval '1 minute' ELSE interval '-1 minute' END")
        assert janitor.clean(parts.db) == 3 * (len(TABLES) + 2)
        assert left(database) == dict.fromkeys(TABLES, 1) | {"sessions": 2, "users": 2}
        assert janitor.clean(parts.db) == 0

    def test_many_rows_are_removed_in_batches(self, parts, database):
        count = janitor.BATCH * 2 + 1
        database.run(
            f"INSERT INTO request_counts SELECT 'k' || number, 1, now() FROM generate_series(1, {count}) AS number"
        )
        before = parts.db.statements_run
        assert janitor.clean(parts.db) == count
        # Two full batches and a rest, each in its own transaction.
        assert parts.db.statements_run - before == 2 * (len(janitor.STATEMENTS) + 2)

    @pytest.fixture
    def few(self, database):
        fill(database, 5, "interval '1 minute'")
        database.run(
            "INSERT INTO outbox (id, channel, kind, recipient) SELECT gen_random_uuid(), 'webhook', 'user.created', 'gone' FROM generate_series(1, 5)"
        )

    @pytest.mark.parametrize("join", ["hashjoin", "mergejoin", "nestloop"])
    @cases("name", janitor.STATEMENTS)
    def test_batch_has_the_same_size_with_every_join_plan(self, few, database_url, name, join):
        connection = connect(database_url)
        connection.autocommit = False
        try:
            with connection.cursor() as cursor:
                for way in {"hashjoin", "mergejoin", "nestloop"} - {join} | {
                    "hashagg",
                    "sort",
                    "material",
                    "memoize",
                }:
                    cursor.execute(f"SET enable_{way} = off")
                cursor.execute(STATEMENTS[name].prepare(), {})
                cursor.execute(
                    STATEMENTS[name].execute(),
                    dict.fromkeys(STATEMENTS[name].parameters) | CONSTANTS | {"batch": 2},
                )
                assert cursor.rowcount == 2
        finally:
            connection.rollback()
            connection.close()

    def test_locked_rows_are_left_for_the_next_time(self, parts, database):
        fill(database, 2, "interval '1 minute'")
        with database.locked("oauth_flows", database.value("SELECT id FROM oauth_flows LIMIT 1")):
            janitor.clean(parts.db)
            assert left(database) == {"oauth_flows": 1}
        janitor.clean(parts.db)
        assert left(database) == {}

    def test_one_janitor_of_all_nodes_cleans_at_a_time(self, parts, database, database_url):
        fill(database, 1, "interval '1 minute'")
        other = psycopg2.connect(database_url)
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(7239004119)")
            assert cursor.fetchone() == (True,)
        before = left(database)
        assert (janitor.clean(parts.db), left(database)) == (0, before)
        other.rollback()
        other.close()
        assert janitor.clean(parts.db) == len(TABLES) + 2

    def test_concurrent_janitors_remove_expired_rows_once(self, parts, database):
        fill(
            database, 1200, "CASE WHEN number <= 1000 THEN interval '1 minute' ELSE interval '-1 minute' END"
        )
        with ThreadPoolExecutor() as threads:
            removed = sum(threads.map(lambda _: janitor.clean(parts.db), range(4)))
        # A janitor skips rows while another one cleans.
        assert removed + janitor.clean(parts.db) == 1000 * (len(TABLES) + 2)
        assert left(database) == dict.fromkeys(TABLES, 200) | {"sessions": 400, "users": 400}

    def test_deliverer_cleans_when_it_starts(self, parts, database):
        fill(database, janitor.BATCH + 1, "interval '1 minute'")
        with RunningDeliverer(Deliverer(parts.settings, parts.db, parts.sealer, {})):
            wait_until(lambda: left(database) == {})


class TestRetention:
    @pytest.fixture
    def rows(self, database):
        for days in (1, 9, 11, 399, 401):
            database.run(
                "INSERT INTO audit_log (action, actor, at) VALUES ('signed_in', 'user', now() - make_interval(days => %(days)s))",
                days=days,
            )
        return lambda: database.all(
            "SELECT extract(day FROM now() - at)::integer AS age FROM audit_log ORDER BY at DESC"
        )

    def test_audit_log_keeps_400_days(self, parts, rows):
        janitor.clean(parts.db)
        assert [row.age for row in rows()] == [1, 9, 11, 399]

    def test_audit_retention_sets_the_days(self, make_app, rows):
        app = make_app(AUTH_AUDIT_RETENTION="10")
        janitor.clean(app.extensions["latchkey"].db)
        assert [row.age for row in rows()] == [1, 9]

    def test_old_session_that_is_refreshed_is_kept(self, parts, alice, database):
        session = alice.open_session()
        database.run(
            "UPDATE sessions SET created_at = now() - interval '3 years', refreshed_at = now() - interval '29 days'"
        )
        assert janitor.clean(parts.db) == 0
        assert session.refresh().status_code == 200

    def test_session_is_removed_30_days_after_its_timebox(self, make_app, alice, database):
        db = make_app(AUTH_SESSION_TIMEBOX=str(DAY)).extensions["latchkey"].db
        alice.sign_in()
        database.run("UPDATE sessions SET created_at = now() - interval '30 days 23 hours'")
        assert janitor.clean(db) == 0
        database.run("UPDATE sessions SET created_at = now() - interval '31 days'")
        assert janitor.clean(db) == 1


class TestUnusedUsers:
    """Users made by a sign-up or a message who never proved an address nor signed in."""

    @pytest.fixture
    def pass_days(self, database):
        def pass_days(days):
            interval = f"make_interval(days => {days}, mins => 1)"
            database.run(f"UPDATE schema_version SET applied_at = applied_at - {interval}")
            database.run(f"UPDATE users SET created_at = created_at - {interval}")
            database.run(f"UPDATE one_time_tokens SET expires_at = expires_at - {interval}")

        database.run("UPDATE schema_version SET applied_at = now()")
        return pass_days

    @pytest.fixture
    def made(self, client):
        """A user by each request that strangers can send."""
        for path, body in (
            ("/signup", {"email": "signup@example.com", "password": PASSWORD}),
            ("/signup", {"phone": PHONE, "password": PASSWORD}),
            ("/magiclink", {"email": "magiclink@example.com"}),
            ("/otp", {"phone": OTHER_PHONE}),
        ):
            client.post(path, json=body)

    def test_users_are_removed_after_30_days(self, parts, made, database, pass_days):
        pass_days(29)
        janitor.clean(parts.db)
        assert database.count("users") == 4
        pass_days(1)
        janitor.clean(parts.db)
        assert [database.count(table) for table in ("users", "identities", "user_objects")] == [0, 0, 0]

    def test_retention_is_a_setting(self, make_app, made, database, pass_days):
        pass_days(7)
        janitor.clean(make_app(AUTH_UNCONFIRMED_RETENTION="8").extensions["latchkey"].db)
        assert database.count("users") == 4
        janitor.clean(make_app(AUTH_UNCONFIRMED_RETENTION="7").extensions["latchkey"].db)
        assert database.count("users") == 0

    def test_deletion_is_recorded_and_sent(self, parts, hooks, target, client, database, pass_days):
        hooks.register(target, events=["user.deleted"])
        client.post("/magiclink", json={"email": "dave@example.com"})
        pass_days(30)
        janitor.clean(parts.db)
        entry = database.one("SELECT details, actor FROM audit_log WHERE action = 'user_deleted'")
        assert entry.details == {"because": "unused"}
        assert database.count("outbox", "kind = 'user.deleted'") == 1

    @pytest.mark.parametrize(
        "change",
        [
            "last_sign_in_at = now()",
            "email_proved = true",
            "phone_proved = true",
            "role = 'editor'",
            "made_by = 'administrator'",
            "made_by = 'invitation'",
            "banned_until = 'infinity'",
        ],
    )
    def test_other_users_are_kept(self, parts, client, database, pass_days, change):
        client.post("/magiclink", json={"email": "dave@example.com"})
        database.run(f"UPDATE users SET {change}")
        pass_days(400)
        janitor.clean(parts.db)
        assert database.count("users") == 1

    def test_users_of_providers_are_kept(self, parts, client, database, pass_days):
        client.post("/magiclink", json={"email": "dave@example.com"})
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data) SELECT id, 'google', '1', '{}' FROM users"
        )
        pass_days(400)
        janitor.clean(parts.db)
        assert database.count("users") == 1

    def test_user_with_a_valid_link_is_kept(self, parts, client, database, outbox, pass_days):
        client.post("/magiclink", json={"email": "dave@example.com"})
        pass_days(30)
        client.post("/magiclink", json={"email": "dave@example.com"})
        janitor.clean(parts.db)
        assert_signs_in(client, "magiclink", outbox.last().token)

    def test_retention_of_users_from_before_the_upgrade_starts_at_the_upgrade(
        self, parts, made, database, pass_days
    ):
        database.run("UPDATE users SET created_at = now() - interval '3 years'")
        pass_days(29)
        janitor.clean(parts.db)
        assert database.count("users") == 4
        pass_days(1)
        janitor.clean(parts.db)
        assert database.count("users") == 0


class TestAnonymousUsers:
    @pytest.fixture
    def visitors(self, make_app, database):
        """Thirty days ago an anonymous user signed in and out, and another stayed signed in."""
        client = make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()
        lost, live = (client.post("/signup", json={}).json for _ in range(2))
        client.post("/logout", headers={"Authorization": f"Bearer {lost['access_token']}"})
        database.run("UPDATE users SET created_at = now() - interval '30 days'")
        return lost["id"], live["id"]

    def test_those_without_a_session_are_removed_after_30_days(self, parts, visitors, database):
        database.run("UPDATE users SET created_at = now() - interval '29 days 23 hours'")
        janitor.clean(parts.db)
        assert database.count("users") == 2
        database.run("UPDATE users SET created_at = now() - interval '30 days'")
        janitor.clean(parts.db)
        assert [str(row.id) for row in database.all("SELECT id FROM users")] == [visitors[1]]
        entry = database.one("SELECT user_id::text, details FROM audit_log WHERE action = 'user_deleted'")
        assert entry == (visitors[0], {"because": "abandoned"})

    def test_session_that_expired_does_not_keep_them(self, parts, visitors, database):
        database.run("UPDATE sessions SET refreshed_at = now() - interval '30 days'")
        janitor.clean(parts.db)
        assert database.count("users") == 0

    @pytest.mark.parametrize(
        "change",
        [
            "converted_at = now()",
            "email = 'dave@example.com'",
            "role = 'editor'",
            "banned_until = 'infinity'",
        ],
    )
    def test_others_are_kept(self, parts, visitors, database, change):
        database.run(f"UPDATE users SET {change} WHERE id = '{visitors[0]}'")
        janitor.clean(parts.db)
        assert database.count("users") == 2


class TestExpiredRowsAreRefusedBeforeTheyAreRemoved:
    def test_expired_link_is_refused(self, client, outbox, alice, database):
        client.post("/magiclink", json={"email": alice.email})
        link = outbox.last(alice.email)
        later(database, hours=1)
        assert database.count("one_time_tokens") == 1
        assert_dead(client, "magiclink", link.token)
        assert "error" in follow(client, "magiclink", link.token).location

    def test_expired_session_is_refused(self, client, alice, database):
        session = alice.open_session()
        database.run("UPDATE sessions SET refreshed_at = now() - interval '30 days'")
        assert_error(session.get("/user"), 401, "session_expired")
        assert_error(refresh(client, session.refresh_token), 400, "session_expired")
        assert database.count("sessions") == 1

    def test_ended_rate_limit_window_refuses_nothing(self, make_app, database, service_role, alice):
        client = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()
        for _ in range(11):
            response = alice.try_to_sign_in("wrong", client)
        assert_error(response, 429, "over_request_rate_limit")
        later(database, mins=15)
        assert database.count("failure_counts") > 0
        assert alice.try_to_sign_in(client=client).status_code == 200


class TestRefreshes:
    def test_no_index_contains_columns_that_a_refresh_changes(self, database):
        indexes = database.all("SELECT indexdef FROM pg_indexes WHERE tablename = 'sessions'")
        assert len(indexes) > 2
        assert [
            row.indexdef for row in indexes if "refreshed_at" in row.indexdef or "counter" in row.indexdef
        ] == []

    def test_refresh_is_a_heap_only_update(self, alice, database):
        session = alice.open_session()
        changes = "SELECT n_tup_upd AS all, n_tup_hot_upd AS heap_only FROM pg_stat_xact_user_tables WHERE relname = 'sessions'"
        database.run("BEGIN")
        before = database.one(changes)
        database.run(
            "UPDATE sessions SET counter = counter + 1, refreshed_at = clock_timestamp(), ended_at = NULL WHERE id = %(id)s",
            id=session.id,
        )
        after = database.one(changes)
        database.run("COMMIT")
        assert (after.all - before.all, after.heap_only - before.heap_only) == (1, 1)


@pytest.fixture(scope="class")
def many(all_rows, database_url):
    """Fill every table with many rows, of which one in a thousand has expired."""
    all_rows.truncate()
    fill(
        all_rows, MANY, "CASE WHEN mod(number, 1000) = 0 THEN interval '1 minute' ELSE interval '-1 day' END"
    )
    all_rows.insert_many(
        "INSERT INTO users (email, made_by) SELECT 'u' || number || '@example.com', 'administrator' FROM generate_series(1, 100) AS number;"
        "INSERT INTO sessions (user_id, method) SELECT id, 'otp' FROM users, generate_series(1, 30)"
    )
    analyze(database_url, *TABLES)
    yield
    all_rows.truncate()
    analyze(database_url, *TABLES)


class TestManyRows:
    """Large tables with few expired rows are not read by a sequential scan."""

    @pytest.mark.parametrize("statement", janitor.STATEMENTS)
    def test_index_finds_the_expired_rows(self, many, database_url, statement):
        declared = {
            name: value for name, value in CONSTANTS.items() if name in STATEMENTS[statement].parameters
        }
        plan = plan_of(database_url, statement, batch=janitor.BATCH, **declared)
        assert any(index.startswith(INDEXES[statement]) for index in plan.indexes)
        # There are at most 20 webhooks. How Postgres looks up the others depends on the rows of a user.
        looked_up = {"identities", "one_time_tokens", "factors"} if statement.endswith("_users") else set()
        assert plan.read_whole <= {"webhooks", "schema_version"} | looked_up

    def test_index_finds_the_sessions_of_a_deleted_user(self, many, all_rows):
        (plan,) = all_rows.one(
            "EXPLAIN (FORMAT JSON) DELETE FROM sessions WHERE user_id = '22222222-2222-2222-2222-222222222222'"
        )
        assert "sessions_user_id" in str(plan)
