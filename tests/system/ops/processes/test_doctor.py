"""`latchkey doctor` finds every fault that is planted here, and none in a healthy service."""

import dataclasses
import json
import os
import re
import resource
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest

from auth.core.checks import Check
from auth.core.keys import rotation
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.net.sockets import is_here
from auth.core.settings import cores
from auth.core.tokens import one_time, signing_keys
from auth.core.tokens.derived_keys import Sealer, derive
from auth.ops.doctor import database as database_checks
from auth.ops.doctor import examination, interpreter, public_url, secrets
from auth.ops.doctor.examination import CHECKS, examine
from sql import pool, queries, schema
from tests.support.cases import cases
from tests.support.commands import run_command, run_with_settings
from tests.support.contract import OPENAPI
from tests.support.dns_server import DnsServer
from tests.support.environment import secret
from tests.support.forwarder import Forwarder
from tests.support.http_target import HttpTarget
from tests.support.openid import insert_client
from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.reverse_proxy import ReverseProxy
from tests.support.smtp_server import (
    ENCODED_PASSWORD,
    PASSWORD,
    USER,
    BadMailServer,
    Certificate,
    MailServer,
    TokenMailServer,
)
from tests.support.tls_postgres import TlsPostgres
from tests.system.faults.dependencies import PgBouncer

UNTIL_IT_RESPONDS = "Wait until the network, DNS, the disk and Postgres respond, then run this again."
PUBLIC = {"base_url": "https://auth.example.com", "site_url": "https://auth.example.com"}
DOMAIN = {
    "example.com": "v=spf1 include:mail.example.net -all",
    "s1._domainkey.example.com": "v=DKIM1; p=x",
    "_dmarc.example.com": "v=DMARC1; p=reject",
}
# Checks that do not concern a service on this machine that sends no mail.
INAPPLICABLE = {
    "backup",
    "certificate",
    "clock",
    "discovery",
    "hooks",
    "mail-server",
    "message-totals",
    "sender",
    "test-settings",
}
ONE_ROLE = "TEST_DATABASE_URL" in os.environ
# If the tests get one role, or run with such a Python.
NOTED = ({"role": "note"} if ONE_ROLE else {}) | (
    {"python": "note"} if interpreter.built_plainly(sysconfig.get_config_var("CONFIG_ARGS") or "") else {}
)
two_roles = pytest.mark.skipif(ONE_ROLE, reason="NOT TESTED: TEST_DATABASE_URL has one role only")
MAIL = PUBLIC | {"smtp_url": "smtp://mail.example.com", "mail_from": "Example <no-reply@example.com>"}


class TestHealthyService:
    def test_every_check_passes_and_leaves_nothing_behind(self, healthy, database):
        before = database.everything()
        results = examine(healthy)
        assert {result.check for result in results if result.status == "skipped"} == INAPPLICABLE
        assert {
            result.check: result.status for result in results if result.status not in ("ok", "skipped")
        } == NOTED
        assert [result.check for result in results] == [check.name for check in CHECKS]
        assert database.everything() == before

    def test_command_prints_ticks_and_skipped_checks(self, healthy, environment, base_url):
        others = {"AUTH_BASE_URL": base_url, "AUTH_SITE_URL": base_url}
        done = run_with_settings({**environment, **others}, "doctor")
        assert (done.exit_code, done.stderr) == (0, "")
        marks = [
            "-" if check.name in INAPPLICABLE else "i" if check.name in NOTED else "✓" for check in CHECKS
        ]
        # A remedy is indented.
        assert [line[0] for line in done.stdout.splitlines() if line[0] != " "] == ["✓", *marks]
        assert "\n- There is a recent backup: not checked, AUTH_BASE_URL is this machine\n" in done.stdout

    def test_page_explains_every_check(self):
        page = (OPENAPI.parent / "docs" / "doctor.md").read_text()
        named = re.findall(r"^- `([a-z-]+)`: ", page, re.MULTILINE)
        assert named == ["settings", *(check.name for check in CHECKS)]


# How some Pythons were configured, and whether that is known to be without optimisation.
@pytest.mark.parametrize(
    ("configured", "plainly"),
    [
        ("'--prefix=/home/ada/.pyenv/versions/3.13.0' '--enable-shared'", True),
        ("'--enable-shared' '--with-lto' '--enable-optimizations'", False),
        ("'--enable-shared' '--prefix=/usr' '--with-computed-gotos'", False),
        ("", False),
    ],
    ids=("pyenv", "official image", "Debian", "unknown"),
)
def test_python_is_called_plain_only_if_it_says_so(configured, plainly):
    assert interpreter.built_plainly(configured) is plainly


def test_python_built_plainly_is_noted(look, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _name: "'--prefix=/opt/python'")
    remedy = "Use the python3 of your distribution, or of the image python:3.13, as docs/performance.md says."
    assert look("python") == remedy


class TestCommand:
    def test_failure_has_the_setting_to_write_and_an_exit_status(self, app, database):
        done = run_command(app, "doctor")
        lines = done.output.splitlines()
        assert done.exit_code == 3
        assert (
            lines[lines.index("✗ There is no administrator, so the console admits no user.") + 1]
            == "  Run: latchkey create-admin EMAIL"
        )

    def test_json_has_one_object_for_each_check(self, app, database):
        done = run_command(app, "doctor", "--json", "--skip", "administrators", "--skip", "public-url")
        results = [json.loads(line) for line in done.output.splitlines()]
        expected = [check.name for check in CHECKS if check.name not in ("administrators", "public-url")]
        assert [result["check"] for result in results] == ["settings", *expected]
        assert {tuple(result) for result in results} == {("check", "status", "text", "setting")}

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("AUTH_SECRET_KEY", "changeme-changeme-changeme-changeme"),
            ("AUTH_REDIRECT_ALLOW_LIST", "app.example.com"),
            ("AUTH_RATE_LIMITS_ENABLE", "true"),
            ("AUTH_STATE_DIR", "/nowhere"),
            ("AUTH_BRAND_LOGO", "/nowhere.png"),
            ("AUTH_MAIL_TEMPLATES", "/nowhere"),
            ("AUTH_BACKUP_RECIPIENTS", "age1…"),
        ],
    )
    def test_settings_that_would_stop_the_start_are_failures(
        self, environment, healthy, setting, value, monkeypatch
    ):
        monkeypatch.setattr(examination, "CHECKS", ())
        done = run_with_settings(environment | {setting: value}, "doctor", "--json")
        first = json.loads(done.stdout.splitlines()[0])
        assert (done.exit_code, first["check"], first["status"]) == (3, "settings", "failed")
        assert first["setting"] == f"Correct it as docs/settings.md says: {setting}=…"


# A check, the settings that make it fail, and how the setting to write begins.
OTHERS: dict[str, Any] = {
    "secret_key": (secret("other"),),
    "jwt_keys": signing_keys.new_jwk_set(),
    "key_files": {},
}
UNLIMITED = PUBLIC | {"rate_limits_enabled": False}
LIMITED = PUBLIC | {"rate_limits_enabled": True}
ALLOW_LIST, APP = "AUTH_REDIRECT_ALLOW_LIST", "https://app.example.com"
AWAY = {"rate_limits_enabled": True, "rate_limit_storage": f"redis://127.0.0.1:{free_port()}"}
SQL_HOOK, NO_SERVER = "pg-functions://postgres/pg_catalog/", f"http://127.0.0.1:{free_port()}/hook"
SETTINGS = [
    ("hooks", {"hook_custom_access_token": f"{SQL_HOOK}jsonb_strip_nulls"}, None),
    ("hooks", {"hook_custom_access_token": f"{SQL_HOOK}no_hook"}, "Create and grant that function"),
    ("hooks", {"hook_custom_access_token": f"{SQL_HOOK}now"}, "Create and grant that function"),
    ("hooks", {"hook_before_user_created": NO_SERVER}, "Start the server of AUTH_HOOK_BEFORE_USER_CREATED"),
    ("connections", {"workers": 64}, "Set AUTH_WORKERS=31, or raise the limit"),
    ("redis", AWAY, "Start that Redis, or set AUTH_RATE_LIMIT_STORAGE="),
    ("keys", OTHERS, "Set AUTH_SECRET_KEY to its value on the other nodes, or in a backup. Set AUTH_JWT_KEYS to"),
    ("public-url", {"base_url": f"http://127.0.0.1:{free_port()}"}, "If http://127.0.0.1:"),
    ("public-url", {"base_url": "http://auth.example.com"}, "Serve it by https, and set: AUTH_BASE_URL="),
    ("redirects", PUBLIC | {"site_url": APP}, None),
    ("redirects", PUBLIC | {"site_url": "http://localhost:3000"}, "Set AUTH_SITE_URL to the URL of your application"),
    ("redirects", PUBLIC | {"site_url": "http://app.example.com"}, f"Serve your application by https, and set: AUTH_SITE_URL={APP}"),
    ("redirects", PUBLIC | {"redirect_allow_list": ("http://app.example.com/**",)}, f"In {ALLOW_LIST}, replace it by: {APP}/**"),
    ("redirects", PUBLIC | {"site_url": APP, "redirect_allow_list": ("https://www.example.com/**",)}, None),
    ("test-settings", LIMITED, None),
    ("test-settings", UNLIMITED, "Set AUTH_RATE_LIMITS_ENABLED=true."),
    ("test-settings", LIMITED | {"rate_limit_storage": "memory://"}, "Set AUTH_RATE_LIMIT_STORAGE=postgresql."),
    ("mail-server", MAIL | {"smtp_url": None}, "Set the server: AUTH_SMTP_URL=smtp://"),
    ("mail-server", MAIL | {"smtp_url": "console"}, "Set the server: AUTH_SMTP_URL=smtp://"),
    ("mail-server", {"smtp_url": None}, "emails are printed"),
    ("mail-server", {"smtp_url": "console"}, "emails are printed"),
    ("sender", MAIL | {"mail_from": "Latchkey <no-reply@localhost>"}, "Set AUTH_MAIL_FROM to"),
    ("sms", PUBLIC, "Set AUTH_SMS_PROVIDER to"),
    ("sms", PUBLIC | {"sms_provider": "none"}, "phones are not used"),
]  # fmt: skip
# A check, the statement after which it fails, and how the setting to write begins.
IDLE = "UPDATE last_done SET at = now() - interval '{}'"
TOTAL = (
    "INSERT INTO failure_counts (kind, count, key, expires_at, seconds)"
    " SELECT kind, count, kind || ' 3600', now() + interval '1 hour', 3600 FROM (VALUES ('{}', {})) AS of (kind, count)"
)
ROWS = [
    ("administrators", "UPDATE users SET role = 'authenticated'", {}, "Run: latchkey create-admin EMAIL"),
    ("administrators", "UPDATE users SET banned_until = 'infinity'", {}, "Run: latchkey create-admin EMAIL"),
    ("delivery", IDLE.format("5 minutes"), {"deliver": True}, "Fix what journalctl -u latchkey says of it"),
    ("delivery", "DELETE FROM last_done", {"deliver": False}, "Set AUTH_DELIVER=true"),
    ("message-totals", TOTAL.format("mail", 749), LIMITED, None),
    (
        "message-totals",
        TOTAL.format("mail", 750),
        LIMITED,
        "If your own users requested them, raise AUTH_RATE_LIMIT_MAIL_TOTAL",
    ),
    (
        "message-totals",
        TOTAL.format("notices_sms", 200),
        LIMITED,
        "If your own users requested them, raise AUTH_RATE_LIMIT_NOTICES_SMS_TOTAL",
    ),
    ("message-totals", "SELECT", UNLIMITED, "rate limits are off"),
    ("backup", "SELECT", PUBLIC, None),
    ("backup", IDLE.format("8 days"), PUBLIC, "Set AUTH_BACKUP_RECIPIENTS to what"),
    ("backup", "DELETE FROM last_done", PUBLIC, "Set AUTH_BACKUP_RECIPIENTS to what"),
]


@pytest.mark.parametrize(
    ("check", "statement", "changes", "remedy"),
    [*((check, "SELECT", changes, remedy) for check, changes, remedy in SETTINGS), *ROWS],
)
def test_fault_of_the_settings_or_rows_has_a_remedy(look, database, check, statement, changes, remedy):
    database.run(statement)
    found = look(check, **changes)
    assert found is remedy or found.startswith(remedy)


class TestClock:
    def test_clock_is_not_compared_with_itself(self, look):
        assert look("clock") == "neither Postgres nor AUTH_SITE_URL is on another machine"

    @cases(
        ("headers", "difference", "remedy"),
        [
            ({}, 5.0, None),
            ({"Age": "60"}, 5.0, "On both machines, run: timedatectl set-ntp true"),
            ({"Age": "60"}, 90.0, None),
            ({"Age": "soon"}, 5.0, None),
            ({}, -1.0, "On both machines, run: timedatectl set-ntp true"),
        ],
    )
    def test_clock_is_compared_with_those_of_other_machines(
        self, look, monkeypatch, headers, difference, remedy
    ):
        monkeypatch.setattr(database_checks, "is_here", lambda _host: False)
        monkeypatch.setattr(database_checks, "GREATEST_CLOCK_DIFFERENCE", difference)
        with HttpTarget() as site:
            site.headers = headers
            assert look("clock", site_url=site.url) == remedy

    @cases(
        ("host", "expected"),
        [("127.0.0.1", True), ("localhost", True), ("192.0.2.1", False), ("nowhere.invalid", False)],
    )
    def test_this_machine_is_known_by_its_addresses(self, host, expected):
        assert is_here(host) is expected


class TestDatabase:
    def test_database_that_is_away_is_one_failure(self, healthy):
        gone = dataclasses.replace(
            healthy, database_url=f"postgresql://u:topsecret@127.0.0.1:{free_port()}/d"
        )
        results = {result.check: result for result in examine(gone)}
        assert "DATABASE_URL=" in str(results["database"].setting)
        others = {name: results[name].status for name in ("schema", "clock", "keys", "webhooks")}
        assert others == dict.fromkeys(others, "skipped")
        assert "topsecret" not in str(results)

    def test_database_that_does_not_answer_is_found_in_time(self, healthy, database_url, monkeypatch):
        monkeypatch.setattr(pool, "DEADLINE", 2.4)
        with Forwarder(database_url) as forwarder, BadMailServer("GREETING", "hang") as silent:
            hung = forwarder.url.replace(str(forwarder.port), str(silent.port))
            results = examine(dataclasses.replace(healthy, database_url=hung))
        assert (results[0].check, results[0].status) == ("database", "failed")
        assert "no answer within" not in results[0].text

    def test_read_only_database(self, look, database):
        name = database.value("SELECT current_database()")
        database.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        try:
            assert "target_session_attrs=read-write" in look("database-version")
        finally:
            database.run("SET default_transaction_read_only = off")
            database.run(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')

    def test_schema_of_another_release_or_none(self, look, database, new_database):
        change = "UPDATE schema_version SET version = %(version)s, usable_from = %(usable_from)s"
        try:
            for version, remedy in (
                (-1, "Restart the service, or run: latchkey migrate"),
                (+1, "Install the release that"),
            ):
                database.run(change, version=schema.NEWEST + version, usable_from=None)
                assert look("schema").startswith(remedy)
            database.run(change, version=schema.NEWEST + 1, usable_from=schema.NEWEST)
            assert look("schema") is None
        finally:
            database.run(change, version=schema.NEWEST, usable_from=schema.usable_from())
        assert look("schema", database_url=new_database()) == "Run: latchkey migrate"

    @two_roles
    def test_hook_that_the_role_may_not_call_is_granted_by_the_statement(self, look, healthy, database):
        hook = {"hook_custom_access_token": "pg-functions://postgres/of_doctor/hook"}
        database.run(
            "CREATE SCHEMA of_doctor;"
            "CREATE FUNCTION of_doctor.hook(event jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT event'"
        )
        try:
            skip = {check.name for check in CHECKS} - {"hooks"}
            (result,) = examine(dataclasses.replace(healthy, **hook), skip)
            database.run(result.text.partition("the role of DATABASE_URL may not call it: ")[2].rstrip("."))
            assert look("hooks", **hook) is None
        finally:
            database.run("DROP SCHEMA of_doctor CASCADE")

    def test_prepared_statements_behind_pgbouncer(self, look, database_url, state_dir):
        if "host=%2F" not in database_url:
            pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
        world: Any = SimpleNamespace(postgres=SimpleNamespace(url=database_url), state_dir=state_dir)
        with PgBouncer(world) as bouncer:
            assert look("pooler", database_url=bouncer.url) == "Set AUTH_DB_PREPARE=false."
            unprepared = look("pooler", database_url=bouncer.url, db_prepare=False)
        assert unprepared.startswith("AUTH_DB_PREPARE is false")


class TestKeysAndStateDirectory:
    def test_old_key_is_to_be_replaced_and_then_removed(self, look, healthy, database, parts, no_openid_keys):
        aged = "UPDATE key_fingerprints SET seen_at = now() - interval '500 days' WHERE setting = %(name)s"
        database.run(aged, name="AUTH_JWT_KEYS")
        assert look("key-age").startswith("Run latchkey keys rotate signing and")
        database.run("UPDATE key_fingerprints SET seen_at = now()")
        OpenIdKeys(parts.db, parts.sealer).make_first()
        database.run("UPDATE openid_keys SET created_at = now() - interval '500 days'")
        assert look("key-age").startswith("Run latchkey keys rotate openid and")
        database.run("UPDATE openid_keys SET created_at = now()")
        database.run(aged, name="AUTH_SECRET_KEY")
        (old,) = rotation.keys_of("secret", healthy)
        for at, moment in (
            ("2026-01-01T00:00:00Z", "now"),
            ("2099-01-01T00:00:00Z", "after 2099-01-01T00:00:00Z"),
        ):
            keys = (f"{secret('new')}@{at}", *healthy.secret_key)
            assert look("key-age", secret_key=keys) == f"Run {moment}: latchkey keys remove {old.id}"

    def test_secrets_that_a_lost_key_has_encrypted(self, look, parts, database, no_openid_keys):
        lost = Sealer(derive(("a secret key that is lost",), "outbox"))
        OpenIdKeys(parts.db, lost).make_first()
        assert look("keys").startswith(
            "Run latchkey keys rotate openid --now and, a minute later: latchkey keys remove"
        )
        database.run("DELETE FROM openid_keys")
        assert look("keys") is None

    @pytest.fixture
    def state(self, healthy, tmp_path):
        """A state directory with a key file, as settings."""
        directory = tmp_path / "var"
        directory.mkdir(mode=0o700)
        path = directory / "secret_key"
        path.write_text(secret("own"))
        path.chmod(0o600)
        return {"state_dir": directory, "key_files": {"secret_key": path}}

    @pytest.mark.parametrize(
        ("name", "mode", "safe"), [("", 0o755, r"7[01][01]"), ("secret_key", 0o640, "600")]
    )
    def test_secrets_that_others_can_read(self, look, state, name, mode, safe):
        assert look("state-directory", **state) is None
        path = state["state_dir"] / name
        path.chmod(mode)
        assert re.fullmatch(f"Run: chmod {safe} {path}", look("state-directory", **state))

    def test_disk_without_room(self, look, state, monkeypatch):
        monkeypatch.setattr(secrets, "LEAST_FREE", 2**62)
        assert look("disk", **state).startswith(f"Free space on the disk of {state['state_dir']}")

    def test_quota_that_is_used_up(self, look, state):
        # The system refuses to write a larger file, as it does beyond a quota.
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
        try:
            assert "raise its quota" in look("disk", **state)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestPublicUrl:
    def test_url_that_leads_to_something_else_or_an_older_release(self, look, target):
        for name, begins in (
            ("public-url", "If http://"),
            ("proxies", "Set AUTH_BASE_URL to the URL of this"),
        ):
            assert look(name, base_url=target.url).startswith(begins)
        target.body = b'{"service": "latchkey", "status": "healthy", "version": "0.0.1"}'
        assert look("public-url", base_url=target.url) == "Run: systemctl restart latchkey"

    def test_issuer_at_which_applications_find_no_provider(self, look, database, base_url, target):
        assert look("discovery") == "no application signs users in here"
        insert_client(database)
        assert look("discovery", oauth_server=False) == "no application signs users in here"
        target.body = json.dumps({"issuer": f"{target.url}/auth"}).encode()
        assert look("discovery", jwt_issuer=f"{target.url}/auth") is None
        closed = f"http://127.0.0.1:{free_port()}"
        for issuer in (base_url, target.url, f"{base_url}/nowhere", closed, "not a URL"):
            remedy = look("discovery", jwt_issuer=issuer)
            assert remedy.startswith(f"Have the proxy lead {issuer}/.well-known/openid-configuration to this")

    def test_unhealthy_service_is_quoted(self, healthy, target):
        target.status, target.body = 503, b'{"service": "latchkey", "msg": "Password hashing hangs"}'
        skip = {check.name for check in CHECKS} - {"public-url"}
        (result,) = examine(dataclasses.replace(healthy, base_url=target.url), skip)
        assert result.text == f"{target.url}/health returns 503: Password hashing hangs."
        assert result.setting == "See docs/monitoring.md, and run: systemctl restart latchkey"
        full = "The disk of the database is full; nothing can be written"
        target.status, target.body = (
            200,
            json.dumps({"service": "latchkey", "status": "degraded", "msg": full}).encode(),
        )
        (result,) = examine(dataclasses.replace(healthy, base_url=target.url), skip)
        assert result.text == f"{target.url}/health returns 200: {full}."
        assert result.setting == "Fix what the other ✗ say. Nothing needs a restart."

    def test_certificate_that_is_not_trusted_or_expires(self, look, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with HttpTarget(certificate) as target:
            assert look("public-url", base_url=target.url).startswith("If https://")
            assert look("certificate", base_url=target.url).startswith("Get a certificate for 127.0.0.1")
            with certificate.trusted(monkeypatch):
                assert look("certificate", base_url=target.url) == "Renew it, for example by: certbot renew"
                monkeypatch.setattr(public_url, "_LEAST_DAYS", 0)
                assert look("certificate", base_url=target.url) is None

    @pytest.mark.parametrize(
        ("proxies", "trusted", "right"),
        [
            ([], 1, 0),
            (["append"], 0, 1),
            (["append"], 2, 1),
            (["replace"], 0, 1),
            (["append", "append"], 1, 2),
            (["append", "replace"], 2, 1),
            (["keep"], 1, 0),
        ],
        ids=str,
    )
    def test_wrong_number_of_proxies(self, look, healthy, base_url, proxies, trusted, right):
        with ExitStack() as stack:
            url = base_url
            for forwards in reversed(proxies):
                url = stack.enter_context(ReverseProxy(url, forwards)).url
            wrong = dataclasses.replace(healthy, base_url=url, trusted_proxies=trusted)
            (result,) = examine(wrong, {check.name for check in CHECKS} - {"proxies"})
            assert look("proxies", base_url=url, trusted_proxies=right) is None
        effect = "clients can forge the address that limits count"
        effect = effect if trusted > right else "all clients share one limit"
        assert (result.setting, result.text.endswith(f": {effect}.")) == (
            f"Set AUTH_TRUSTED_PROXIES={right}.",
            True,
        )

    @pytest.mark.parametrize(
        ("forwards", "trusted", "header"),
        [("keep", 0, "X-Forwarded-For"), ("replace", 1, "X-Forwarded-Proto")],
    )
    def test_tls_proxy_without_forwarded_addresses(
        self, look, base_url, tmp_path, monkeypatch, forwards, trusted, header
    ):
        certificate = Certificate(tmp_path)
        with certificate.trusted(monkeypatch), ReverseProxy(base_url, forwards, tls=certificate) as proxy:
            assert header in look("proxies", base_url=proxy.url, trusted_proxies=trusted)

    def test_health_responds_to_a_nonce_as_to_any_request_and_records_it_once(self, client, parts, database):
        nonce = one_time.new_token()
        queries.create_probe(parts.db, token_hash=one_time.hash_token(nonce), lifetime=30)
        for address in ("203.0.113.9", "203.0.113.10"):
            forged = {"X-Latchkey-Probe": nonce, "X-Forwarded-For": address}
            plain, probed = client.get("/health"), client.get("/health", headers=forged)
            assert plain.json.keys() == probed.json.keys()
            assert address not in probed.text + str(probed.headers)
        row = queries.take_probe(parts.db, token_hash=one_time.hash_token(nonce))
        assert row.seen["forwarded_for"] == ["203.0.113.9"]

    @pytest.mark.parametrize("nonce", ["short", "x" * 43, "x" * 10_000])
    def test_health_ignores_a_nonce_that_the_doctor_has_not_made(self, client, database, nonce):
        assert client.get("/health", headers={"X-Latchkey-Probe": nonce}).status_code == 200
        assert database.count("probes") == 0


def test_connections_that_leave_this_machine_unencrypted(look, database_url):
    with TlsPostgres(database_url, None) as plain:
        open_ = plain.url(sslmode="disable")
        found = look("encryption", database_url=open_)
        assert (
            found
            == "Set the named parameter. If only you use that network, run: latchkey doctor --skip encryption"
        )
        assert look("encryption", database_url=open_.replace("db.example", "localhost")) is None
        smtp = {"smtp_url": "smtp://mail.example.com?starttls=never"}
        assert look("encryption", **smtp) == found
        assert look("encryption", smtp_url="smtp://mail.example.com?starttls=required") is None


class TestMail:
    @pytest.fixture
    def look_at(self, look):
        return lambda url: look("mail-server", smtp_url=url, mail_from=MAIL["mail_from"])

    def test_closed_port_and_server_that_hangs(self, look_at, monkeypatch):
        assert "host and port" in look_at(f"smtp://127.0.0.1:{free_port()}")
        monkeypatch.setattr(examination, "_MARGIN", 19.0)
        with BadMailServer("EHLO", "hang") as server:
            assert "host and port" in look_at(f"smtp://127.0.0.1:{server.port}")

    def test_refused_credentials(self, look_at, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with certificate.trusted(monkeypatch), MailServer(starttls=certificate, password=PASSWORD) as server:
            assert look_at(server.url(credentials=f"{USER}:{ENCODED_PASSWORD}@")) is None
            setting = look_at(server.url(credentials=f"{USER}:wrong@"))
        assert setting.startswith("Correct the user and password")

    def test_refused_access_token_and_token_server_that_refuses_the_client(self, look):
        with TokenMailServer("good") as server, HttpTarget() as issuer:
            changes = {
                "smtp_url": server.url(credentials="no-reply@"),
                "mail_from": MAIL["mail_from"],
                "smtp_token_url": issuer.url,
                "smtp_client_id": "c1",
                "smtp_client_secret": "s1",
            }
            issuer.body = b'{"access_token": "good"}'
            assert look("mail-server", **changes) is None
            issuer.body = b'{"access_token": "bad"}'
            assert "SMTP.SendAsApp" in look("mail-server", **changes)
            issuer.status, issuer.body = (
                401,
                b'{"error": "invalid_client", "error_description": "535 TLS: x"}',
            )
            assert look("mail-server", **changes).startswith("Correct AUTH_SMTP_TOKEN_URL, AUTH_SMTP_CLIENT_")

    def test_missing_starttls_and_refused_sender(self, look_at):
        with MailServer() as server:
            assert look_at(server.url()) is None
            assert look_at(server.url(options="?starttls=required")).startswith(
                "Use the port that offers STARTTLS"
            )
            server.replies["MAIL"] = "550 5.7.1 not yours"
            assert look_at(server.url()).startswith("Set AUTH_MAIL_FROM")

    def test_certificate_of_the_mail_server_that_is_not_trusted(self, look_at, tmp_path):
        with MailServer(tls=Certificate(tmp_path)) as server:
            assert "SSL_CERT_FILE=" in look_at(server.url("smtps"))

    @pytest.mark.parametrize(
        ("missing", "record"), [*zip(DOMAIN, ("v=spf1", "DKIM", "v=DMARC1"), strict=True)]
    )
    def test_missing_record_of_the_senders_domain(self, look, missing, record):
        with DnsServer(DOMAIN) as server:
            assert look("sender", resolver=server.resolver, **MAIL) is None
            below = MAIL | {"mail_from": "a@mail.example.com"}
            del server.texts[missing]
            assert record in look("sender", resolver=server.resolver, **MAIL)
            assert "DMARC" not in look("sender", resolver=server.resolver, **below) or "dmarc" in missing

    def test_network_without_dns_is_not_a_failure(self, healthy):
        with DnsServer({}) as server:
            server.resolver.lifetime, server.resolver.port = 0.2, free_port()
            results = examine(dataclasses.replace(healthy, **MAIL), (), server.resolver)
        assert [result.status for result in results if result.check == "sender"] == ["skipped"]


class TestDelivery:
    def test_notice_that_waits_for_others_is_not_late(self, look, database):
        database.run(
            "INSERT INTO outbox (id, channel, kind, recipient, is_notice, created_at, next_attempt_at)"
            " VALUES (gen_random_uuid(), 'sms', 'api_key_added', '+1', true, now() - interval '50 minutes',"
            "         now() + interval '10 minutes')"
        )
        assert look("waiting-messages") is None

    def test_messages_that_wait_or_fail(self, look, client, alice, database):
        client.post("/magiclink", json={"email": alice.email})
        assert look("waiting-messages") is None
        database.run("UPDATE outbox SET created_at = now() - interval '1 hour', last_error = 'no route'")
        assert "mail-test" in look("waiting-messages")
        assert look("failed-messages") is None
        database.run("UPDATE outbox SET outcome = 'failed', finished_at = now(), secret = NULL")
        assert "AUTH_MAIL_FROM" in look("failed-messages")

    @pytest.mark.parametrize(
        ("change", "remedy"),
        [
            ("failing_since = now() - interval '2 days'", "test"),
            ("disabled_at = now(), disabled_reason = 'failing', failing_since = now()", "enable"),
        ],
    )
    def test_webhook_that_has_failed_for_days(self, look, hooks, database, change, remedy):
        made = hooks.register("http://127.0.0.1:9/hook?key=topsecret")
        assert look("webhooks") is None
        database.run(f"UPDATE webhooks SET {change}")
        assert look("webhooks").endswith(f": latchkey webhooks {remedy} {made['id']}")


class TestLocks:
    @pytest.fixture(autouse=True)
    def _brief_waits(self, lock_timeout):
        """The checks that wait for the lock need not wait until the deadline of all checks."""
        lock_timeout("3s")

    @pytest.mark.parametrize("statement", ["LOCK TABLE users", "LOCK TABLE sessions IN SHARE MODE"])
    def test_session_that_blocks_all_is_named_with_the_statement_that_ends_it(
        self, healthy, database_url, database, statement
    ):
        with closing(psycopg2.connect(database_url, application_name="psql")) as holder:
            pid = holder.info.backend_pid
            holder.cursor().execute(f"{statement}; SELECT 'a secret'")
            results = {result.check: result for result in examine(healthy)}
            found = results["locks"]
            text = (
                rf"Session {pid} \(psql as postgres, in a transaction for \d s: {statement}; SELECT '…'\) blocks"
                r" \d+ statements?, one for \d s: (?P<waiting>.+)\. Requests that need this lock fail\."
            )
            assert re.fullmatch(text, found.text), found.text
            assert "a secret" not in found.text
            assert (
                found.setting
                == f"As postgres or a superuser, run in psql: SELECT pg_terminate_backend({pid})"
            )
            others = {name: result for name, result in results.items() if name != "locks"}
            assert not [result for result in others.values() if "--skip" in str(result.setting)]
            assert {result.status for result in others.values()} <= {"ok", "skipped", *NOTED.values()}
            assert "not checked, see locks" in results["administrators"].text or "SHARE" in statement
            database.run(found.setting.partition(": ")[2])
        assert {result.status for result in examine(healthy)} == {"ok", "skipped", *NOTED.values()}

    @pytest.mark.parametrize("first_look", [0.7, 0.01])
    def test_session_at_the_head_of_the_queue_is_named_however_late_the_wait_begins(
        self, look, database_url, database, monkeypatch, first_look
    ):
        monkeypatch.setattr(database_checks, "_LOCK_SECONDS", first_look)
        with (
            ThreadPoolExecutor(1) as thread,  # ends last: its statement waits while the holder is open
            closing(psycopg2.connect(database_url, application_name="migration")) as waiter,
            closing(psycopg2.connect(database_url, application_name="forgotten")) as holder,
        ):
            holder.cursor().execute("SELECT FROM users")
            change = "ALTER TABLE users ALTER COLUMN role DROP DEFAULT"
            waiting = thread.submit(waiter.cursor().execute, change)
            wait_until(lambda: database.run("SELECT FROM pg_locks WHERE NOT granted"))
            pid = holder.info.backend_pid
            assert look("locks").endswith(f": SELECT pg_terminate_backend({pid})")
            holder.rollback()
            waiting.result()
            waiter.rollback()
        assert look("locks") is None


class TestOverload:
    @pytest.fixture
    def load(self, monkeypatch):
        def load(times: float) -> None:
            monkeypatch.setattr(os, "getloadavg", lambda: (times * cores(), 0.0, 0.0))

        return load

    def test_time_out_on_an_overloaded_machine_accuses_nobody(self, look, healthy, load, monkeypatch):
        load(2.5)
        monkeypatch.setattr(examination, "SECONDS", 4.0)
        with BadMailServer("GREETING", "hang") as silent:
            address = f"127.0.0.1:{silent.port}"
            hung: dict[str, Any] = {"database_url": f"postgresql://{address}/d"}
            hung |= dict.fromkeys(("base_url", "site_url"), f"http://{address}")
            hung |= {"smtp_url": f"smtp://{address}", "mail_from": MAIL["mail_from"]}
            hung |= {"rate_limits_enabled": True, "rate_limit_storage": f"redis://{address}"}
            results = {result.check: result for result in examine(dataclasses.replace(healthy, **hung))}
        assert not [result for result in results.values() if result.status == "failed"]
        for name in ("database", "redis", "public-url", "mail-server"):
            left = f"not checked: this machine is overloaded (load {2.5 * cores():.0f} on {cores()} cores)"
            assert (results[name].status, results[name].text.partition(": ")[2]) == ("unknown", left)
            assert results[name].setting is None

    def test_refused_port_on_an_overloaded_machine_is_a_failure(self, look, healthy, load):
        load(2.5)
        closed = f"127.0.0.1:{free_port()}"
        assert look("database", database_url=f"postgresql://{closed}/d").startswith("Start that Postgres")
        assert look("public-url", base_url=f"http://{closed}").startswith("If http://")
        assert "host and port" in look(
            "mail-server", smtp_url=f"smtp://{closed}", mail_from=MAIL["mail_from"]
        )

    @cases(("times", "status"), [(1.9, 3), (2.5, 2)])
    def test_exit_status_tells_undone_checks_from_failed_ones(
        self, environment, healthy, load, monkeypatch, times, status
    ):
        load(times)
        hanging = Check("clock", "The clocks agree", lambda _context: time.sleep(5))
        monkeypatch.setattr(examination, "CHECKS", (hanging,))
        monkeypatch.setattr(examination, "SECONDS", 0.5)
        monkeypatch.setattr(examination, "_LEAST_SECONDS", 0.1)
        done = run_with_settings(environment, "doctor")
        marked = [line for line in done.stdout.splitlines() if line.startswith(("✗", "?"))]
        assert (done.exit_code, [line[0] for line in marked]) == (status, ["?" if status == 2 else "✗"])


class TestDeadline:
    def test_check_that_hangs_or_breaks_does_not_hold_up_the_others(self, healthy, replaced, monkeypatch):
        checks = replaced(clock=lambda over: over.wait(), redis=lambda _over: 1 / 0)
        monkeypatch.setattr(examination, "CHECKS", (*checks, *(c for c in CHECKS if c.name == "schema")))
        monkeypatch.setattr(examination, "SECONDS", 3.0)
        results = {result.check: result for result in examine(healthy)}
        statuses = {name: result.status for name, result in results.items()}
        assert statuses == {"clock": "failed", "redis": "failed", "schema": "ok"}
        assert "no answer within 3 s" in results["clock"].text
        assert results["clock"].setting == UNTIL_IT_RESPONDS
        assert "ZeroDivisionError: division by zero" in results["redis"].text
        assert str(results["redis"].setting).endswith(": latchkey doctor --skip redis")

    def test_time_since_the_start_of_the_command_counts(self, environment, healthy, replaced, monkeypatch):
        monkeypatch.setattr(examination, "_LEAST_SECONDS", -0.5)
        hanging = replaced(database=lambda over: over.wait(), keys=lambda over: over.wait())
        monkeypatch.setattr(examination, "CHECKS", hanging)
        monkeypatch.setattr(examination, "SECONDS", 3600.0)
        begun = {"LATCHKEY_STARTED": str(time.monotonic() - 3600)}
        lines = run_with_settings(environment | begun, "doctor").stdout.splitlines()
        assert "✗ The database responds: could not be checked, no answer within 3600 s." in lines
        assert lines[-1] == "- The keys match the database: not checked, see database"

    def test_report_is_complete_if_everything_hangs(self, environment):
        with BadMailServer("GREETING", "hang") as silent:
            address = f"127.0.0.1:{silent.port}"
            hung = {"DATABASE_URL": f"postgresql://{address}/d", "AUTH_BASE_URL": f"http://{address}"}
            hung |= {"AUTH_SMTP_URL": f"smtp://{address}", "AUTH_RATE_LIMIT_STORAGE": f"redis://{address}"}
            hung |= {"AUTH_RATE_LIMITS_ENABLED": "true", "PATH": os.environ["PATH"]}
            command = [sys.executable, str(CHECKOUT / "latchkey_auth" / "__main__.py"), "doctor", "--json"]
            done = subprocess.run(command, env=environment | hung, capture_output=True, check=False)
        results = {result["check"]: result["status"] for result in map(json.loads, done.stdout.splitlines())}
        assert (done.stderr, [*results]) == (b"", ["settings", *(check.name for check in CHECKS)])
        hanging = {results[name] for name in ("database", "redis", "public-url", "mail-server")}
        # As busy as this machine is.
        assert (done.returncode, hanging) in ((3, {"failed"}), (2, {"unknown"}))
        assert {results[name] for name in ("schema", "keys", "delivery")} <= {"skipped", "unknown"}

    @pytest.fixture
    def replaced(self):
        """A function that replaces what checks do; it is passed an event that is set at the end."""
        over = threading.Event()

        def replaced(**looks):
            checks = {check.name: check for check in CHECKS}

            def replace(name, look):
                return dataclasses.replace(checks[name], look=lambda _context: look(over))

            return tuple(replace(name, look) for name, look in looks.items())

        yield replaced
        over.set()
