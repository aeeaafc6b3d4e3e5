"""Several nodes: a concurrent start, a failover, PgBouncer, and clocks that disagree."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import psycopg2
import pytest

from tests.support import processes
from tests.support.processes import PATIENT_GUNICORN, wait_until
from tests.support.server import at_once
from tests.support.users import PASSWORD, refresh, register, session_of, sign_in
from tests.system.faults.clients import ADMIN
from tests.system.faults.dependencies import PgBouncer, Replica, url_of_both
from tests.system.faults.deployment import serves_again

# The promised seconds for each response and for the recovery, and the slack for two busy cores.
PROMISED = 5
SLACK = 3
ALICE = "alice@example.com"
SHIFTED_CLOCK = Path(processes.__file__).with_name("shifted_clock.c")


def test_two_nodes_can_start_concurrently_on_an_empty_database(deployment):
    # The state directory is new too, so both nodes generate the secrets at the same moment.
    nodes = [deployment.service() for _ in range(2)]
    first, second = map(deployment.client, at_once(2, lambda number: nodes[number].__enter__()))
    person = register(first, ADMIN, ALICE)
    session = session_of(second, sign_in(second, ALICE))
    assert session.on(first).get("/user").json["id"] == person.id
    assert refresh(first, session.refresh_token).status_code == 200
    for node in nodes:
        node.__exit__(None, None, None)


def test_service_follows_the_promotion_of_a_replica(deployment):
    primary = deployment.postgres
    replica = Replica(primary, deployment.state_dir.parent / "replica")
    with deployment.service(DATABASE_URL=url_of_both(primary, replica)) as service:
        with deployment.load(service) as history:
            history.may_lose_counters = True
            primary.freeze()
            replica.promote()
            wait_until(serves_again(history), 30)
            wait_until(serves_again(history))
        # Data that only the lost primary holds must not come back.
        primary.thaw()
        primary.kill()
        deployment.postgres = replica
        deployment.check(history)
    primary.stop()
    assert history.slowest[0] < PROMISED + SLACK, history.slowest


def test_service_recovers_from_restarts_of_pgbouncer(deployment):
    with (
        PgBouncer(deployment) as bouncer,
        deployment.service(DATABASE_URL=bouncer.url, AUTH_DB_PREPARE="false") as service,
    ):
        with deployment.load(service) as history:
            for _ in range(2):
                wait_until(serves_again(history))
                bouncer.kill()
                bouncer.start()
                wait_until(serves_again(history))
        deployment.check(history)
    assert history.slowest[0] < PROMISED + SLACK, history.slowest


def test_node_behind_pgbouncer_notifies_the_delivery_process_of_one_that_is_not(deployment):
    with (
        PgBouncer(deployment) as bouncer,
        deployment.service(
            DATABASE_URL=bouncer.url, AUTH_DB_PREPARE="false", AUTH_DELIVER="false"
        ) as service,
        contextlib.closing(psycopg2.connect(deployment.postgres.url)) as listener,
    ):
        listener.autocommit = True
        with listener.cursor() as cursor:
            cursor.execute("LISTEN outbox")
            assert deployment.client(service).post("/otp", json={"email": ALICE}).status_code == 200
            cursor.execute("SELECT FROM outbox")
            assert (cursor.rowcount, len(listener.notifies)) == (1, 1)


def test_nodes_with_wrong_clocks_agree_on_times(deployment, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("NO CLOCK IS WRONG IN THESE TESTS: there is no C compiler; apt-get install gcc brings it")
    library = tmp_path / "shifted_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SHIFTED_CLOCK], check=True)
    with (
        deployment.service(PATIENT_GUNICORN, LD_PRELOAD=str(library), CLOCK_SHIFT="600") as ahead,
        deployment.service(PATIENT_GUNICORN, LD_PRELOAD=str(library), CLOCK_SHIFT="-600") as behind,
    ):
        for service, seconds in ((ahead, 600), (behind, -600)):
            timestamp = deployment.client(service).get("/health").json["timestamp"]
            shift = deployment.postgres.run(
                f"SELECT extract(epoch FROM timestamptz '{timestamp}' - now())::float"
            )[0]
            assert abs(shift - seconds) < 60, "the clock is not wrong: nothing is shown"
        with deployment.load(ahead, behind) as history:
            wait_until(lambda: history.answered() > 200, 120)
            for service in (ahead, behind):
                client = deployment.client(service)
                register(client, ADMIN, f"{service.port}@example.org")
                claims = session_of(client, sign_in(client, f"{service.port}@example.org", PASSWORD)).claims
                now = deployment.postgres.run("SELECT extract(epoch FROM now())::float")[0]
                assert abs(claims["iat"] - now) < 30
                assert claims["exp"] == claims["iat"] + 3600
        deployment.check(history)
    assert history.failed() == 0
