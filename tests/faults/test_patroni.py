"""Patroni decides which of two servers is the primary."""

import time

from tests.faults.deployment import serves_again
from tests.faults.patroni import Cluster
from tests.support.processes import wait_until


def test_nothing_acknowledged_is_lost_when_patroni_fails_over(deployment, note):
    with (
        Cluster(deployment.state_dir.parent / "patroni") as cluster,
        deployment.service(DATABASE_URL=cluster.url) as service,
    ):
        with deployment.load(service) as history:
            history.may_lose_counters = True
            primary, replica = cluster.wait_for("primary"), cluster.wait_for("replica")
            began = time.monotonic()
            primary.kill()
            assert cluster.wait_for("primary") is replica
            wait_until(serves_again(history), 30)
            took = time.monotonic() - began
            # The former primary follows the new one, and becomes the primary again.
            primary.start()
            assert cluster.wait_for("replica") is primary
            wait_until(serves_again(history))
            replica.kill()
            assert cluster.wait_for("primary") is primary
            wait_until(serves_again(history), 30)
        deployment.postgres.stop()
        deployment.postgres = cluster
        deployment.check(history)
    note("nodes of Patroni killed", 2, f"served again after {took:.0f} s; {history.summary()}")
