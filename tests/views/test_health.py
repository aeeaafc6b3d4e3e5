"""GET /health while the database answers; tests/faults/test_lost_database.py has the rest."""

import time

from auth import __version__
from tests.support.answers import A_TIMESTAMP, assert_ok

HEALTHY = {"status": "healthy", "service": "latchkey", "version": __version__, "timestamp": A_TIMESTAMP}


def test_health_is_200_while_the_database_responds(client):
    assert_ok(client.get("/health"), HEALTHY)
    assert_ok(client.get("/health", headers={"Authorization": "Bearer nonsense", "apikey": "x"}), HEALTHY)
    head = client.head("/health")
    assert (head.status_code, head.data) == (200, b"")


def test_health_costs_at_most_one_statement_a_second(client, parts):
    before = parts.db.statements_run
    began = time.monotonic()
    for _ in range(50):
        assert client.get("/health").status_code == 200
    assert parts.db.statements_run - before <= 1 + (time.monotonic() - began)
