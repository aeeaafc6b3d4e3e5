"""Each remedy of the doctor fixes its fault: cause the fault, apply the remedy, and the check is green."""

import ast
import dataclasses
import json
import os
import re
import resource
import shlex
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from limits import parse

import auth
from auth.core.keys import rotation
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.tokens import signing_keys
from auth.core.tokens.derived_keys import Sealer, derive
from auth.ops.backups import age
from auth.ops.commands import backup
from auth.ops.doctor import database as database_checks
from auth.ops.doctor import examination
from auth.ops.doctor.examination import CHECKS
from sql import queries, schema
from tests.support import oldest_release
from tests.support.commands import run_command, run_with_settings
from tests.support.contract import OPENAPI
from tests.support.deliverers import RunningDeliverer, deliver_due, deliverer
from tests.support.dns_server import DnsServer
from tests.support.environment import secret
from tests.support.http_target import HttpTarget
from tests.support.openid import insert_client
from tests.support.processes import free_port
from tests.support.reverse_proxy import ReverseProxy
from tests.support.smtp_server import Certificate, MailServer
from tests.system.faults.dependencies import PgBouncer

ROOT = OPENAPI.parent
PUBLIC = {"base_url": "https://auth.example.com", "site_url": "https://auth.example.com"}
MAIL_FROM = {"mail_from": "Example <no-reply@example.com>"}
MAIL = PUBLIC | MAIL_FROM | {"smtp_url": "smtp://mail.example.com"}
LIMITED = PUBLIC | {"rate_limits_enabled": True}
ALLOW_LIST, APP = "AUTH_REDIRECT_ALLOW_LIST", "https://app.example.com"
PASSWORD_OF_DAN = "Correct-Horse-Battery-1"
SQL_HOOK = "pg-functions://postgres/pg_catalog/"
# Faults that need a separate machine, or a service that is started and stopped.
ELSEWHERE = {
    "Use the python3 of your distribution, or of the image python:3.13, as docs/performance.md says.": "tests/system/ops/processes/test_doctor.py",
    "Free space on the disk of Postgres' data directory. Nothing needs a restart.": "tests/system/faults/test_doctor.py",
    "Find the error of the file system of {} (dmesg), then mount it for writing.": "tests/system/faults/test_doctor.py",
    "List all hosts in DATABASE_URL, and add ?target_session_attrs=read-write to it.": "tests/system/faults/test_doctor.py",
    "Fix what else fails here, then run: systemctl start latchkey": "tests/system/ops/processes/test_doctor_without_service.py",
    "Start the service, which does not run with this state directory: systemctl start latchkey": "tests/system/ops/processes/test_doctor_without_service.py",
    "Fix that, then start the service. For the whole log, run: journalctl -u latchkey": "tests/system/ops/processes/test_doctor_without_service.py",
}  # fmt: skip
STEPS_OF_MAIL = ROOT / "auth/ops/doctor/mail_steps.py"
PLAYED: set[str] = set()
OTHER_ROLE = (
    "Set AUTH_DATABASE_OWNER_URL to what DATABASE_URL is now, and DATABASE_URL to the same database with another role."
    " The next start creates that role, or you do: CREATE ROLE latchkey_requests LOGIN ROLE {} PASSWORD '…'"
)
two_roles = pytest.mark.skipif(
    "TEST_DATABASE_URL" in os.environ, reason="NOT TESTED: TEST_DATABASE_URL has one role only"
)


def remedies() -> set[str]:
    """Return what the checks can print, with {} for what differs."""
    sources = [*(ROOT / "auth/ops/doctor").glob("*.py"), *(ROOT / "auth").glob("*/**/checks.py")]
    sources.append(ROOT / "auth/core/keys/resealing.py")
    return {text for source in sources for text in remedies_of(ast.parse(source.read_text()))}


def remedies_of(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Failure", "Note"):
            yield from texts(node.args[1])
        elif isinstance(node, ast.Assign) and re.fullmatch(
            r"remedy|_[A-Z_]*REMED(Y|IES)[A-Z_]*", ast.unparse(node.targets[0])
        ):
            yield from texts(node.value)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("_remedy"):
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and part.value:
                    yield from texts(part.value)


def texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from texts(value)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dict.fromkeys":
        yield from texts(node.args[1])
    elif isinstance(node, ast.IfExp):
        yield from (*texts(node.body), *texts(node.orelse))


ELSEWHERE |= dict.fromkeys(
    remedies_of(ast.parse(STEPS_OF_MAIL.read_text())), "tests/system/ops/commands/test_mail_remedies.py"
)


def plays(*templates: str) -> Callable[[Any], Any]:
    PLAYED.update(templates)
    return lambda test: test


def test_every_remedy_that_a_check_can_print_is_played():
    found = remedies()
    assert len(found) > 50
    assert found - PLAYED - ELSEWHERE.keys() == set()
    assert (PLAYED | ELSEWHERE.keys()) - found == set()
    for template, place in ELSEWHERE.items():
        assert max(template.split("{}"), key=len) in (ROOT / place).read_text(), template


class Play:
    def __init__(self, look: Callable[..., str | None]) -> None:
        self._look = look

    def fails(self, check: str, template: str, **changes: Any) -> str:
        assert template in PLAYED
        remedy = self._look(check, **changes)
        assert re.fullmatch(".+".join(map(re.escape, template.split("{}"))), str(remedy)), remedy
        return str(remedy)

    def is_well(self, check: str, unless: str | None = None, **changes: Any) -> None:
        """The check passes, unless it no longer applies."""
        assert self._look(check, **changes) == unless


@pytest.fixture
def play(look) -> Play:
    return Play(look)


# A check, its remedy, the settings with the fault, and those after the remedy.
SETTINGS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "hooks",
        "Create and grant that function as docs/hooks.md shows, or set {} to another.",
        {"hook_custom_access_token": f"{SQL_HOOK}no_hook"},
        {"hook_custom_access_token": f"{SQL_HOOK}jsonb_strip_nulls"},
    ),
    (
        "redis",
        "Start that Redis, or set AUTH_RATE_LIMIT_STORAGE=postgresql.",
        {"rate_limits_enabled": True, "rate_limit_storage": f"redis://127.0.0.1:{free_port()}"},
        {"rate_limits_enabled": True},
    ),
    (
        "keys",
        "Set {} to its value on the other nodes, or in a backup.",
        {"secret_key": (secret("other"),), "jwt_keys": signing_keys.new_jwk_set(), "key_files": {}},
        {"key_files": {}},
    ),
    (
        "public-url",
        "If {} is the public URL, fix DNS, the proxy or the service; else set AUTH_BASE_URL.",
        {"base_url": f"http://127.0.0.1:{free_port()}"},
        {},
    ),
    (
        "database",
        "Start that Postgres, or correct the setting: DATABASE_URL=postgresql://user:password@host/database",
        {"database_url": f"postgresql://127.0.0.1:{free_port()}/d"},
        {},
    ),
    (
        "redirects",
        "Set AUTH_SITE_URL to the URL of your application, such as https://app.example.com.",
        PUBLIC | {"site_url": "http://localhost:3000"},
        PUBLIC | {"site_url": APP},
    ),
    (
        "redirects",
        "Serve your application by https, and set: AUTH_SITE_URL=https://{}",
        PUBLIC | {"site_url": "http://auth.example.com"},
        PUBLIC,
    ),
    (
        "redirects",
        f"In {ALLOW_LIST}, replace it by: https://{{}}",
        PUBLIC | {"redirect_allow_list": ("http://app.example.com/**",)},
        PUBLIC | {"redirect_allow_list": (f"{APP}/**",)},
    ),
    (
        "test-settings",
        "Set AUTH_RATE_LIMITS_ENABLED=true.",
        PUBLIC | {"rate_limits_enabled": False},
        LIMITED,
    ),
    (
        "test-settings",
        "Set AUTH_RATE_LIMIT_STORAGE=postgresql.",
        LIMITED | {"rate_limit_storage": "memory://"},
        LIMITED | {"rate_limit_storage": "postgresql"},
    ),
]


@plays(*(row[1] for row in SETTINGS))
@pytest.mark.parametrize(("check", "remedy", "fault", "fixed"), SETTINGS)
def test_setting_fixes_it(play, check, remedy, fault, fixed):
    play.fails(check, remedy, **fault)
    play.is_well(check, **fixed)


class TestDatabase:
    @plays("As {} or a superuser, run in psql: {}")
    def test_session_that_holds_a_lock(self, play, database, database_url, lock_timeout):
        lock_timeout("3s")
        with closing(psycopg2.connect(database_url)) as holder:
            holder.cursor().execute("LOCK TABLE users")
            remedy = play.fails("locks", "As {} or a superuser, run in psql: {}")
            database.run(remedy.partition(": ")[2])
            play.is_well("locks")

    @plays("Create a database with ENCODING 'UTF8', and set DATABASE_URL to it.")
    def test_other_encoding(self, play, new_database):
        options = "ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'"
        wrong = new_database(options=options)
        play.fails(
            "database-version",
            "Create a database with ENCODING 'UTF8', and set DATABASE_URL to it.",
            database_url=wrong,
        )
        play.is_well("database-version", database_url=new_database())

    @plays("Run: latchkey migrate")
    def test_database_without_schema(self, play, new_database, environment):
        url = new_database()
        remedy = play.fails("schema", "Run: latchkey migrate", database_url=url)
        done = run_with_settings(environment | {"DATABASE_URL": url}, *remedy.split()[2:])
        assert done.exit_code == 0
        play.is_well("schema", database_url=url)

    @plays(OTHER_ROLE)
    def test_owner_that_serves_requests(self, play, new_database, all_rows, database_url):
        owner_url = new_database()
        schema.apply(owner_url)
        owner = {"database_url": owner_url, "database_owner_url": owner_url}
        remedy = play.fails("role", OTHER_ROLE, **owner)
        all_rows.run(remedy.partition("or you do: ")[2])
        try:
            requests_url = owner_url.replace(f"//{urlsplit(owner_url).username}", "//latchkey_requests")
            schema.apply(owner_url, requests_url=requests_url)
            play.is_well("role", database_url=requests_url, database_owner_url=owner_url)
        finally:
            for url in (owner_url, database_url):
                with closing(psycopg2.connect(url)) as connection, connection:
                    connection.cursor().execute("DROP OWNED BY latchkey_requests")
            all_rows.run("DROP ROLE latchkey_requests")

    @plays("As the owner of the schema or a superuser, run in psql: {}")
    @two_roles
    def test_role_that_may_create_tables(self, play, database):
        database.run("GRANT CREATE ON SCHEMA public TO PUBLIC")
        remedy = play.fails("role", "As the owner of the schema or a superuser, run in psql: {}")
        database.run(remedy.partition(": ")[2])
        play.is_well("role")

    @plays("Set AUTH_DATABASE_OWNER_URL to the URL of the tables' owner, then run: latchkey migrate")
    @two_roles
    def test_role_without_rights(self, play, database, database_url, environment):
        database.run("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM latchkey")
        remedy = play.fails(
            "schema",
            "Set AUTH_DATABASE_OWNER_URL to the URL of the tables' owner, then run: latchkey migrate",
        )
        done = run_with_settings(environment | {"AUTH_DATABASE_OWNER_URL": database_url}, remedy.split()[-1])
        assert (done.exit_code, done.output) == (0, "grants.sql\n")
        play.is_well("schema")

    @plays("Set AUTH_DB_PREPARE=false.")
    def test_pooler_in_transaction_mode(self, play, database_url, state_dir):
        if "host=%2F" not in database_url:
            pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
        world: Any = SimpleNamespace(postgres=SimpleNamespace(url=database_url), state_dir=state_dir)
        with PgBouncer(world) as bouncer:
            play.fails("pooler", "Set AUTH_DB_PREPARE=false.", database_url=bouncer.url)
            unless = "AUTH_DB_PREPARE is false, as for a pooler"
            play.is_well("pooler", unless, database_url=bouncer.url, db_prepare=False)

    @plays("Set AUTH_WORKERS={}, or raise the limit of Postgres, of the role or of the database.")
    def test_too_many_workers(self, play):
        remedy = play.fails(
            "connections",
            "Set AUTH_WORKERS={}, or raise the limit of Postgres, of the role or of the database.",
            workers=64,
        )
        play.is_well("connections", workers=int(re.findall(r"\d+", remedy)[0]))

    @plays("On both machines, run: timedatectl set-ntp true")
    def test_clock_that_is_wrong(self, play, monkeypatch):
        monkeypatch.setattr(database_checks, "is_here", lambda _host: False)
        with HttpTarget() as site:
            site.headers = {"Age": "60"}
            play.fails("clock", "On both machines, run: timedatectl set-ntp true", site_url=site.url)
            site.headers = {}
            play.is_well("clock", site_url=site.url)

    @plays("Run: latchkey create-admin EMAIL")
    def test_no_administrator(self, play, app, database):
        database.run("UPDATE users SET role = 'authenticated'")
        remedy = play.fails("administrators", "Run: latchkey create-admin EMAIL")
        command = remedy.replace("EMAIL", "dan@example.com").split()[2:]
        assert run_command(app, *command, input=PASSWORD_OF_DAN).exit_code == 0
        play.is_well("administrators")

    @plays("Restart the service, or run: latchkey migrate")
    def test_schema_of_an_earlier_release(self, play, new_database, environment, oldest_release_files):
        url = new_database(oldest_release.script(oldest_release_files))
        play.fails("schema", "Restart the service, or run: latchkey migrate", database_url=url)
        assert run_with_settings(environment | {"DATABASE_URL": url}, "migrate").exit_code == 0
        play.is_well("schema", database_url=url)

    @plays("Install the release that upgraded the database on this machine too.")
    def test_schema_of_a_later_release(self, play, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(schema, "NEWEST", 1)
            play.fails("schema", "Install the release that upgraded the database on this machine too.")
        play.is_well("schema")

    @plays("Set the named parameter. If only you use that network, run: latchkey doctor --skip encryption")
    def test_connection_without_encryption(self, play):
        template = (
            "Set the named parameter. If only you use that network, run: latchkey doctor --skip encryption"
        )
        url = "postgresql://u@192.0.2.1/d"
        play.fails("encryption", template, database_url=f"{url}?sslmode=disable")
        play.is_well("encryption", database_url=f"{url}?sslmode=verify-full&sslrootcert=system")

    @plays("Start the server of {}, or set another that this machine can reach.")
    def test_server_of_a_hook_that_is_away(self, play, target):
        template = "Start the server of {}, or set another that this machine can reach."
        play.fails("hooks", template, hook_before_user_created=f"http://127.0.0.1:{free_port()}/hook")
        play.is_well("hooks", hook_before_user_created=f"{target.url}/hook")

    @plays(
        "Report this error to the maintainers. Until it is mended: latchkey doctor --skip {}",
        "Wait until the network, DNS, the disk and Postgres respond, then run this again.",
    )
    def test_check_that_breaks_or_hangs(self, play, monkeypatch):
        (clock,) = (check for check in CHECKS if check.name == "clock")

        def look_by(look: Callable[[Any], None]) -> None:
            others = [check for check in CHECKS if check.name != "clock"]
            changed = (*others, dataclasses.replace(clock, look=look))
            monkeypatch.setattr(examination, "CHECKS", changed)

        def break_down(_context: Any) -> None:
            raise ZeroDivisionError

        def hang(_context: Any) -> None:
            raise TimeoutError

        look_by(break_down)
        play.fails(
            "clock", "Report this error to the maintainers. Until it is mended: latchkey doctor --skip {}"
        )
        look_by(hang)
        play.fails(
            "clock", "Wait until the network, DNS, the disk and Postgres respond, then run this again."
        )
        look_by(lambda _context: None)
        play.is_well("clock")


DUE = "UPDATE openid_keys SET active_from = active_from - interval '1 hour'"


class TestKeysAndFiles:
    @plays(
        "Run latchkey keys rotate {} and, when latchkey doctor says so: latchkey keys remove ID",
        "Run {}: latchkey keys remove {}",
    )
    def test_old_key(self, play, healthy, parts, database, no_openid_keys):
        OpenIdKeys(parts.db, parts.sealer).make_first()
        database.run("UPDATE openid_keys SET created_at = now() - interval '500 days'")
        remedy = play.fails(
            "key-age",
            "Run latchkey keys rotate {} and, when latchkey doctor says so: latchkey keys remove ID",
        )
        rotation.rotate(parts.db, healthy, remedy.split()[4], soon=True, algorithm=None)
        database.run(DUE)
        remedy = play.fails("key-age", "Run {}: latchkey keys remove {}")
        rotation.remove(parts.db, healthy, remedy.split()[-1], force=True)
        play.is_well("key-age")

    @plays("Run latchkey keys rotate openid --now and, a minute later: latchkey keys remove {} --force")
    def test_openid_key_of_a_lost_secret(self, play, healthy, parts, database, no_openid_keys):
        OpenIdKeys(parts.db, Sealer(derive(("a secret key that is lost",), "outbox"))).make_first()
        template = (
            "Run latchkey keys rotate openid --now and, a minute later: latchkey keys remove {} --force"
        )
        remedy = play.fails("keys", template)
        rotation.rotate(parts.db, healthy, "openid", soon=True, algorithm=None)
        database.run(DUE)
        rotation.remove(parts.db, healthy, remedy.split()[-2], force=True)
        play.is_well("keys")

    @plays("Give the webhook a new secret in the console, or delete it.")
    def test_webhook_of_a_lost_secret(self, play, hooks, database, parts):
        made = hooks.register("http://127.0.0.1:9/hook")
        lost = Sealer(derive(("a secret key that is lost",), "outbox")).seal("whsec", made["id"])
        database.run("UPDATE webhooks SET secret = %(lost)s", lost=lost)
        play.fails("keys", "Give the webhook a new secret in the console, or delete it.")
        hooks.ask("delete", f"/{made['id']}")
        play.is_well("keys")

    @plays("Run: latchkey providers change {} --secret-file FILE")
    def test_customers_provider_of_a_lost_secret(self, play, database, environment, tmp_path):
        id = str(uuid.uuid4())
        lost = Sealer(derive(("a secret key that is lost",), "outbox")).seal("secret", id)
        database.run(
            "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
            " VALUES (%(id)s, 'custom:acme', 'Acme', 'https://acme.example', 'latchkey', %(lost)s)",
            id=id,
            lost=lost,
        )
        database.run("INSERT INTO identity_provider_domains VALUES ('acme.example', %(id)s)", id=id)
        remedy = play.fails("keys", "Run: latchkey providers change {} --secret-file FILE")
        secret_file = tmp_path / "secret"
        secret_file.write_text("another secret")
        command = shlex.split(remedy.removeprefix("Run: latchkey ").replace("FILE", str(secret_file)))
        done = run_with_settings(environment | {"AUTH_SSO": "true"}, *command)
        assert done.exit_code == 0, done.output
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

    @plays("Run: chmod {} {}")
    @pytest.mark.parametrize(("name", "mode"), [("", 0o755), ("secret_key", 0o644)])
    def test_files_that_others_can_read(self, play, state, name, mode):
        (state["state_dir"] / name).chmod(mode)
        remedy = play.fails("state-directory", "Run: chmod {} {}", **state)
        subprocess.run(shlex.split(remedy)[1:], check=True)
        play.is_well("state-directory", **state)

    @plays("Copy {} from another node, or restore it from a backup.")
    def test_key_file_of_another_deployment(self, play, state):
        template = "Copy {} from another node, or restore it from a backup."
        remedy = play.fails("keys", template, **state, secret_key=(secret("other"),))
        assert str(state["key_files"]["secret_key"]) in remedy
        play.is_well("keys", **state)

    @plays("Free space on the disk of {}, or raise its quota.")
    def test_quota_that_is_used_up(self, play, state):
        template = "Free space on the disk of {}, or raise its quota."
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
        try:
            play.fails("disk", template, **state)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        play.is_well("disk", **state)

    @plays("Run this as the user of the service, which must own {}.")
    def test_directory_of_another_user(self, play, state):
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        state["state_dir"].parent.chmod(0o711)
        os.seteuid(65_534)
        try:
            play.fails("disk", "Run this as the user of the service, which must own {}.", **state)
        finally:
            os.seteuid(0)
        play.is_well("disk", **state)


def body(**members: str) -> bytes:
    return json.dumps(
        {"service": "latchkey", "version": auth.__version__, "status": "healthy"} | members
    ).encode()


class TestPublicUrl:
    @plays(
        "See docs/monitoring.md, and run: systemctl restart latchkey",
        "Fix what journalctl -u latchkey says of the delivery process, which restarts by itself.",
        "Fix what the other ✗ say. Nothing needs a restart.",
        "Fix what journalctl -u latchkey says. If it says nothing, run: systemctl restart latchkey",
        "Run: systemctl restart latchkey",
    )
    @pytest.mark.parametrize(
        ("members", "remedy"),
        [
            ({"version": "0.0.1"}, "Run: systemctl restart latchkey"),
            (
                {"status": "degraded", "msg": "No password hash has finished for 20 seconds"},
                "See docs/monitoring.md, and run: systemctl restart latchkey",
            ),
            (
                {"status": "degraded", "msg": "The delivery process ends again and again"},
                "Fix what journalctl -u latchkey says of the delivery process, which restarts by itself.",
            ),
            (
                {"status": "degraded", "msg": "The disk of the database is full; nothing can be written"},
                "Fix what the other ✗ say. Nothing needs a restart.",
            ),
            (
                {"status": "degraded", "msg": "Something else"},
                "Fix what journalctl -u latchkey says. If it says nothing, run: systemctl restart latchkey",
            ),
        ],
    )
    def test_service_that_is_degraded_until_it_is_fixed(self, play, target, members, remedy):
        target.body = body(**members)
        play.fails("public-url", remedy, base_url=target.url)
        target.body = body()
        play.is_well("public-url", base_url=target.url)

    @plays("Serve it by https, and set: AUTH_BASE_URL=https://{}")
    def test_url_without_tls(self, play, base_url, tmp_path, monkeypatch):
        name = socket.gethostname()
        certificate = Certificate(tmp_path, name)
        with certificate.trusted(monkeypatch), ReverseProxy(base_url, tls=certificate) as proxy:
            port = proxy.url.rpartition(":")[2]
            remedy = play.fails(
                "public-url",
                "Serve it by https, and set: AUTH_BASE_URL=https://{}",
                base_url=f"http://{name}:{port}",
            )
            reached = remedy.partition("=")[2].replace(name, "127.0.0.1")
            play.is_well("public-url", base_url=reached)

    @plays("Get a certificate for {}, for example by: certbot certonly --webroot -d {}")
    def test_certificate_that_is_not_trusted(self, play, tmp_path, monkeypatch):
        template = "Get a certificate for {}, for example by: certbot certonly --webroot -d {}"
        certificate = Certificate(tmp_path, hours=24 * 30)
        with HttpTarget(certificate) as target:
            play.fails("certificate", template, base_url=target.url)
            with certificate.trusted(monkeypatch):
                play.is_well("certificate", base_url=target.url)

    @plays("Renew it, for example by: certbot renew")
    def test_certificate_that_expires(self, play, tmp_path, monkeypatch):
        old = Certificate(tmp_path)
        with HttpTarget(old) as target, old.trusted(monkeypatch):
            play.fails("certificate", "Renew it, for example by: certbot renew", base_url=target.url)
        renewed = Certificate(tmp_path, hours=24 * 30)
        with HttpTarget(renewed) as target, renewed.trusted(monkeypatch):
            play.is_well("certificate", base_url=target.url)

    @plays("Set AUTH_BASE_URL to the URL of this service, or DATABASE_URL to the database of that one.")
    def test_service_with_another_database(self, play, target):
        template = (
            "Set AUTH_BASE_URL to the URL of this service, or DATABASE_URL to the database of that one."
        )
        play.fails("proxies", template, base_url=target.url)
        play.is_well("proxies")

    @plays("Set AUTH_TRUSTED_PROXIES={}.")
    @pytest.mark.parametrize(("proxies", "trusted"), [([], 1), (["append"], 0), (["append", "append"], 1)])
    def test_wrong_number_of_proxies(self, play, base_url, proxies, trusted):
        with ExitStack() as stack:
            url = base_url
            for forwards in proxies:
                url = stack.enter_context(ReverseProxy(url, forwards)).url
            remedy = play.fails(
                "proxies", "Set AUTH_TRUSTED_PROXIES={}.", base_url=url, trusted_proxies=trusted
            )
            play.is_well("proxies", base_url=url, trusted_proxies=int(remedy.partition("=")[2].rstrip(".")))

    @plays(
        "Have the proxy send X-Forwarded-For and X-Forwarded-Proto, and set AUTH_TRUSTED_PROXIES=1.",
        "Have the proxy send the header: X-Forwarded-Proto: https",
    )
    def test_tls_proxy_without_headers(self, play, base_url, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with ExitStack() as stack:
            stack.enter_context(certificate.trusted(monkeypatch))
            proxies = (("keep", None, 0), ("replace", None, 1))
            templates = (
                "Have the proxy send X-Forwarded-For and X-Forwarded-Proto, and set AUTH_TRUSTED_PROXIES=1.",
                "Have the proxy send the header: X-Forwarded-Proto: https",
            )
            for (forwards, proto, trusted), template in zip(proxies, templates, strict=True):
                proxy = stack.enter_context(ReverseProxy(base_url, forwards, proto, certificate))
                play.fails("proxies", template, base_url=proxy.url, trusted_proxies=trusted)
            # The service of the tests trusts no proxy, and so does not believe the header.
            plain = stack.enter_context(ReverseProxy(base_url, "replace", "https"))
            play.is_well("proxies", base_url=plain.url, trusted_proxies=1)

    @plays("Have the proxy lead {} to this service, or set: AUTH_JWT_ISSUER={}")
    def test_issuer_at_which_nothing_is_found(self, play, database, target):
        insert_client(database)
        template = "Have the proxy lead {} to this service, or set: AUTH_JWT_ISSUER={}"
        for issuer in (target.url, f"http://127.0.0.1:{free_port()}"):
            play.fails("discovery", template, jwt_issuer=issuer)
        target.body = json.dumps({"issuer": target.url}).encode()
        play.is_well("discovery", jwt_issuer=target.url)


class TestMail:
    @plays("Set the server: AUTH_SMTP_URL=smtp://user:password@host:587")
    def test_no_mail_server(self, play):
        template = "Set the server: AUTH_SMTP_URL=smtp://user:password@host:587"
        play.fails("mail-server", template, **(MAIL | {"smtp_url": None}))
        with MailServer() as server:
            play.is_well("mail-server", **(MAIL | {"smtp_url": server.url()}))

    @plays(
        "Add to DNS: {}",
        "Set AUTH_MAIL_FROM to an address in a domain of yours, such as Example <no-reply@example.com>.",
    )
    def test_sender_without_records(self, play):
        template = (
            "Set AUTH_MAIL_FROM to an address in a domain of yours, such as Example <no-reply@example.com>."
        )
        play.fails("sender", template, **(MAIL | {"mail_from": "Latchkey <no-reply@localhost>"}))
        records = {
            "example.com": "v=spf1 include:mail.example.net -all",
            "s1._domainkey.example.com": "v=DKIM1; p=x",
            "_dmarc.example.com": "v=DMARC1; p=reject",
        }
        with DnsServer({}) as server:
            play.fails("sender", "Add to DNS: {}", resolver=server.resolver, **MAIL)
            server.texts.update(records)
            play.is_well("sender", resolver=server.resolver, **MAIL)

    @plays("Set AUTH_SMS_PROVIDER to twilio or none, or set AUTH_HOOK_SEND_SMS.")
    def test_no_sms_provider(self, play):
        play.fails("sms", "Set AUTH_SMS_PROVIDER to twilio or none, or set AUTH_HOOK_SEND_SMS.", **PUBLIC)
        play.is_well("sms", "phones are not used", **PUBLIC, sms_provider="none")


IDLE = "UPDATE last_done SET at = now() - interval '{}'"


class TestDelivery:
    @plays(
        "Set AUTH_DELIVER=true, or run: latchkey deliver",
        "Fix what journalctl -u latchkey says of it, then run: systemctl restart latchkey",
    )
    @pytest.mark.parametrize(
        ("delivers", "remedy"),
        [
            (False, "Set AUTH_DELIVER=true, or run: latchkey deliver"),
            (True, "Fix what journalctl -u latchkey says of it, then run: systemctl restart latchkey"),
        ],
    )
    def test_no_delivery_process(self, play, database, parts, delivers, remedy):
        database.run(IDLE.format("5 minutes"))
        play.fails("delivery", remedy, deliver=delivers)
        queries.record_done(parts.db, task="delivery")  # as the process does
        play.is_well("delivery", deliver=delivers)

    @plays("For SMS, correct AUTH_SMS_PROVIDER. For email, find the cause by: latchkey mail-test ADDRESS")
    def test_message_that_waits(self, play, client, alice, database, parts):
        client.post("/magiclink", json={"email": alice.email})
        database.run("UPDATE outbox SET created_at = now() - interval '10 minutes'")
        play.fails(
            "waiting-messages",
            "For SMS, correct AUTH_SMS_PROVIDER. For email, find the cause by: latchkey mail-test ADDRESS",
        )
        assert deliver_due(parts) >= 1
        play.is_well("waiting-messages")

    @plays(
        "Use a sender (AUTH_MAIL_FROM) and a mail server (AUTH_SMTP_URL) that the recipients' servers accept."
    )
    def test_messages_that_fail(self, play, client, alice, database):
        template = "Use a sender (AUTH_MAIL_FROM) and a mail server (AUTH_SMTP_URL) that the recipients' servers accept."
        client.post("/magiclink", json={"email": alice.email})
        database.run("UPDATE outbox SET outcome = 'failed', finished_at = now(), secret = NULL")
        play.fails("failed-messages", template)
        database.run("UPDATE outbox SET outcome = 'sent'")
        play.is_well("failed-messages")

    @plays("If your own users requested them, raise {}. Otherwise, see docs/security.md.")
    def test_total_that_is_used_up(self, play, database):
        template = "If your own users requested them, raise {}. Otherwise, see docs/security.md."
        database.run(
            "INSERT INTO failure_counts (key, count, expires_at, kind, seconds)"
            " VALUES ('mail 3600', 750, now() + interval '1 hour', 'mail', 3600)"
        )
        play.fails("message-totals", template, **LIMITED)
        play.is_well("message-totals", **LIMITED, rate_limit_mail_total=parse("2000/hour"))

    @plays("Run: latchkey webhooks test {}", "Fix its server, then run: latchkey webhooks enable {}")
    def test_webhook_that_fails(self, play, app, hooks, database, target, parts):
        hooks.register(target)
        database.run(
            "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'failing', failing_since = now()"
        )
        remedy = play.fails("webhooks", "Fix its server, then run: latchkey webhooks enable {}")
        assert run_command(app, *remedy.partition(": latchkey ")[2].split(), "--yes").exit_code == 0
        play.is_well("webhooks")
        database.run("UPDATE webhooks SET failing_since = now() - interval '2 days'")
        remedy = play.fails("webhooks", "Run: latchkey webhooks test {}")
        with RunningDeliverer(deliverer(parts)):
            assert run_command(app, *remedy.split()[2:], "--yes").exit_code == 0
        play.is_well("webhooks")

    @plays(
        "Run latchkey backup FILE --keep 7 in a timer. If you back up another way: latchkey doctor --skip backup",
        "Set AUTH_BACKUP_RECIPIENTS to what latchkey backup-key prints on another machine."
        " If you back up another way: latchkey doctor --skip backup",
    )
    def test_no_backup(self, play, database, database_url):
        other_way = "If you back up another way: latchkey doctor --skip backup"
        template = (
            "Set AUTH_BACKUP_RECIPIENTS to what latchkey backup-key prints on another machine. " + other_way
        )
        database.run("DELETE FROM last_done WHERE task = 'backup'")
        play.fails("backup", template, **PUBLIC)
        template = "Run latchkey backup FILE --keep 7 in a timer. " + other_way
        play.fails("backup", template, **PUBLIC, backup_recipients=(age.new_identity()[0],))
        backup._note(database_url, "backup")  # as the command does
        play.is_well("backup", **PUBLIC)
