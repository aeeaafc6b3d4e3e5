"""Starts of a service whose database is reached by TLS."""

import pytest

from tests.core.settings.test_encryption import REMEDY
from tests.support.processes import Service
from tests.support.smtp_server import Certificate
from tests.support.tls_postgres import TlsPostgres


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Where libpq looks for certificates."""
    for name in ("PGSSLMODE", "PGSSLROOTCERT", "PGHOST", "PGHOSTADDR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("tls"), "db.example")


@pytest.fixture
def postgres(certificate, database_url, home):
    with TlsPostgres(database_url, certificate) as postgres:
        yield postgres


@pytest.fixture
def plain(database_url, home):
    """A Postgres without TLS."""
    with TlsPostgres(database_url, None) as postgres:
        yield postgres


def test_start_with_an_unverified_database_fails_with_one_line_that_names_the_remedy(plain, new_state_dir):
    line = (
        'DATABASE_URL: connection to server at "127.0.0.1", port'
        f" {plain.port} failed: server does not support SSL, but SSL was required. {REMEDY}\n"
    )
    assert Service(new_state_dir, DATABASE_URL=plain.url()).refuses_to_start() == (1, line)


def test_start_by_tls_succeeds_and_one_without_says_so(postgres, certificate, new_state_dir):
    told, smtp_url = "the network from here to", "smtp://mail.example.com?starttls=never"
    with Service(new_state_dir, DATABASE_URL=postgres.url(), SSL_CERT_FILE=str(certificate.path)) as service:
        assert told not in service.log()
    unverified = postgres.url(sslmode="require")
    with Service(new_state_dir, DATABASE_URL=unverified, AUTH_SMTP_URL=smtp_url) as service:
        lines = [line for line in service.log().splitlines() if told in line]
    for line, beginning in zip(
        lines, ("DATABASE_URL has sslmode=require", "AUTH_SMTP_URL has starttls=never"), strict=True
    ):
        assert f"{beginning}: {told}" in line
