"""A Postgres that answers and refuses writes: GET /health says so, and that all is well once it takes them again."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from auth import __version__
from auth.core.health import HealthCheck
from auth.ops.processes import embedded_postgres
from sql import Database
from tests.support.answers import A_TIMESTAMP, unhealthy
from tests.support.commands import run_process
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.processes import wait_until
from tests.support.server import ServerClient
from tests.support.users import PASSWORD, register, sign_in
from tests.system.faults.dependencies import Replica, url_of_both
from tests.system.faults.deployment import Deployment
from tests.system.faults.test_doctor import fill, results_of, settings_of

ADMIN = {"apikey": SERVICE_ROLE_KEY}
READ_ONLY = "The database is read-only; nothing can be written"
REFUSED = "The database refuses writes ({}); latchkey doctor says why"
FULL = "The disk of the database is full; nothing can be written"
# Two million transactions before the end of the numbers. Postgres keeps three; at a multiple of 65,536, each refused
# transaction starts the autovacuum that may help.
LAST = (2**31 - 2_000_000) // 65_536 * 65_536
_PER_SEGMENT = 8192 * 4 * 32  # transactions in a file of pg_xact


def assert_degraded(client: ServerClient, msg: str) -> None:
    """Wait until every worker says so: each remembers its last answer for a second."""

    body = unhealthy(msg)
    degraded = {name: body[name] for name in ("service", "version", "timestamp", "msg")}
    answers = {"/health": (200, degraded | {"status": "degraded"}), "/health?strict": (503, body)}

    def is_told() -> bool:
        responses = [(path, client.get(path)) for path in answers for _ in range(8)]
        return all((response.status_code, response.json) == answers[path] for path, response in responses)

    wait_until(is_told, 30)


def assert_healthy(client: ServerClient) -> None:
    wait_until(lambda: all(client.get("/health?strict").status_code == 200 for _ in range(8)), 30)
    healthy = {"status": "healthy", "service": "latchkey", "version": __version__, "timestamp": A_TIMESTAMP}
    assert client.get("/health?strict").json == healthy


def write_status(client: ServerClient) -> int:
    return sign_in(client, "alice@example.com").status_code


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    # A logical replication slot keeps old rows: nothing is mended before it is dropped.
    with Deployment(wal_level="logical", max_replication_slots="4", autovacuum="off") as deployment:
        yield deployment


@contextmanager
def served(deployment: Deployment, **settings: Any) -> Iterator[ServerClient]:
    with deployment.service(AUTH_RATE_LIMITS_ENABLED="false", **settings) as service:
        client = deployment.client(service)
        register(client, ADMIN, "alice@example.com")
        assert_healthy(client)
        yield client


def use_up_transaction_ids(postgres: Any, data: Path) -> None:
    postgres.run("SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')")
    postgres.stop()
    owner = data.stat()
    segment = data / "pg_xact" / f"{LAST // _PER_SEGMENT:04X}"
    segment.write_bytes(bytes(_PER_SEGMENT // 4))
    segment.chmod(0o600)
    os.chown(segment, owner.st_uid, owner.st_gid)
    program = embedded_postgres.find_programs() / "pg_resetwal"
    identity: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    subprocess.run(
        [str(program), f"--next-transaction-id={LAST}", str(data)], check=True, stdout=subprocess.DEVNULL, **identity
    )  # fmt: skip
    postgres.start()


def test_health_says_that_the_transaction_ids_of_the_database_are_used_up(deployment):
    with served(deployment) as client:
        use_up_transaction_ids(deployment.postgres, deployment.state_dir.parent / "database" / "postgres")
        assert_degraded(client, REFUSED.format("54000, program_limit_exceeded"))
        assert write_status(client) == 503
        _, results = results_of(settings_of(deployment))
        assert results["database-version"]["status"] == "failed"
        assert "to avoid wraparound data loss" in results["database-version"]["text"]
        assert results["database-version"]["setting"] == (
            "Drop what keeps old rows (pg_replication_slots, pg_prepared_xacts), then, as a superuser in that database, run: VACUUM;"
        )
        deployment.postgres.run("SELECT pg_drop_replication_slot('forgotten')", "VACUUM")
        assert_healthy(client)
        assert write_status(client) == 200


@contextmanager
def changed(deployment: Deployment, *change: str, undo: tuple[str, ...]) -> Iterator[None]:
    deployment.postgres.run(*change)
    try:
        yield
    finally:
        deployment.postgres.run(*undo)


def test_health_says_that_the_database_is_read_only(deployment):
    undo = ("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
    change = ("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    with served(deployment) as client:
        with changed(deployment, *change, undo=undo):
            assert_degraded(client, READ_ONLY)
            assert write_status(client) == 503
        assert_healthy(client)
        assert write_status(client) == 200


def test_health_says_that_the_service_reached_a_replica(deployment):
    with served(deployment):
        replica = Replica(deployment.postgres, deployment.state_dir.parent / "replica")
        try:
            # A service does not start there, but a primary may become one.
            for url, trouble in (
                (replica.url, READ_ONLY),
                (url_of_both(replica, deployment.postgres), None),
            ):
                with closing(Database(url)) as db:
                    assert wait_until(HealthCheck(db).look, 10) == (True, trouble)
        finally:
            deployment.postgres.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
            replica.stop()


def test_health_says_that_the_role_of_requests_has_lost_its_rights(deployment):
    owner_url, role = deployment.postgres.url, "latchkey"
    url = owner_url.replace("//postgres@", f"//{role}@")
    with served(deployment, DATABASE_URL=url, AUTH_DATABASE_OWNER_URL=owner_url) as client:
        deployment.postgres.run(f"REVOKE INSERT, UPDATE ON users, sessions, last_done FROM {role}")
        assert_degraded(client, REFUSED.format("42501, insufficient_privilege"))
        assert write_status(client) >= 500
        settings = settings_of(deployment, DATABASE_URL=url, AUTH_DATABASE_OWNER_URL=owner_url)
        _, results = results_of(settings)
        assert results["database-version"]["text"] == (
            "The database refuses writes, so sign-ins and changes fail: permission denied for table last_done."
        )
        revoke = f"REVOKE ALL ON last_done FROM {role};"
        assert results["database-version"]["setting"] == (
            f"As the owner of the tables, run in psql: {revoke} Then grant the others, with that owner's URL in"
            " AUTH_DATABASE_OWNER_URL, by: latchkey migrate"
        )
        deployment.postgres.run(revoke)
        assert run_process(settings, "migrate").returncode == 0
        assert_healthy(client)
        assert write_status(client) == 200


def test_locked_table_of_the_check_does_not_delay_health_and_is_named(deployment):
    with served(deployment) as client, closing(psycopg2.connect(deployment.postgres.url)) as holder:
        holder.cursor().execute("LOCK TABLE last_done")
        # A check that took a second, as one with the two seconds of other statements would, would be 503.
        assert_degraded(client, REFUSED.format("55P03, lock_not_available"))
        holder.rollback()
        assert_healthy(client)


def test_doctor_says_that_a_write_takes_too_long(deployment):
    sleeps = "CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'"
    trigger = "CREATE TRIGGER sleeps BEFORE INSERT ON last_done FOR EACH ROW EXECUTE FUNCTION sleeps()"
    with served(deployment) as client:
        with changed(deployment, sleeps, trigger, undo=("DROP FUNCTION sleeps CASCADE",)):
            wait_until(lambda: client.get("/health").status_code == 503, 20)
            _, results = results_of(settings_of(deployment))
        result = results["database-version"]
        problem = "The database is UTF8 and writable: "
        # A busy machine may be the reason.
        assert result["status"] in ("failed", "unknown")
        assert result["text"].startswith((f"{problem}could not be checked, ", f"{problem}not checked: "))
        assert_healthy(client)


def test_statement_that_an_operator_ends_is_no_answer_and_another_code_is_told(deployment):
    raises = "CREATE FUNCTION raises() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''a value'' USING ERRCODE = ''{}''; END'"
    trigger = "CREATE TRIGGER raises BEFORE INSERT ON last_done FOR EACH ROW EXECUTE FUNCTION raises()"
    undo = ("DROP FUNCTION raises CASCADE",)
    with served(deployment) as client:
        with changed(deployment, raises.format("57014"), trigger, undo=undo):
            wait_until(lambda: all(client.get("/health").status_code == 503 for _ in range(8)), 30)
        with changed(deployment, raises.format("ZZ001"), trigger, undo=undo):
            assert_degraded(client, REFUSED.format("ZZ001"))
        assert_healthy(client)


def test_health_is_well_again_after_its_backends_were_killed(deployment):
    kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'latchkey'"
    with served(deployment) as client:
        assert deployment.postgres.run(kill)[0] > 0
        assert_healthy(client)
        assert write_status(client) == 200


def test_health_writes_a_row_once_and_then_leaves_no_dead_ones(deployment):
    with served(deployment, AUTH_DELIVER="false") as client:
        run = deployment.postgres.run
        place = partial(run, "SELECT ctid::text, at FROM last_done WHERE task = 'health'")
        next_id = partial(run, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")

        def is_checked_after(id_before: Any) -> bool:
            assert client.get("/health?strict").status_code == 200
            return next_id() != id_before

        before = place()
        for _ in range(3):
            wait_until(partial(is_checked_after, next_id()))
        assert place() == before
        assert run("SELECT count(*) FROM last_done WHERE task = 'health'") == (1,)


def test_health_says_that_the_disk_is_full_after_a_write_has_found_out(small_disk):
    ballast = small_disk / "ballast"
    with (
        Deployment(small_disk, max_wal_size="48MB", min_wal_size="32MB") as deployment,
        served(deployment) as client,
    ):
        fill(ballast)

        def is_refused() -> bool:
            # Postgres would compress other text.
            name = secrets.token_hex(400)
            body = {"email": f"{name[:8]}@example.com", "password": PASSWORD, "data": {"text": name}}
            response = client.post("/signup", json=body)
            assert response.status_code in (200, 201, 503), response.data
            return response.status_code == 503

        wait_until(is_refused, 60)
        assert_degraded(client, FULL)
        ballast.unlink()
        assert_healthy(client)
