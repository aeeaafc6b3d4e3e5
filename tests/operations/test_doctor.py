"""`latchkey doctor` finds every fault that is planted here, and none in a healthy service."""

import dataclasses
import json
import re
import resource
import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from click.testing import CliRunner

from auth.commands import main
from auth.keys import fingerprints, rotation
from auth.operations.doctor import addresses, examination, mail, secrets
from auth.operations.doctor import database as database_checks
from auth.operations.doctor.examination import CHECKS, examine
from auth.settings.values.checks import redirect_pattern
from auth.tokens import one_time, signing_keys
from sql import pool, schema
from tests.conftest import clear_settings, secret
from tests.faults.neighbours import PgBouncer
from tests.support.commands import run_command, run_with_settings
from tests.support.contract import OPENAPI
from tests.support.dns_server import DnsServer
from tests.support.forwarder import Forwarder
from tests.support.http_target import HttpTarget
from tests.support.processes import free_port
from tests.support.reverse_proxy import ReverseProxy
from tests.support.smtp_server import ENCODED_PASSWORD, PASSWORD, USER, BadMailServer, Certificate, MailServer

PUBLIC = {"base_url": "https://auth.example.com", "site_url": "https://auth.example.com"}
DOMAIN = {
    "example.com": "v=spf1 include:mail.example.net -all",
    "s1._domainkey.example.com": "v=DKIM1; p=x",
    "_dmarc.example.com": "v=DMARC1; p=reject",
}
# What does not concern a service on this machine that sends no mail.
INAPPLICABLE = {"backup", "certificate", "mail-server", "sender", "test-settings"}
MAIL = PUBLIC | {"smtp_url": "smtp://mail.example.com", "mail_from": "Example <no-reply@example.com>"}


@pytest.fixture
def base_url(server):
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def healthy(parts, carol, database, base_url):
    """The settings of a healthy service with an administrator, a delivery process and a backup."""
    healthy = dataclasses.replace(parts.settings, base_url=base_url, site_url=base_url)
    fingerprints.keep(parts.db, healthy)
    database.run("INSERT INTO last_done (task) VALUES ('delivery'), ('backup')")
    return healthy


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    for module, name in ((examination, "SECONDS"), (addresses, "_DEADLINE"), (mail, "_DEADLINE")):
        monkeypatch.setattr(module, name, 20.0)


@pytest.fixture
def look(healthy):
    """Run one check on changed settings. Return the setting to write, why it does not apply, or None if all is well."""

    def look(name, *, resolver=None, **changes):
        skip = {check.name for check in CHECKS} - {name}
        (result,) = examine(dataclasses.replace(healthy, **changes), skip, resolver)
        assert result.check == name
        if result.status == "ok":
            assert result.setting is None
            return None
        if result.status == "skipped":
            return result.text.partition(": not checked, ")[2]
        assert result.status == "failed", result
        assert re.fullmatch(r"[^\n]{10,}[.!]", result.text), result
        return result.setting

    return look


class TestHealthyService:
    def test_every_check_passes_in_under_five_seconds(self, healthy):
        begin = time.monotonic()
        results = examine(healthy)
        assert time.monotonic() - begin < 5
        assert {result.check for result in results if result.status != "ok"} == INAPPLICABLE
        assert {result.status for result in results} == {"ok", "skipped"}
        assert [result.check for result in results] == [check.name for check in CHECKS]

    def test_command_prints_ticks_and_skipped_checks(self, healthy, environment, base_url):
        urls = {"AUTH_BASE_URL": base_url, "AUTH_SITE_URL": base_url}
        done = run_with_settings({**environment, **urls}, "doctor")
        assert (done.exit_code, done.stderr) == (0, "")
        marks = ["-" if check.name in INAPPLICABLE else "✓" for check in CHECKS]
        assert [line[0] for line in done.stdout.splitlines()] == ["✓", *marks]
        assert "\n- There is a recent backup: not checked, AUTH_BASE_URL is this machine\n" in done.stdout

    def test_doctor_leaves_nothing_behind(self, healthy, database):
        before = database.everything()
        examine(healthy)
        assert database.everything() == before

    def test_page_explains_every_check(self):
        page = (OPENAPI.parent / "docs" / "doctor.md").read_text()
        named = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
        assert named == ["settings", *(check.name for check in CHECKS)]


class TestCommand:
    def test_failure_has_the_setting_to_write_and_an_exit_status(self, app, database):
        done = run_command(app, "doctor")
        assert done.exit_code == 3
        lines = done.output.splitlines()
        assert lines[lines.index("✗ There is no administrator.") + 1] == "  latchkey create-admin EMAIL"

    def test_json_has_one_object_for_each_check(self, app, database):
        done = run_command(app, "doctor", "--json", "--skip", "administrators", "--skip", "public-url")
        results = [json.loads(line) for line in done.output.splitlines()]
        expected = [check.name for check in CHECKS if check.name not in ("administrators", "public-url")]
        assert [result["check"] for result in results] == ["settings", *expected]
        assert {tuple(result) for result in results} == {("check", "status", "text", "setting")}

    @pytest.mark.parametrize(
        ("changes", "setting"),
        [
            ({"AUTH_SECRET_KEY": "changeme-changeme-changeme-changeme"}, "AUTH_SECRET_KEY"),
            ({"AUTH_REDIRECT_ALLOW_LIST": "app.example.com"}, "AUTH_REDIRECT_ALLOW_LIST"),
            ({"AUTH_RATE_LIMITS_ENABLE": "true"}, "AUTH_RATE_LIMITS_ENABLE"),
            ({"AUTH_STATE_DIR": "/nowhere"}, "AUTH_STATE_DIR"),
            ({"AUTH_BRAND_LOGO": "/nowhere.png"}, "AUTH_BRAND_LOGO"),
            ({"AUTH_MAIL_TEMPLATES": "/nowhere"}, "AUTH_MAIL_TEMPLATES"),
        ],
        ids=["weak secret", "bad pattern", "unknown name", "no state directory", "no logo", "no templates"],
    )
    def test_settings_that_would_stop_the_start_are_failures(
        self, environment, healthy, changes, setting, monkeypatch
    ):
        log = structlog.get_config()
        clear_settings(monkeypatch)
        monkeypatch.setattr(examination, "CHECKS", ())
        done = CliRunner().invoke(main, ["doctor", "--json"], env=environment | changes)
        structlog.configure(**log)
        assert done.exit_code == 3
        first = json.loads(done.stdout.splitlines()[0])
        assert (first["check"], first["status"]) == ("settings", "failed")
        assert first["setting"].startswith(f"{setting}=")


class TestDatabase:
    def test_database_that_is_away_is_one_failure(self, healthy):
        gone = dataclasses.replace(
            healthy, database_url=f"postgresql://u:topsecret@127.0.0.1:{free_port()}/d"
        )
        results = {result.check: result for result in examine(gone)}
        assert str(results["database"].setting).startswith("DATABASE_URL=")
        assert {results[name].status for name in ("schema", "clock", "keys", "webhooks")} == {"skipped"}
        assert "topsecret" not in str(results)

    def test_database_that_does_not_answer_is_found_in_time(self, healthy, database_url, monkeypatch):
        monkeypatch.setattr(pool, "DEADLINE", 2.4)
        with Forwarder(database_url) as forwarder, BadMailServer("GREETING", "hang") as silent:
            hung = forwarder.url.replace(str(forwarder.port), str(silent.port))
            begin = time.monotonic()
            results = examine(dataclasses.replace(healthy, database_url=hung))
            assert time.monotonic() - begin < 12
        assert results[0].check == "database"
        assert results[0].status == "failed"

    def test_version_that_is_too_old(self, look, monkeypatch):
        monkeypatch.setattr(database_checks, "LEAST_VERSION", 99)
        assert look("database-version") == "DATABASE_URL of a Postgres 99 or later"

    def test_read_only_database(self, look, database):
        name = database.value("SELECT current_database()")
        database.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        try:
            assert "target_session_attrs=read-write" in look("database-version")
        finally:
            database.run("SET default_transaction_read_only = off")
            database.run(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')

    @pytest.mark.parametrize(
        ("version", "remedy"),
        [(schema.NEWEST - 1, "latchkey migrate"), (schema.NEWEST + 1, "the release that")],
    )
    def test_schema_of_another_release(self, look, database, version, remedy):
        database.run("UPDATE schema_version SET version = %(version)s", version=version)
        try:
            assert look("schema").startswith(remedy)
        finally:
            database.run("UPDATE schema_version SET version = %(version)s", version=schema.NEWEST)

    def test_database_without_schema(self, look, new_database):
        assert look("schema", database_url=new_database()) == "latchkey migrate"

    def test_prepared_statements_behind_pgbouncer(self, look, database_url, state_dir):
        if "host=%2F" not in database_url:
            pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
        world: Any = SimpleNamespace(postgres=SimpleNamespace(url=database_url), state_dir=state_dir)
        with PgBouncer(world) as bouncer:
            assert look("pooler", database_url=bouncer.url) == "AUTH_DB_PREPARE=false"
            assert look("pooler", database_url=bouncer.url, db_prepare=False).startswith(
                "AUTH_DB_PREPARE is false"
            )

    def test_more_workers_than_connections(self, look):
        assert look("connections", workers=64) == "AUTH_WORKERS=21, or max_connections of Postgres"

    def test_clock_that_is_wrong(self, look, monkeypatch):
        monkeypatch.setattr(database_checks, "GREATEST_CLOCK_DIFFERENCE", -1.0)
        assert look("clock").startswith("timedatectl")

    def test_redis_that_is_away(self, look):
        storage = f"redis://127.0.0.1:{free_port()}"
        setting = look("redis", rate_limit_storage=storage, rate_limits_enabled=True)
        assert setting.startswith("AUTH_RATE_LIMIT_STORAGE=")

    @pytest.mark.parametrize("change", ["role = 'authenticated'", "banned_until = 'infinity'"])
    def test_no_administrator(self, look, database, change):
        database.run(f"UPDATE users SET {change}")
        assert look("administrators") == "latchkey create-admin EMAIL"


class TestKeysAndStateDirectory:
    def test_keys_of_another_deployment(self, look):
        changes = {"secret_key": (secret("other"),), "jwt_keys": signing_keys.new_jwk_set()}
        assert look("keys", **changes).startswith("AUTH_SECRET_KEY=… and AUTH_JWT_KEYS=… of the other nodes")

    def test_old_key_is_to_be_replaced_and_then_removed(self, look, healthy, database):
        aged = "UPDATE key_fingerprints SET seen_at = now() - interval '500 days' WHERE setting = %(name)s"
        database.run(aged, name="AUTH_JWT_KEYS")
        assert look("key-age").startswith("latchkey keys rotate signing")
        database.run("UPDATE key_fingerprints SET seen_at = now()")
        database.run(aged, name="AUTH_SECRET_KEY")
        (old,) = rotation.keys_of("secret", healthy)
        for active_from, waits in (
            ("2026-01-01T00:00:00Z", ""),
            ("2099-01-01T00:00:00Z", " after 2099-01-01T00:00:00Z"),
        ):
            keys = (f"{secret('new')}@{active_from}", *healthy.secret_key)
            assert look("key-age", secret_key=keys) == f"latchkey keys remove {old.id}{waits}"

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
        assert re.fullmatch(f"chmod {safe} {path}", look("state-directory", **state))

    def test_disk_without_room(self, look, state, monkeypatch):
        monkeypatch.setattr(secrets, "LEAST_FREE", 2**62)
        assert look("disk", **state).startswith(f"AUTH_STATE_DIR={state['state_dir']} on a larger disk")

    def test_quota_that_is_used_up(self, look, state):
        # The system refuses to write a larger file, as it does beyond a quota.
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
        try:
            assert "a larger quota" in look("disk", **state)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestPublicUrl:
    def test_url_that_does_not_lead_to_this_service(self, look, target):
        for base_url in (f"http://127.0.0.1:{free_port()}", target.url, "http://auth.example.com"):
            assert look("public-url", base_url=base_url).startswith("AUTH_BASE_URL=")
        target.body = b'{"service": "latchkey", "status": "healthy", "version": "0.0.1"}'
        assert look("public-url", base_url=target.url) == "systemctl restart latchkey"

    def test_service_that_is_unhealthy_is_quoted(self, healthy, target):
        target.status, target.body = 503, b'{"service": "latchkey", "msg": "Password hashing hangs"}'
        skip = {check.name for check in CHECKS} - {"public-url"}
        (result,) = examine(dataclasses.replace(healthy, base_url=target.url), skip)
        assert result.text == f"{target.url}/health returns 503: Password hashing hangs."
        assert "log" in str(result.setting)

    def test_certificate_that_is_not_trusted_or_expires(self, look, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with HttpTarget(certificate) as target:
            assert look("public-url", base_url=target.url).startswith("AUTH_BASE_URL=")
            assert look("certificate", base_url=target.url).startswith("a certificate for 127.0.0.1")
            with certificate.trusted(monkeypatch):
                assert look("certificate", base_url=target.url) == "certbot renew"
                monkeypatch.setattr(addresses, "_LEAST_DAYS", 0)
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
    def test_wrong_number_of_proxies(self, look, base_url, proxies, trusted, right):
        with ExitStack() as stack:
            url = base_url
            for forwards in reversed(proxies):
                url = stack.enter_context(ReverseProxy(url, forwards)).url
            assert look("proxies", base_url=url, trusted_proxies=trusted) == f"AUTH_TRUSTED_PROXIES={right}"
            assert look("proxies", base_url=url, trusted_proxies=right) is None

    @pytest.mark.parametrize(
        ("forwards", "trusted", "header"),
        [("keep", 0, "X-Forwarded-For"), ("replace", 1, "X-Forwarded-Proto")],
    )
    def test_tls_proxy_without_forwarded_addresses(
        self, look, base_url, tmp_path, monkeypatch, forwards, trusted, header
    ):
        certificate = Certificate(tmp_path)
        with certificate.trusted(monkeypatch), ReverseProxy(base_url, forwards, tls=certificate) as proxy:
            assert look("proxies", base_url=proxy.url, trusted_proxies=trusted).startswith(header)

    def test_url_of_a_service_with_another_database(self, look, target):
        assert look("proxies", base_url=target.url).startswith("AUTH_BASE_URL of this service")

    def test_health_responds_to_a_nonce_as_to_any_request_and_records_it_once(self, client, parts, database):
        nonce = one_time.new_token()
        parts.db.run("create_probe", token_hash=one_time.hash_token(nonce), lifetime=30)
        for address in ("203.0.113.9", "203.0.113.10"):
            forged = {"X-Latchkey-Probe": nonce, "X-Forwarded-For": address}
            plain, probed = client.get("/health"), client.get("/health", headers=forged)
            assert plain.json.keys() == probed.json.keys()
            assert address not in probed.text + str(probed.headers)
        row = parts.db.one("take_probe", token_hash=one_time.hash_token(nonce))
        assert row.seen["forwarded_for"] == ["203.0.113.9"]

    @pytest.mark.parametrize("nonce", ["short", "x" * 43, "x" * 10_000])
    def test_health_ignores_a_nonce_that_the_doctor_has_not_made(self, client, database, nonce):
        assert client.get("/health", headers={"X-Latchkey-Probe": nonce}).status_code == 200
        assert database.count("probes") == 0

    @pytest.mark.parametrize(
        ("changes", "setting"),
        [
            ({"site_url": "https://app.example.com"}, "AUTH_REDIRECT_ALLOW_LIST=https://app.example.com/**"),
            ({"site_url": "http://localhost:3000"}, "AUTH_SITE_URL=https://app.example.com"),
            ({"site_url": "http://app.example.com"}, "AUTH_SITE_URL=https://app.example.com"),
            (
                {"redirect_allow_list": ("http://app.example.com/**",)},
                "AUTH_REDIRECT_ALLOW_LIST with https://app.example.com/**",
            ),
        ],
    )
    def test_links_that_lead_astray(self, look, changes, setting):
        assert look("redirects", **PUBLIC | changes).startswith(setting)
        redirect_pattern("https://app.example.com/**")
        allowed = {
            "site_url": "https://app.example.com",
            "redirect_allow_list": ("https://app.example.com/**",),
        }
        assert look("redirects", **PUBLIC | allowed) is None

    @pytest.mark.parametrize(
        ("changes", "setting"),
        [
            ({"rate_limits_enabled": False}, "AUTH_RATE_LIMITS_ENABLED=true"),
            ({"rate_limit_storage": "memory://"}, "AUTH_RATE_LIMIT_STORAGE=postgresql"),
            ({"dev_inbox": True}, "AUTH_DEV_INBOX=false"),
        ],
    )
    def test_settings_for_tests_on_a_public_service(self, look, changes, setting):
        limited = PUBLIC | {"rate_limits_enabled": True}
        assert look("test-settings", **limited) is None
        assert look("test-settings", **limited | changes) == setting


class TestMail:
    def look_at(self, look, url, **changes):
        return look("mail-server", smtp_url=url, mail_from=MAIL["mail_from"], **changes)

    def test_no_mail_server_on_a_public_service(self, look):
        for url in (None, "console"):
            assert self.look_at(look, url, **PUBLIC).startswith("AUTH_SMTP_URL=smtp://user:password@host:587")
            assert self.look_at(look, url) == "mails are printed"

    def test_closed_port(self, look):
        assert "host and port" in self.look_at(look, f"smtp://127.0.0.1:{free_port()}")

    def test_refused_credentials(self, look, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with certificate.trusted(monkeypatch), MailServer(starttls=certificate, password=PASSWORD) as server:
            right = f"{USER}:{ENCODED_PASSWORD}@"
            assert self.look_at(look, server.url(credentials=right)) is None
            setting = self.look_at(look, server.url(credentials=f"{USER}:wrong@"))
        assert "with the right user and password" in setting

    def test_no_starttls_where_it_is_required(self, look):
        with MailServer() as server:
            assert self.look_at(look, server.url()) is None
            setting = self.look_at(look, server.url(options="?starttls=required"))
        assert setting.startswith("AUTH_SMTP_URL=smtps://")

    def test_certificate_of_the_mail_server_that_is_not_trusted(self, look, tmp_path):
        with MailServer(tls=Certificate(tmp_path)) as server:
            assert "the server's certificate" in self.look_at(look, server.url("smtps"))

    def test_sender_that_the_server_refuses(self, look):
        with MailServer() as server:
            server.replies["MAIL"] = "550 5.7.1 not yours"
            assert self.look_at(look, server.url()).startswith("AUTH_MAIL_FROM=")

    def test_server_that_hangs(self, look, monkeypatch):
        monkeypatch.setattr(mail, "_DEADLINE", 0.5)
        with BadMailServer("EHLO", "hang") as server:
            assert "host and port" in self.look_at(look, f"smtp://127.0.0.1:{server.port}")

    def test_sender_of_this_machine(self, look):
        assert look("sender", **MAIL | {"mail_from": "Latchkey <no-reply@localhost>"}).startswith(
            "AUTH_MAIL_FROM="
        )

    @pytest.mark.parametrize(
        ("missing", "record"),
        [
            ("example.com", "v=spf1"),
            ("s1._domainkey.example.com", "DKIM"),
            ("_dmarc.example.com", "v=DMARC1"),
        ],
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
            (result,) = (
                result
                for result in examine(dataclasses.replace(healthy, **MAIL), (), server.resolver)
                if result.check == "sender"
            )
        assert result.status == "skipped"

    def test_phones_without_a_provider(self, look):
        assert look("sms", **PUBLIC).startswith("AUTH_SMS_PROVIDER=")
        assert look("sms", **PUBLIC, sms_provider="none") == "phones are not used"


class TestDelivery:
    @pytest.mark.parametrize(
        ("deliver", "remedy"), [(True, "systemctl restart"), (False, "AUTH_DELIVER=true")]
    )
    def test_no_delivery_process(self, look, database, deliver, remedy):
        for change in ("UPDATE last_done SET at = now() - interval '5 minutes'", "DELETE FROM last_done"):
            database.run(change)
            assert look("delivery", deliver=deliver).startswith(remedy)

    def test_messages_that_wait_or_fail(self, look, client, alice, database):
        client.post("/magiclink", json={"email": alice.email})
        assert look("waiting-messages") is None
        database.run("UPDATE outbox SET created_at = now() - interval '1 hour', last_error = 'no route'")
        assert "mail-test" in look("waiting-messages")
        assert look("failed-messages") is None
        database.run("UPDATE outbox SET outcome = 'failed', finished_at = now(), secret = NULL")
        assert look("failed-messages").startswith("AUTH_MAIL_FROM")

    @pytest.mark.parametrize(
        "change",
        [
            "failing_since = now() - interval '2 days'",
            "disabled_at = now(), disabled_reason = 'failing', failing_since = now() - interval '3 days'",
        ],
    )
    def test_webhook_that_has_failed_for_days(self, look, hooks, client, service_role, database, change):
        body = {"url": "http://127.0.0.1:9/hook?key=topsecret"}
        made = client.post("/admin/webhooks", json=body, headers=service_role).json
        assert look("webhooks") is None
        database.run(f"UPDATE webhooks SET {change}")
        method, path, body = look("webhooks").split(" ", 2)
        assert (method, path) == ("PUT", f"/admin/webhooks/{made['id']}")
        enabled = client.put(path, json=json.loads(body.rpartition(" or ")[2]), headers=service_role)
        assert enabled.json["disabled"] is False

    def test_backup_that_is_missing_or_old(self, look, database):
        assert look("backup", **PUBLIC) is None
        for change in ("UPDATE last_done SET at = now() - interval '8 days'", "DELETE FROM last_done"):
            database.run(change)
            assert look("backup", **PUBLIC).startswith("latchkey backup FILE")


def test_check_that_hangs_or_breaks_does_not_hold_up_the_others(healthy, monkeypatch):
    def hang(_context):
        time.sleep(30)

    def crash(_context):
        raise ZeroDivisionError("oops")

    broken = {"clock": hang, "redis": crash}
    replaced = [dataclasses.replace(check, look=broken.get(check.name, check.look)) for check in CHECKS]
    monkeypatch.setattr(examination, "CHECKS", tuple(replaced))
    monkeypatch.setattr(examination, "SECONDS", 5.0)
    results = {result.check: result for result in examine(healthy)}
    assert {name for name, result in results.items() if result.status == "failed"} == set(broken)
    assert "no answer within 5 s" in results["clock"].text
    assert "ZeroDivisionError: oops" in results["redis"].text
