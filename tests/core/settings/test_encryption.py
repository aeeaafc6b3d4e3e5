"""Connections to other machines are encrypted and verified, unless the settings say otherwise."""

from contextlib import closing

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from auth.core.settings.values import encryption
from sql.pool import connect, reason
from tests.support.cases import cases

REMEDY = (
    "Name the host as its certificate does, and add sslrootcert=FILE to the URL, with the authority that signed"
    " it."
    " Or add sslmode=prefer, which verifies nothing."
)

pytest_plugins = ["tests.support.tls_fixtures"]


def refusal(url):
    with pytest.raises(psycopg2.OperationalError) as error:
        connect(encryption.encrypted(url))
    return reason(error.value)


class TestDatabaseUrl:
    @cases(
        "url",
        [
            *("postgresql:///d", "postgresql://u@/d?host=%2Ftmp", "postgresql://u:p@localhost/d"),
            *("postgresql://u@[::1]/d", "postgresql://u@127.0.0.2:6432,localhost/d"),
            "postgresql://u@localhost/d?hostaddr=127.0.0.1",
        ],
    )
    def test_url_of_this_machine_stays_as_it_is(self, home, url):
        assert encryption.encrypted(url) == url

    @cases(
        "url",
        [
            *("postgresql://u:p@db.example/d", "postgres://u@10.0.0.20:5433/d", "postgresql://u@[fd00::2]/d"),
            "postgresql://u@127.0.0.1,db.example/d?target_session_attrs=read-write",
            *("postgresql://u@localhost/d?hostaddr=10.0.0.20", "postgresql:///d?host=db.example"),
            *("postgresql://u@db.example/d?hostaddr=127.0.0.1", "postgresql://u@localhost.example/d?"),
        ],
    )
    def test_url_of_another_machine_is_verified_by_the_authorities_of_the_system(
        self, home, monkeypatch, certificate, url
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
        parameters = {"sslmode": "verify-full", "sslrootcert": str(certificate.path)}
        encrypted_url = encryption.encrypted(url)
        assert parse_dsn(encrypted_url) == parse_dsn(url.rstrip("?")) | parameters
        assert encryption.encrypted(encrypted_url) == encrypted_url

    @cases("mode", ["disable", "prefer", "require", "verify-ca"])
    def test_mode_of_the_url_or_the_environment_stays(self, home, mode):
        url = f"postgresql://u@db.example/d?sslmode={mode}"
        assert encryption.encrypted(url) == url
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGSSLMODE", mode)
            assert encryption.encrypted("postgresql://u@db.example/d") == "postgresql://u@db.example/d"


class TestConnection:
    def test_server_with_the_name_of_the_url_and_a_known_authority_is_accepted(
        self, postgres, certificate, monkeypatch
    ):
        verified_url = postgres.url(sslrootcert=str(certificate.path))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
        for url in (verified_url, postgres.url()):
            with closing(connect(encryption.encrypted(url))) as connection:
                assert connection.info.ssl_in_use

    def test_server_with_another_name_is_refused(self, postgres, certificate):
        assert refusal(postgres.url("other.example", sslrootcert=str(certificate.path))) == (
            f'connection to server at "127.0.0.1", port {postgres.port} failed: server certificate for'
            f' "db.example" (and 1 other name) does not match host name "other.example". {REMEDY}'
        )

    def test_unknown_authority_is_refused_with_the_remedy(self, postgres):
        assert refusal(postgres.url()) == (
            f'connection to server at "127.0.0.1", port {postgres.port} failed: SSL error: certificate verify'
            f" failed. {REMEDY}"
        )

    def test_server_without_tls_is_refused_with_the_remedy(self, plain):
        assert refusal(plain.url()) == (
            f'connection to server at "127.0.0.1", port {plain.port} failed: server does not support SSL, but'
            f" SSL was required. {REMEDY}"
        )
        with closing(connect(encryption.encrypted(plain.url(sslmode="prefer")))) as connection:
            assert not connection.info.ssl_in_use


class TestNotices:
    @cases("mode", ["disable", "allow", "prefer", "require"])
    def test_mode_that_verifies_nothing_is_told(self, home, mode):
        url = f"postgresql://u:secret@127.0.0.1,db.example/d?sslmode={mode}"
        assert list(encryption.notices({"DATABASE_URL": url}, None)) == [
            f"DATABASE_URL has sslmode={mode}: the network from here to db.example can read and change what passes."
            " Use sslmode=verify-full, unless that network is yours alone."
        ]

    @cases("option", ["never", "offered"])
    def test_mail_server_without_tls_is_told(self, home, option):
        assert list(encryption.notices({}, f"smtp://u:secret@mail.example.com?starttls={option}")) == [
            f"AUTH_SMTP_URL has starttls={option}: the network from here to mail.example.com can read the links"
            " and codes in emails. Use starttls=required, unless that network is yours alone."
        ]
