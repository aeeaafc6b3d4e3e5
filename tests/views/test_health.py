"""GET /health while the database answers; tests/faults/test_lost_database.py has the rest."""

import time

from auth import __version__
from tests.support.answers import A_TIMESTAMP, assert_ok

HEALTHY = {"status": "healthy", "service": "latchkey", "version": __version__, "timestamp": A_TIMESTAMP}


def test_health_is_200_while_the_database_responds(client):
    assert_ok(client.get("/health"), HEALTHY)


def test_head_returns_no_body(client):
    response = client.head("/health")
    assert (response.status_code, response.data) == (200, b"")


def test_credentials_are_ignored(client):
    assert (
        client.get("/health", headers={"Authorization": "Bearer nonsense", "apikey": "nonsense"}).status_code
        == 200
    )


def test_health_costs_at_most_one_statement_a_second(client, parts):
    before = parts.db.statements_run
    began = time.monotonic()
    for _ in range(50):
        assert client.get("/health").status_code == 200
    assert parts.db.statements_run - before <= 1 + (time.monotonic() - began)
