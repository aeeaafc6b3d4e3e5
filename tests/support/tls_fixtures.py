"""Fixtures of the tests of encrypted connections to Postgres, which load this module as a plugin."""

import pytest

from tests.support.smtp_server import Certificate
from tests.support.tls_postgres import TlsPostgres


@pytest.fixture
def home(monkeypatch, tmp_path):
    """The directory in which libpq looks for certificates."""
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
