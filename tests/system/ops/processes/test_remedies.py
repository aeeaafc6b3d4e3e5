"""Each check of the doctor finds its fault, and its remedy fixes it: cause the fault, apply the remedy, look again."""

import dataclasses
import json
import os
import re
import resource
import shlex
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import auth
from auth.core.checks import NOT_PUBLIC
from auth.core.keys import key_kinds, rotation
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.tokens import one_time, signing_keys
from auth.core.tokens.derived_keys import Sealer
from auth.ops.backups import age
from auth.ops.connections import autocommitting, execute
from auth.ops.doctor import database as database_checks
from auth.ops.doctor import examination, public_url, secrets
from auth.ops.doctor.examination import CHECKS, examine
from sql import queries, schema
from tests.support import oldest_release
from tests.support.commands import run_with_settings
from tests.support.dns_server import DnsServer
from tests.support.environment import secret
from tests.support.http_target import HttpTarget
from tests.support.openid import insert_client
from tests.support.processes import free_port
from tests.support.reverse_proxy import ReverseProxy
from tests.support.smtp_server import BadMailServer, Certificate, MailServer
from tests.system.faults.dependencies import PgBouncer

PUBLIC = {"base_url": "https://auth.example.com", "site_url": "https://auth.example.com"}
MAIL = PUBLIC | {"smtp_url": "smtp://mail.example.com", "mail_from": "Example <no-reply@example.com>"}
LIMITED = PUBLIC | {"rate_limits_enabled": True}
RECORDS = {
    "example.com": "v=spf1 include:mail.example.net -all",
    "s1._domainkey.example.com": "v=DKIM1; p=x",
    "_dmarc.example.com": "v=DMARC1; p=reject",
}
HOOK, SQL = "hook_custom_access_token", "pg-functions://postgres/pg_catalog/"
CLOSED_ADDRESS = f"127.0.0.1:{free_port()}"
REDIS_AWAY = {"rate_limits_enabled": True, "rate_limit_storage": f"redis://{CLOSED_ADDRESS}"}
OTHER_KEYS = {"secret_key": (secret("other"),), "jwt_keys": signing_keys.new_jwk_set(), "key_files": {}}
ENCRYPT = "Set the named parameter. If only you use that network, run:"
ELSEWHERE = "postgresql://u@192.0.2.1/d?sslrootcert=system&sslmode="
STARTTLS = "smtp://mail.example.com?starttls="
LOST_SEALER = Sealer(("a secret key that is lost",))
# Moves OpenID keys past AUTH_KEY_OVERLAP.
PASS_OVERLAP = "UPDATE openid_keys SET active_from = active_from - interval '1 hour'"


def listed(scheme: str) -> dict[str, Any]:
    return PUBLIC | {"redirect_allow_list": (f"{scheme}://app.example.com/**",)}


two_roles = pytest.mark.skipif(
    "TEST_DATABASE_URL" in os.environ, reason="NOT TESTED: TEST_DATABASE_URL has one role only"
)


class Play:
    """Asserts what a check finds with a fault, and after its remedy."""

    def __init__(self, look: Callable[..., str | None]) -> None:
        self._look = look

    def fails(self, check: str, remedy: str, **changes: Any) -> str:
        """Assert that the check prints this remedy, with any text in place of {}, and return the text."""
        printed = str(self._look(check, **changes))
        assert re.fullmatch(".+".join(map(re.escape, remedy.split("{}"))), printed), printed
        return printed

    def is_well(self, check: str, unless: str | None = None, **changes: Any) -> None:
        """Assert that the check passes, or does not apply for the reason `unless`."""
        assert self._look(check, **changes) == unless


@pytest.fixture
def play(look) -> Play:
    return Play(look)


# A check, how its remedy begins, the settings with the fault, and those after the remedy.
SETTINGS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "hooks",
        "Create and grant that function as",
        {HOOK: f"{SQL}no_hook"},
        {HOOK: f"{SQL}jsonb_strip_nulls"},
    ),
    ("redis", "Start that Redis, or set AUTH_RATE_LIMIT_STORAGE=", REDIS_AWAY, {"rate_limits_enabled": True}),
    (
        "keys",
        "Set AUTH_SECRET_KEY to its value on the other nodes, or in a backup. Set AUTH_JWT_KEYS",
        OTHER_KEYS,
        {},
    ),
    ("public-url", "If http://127.0.0.1:", {"base_url": f"http://{CLOSED_ADDRESS}"}, {}),
    ("public-url", "Serve it by https, and set: AUTH_BASE_URL=", {"base_url": "http://auth.example.com"}, {}),
    ("database", "Start that Postgres, or correct", {"database_url": f"postgresql://{CLOSED_ADDRESS}/d"}, {}),
    ("redirects", "Set AUTH_SITE_URL to", PUBLIC | {"site_url": "http://localhost:3000"}, PUBLIC),
    ("redirects", "Serve your application by https", PUBLIC | {"site_url": "http://app.example.com"}, PUBLIC),
    (
        "redirects",
        "In AUTH_REDIRECT_ALLOW_LIST, replace it by: https://app.example.com/**",
        listed("http"),
        listed("https"),
    ),
    ("test-settings", "Set AUTH_RATE_LIMITS_ENABLED=true.", PUBLIC | {"rate_limits_enabled": False}, LIMITED),
    ("test-settings", "Set AUTH_RATE_LIMIT_STORAGE=", LIMITED | {"rate_limit_storage": "memory://"}, LIMITED),
    ("connections", "Set AUTH_WORKERS=3", {"workers": 64}, {"workers": 29}),
    (
        "encryption",
        ENCRYPT,
        {"database_url": f"{ELSEWHERE}disable"},
        {"database_url": f"{ELSEWHERE}verify-full"},
    ),
    ("encryption", ENCRYPT, {"smtp_url": f"{STARTTLS}never"}, {"smtp_url": f"{STARTTLS}required"}),
    (
        "mail-server",
        "Set the server: AUTH_SMTP_URL=",
        MAIL | {"smtp_url": "console"},
        {"smtp_url": "console"},
    ),
    ("sender", "Set AUTH_MAIL_FROM to an address", MAIL | {"mail_from": "Latchkey <no-reply@localhost>"}, {}),
]


@pytest.mark.parametrize(("check", "remedy", "fault", "fixed"), SETTINGS)
def test_setting_of_the_remedy_fixes_the_fault(look, check, remedy, fault, fixed):
    assert look(check, **fault).startswith(remedy)
    # A service on this machine needs no mail.
    assert look(check, **fixed) in (None, "emails are printed", NOT_PUBLIC)


AGE_TASK = "UPDATE last_done SET at = now() - interval '{}'"
RECORD_TASK = "INSERT INTO last_done (task) VALUES ('{0}') ON CONFLICT (task) DO UPDATE SET at = now()"
TOTAL = (
    "INSERT INTO failure_counts (kind, count, key, expires_at, seconds)"
    " VALUES ('mail', 750, 'mail 3600', now() + interval '1 hour', 3600)"
)
MESSAGE = (
    "INSERT INTO outbox (id, channel, kind, recipient, created_at, outcome, finished_at)"
    " VALUES (gen_random_uuid(), 'email', 'magiclink', 'a@example.com', now() - interval '1 hour', {}, {})"
)
# A notice that waits for later ones is not late.
POSTPONE = "UPDATE outbox SET is_notice = true, next_attempt_at = now() + interval '10 minutes'"
BAN = "UPDATE users SET banned_until = {}"
WITH_RECIPIENT = PUBLIC | {"backup_recipients": (age.new_identity()[0],)}
# A check, how its remedy begins, the statement that causes the fault, the one that does what the remedy does, and
# settings.
ROWS: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("administrators", "Run: latchkey create-admin", BAN.format("'infinity'"), BAN.format("NULL"), {}),
    (
        "delivery",
        "Fix what journalctl",
        AGE_TASK.format("5 minutes"),
        RECORD_TASK.format("delivery"),
        {"deliver": True},
    ),
    (
        "delivery",
        "Set AUTH_DELIVER=true",
        "DELETE FROM last_done",
        RECORD_TASK.format("delivery"),
        {"deliver": False},
    ),
    ("waiting-messages", "For SMS, correct", MESSAGE.format("NULL", "NULL"), POSTPONE, {}),
    (
        "failed-messages",
        "Use a sender",
        MESSAGE.format("'failed'", "now()"),
        "UPDATE outbox SET outcome = 'sent'",
        {},
    ),
    (
        "message-totals",
        "If your own users requested them, raise",
        TOTAL,
        "UPDATE failure_counts SET count = 749",
        LIMITED,
    ),
    (
        "backup",
        "Set AUTH_BACKUP_RECIPIENTS to what",
        AGE_TASK.format("8 days"),
        RECORD_TASK.format("backup"),
        PUBLIC,
    ),
    (
        "backup",
        "Run latchkey backup FILE --keep 7",
        "DELETE FROM last_done",
        RECORD_TASK.format("backup"),
        WITH_RECIPIENT,
    ),
]


@pytest.mark.parametrize(("check", "remedy", "fault", "fix", "settings"), ROWS)
def test_fault_in_the_tables_is_found_until_it_is_fixed(look, database, check, remedy, fault, fix, settings):
    database.run(fault)
    assert look(check, **settings).startswith(remedy)
    database.run(fix)
    assert look(check, **settings) is None


class TestDatabase:
    def test_database_with_another_encoding_is_a_finding(self, play, new_database):
        options = "ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'"
        remedy = "Create a database with ENCODING 'UTF8', and set DATABASE_URL to it."
        play.fails("database-version", remedy, database_url=new_database(options=options))
        play.is_well("database-version", database_url=new_database())

    def test_indexes_of_another_version_of_the_collation_are_rebuilt_by_the_remedy(
        self, play, new_database, all_rows
    ):
        url = new_database()
        schema.apply(url)
        play.is_well("collation", database_url=url)
        name = urlsplit(url).path[1:]
        all_rows.run("UPDATE pg_database SET datcollversion = '0.1' WHERE datname = %(name)s", name=name)
        remedy = f"REINDEX DATABASE {name}; ALTER DATABASE {name} REFRESH COLLATION VERSION"
        play.fails("collation", f"As the owner of the database, run in psql: {remedy}", database_url=url)
        with autocommitting(url) as connection:
            for statement in remedy.split("; "):
                execute(connection, statement)
        play.is_well("collation", database_url=url)

    @pytest.mark.parametrize(
        ("is_old", "remedy"),
        [(False, "Run: latchkey migrate"), (True, "Restart the service, or run: latchkey migrate")],
    )
    def test_schema_that_is_missing_or_of_an_earlier_release_is_migrated_by_the_remedy(
        self, play, new_database, environment, oldest_release_files, is_old, remedy
    ):
        url = new_database(*[oldest_release.script(oldest_release_files)] * is_old)
        play.fails("schema", remedy, database_url=url)
        assert run_with_settings(environment | {"DATABASE_URL": url}, "migrate").exit_code == 0
        play.is_well("schema", database_url=url)

    def test_schema_of_a_later_release_is_a_finding_unless_it_is_usable(self, play, monkeypatch, database):
        remedy = "Install the release that upgraded the database on this machine too."
        monkeypatch.setattr(schema, "NEWEST", schema.NEWEST - 1)
        usable = "UPDATE schema_version SET usable_from = version {}"
        before = database.value("SELECT usable_from FROM schema_version")
        try:
            database.run(usable.format(""))
            play.fails("schema", remedy)
            database.run(usable.format("- 1"))
            play.is_well("schema")
        finally:
            database.run("UPDATE schema_version SET usable_from = %(before)s", before=before)

    def test_owner_that_serves_requests_is_a_finding(self, play, new_database):
        url = new_database()
        schema.apply(url)
        remedy = (
            "Set AUTH_DATABASE_OWNER_URL to what DATABASE_URL is now, and DATABASE_URL to {} CREATE ROLE {}"
        )
        play.fails("role", remedy, database_url=url, database_owner_url=url)

    @two_roles
    def test_role_that_may_create_tables_loses_the_right_by_the_remedy(self, play, database):
        database.run("GRANT CREATE ON SCHEMA public TO PUBLIC")
        printed = play.fails("role", "As the owner of the schema or a superuser, run in psql: {}")
        database.run(printed.partition(": ")[2])
        play.is_well("role")

    @two_roles
    def test_role_without_rights_gets_them_by_the_remedy(self, play, database, database_url, environment):
        remedy = "Set AUTH_DATABASE_OWNER_URL to the URL of the tables' owner, then run: latchkey migrate"
        database.run("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM latchkey")
        play.fails("schema", remedy)
        result = run_with_settings(environment | {"AUTH_DATABASE_OWNER_URL": database_url}, "migrate")
        assert (result.exit_code, result.output) == (0, "grants.sql\n")
        play.is_well("schema")

    @two_roles
    def test_hook_that_the_role_may_not_call_is_granted_by_the_statement(self, play, healthy, database):
        hook = {"hook_custom_access_token": "pg-functions://postgres/of_doctor/hook"}
        database.run(
            "CREATE SCHEMA of_doctor;"
            "CREATE FUNCTION of_doctor.hook(event jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT event'"
        )
        try:
            text = text_of("hooks", dataclasses.replace(healthy, **hook))
            database.run(text.partition("the role of DATABASE_URL may not call it: ")[2].rstrip("."))
            play.is_well("hooks", **hook)
        finally:
            database.run("DROP SCHEMA of_doctor CASCADE")

    def test_pooler_in_transaction_mode_is_a_finding_until_statements_are_not_prepared(
        self, play, database_url, state_dir
    ):
        if "host=%2F" not in database_url:
            pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
        deployment: Any = SimpleNamespace(postgres=SimpleNamespace(url=database_url), state_dir=state_dir)
        with PgBouncer(deployment) as bouncer:
            play.fails("pooler", "Set AUTH_DB_PREPARE=false.", database_url=bouncer.url)
            unless = "AUTH_DB_PREPARE is false, as for a pooler"
            play.is_well("pooler", unless, database_url=bouncer.url, db_prepare=False)

    def test_server_of_a_hook_that_is_away_is_a_finding(self, play, target):
        remedy = (
            "Start the server of AUTH_HOOK_BEFORE_USER_CREATED, or set another that this machine can reach."
        )
        play.fails("hooks", remedy, hook_before_user_created=f"http://{CLOSED_ADDRESS}/hook")
        play.is_well("hooks", hook_before_user_created=f"{target.url}/hook")

    def test_webhook_that_is_disabled_or_fails_for_more_than_a_day_is_a_finding(self, play, hooks, database):
        webhook = hooks.register("http://127.0.0.1:9/hook?key=topsecret")
        database.run(
            "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'failing', failing_since = now()"
        )
        enable = f"latchkey webhooks enable {webhook['id']}"
        play.fails("webhooks", f"Fix its server, then run: {enable}")
        failing = "UPDATE webhooks SET disabled_at = NULL, disabled_reason = NULL, failing_since = now() - interval '{}'"
        database.run(failing.format("2 days"))
        play.fails("webhooks", f"Run: latchkey webhooks test {webhook['id']}")
        database.run(failing.format("2 hours"))
        play.is_well("webhooks")


def text_of(check: str, settings: Any) -> str:
    """Return the text of a check about a fault."""
    (result,) = examine(settings, {each.name for each in CHECKS} - {check})
    return result.text


def test_clock_is_compared_with_those_of_other_machines(play, monkeypatch):
    play.is_well("clock", "neither Postgres nor AUTH_SITE_URL is on another machine")
    monkeypatch.setattr(database_checks, "is_here", lambda _host: False)
    with HttpTarget() as site:
        play.is_well("clock", site_url=site.url)
        site.headers = {"Age": "60"}
        play.fails("clock", "On both machines, run: timedatectl set-ntp true", site_url=site.url)
        site.headers = {"Age": "soon"}
        play.is_well("clock", site_url=site.url)


class TestKeysAndFiles:
    def test_old_key_is_a_finding_until_it_is_replaced_and_removed(
        self, play, healthy, parts, database, no_openid_keys
    ):
        OpenIdKeys(parts.db, parts.sealer).make_first()
        database.run("UPDATE openid_keys SET created_at = now() - interval '500 days'")
        rotate = "Run latchkey keys rotate {} and, when latchkey doctor says so: latchkey keys remove ID"
        printed = play.fails("key-age", rotate)
        rotation.rotate(parts.db, healthy, printed.split()[4], soon=True, algorithm=None)
        database.run(PASS_OVERLAP)
        printed = play.fails("key-age", "Run now: latchkey keys remove {}")
        rotation.remove(parts.db, healthy, printed.split()[-1], force=True)
        play.is_well("key-age")
        aged = "UPDATE key_fingerprints SET seen_at = now() - interval '500 days' WHERE setting = 'AUTH_SECRET_KEY'"
        database.run(aged)
        (old_key,) = key_kinds.KINDS["secret"].keys(parts.db, healthy)
        waiting = (f"{secret('new')}@2099-01-01T00:00:00Z", *healthy.secret_key)
        remove = f"Run after 2099-01-01T00:00:00Z: latchkey keys remove {old_key.id}"
        play.fails("key-age", remove, secret_key=waiting)

    def test_openid_key_of_a_lost_secret_is_a_finding_until_it_is_replaced_and_removed(
        self, play, healthy, parts, database, no_openid_keys
    ):
        OpenIdKeys(parts.db, LOST_SEALER).make_first()
        remedy = "Run latchkey keys rotate openid --now and, a minute later: latchkey keys remove {} --force"
        printed = play.fails("keys", remedy)
        rotation.rotate(parts.db, healthy, "openid", soon=True, algorithm=None)
        database.run(PASS_OVERLAP)
        rotation.remove(parts.db, healthy, printed.split()[-2], force=True)
        play.is_well("keys")

    @pytest.fixture
    def state(self, healthy, tmp_path):
        """A state directory with a key file, as settings."""
        directory = tmp_path / "var"
        directory.mkdir(mode=0o700)
        path = directory / "secret_key"
        path.write_text(healthy.secret_key[0])
        path.chmod(0o600)
        return {"state_dir": directory, "key_files": {"secret_key": path}}

    @pytest.mark.parametrize(("name", "mode"), [("", 0o755), ("secret_key", 0o640)])
    def test_files_that_other_users_can_read_are_closed_by_the_remedy(self, play, state, name, mode):
        (state["state_dir"] / name).chmod(mode)
        printed = play.fails("state-directory", "Run: chmod {} {}", **state)
        subprocess.run(shlex.split(printed)[1:], check=True)
        play.is_well("state-directory", **state)

    def test_key_file_that_a_supplementary_group_can_read_is_a_finding(self, play, state, monkeypatch):
        path = state["key_files"]["secret_key"]
        monkeypatch.setattr(os, "getgroups", lambda: [path.stat().st_gid])
        monkeypatch.setattr(os, "getegid", lambda: 4000)
        path.chmod(0o660)
        remedy = f"Unless that is the fsGroup of a pod, run: chmod 600 {path}"
        play.fails("state-directory", remedy, **state)
        path.chmod(0o600)
        play.is_well("state-directory", **state)

    def test_key_file_of_another_deployment_is_a_finding(self, play, state):
        remedy = f"Copy {state['key_files']['secret_key']} from another node, or restore it from a backup."
        play.fails("keys", remedy, **state, secret_key=(secret("other"),))
        play.is_well("keys", **state)

    def test_disk_without_room_and_quota_that_is_used_up_are_findings(self, play, state, monkeypatch):
        remedy = f"Free space on the disk of {state['state_dir']}, or raise its quota."
        with monkeypatch.context() as patch:
            patch.setattr(secrets, "LEAST_FREE", 2**62)
            play.fails("disk", remedy, **state)
        # The system refuses to write a larger file, as it does beyond a quota.
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
        try:
            play.fails("disk", remedy, **state)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        play.is_well("disk", **state)


def body(**members: str) -> bytes:
    healthy = {"service": "latchkey", "version": auth.__version__, "status": "healthy"}
    return json.dumps(healthy | members).encode()


class TestPublicUrl:
    @pytest.mark.parametrize(
        ("msg", "remedy"),
        [
            ("", "Run: systemctl restart latchkey"),
            ("No password hash has finished", "See docs/monitoring.md, and run: systemctl restart latchkey"),
            (
                "The delivery process ends again",
                "Fix what journalctl -u latchkey says of the delivery process, {}",
            ),
            ("Full; nothing can be written", "Fix what the other ✗ say. Nothing needs a restart."),
            ("Something else", "Fix what journalctl -u latchkey says. If it says nothing, run: systemctl {}"),
        ],
    )
    def test_service_that_is_of_another_release_or_degraded_is_a_finding(
        self, play, healthy, target, msg, remedy
    ):
        target.body = body(**({"status": "degraded", "msg": msg} if msg else {"version": "0.0.1"}))
        play.fails("public-url", remedy, base_url=target.url)
        assert (msg or "0.0.1") in text_of("public-url", dataclasses.replace(healthy, base_url=target.url))
        target.body = body()
        play.is_well("public-url", base_url=target.url)

    def test_certificate_that_is_not_trusted_or_expires_soon_is_a_finding(self, play, tmp_path, monkeypatch):
        untrusted = "Get a certificate for {}, for example by: certbot certonly --webroot -d {}"
        certificate = Certificate(tmp_path)
        with HttpTarget(certificate) as target:
            play.fails("certificate", untrusted, base_url=target.url)
            with certificate.trusted(monkeypatch):
                play.fails("certificate", "Renew it, for example by: certbot renew", base_url=target.url)
                monkeypatch.setattr(public_url, "_LEAST_DAYS", 0)
                play.is_well("certificate", base_url=target.url)

    @pytest.mark.parametrize(
        ("proxies", "trusted", "number"),
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
    def test_wrong_number_of_proxies_is_a_finding_with_the_right_number(
        self, play, healthy, base_url, proxies, trusted, number
    ):
        with ExitStack() as stack:
            url = base_url
            for forwards in reversed(proxies):
                url = stack.enter_context(ReverseProxy(url, forwards)).url
            fault = {"base_url": url, "trusted_proxies": trusted}
            play.fails("proxies", f"Set AUTH_TRUSTED_PROXIES={number}.", **fault)
            text = text_of("proxies", dataclasses.replace(healthy, **fault))
            play.is_well("proxies", base_url=url, trusted_proxies=number)
        effect = "clients can forge the address that limits count"
        assert text.endswith(f"{effect if trusted > number else 'all clients share one limit'}.")

    def test_tls_proxy_without_headers_is_a_finding_with_the_headers_to_send(
        self, play, base_url, tmp_path, monkeypatch
    ):
        certificate = Certificate(tmp_path)
        remedies = (
            "Have the proxy send X-Forwarded-For and X-Forwarded-Proto, and set AUTH_TRUSTED_PROXIES=1.",
            "Have the proxy send the header: X-Forwarded-Proto: https",
        )
        with ExitStack() as stack:
            stack.enter_context(certificate.trusted(monkeypatch))
            for trusted, (forwards, remedy) in enumerate(zip(("keep", "replace"), remedies, strict=True)):
                proxy = stack.enter_context(ReverseProxy(base_url, forwards, tls=certificate))
                play.fails("proxies", remedy, base_url=proxy.url, trusted_proxies=trusted)

    def test_health_responds_to_a_nonce_as_to_any_request_and_records_it_once(self, client, parts, database):
        nonce = one_time.new_token()
        queries.create_probe(parts.db, token_hash=one_time.hash_token(nonce), lifetime=30)
        for address in ("203.0.113.9", "203.0.113.10"):
            forged = {"X-Latchkey-Probe": nonce, "X-Forwarded-For": address}
            plain, probed = client.get("/health"), client.get("/health", headers=forged)
            assert plain.json.keys() == probed.json.keys()
            assert address not in probed.text + str(probed.headers)
        row = queries.take_probe(parts.db, token_hash=one_time.hash_token(nonce))
        assert row.request["forwarded_for"] == ["203.0.113.9"]

    @pytest.mark.parametrize("nonce", ["x" * 43, "x" * 10_000])
    def test_health_ignores_a_nonce_that_the_doctor_has_not_made(self, client, database, nonce):
        assert client.get("/health", headers={"X-Latchkey-Probe": nonce}).status_code == 200
        assert database.count("probes") == 0

    def test_issuer_at_which_applications_find_no_provider_is_a_finding(
        self, play, database, base_url, target
    ):
        remedy = "Have the proxy lead {} to this service, or set: AUTH_JWT_ISSUER={}"
        play.is_well("discovery", "no application signs users in here")
        insert_client(database)
        target.body = json.dumps({"issuer": f"{target.url}/auth"}).encode()
        for issuer in (base_url, target.url, f"{base_url}/nowhere", f"http://{CLOSED_ADDRESS}", "not a URL"):
            play.fails("discovery", remedy, jwt_issuer=issuer)
        play.is_well("discovery", jwt_issuer=f"{target.url}/auth")


class TestMail:
    def test_mail_server_that_refuses_the_sender_or_hangs_is_a_finding(self, play, monkeypatch):
        def fails(remedy: str, url: str) -> None:
            play.fails("mail-server", remedy, smtp_url=url, mail_from=MAIL["mail_from"])

        with MailServer() as server:
            server.replies["MAIL"] = "550 5.7.1 not yours"
            fails("Set AUTH_MAIL_FROM to an address that the server lets this user send from.", server.url())
            del server.replies["MAIL"]
            play.is_well("mail-server", smtp_url=server.url(), mail_from=MAIL["mail_from"])
        monkeypatch.setattr(examination, "_MARGIN", 19.0)
        with BadMailServer("EHLO", "hang") as silent:
            fails("Correct the host and port of AUTH_SMTP_URL {}", silent.url)

    @pytest.mark.parametrize(
        ("missing", "record"), [*zip(RECORDS, ("v=spf1", "DKIM", "v=DMARC1"), strict=True)]
    )
    def test_missing_record_of_the_senders_domain_is_a_finding_with_the_record_to_add(
        self, play, missing, record
    ):
        with DnsServer(RECORDS) as server:
            play.is_well("sender", resolver=server.resolver, **MAIL)
            del server.texts[missing]
            assert record in play.fails("sender", "Add to DNS: {}", resolver=server.resolver, **MAIL)
            # The DMARC record of the parent domain counts too.
            below = MAIL | {"mail_from": "a@mail.example.com"}
            printed = play.fails("sender", "Add to DNS: {}", resolver=server.resolver, **below)
            assert ("DMARC" in printed) is ("dmarc" in missing)

    def test_network_without_dns_is_not_a_failure(self, play):
        with DnsServer({}) as server:
            server.resolver.lifetime, server.resolver.port = 0.2, free_port()
            play.is_well("sender", "DNS is not available here", resolver=server.resolver, **MAIL)
