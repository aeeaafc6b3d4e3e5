"""The janitor removes expired rows in batches, one janitor at a time."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
import pytest

from auth.delivery import deliverer, janitor
from auth.delivery.deliverer import Deliverer
from tests.support.answers import DAY
from tests.support.checked_rows import statements_run
from tests.support.deliverers import RunningDeliverer
from tests.support.expired import EXPIRED, fill
from tests.support.links import OTHER_PHONE, PHONE, assert_signs_in
from tests.support.openid import allow, insert_public_client
from tests.support.processes import wait_until
from tests.support.users import PASSWORD

REMOVALS = [remove.__name__ for remove in janitor.REMOVALS]
TABLES = {line.split()[0] for line in EXPIRED}
# Conditions of rows that are not expired: the user of the expired rows, a client, and what the janitor writes.
NOT_EXPIRED = {
    "users": "made_by = 'administrator'",
    "oauth_clients": "NOT is_dynamic",
    "audit_log": "action IN ('user_deleted', 'client_deleted')",
}


def count_remaining(database):
    counts = {table: database.count(table, f"NOT ({NOT_EXPIRED.get(table, 'false')})") for table in TABLES}
    return {table: count for table, count in counts.items() if count}


class TestCleaning:
    def test_many_rows_are_removed_in_batches(self, parts, database):
        count = janitor.BATCH * 2 + 1
        numbers = f"generate_series(1, {count}) AS number"
        database.run(
            f"INSERT INTO request_counts SELECT 'k' || number, 1, now() - interval '1 second' FROM {numbers}"
        )
        before = statements_run()
        assert janitor.clean(parts.db) == count
        # Two full batches and a rest, each in its own transaction.
        assert statements_run() - before == 2 * (len(REMOVALS) + 2)

    def test_locked_rows_are_left_for_the_next_time(self, parts, database):
        fill(database, 2)
        with database.locked("oauth_flows", database.value("SELECT id FROM oauth_flows LIMIT 1")):
            janitor.clean(parts.db)
            assert count_remaining(database) == {"oauth_flows": 1}
        janitor.clean(parts.db)
        assert count_remaining(database) == {}

    def test_one_janitor_of_all_nodes_cleans_at_a_time(self, parts, database, database_url):
        fill(database, 1)
        before = count_remaining(database)
        with closing(psycopg2.connect(database_url)) as other, other.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(7239004119)")
            assert cursor.fetchone() == (True,)
            assert (janitor.clean(parts.db), count_remaining(database)) == (0, before)
            other.rollback()
        assert janitor.clean(parts.db) == len(TABLES) + 2

    def test_concurrent_janitors_remove_only_expired_rows_and_these_once(self, parts, database):
        ages = "CASE WHEN number <= 1000 THEN interval '1 minute' ELSE interval '-1 minute' END"
        fill(database, 1200, ages)
        with ThreadPoolExecutor() as threads:
            removed = sum(threads.map(lambda _: janitor.clean(parts.db), range(4)))
        # A janitor skips rows while another one cleans.
        assert removed + janitor.clean(parts.db) == 1000 * (len(TABLES) + 2)
        assert count_remaining(database) == dict.fromkeys(TABLES, 200) | {"sessions": 400, "users": 400}
        assert janitor.clean(parts.db) == 0

    def test_deliverer_cleans_when_it_starts(self, parts, database):
        fill(database, janitor.BATCH + 1)
        with RunningDeliverer(Deliverer(parts.settings, parts.db, parts.sealer, {})):
            wait_until(lambda: count_remaining(database) == {})

    def test_running_deliverer_removes_unverified_factors_each_minute(self, parts, database, monkeypatch):
        monkeypatch.setattr(deliverer, "_COUNT_INTERVAL", 0)
        monkeypatch.setattr(deliverer, "_KEY_INTERVAL", 0.02)
        with RunningDeliverer(Deliverer(parts.settings, parts.db, parts.sealer, {})):
            wait_until(lambda: database.count("last_done", "task = 'counts'"))
            fill(database, 3)
            wait_until(lambda: database.count("factors") == 0)
        assert database.count("factor_challenges") == 3


class TestRetention:
    @pytest.mark.parametrize(
        ("changes", "kept"), [({}, [1, 9, 11, 399]), ({"AUTH_AUDIT_RETENTION": "10"}, [1, 9])]
    )
    def test_audit_log_keeps_400_days_or_those_of_the_setting(self, make_app, database, changes, kept):
        database.run(
            "INSERT INTO audit_log (action, actor, at) SELECT 'signed_in', 'user', now() - make_interval(days => days)"
            " FROM unnest('{1,9,11,399,401}'::integer[]) AS days"
        )
        janitor.clean(make_app(**changes).extensions["latchkey"].db)
        ages = "SELECT extract(day FROM now() - at)::integer AS days FROM audit_log ORDER BY at DESC"
        assert [row.days for row in database.all(ages)] == kept

    def test_session_is_removed_30_days_after_its_timebox(self, make_app, alice, database):
        db = make_app(AUTH_SESSION_TIMEBOX=str(DAY)).extensions["latchkey"].db
        alice.sign_in()
        for age, removed in (("30 days 23 hours", 0), ("31 days", 1)):
            database.run(f"UPDATE sessions SET created_at = now() - interval '{age}'")
            assert janitor.clean(db) == removed


class TestDynamicClients:
    """A stranger may register clients. Those without a grant must not fill the database."""

    OLD = "created_at = now() - interval '7 days', updated_at = now() - interval '7 days'"

    def test_client_that_nobody_allows_is_removed_after_seven_days(self, parts, database):
        client_id = insert_public_client(database, name="Wiki", is_dynamic=True)
        database.run(f"UPDATE oauth_clients SET {self.OLD}")
        database.run("UPDATE oauth_clients SET created_at = now() - interval '6 days'")
        assert janitor.clean(parts.db) == 0
        database.run(f"UPDATE oauth_clients SET {self.OLD}")
        assert (janitor.clean(parts.db), database.count("oauth_clients")) == (1, 0)
        details = database.value("SELECT details FROM audit_log WHERE action = 'client_deleted'")
        assert details == {"client_id": client_id, "client": "Wiki", "because": "unallowed"}

    def test_clients_of_operators_and_clients_with_a_grant_or_a_request_are_kept(
        self, parts, alice, database
    ):
        insert_public_client(database)
        granted, requested = (insert_public_client(database, is_dynamic=True) for _ in range(2))
        allow(database, alice.id, granted, age="8 days")
        database.run(
            "INSERT INTO oauth_requests (id_hash, client_id, browser_hash, redirect_uri, scopes, expires_at)"
            " VALUES ('', %(requested)s, '', '', '{}', now() + interval '1 minute')",
            requested=requested,
        )
        database.run(f"UPDATE oauth_clients SET {self.OLD}")
        assert (janitor.clean(parts.db), database.count("oauth_clients")) == (0, 3)


class TestUnusedUsers:
    """Users made by a sign-up or a message who never proved an address nor signed in."""

    @pytest.fixture
    def users_after(self, parts, database):
        """Return the number of users that are left when these days have passed."""

        def users_after(days, db=parts.db):
            columns = {"users": "created_at", "one_time_tokens": "expires_at"}
            for table, column in columns.items():
                age = f"{column} = {column} - make_interval(days => {days}, mins => 1)"
                database.run(f"UPDATE {table} SET {age}")
            janitor.clean(db)
            return database.count("users")

        return users_after

    @pytest.fixture
    def strangers(self, client):
        """A user by each request that strangers can send."""
        for path, body in (
            ("/signup", {"email": "signup@example.com", "password": PASSWORD}),
            ("/signup", {"phone": PHONE, "password": PASSWORD}),
            ("/magiclink", {"email": "magiclink@example.com"}),
            ("/otp", {"phone": OTHER_PHONE}),
        ):
            client.post(path, json=body)

    @pytest.fixture
    def dave(self, client):
        client.post("/magiclink", json={"email": "dave@example.com"})

    def test_users_are_removed_30_days_after_sign_up(self, strangers, database, users_after):
        assert [users_after(29), users_after(1)] == [4, 0]
        assert [database.count(table) for table in ("identities", "user_objects")] == [0, 0]

    def test_deletion_is_recorded_and_sent(self, hooks, target, dave, database, users_after):
        hooks.register(target, events=["user.deleted"])
        assert users_after(30) == 0
        details = database.value("SELECT details FROM audit_log WHERE action = 'user_deleted'")
        assert details == {"because": "unused"}
        assert database.count("outbox", "kind = 'user.deleted'") == 1

    @pytest.mark.parametrize(
        "change",
        [
            *("last_sign_in_at = now()", "email_proved = true", "phone_proved = true", "role = 'editor'"),
            *("made_by = 'administrator'", "made_by = 'invitation'", "banned_until = 'infinity'", None),
        ],
    )
    def test_user_who_was_used_or_made_or_changed_by_an_administrator_is_kept(
        self, dave, database, users_after, change
    ):
        google = "INTO identities (user_id, provider, subject, identity_data) SELECT id, 'google', '1', '{}'"
        database.run(f"UPDATE users SET {change}" if change else f"INSERT {google} FROM users")
        assert users_after(400) == 1

    def test_user_with_a_valid_link_is_kept(self, client, dave, parts, database, outbox):
        database.run("UPDATE users SET created_at = now() - interval '31 days'")
        client.post("/magiclink", json={"email": "dave@example.com"})
        janitor.clean(parts.db)
        assert_signs_in(client, "magiclink", outbox.last().token)


class TestAnonymousUsers:
    @pytest.fixture
    def visitors(self, make_app, database):
        """Thirty days ago an anonymous user signed in and out, and another stayed signed in."""
        client = make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()
        signed_out, live = (client.post("/signup", json={}).json for _ in range(2))
        client.post("/logout", headers={"Authorization": f"Bearer {signed_out['access_token']}"})
        database.run("UPDATE users SET created_at = now() - interval '30 days'")
        return signed_out["id"], live["id"]

    def test_anonymous_user_without_a_session_is_removed_after_30_days(self, parts, visitors, database):
        database.run("UPDATE users SET created_at = now() - interval '29 days 23 hours'")
        janitor.clean(parts.db)
        assert database.count("users") == 2
        database.run("UPDATE users SET created_at = now() - interval '30 days'")
        janitor.clean(parts.db)
        assert [str(row.id) for row in database.all("SELECT id FROM users")] == [visitors[1]]
        entry = database.one("SELECT user_id::text, details FROM audit_log WHERE action = 'user_deleted'")
        assert entry == (visitors[0], {"because": "abandoned"})
        # A session that expired does not keep the other user.
        database.run("UPDATE sessions SET refreshed_at = now() - interval '30 days'")
        janitor.clean(parts.db)
        assert database.count("users") == 0

    @pytest.mark.parametrize(
        "change", ["converted_at = now()", "role = 'editor'", "banned_until = 'infinity'"]
    )
    def test_user_who_converted_or_has_a_role_or_a_ban_is_kept(self, parts, visitors, database, change):
        database.run(f"UPDATE users SET {change} WHERE id = '{visitors[0]}'")
        janitor.clean(parts.db)
        assert database.count("users") == 2

    def test_anonymous_user_with_a_passkey_is_kept(self, parts, visitors, database):
        database.run(
            "INSERT INTO factors (id, user_id, factor_type, verified_at, credential_id, public_key, sign_count)"
            " VALUES (gen_random_uuid(), %(id)s, 'passkey', now(), 'id', 'key', 0)",
            id=visitors[0],
        )
        janitor.clean(parts.db)
        assert database.count("users") == 2
