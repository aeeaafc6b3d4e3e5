"""Patroni decides which of two servers is the primary."""

import time

from tests.faults.patroni import Cluster
from tests.faults.world import serves_again
from tests.support.processes import wait_until


def test_nothing_acknowledged_is_lost_when_patroni_fails_over(world, note):
    with (
        Cluster(world.state_dir.parent / "patroni") as cluster,
        world.service(DATABASE_URL=cluster.url) as service,
    ):
        with world.load(service) as history:
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
        world.postgres.stop()
        world.postgres = cluster
        world.check(history)
    note("nodes of Patroni killed", 2, f"served again after {took:.0f} s; {history.summary()}")
