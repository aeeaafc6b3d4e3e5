"""Starts of a service whose database is reached by TLS."""

from tests.core.settings.test_encryption import REMEDY
from tests.support.processes import Service

pytest_plugins = ["tests.support.tls_fixtures"]


def test_start_with_an_unverified_database_fails_with_one_line_that_names_the_remedy(plain, new_state_dir):
    line = (
        'DATABASE_URL: connection to server at "127.0.0.1", port'
        f" {plain.port} failed: server does not support SSL, but SSL was required. {REMEDY}\n"
    )
    assert Service(new_state_dir, DATABASE_URL=plain.url()).refuses_to_start() == (1, line)


def test_start_by_tls_succeeds_and_one_with_unverified_connections_logs_a_notice(
    postgres, certificate, new_state_dir
):
    notice, smtp_url = "the network from here to", "smtp://mail.example.com?starttls=never"
    with Service(new_state_dir, DATABASE_URL=postgres.url(), SSL_CERT_FILE=str(certificate.path)) as service:
        assert notice not in service.log()
    unverified = postgres.url(sslmode="require")
    with Service(new_state_dir, DATABASE_URL=unverified, AUTH_SMTP_URL=smtp_url) as service:
        lines = [line for line in service.log().splitlines() if notice in line]
    for line, beginning in zip(
        lines, ("DATABASE_URL has sslmode=require", "AUTH_SMTP_URL has starttls=never"), strict=True
    ):
        assert f"{beginning}: {notice}" in line
