"""Each remedy that the doctor can print mends its fault: the fault is made, the remedy done, the check green."""

import ast
import dataclasses
import json
import os
import re
import resource
import shlex
import socket
import subprocess
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
from auth.operator.commands import backup
from auth.operator.doctor import database as database_checks
from auth.operator.doctor import examination
from auth.operator.doctor.examination import CHECKS
from sql import queries, schema
from tests.conftest import secret
from tests.faults.dependencies import PgBouncer
from tests.support import oldest_release
from tests.support.commands import run_command, run_with_settings
from tests.support.contract import OPENAPI
from tests.support.deliverers import RunningDeliverer, deliver_due, deliverer
from tests.support.dns_server import DnsServer
from tests.support.http_target import HttpTarget
from tests.support.openid import insert_client
from tests.support.processes import free_port
from tests.support.reverse_proxy import ReverseProxy
from tests.support.smtp_server import (
    ENCODED_PASSWORD,
    PASSWORD,
    USER,
    Certificate,
    MailServer,
    TokenMailServer,
)

ROOT = OPENAPI.parent
PUBLIC = {"base_url": "https://auth.example.com", "site_url": "https://auth.example.com"}
MAIL_FROM = {"mail_from": "Example <no-reply@example.com>"}
MAIL = PUBLIC | MAIL_FROM | {"smtp_url": "smtp://mail.example.com"}
LIMITED = PUBLIC | {"rate_limits_enabled": True}
ALLOW_LIST, APP = "AUTH_REDIRECT_ALLOW_LIST", "https://app.example.com"
PASSWORD_OF_DAN = "Correct-Horse-Battery-1"
SQL_HOOK = "pg-functions://postgres/pg_catalog/"
# Faults that need a machine of their own, or a service that is started and stopped.
ELSEWHERE = {
    "free space on the disk of Postgres' data directory; nothing needs a restart": "tests/faults/test_doctor.py",
    "mount the file system of {} for writing, once it is checked (dmesg)": "tests/faults/test_doctor.py",
    "DATABASE_URL=…/database?target_session_attrs=read-write, with all hosts": "tests/faults/test_doctor.py",
    "systemctl start latchkey, once nothing else fails here": "tests/operator/processes/test_doctor_without_service.py",
    "systemctl start latchkey, which does not run with this state directory": "tests/operator/processes/test_doctor_without_service.py",
    "mend that first; journalctl -u latchkey has the whole log": "tests/operator/processes/test_doctor_without_service.py",
}  # fmt: skip
PLAYED: set[str] = set()
OTHER_ROLE = (
    "AUTH_DATABASE_OWNER_URL=the DATABASE_URL so far, and DATABASE_URL with another role, which the next start makes,"
    " or you do: CREATE ROLE latchkey_requests LOGIN ROLE {} PASSWORD '…'"
)
two_roles = pytest.mark.skipif(
    "TEST_DATABASE_URL" in os.environ, reason="NOT TESTED: TEST_DATABASE_URL has one role only"
)


def remedies() -> set[str]:
    """Return what the checks can print, with {} for what differs."""
    sources = [*(ROOT / "auth/operator/doctor").glob("*.py"), *(ROOT / "auth").glob("*/checks.py")]
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
        "create and grant that function as docs/hooks.md shows, or {} with another",
        {"hook_custom_access_token": f"{SQL_HOOK}no_hook"},
        {"hook_custom_access_token": f"{SQL_HOOK}jsonb_strip_nulls"},
    ),
    (
        "redis",
        "AUTH_RATE_LIMIT_STORAGE=postgresql, until that Redis responds",
        {"rate_limits_enabled": True, "rate_limit_storage": f"redis://127.0.0.1:{free_port()}"},
        {"rate_limits_enabled": True},
    ),
    (
        "keys",
        "{}=… as on the other nodes, or as in a backup",
        {"secret_key": (secret("other"),), "jwt_keys": signing_keys.new_jwk_set(), "key_files": {}},
        {"key_files": {}},
    ),
    (
        "public-url",
        "AUTH_BASE_URL={}, if that is the public URL; then fix DNS, the proxy or the service",
        {"base_url": f"http://127.0.0.1:{free_port()}"},
        {},
    ),
    (
        "database",
        "DATABASE_URL=postgresql://user:password@host/database, or start that Postgres",
        {"database_url": f"postgresql://127.0.0.1:{free_port()}/d"},
        {},
    ),
    (
        "redirects",
        "AUTH_SITE_URL=https://app.example.com, the URL of your application",
        PUBLIC | {"site_url": "http://localhost:3000"},
        PUBLIC | {"site_url": APP, "redirect_allow_list": (f"{APP}/**",)},
    ),
    (
        "redirects",
        "AUTH_SITE_URL=https://{}",
        PUBLIC | {"site_url": "http://auth.example.com"},
        PUBLIC,
    ),
    (
        "redirects",
        f"{ALLOW_LIST}={{}}://{{}}/**, plus any other applications",
        PUBLIC | {"site_url": APP},
        PUBLIC | {"site_url": APP, "redirect_allow_list": (f"{APP}/**",)},
    ),
    (
        "redirects",
        f"{ALLOW_LIST} with https://{{}}",
        PUBLIC | {"redirect_allow_list": ("http://app.example.com/**",)},
        PUBLIC | {"redirect_allow_list": (f"{APP}/**",)},
    ),
    (
        "test-settings",
        "AUTH_RATE_LIMITS_ENABLED=true",
        PUBLIC | {"rate_limits_enabled": False},
        LIMITED,
    ),
    (
        "test-settings",
        "AUTH_RATE_LIMIT_STORAGE=postgresql",
        LIMITED | {"rate_limit_storage": "memory://"},
        LIMITED | {"rate_limit_storage": "postgresql"},
    ),
]


@plays(*(row[1] for row in SETTINGS))
@pytest.mark.parametrize(("check", "remedy", "fault", "mended"), SETTINGS)
def test_setting_mends_it(play, check, remedy, fault, mended):
    play.fails(check, remedy, **fault)
    play.is_well(check, **mended)


class TestDatabase:
    @plays("{};  in psql, as {} or a superuser")
    def test_session_that_holds_a_lock(self, play, database, database_url):
        with closing(psycopg2.connect(database_url)) as holder:
            holder.cursor().execute("LOCK TABLE users")
            remedy = play.fails("locks", "{};  in psql, as {} or a superuser")
            database.run(remedy.partition(";")[0])
            play.is_well("locks")

    @plays("DATABASE_URL of a database created with ENCODING 'UTF8'")
    def test_other_encoding(self, play, new_database):
        options = "ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'"
        wrong = new_database(options=options)
        play.fails(
            "database-version", "DATABASE_URL of a database created with ENCODING 'UTF8'", database_url=wrong
        )
        play.is_well("database-version", database_url=new_database())

    @plays("latchkey migrate")
    def test_database_without_schema(self, play, new_database, environment):
        url = new_database()
        remedy = play.fails("schema", "latchkey migrate", database_url=url)
        done = run_with_settings(environment | {"DATABASE_URL": url}, *remedy.split()[1:])
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

    @two_roles
    def test_role_that_may_create_tables(self, look, database):
        database.run("GRANT CREATE ON SCHEMA public TO PUBLIC")
        remedy = look("role")
        assert remedy == "REVOKE CREATE ON SCHEMA public FROM PUBLIC, latchkey"
        database.run(remedy)
        assert look("role") is None

    @plays("latchkey migrate, with the URL of their owner in AUTH_DATABASE_OWNER_URL")
    @two_roles
    def test_role_without_rights(self, play, database, database_url, environment):
        database.run("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM latchkey")
        remedy = play.fails(
            "schema", "latchkey migrate, with the URL of their owner in AUTH_DATABASE_OWNER_URL"
        )
        done = run_with_settings(
            environment | {"AUTH_DATABASE_OWNER_URL": database_url}, remedy.split()[1].strip(",")
        )
        assert (done.exit_code, done.output) == (0, "grants.sql\n")
        play.is_well("schema")

    @plays("AUTH_DB_PREPARE=false")
    def test_pooler_in_transaction_mode(self, play, database_url, state_dir):
        if "host=%2F" not in database_url:
            pytest.skip("NOTHING IS TESTED BEHIND PGBOUNCER: TEST_DATABASE_URL has no socket")
        world: Any = SimpleNamespace(postgres=SimpleNamespace(url=database_url), state_dir=state_dir)
        with PgBouncer(world) as bouncer:
            play.fails("pooler", "AUTH_DB_PREPARE=false", database_url=bouncer.url)
            unless = "AUTH_DB_PREPARE is false, as for a pooler"
            play.is_well("pooler", unless, database_url=bouncer.url, db_prepare=False)

    @plays("AUTH_WORKERS={}, or max_connections of Postgres")
    def test_too_many_workers(self, play):
        remedy = play.fails("connections", "AUTH_WORKERS={}, or max_connections of Postgres", workers=64)
        play.is_well("connections", workers=int(re.findall(r"\d+", remedy)[0]))

    @plays("timedatectl set-ntp true, on both machines")
    def test_clock_that_is_wrong(self, play, monkeypatch):
        monkeypatch.setattr(database_checks, "is_here", lambda _host: False)
        with HttpTarget() as site:
            site.headers = {"Age": "60"}
            play.fails("clock", "timedatectl set-ntp true, on both machines", site_url=site.url)
            site.headers = {}
            play.is_well("clock", site_url=site.url)

    @plays("latchkey create-admin EMAIL")
    def test_no_administrator(self, play, app, database):
        database.run("UPDATE users SET role = 'authenticated'")
        remedy = play.fails("administrators", "latchkey create-admin EMAIL")
        command = remedy.replace("EMAIL", "dan@example.com").split()[1:]
        assert run_command(app, *command, "--password", PASSWORD_OF_DAN).exit_code == 0
        play.is_well("administrators")

    @plays("latchkey migrate, or a restart of the service")
    def test_schema_of_an_earlier_release(self, play, new_database, environment, oldest_release_files):
        url = new_database(oldest_release.script(oldest_release_files))
        play.fails("schema", "latchkey migrate, or a restart of the service", database_url=url)
        assert run_with_settings(environment | {"DATABASE_URL": url}, "migrate").exit_code == 0
        play.is_well("schema", database_url=url)

    @plays("install the release that upgraded the database on this machine too")
    def test_schema_of_a_later_release(self, play, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(schema, "NEWEST", 1)
            play.fails("schema", "install the release that upgraded the database on this machine too")
        play.is_well("schema")

    @plays("the parameter that is named; or --skip encryption, if the network is yours alone")
    def test_connection_without_encryption(self, play):
        template = "the parameter that is named; or --skip encryption, if the network is yours alone"
        url = "postgresql://u@192.0.2.1/d"
        play.fails("encryption", template, database_url=f"{url}?sslmode=disable")
        play.is_well("encryption", database_url=f"{url}?sslmode=verify-full&sslrootcert=system")

    @plays("{} with the URL of a server that runs, and may be reached from here")
    def test_server_of_a_hook_that_is_away(self, play, target):
        template = "{} with the URL of a server that runs, and may be reached from here"
        play.fails("hooks", template, hook_before_user_created=f"http://127.0.0.1:{free_port()}/hook")
        play.is_well("hooks", hook_before_user_created=f"{target.url}/hook")

    @plays("--skip {}", "wait until the network, DNS, the disk and Postgres respond, and run this again")
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
        play.fails("clock", "--skip {}")
        look_by(hang)
        play.fails("clock", "wait until the network, DNS, the disk and Postgres respond, and run this again")
        look_by(lambda _context: None)
        play.is_well("clock")


DUE = "UPDATE openid_keys SET active_from = active_from - interval '1 hour'"


class TestKeysAndFiles:
    @plays(
        "latchkey keys rotate {}, and later latchkey keys remove ID",
        "latchkey keys remove {}{}",
    )
    def test_old_key(self, play, healthy, parts, database, no_openid_keys):
        OpenIdKeys(parts.db, parts.sealer).make_first()
        database.run("UPDATE openid_keys SET created_at = now() - interval '500 days'")
        remedy = play.fails("key-age", "latchkey keys rotate {}, and later latchkey keys remove ID")
        rotation.rotate(parts.db, healthy, remedy.split()[3].strip(","), soon=True, algorithm=None)
        database.run(DUE)
        remedy = play.fails("key-age", "latchkey keys remove {}{}")
        rotation.remove(parts.db, healthy, remedy.split()[3], force=True)
        play.is_well("key-age")

    @plays("latchkey keys rotate openid --now, and a minute later: latchkey keys remove {} --force")
    def test_openid_key_of_a_lost_secret(self, play, healthy, parts, database, no_openid_keys):
        OpenIdKeys(parts.db, Sealer(derive(("a secret key that is lost",), "outbox"))).make_first()
        template = "latchkey keys rotate openid --now, and a minute later: latchkey keys remove {} --force"
        remedy = play.fails("keys", template)
        rotation.rotate(parts.db, healthy, "openid", soon=True, algorithm=None)
        database.run(DUE)
        rotation.remove(parts.db, healthy, remedy.split()[-2], force=True)
        play.is_well("keys")

    @plays("give it a new secret in the console, or delete it")
    def test_webhook_of_a_lost_secret(self, play, hooks, database, parts):
        made = hooks.register("http://127.0.0.1:9/hook")
        lost = Sealer(derive(("a secret key that is lost",), "outbox")).seal("whsec", made["id"])
        database.run("UPDATE webhooks SET secret = %(lost)s", lost=lost)
        play.fails("keys", "give it a new secret in the console, or delete it")
        hooks.ask("delete", f"/{made['id']}")
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

    @plays("chmod {} {}")
    @pytest.mark.parametrize(("name", "mode"), [("", 0o755), ("secret_key", 0o644)])
    def test_files_that_others_can_read(self, play, state, name, mode):
        (state["state_dir"] / name).chmod(mode)
        remedy = play.fails("state-directory", "chmod {} {}", **state)
        subprocess.run(shlex.split(remedy), check=True)
        play.is_well("state-directory", **state)

    @plays("copy {} from another node, or restore it from a backup")
    def test_key_file_of_another_deployment(self, play, state):
        template = "copy {} from another node, or restore it from a backup"
        remedy = play.fails("keys", template, **state, secret_key=(secret("other"),))
        assert str(state["key_files"]["secret_key"]) in remedy
        play.is_well("keys", **state)

    @plays("AUTH_STATE_DIR={} on a larger disk, or a larger quota")
    def test_quota_that_is_used_up(self, play, state):
        template = "AUTH_STATE_DIR={} on a larger disk, or a larger quota"
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
        try:
            play.fails("disk", template, **state)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        play.is_well("disk", **state)

    @plays("run this as the user of the service, who must own {}")
    def test_directory_of_another_user(self, play, state):
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        state["state_dir"].parent.chmod(0o711)
        os.seteuid(65_534)
        try:
            play.fails("disk", "run this as the user of the service, who must own {}", **state)
        finally:
            os.seteuid(0)
        play.is_well("disk", **state)


def body(**members: str) -> bytes:
    return json.dumps(
        {"service": "latchkey", "version": auth.__version__, "status": "healthy"} | members
    ).encode()


class TestPublicUrl:
    @plays(
        "systemctl restart latchkey; see docs/monitoring.md",
        "mend what journalctl -u latchkey says of the delivery process, which starts again by itself",
        "mend what the other ✗ say; nothing needs a restart",
        "journalctl -u latchkey; systemctl restart latchkey, if nothing else fails here",
        "systemctl restart latchkey",
    )
    @pytest.mark.parametrize(
        ("members", "remedy"),
        [
            ({"version": "0.0.1"}, "systemctl restart latchkey"),
            (
                {"status": "degraded", "msg": "No password hash has finished for 20 seconds"},
                "systemctl restart latchkey; see docs/monitoring.md",
            ),
            (
                {"status": "degraded", "msg": "The delivery process ends again and again"},
                "mend what journalctl -u latchkey says of the delivery process, which starts again by itself",
            ),
            (
                {"status": "degraded", "msg": "The disk of the database is full; nothing can be written"},
                "mend what the other ✗ say; nothing needs a restart",
            ),
            (
                {"status": "degraded", "msg": "Something else"},
                "journalctl -u latchkey; systemctl restart latchkey, if nothing else fails here",
            ),
        ],
    )
    def test_service_that_is_degraded_until_it_is_mended(self, play, target, members, remedy):
        target.body = body(**members)
        play.fails("public-url", remedy, base_url=target.url)
        target.body = body()
        play.is_well("public-url", base_url=target.url)

    @plays("AUTH_BASE_URL=https://{}")
    def test_url_without_tls(self, play, base_url, tmp_path, monkeypatch):
        name = socket.gethostname()
        certificate = Certificate(tmp_path, name)
        with certificate.trusted(monkeypatch), ReverseProxy(base_url, tls=certificate) as proxy:
            port = proxy.url.rpartition(":")[2]
            remedy = play.fails("public-url", "AUTH_BASE_URL=https://{}", base_url=f"http://{name}:{port}")
            reached = remedy.partition("=")[2].replace(name, "127.0.0.1")
            play.is_well("public-url", base_url=reached)

    @plays("a certificate for {}, such as: certbot certonly --webroot -d {}")
    def test_certificate_that_is_not_trusted(self, play, tmp_path, monkeypatch):
        template = "a certificate for {}, such as: certbot certonly --webroot -d {}"
        certificate = Certificate(tmp_path, hours=24 * 30)
        with HttpTarget(certificate) as target:
            play.fails("certificate", template, base_url=target.url)
            with certificate.trusted(monkeypatch):
                play.is_well("certificate", base_url=target.url)

    @plays("certbot renew")
    def test_certificate_that_expires(self, play, tmp_path, monkeypatch):
        old = Certificate(tmp_path)
        with HttpTarget(old) as target, old.trusted(monkeypatch):
            play.fails("certificate", "certbot renew", base_url=target.url)
        renewed = Certificate(tmp_path, hours=24 * 30)
        with HttpTarget(renewed) as target, renewed.trusted(monkeypatch):
            play.is_well("certificate", base_url=target.url)

    @plays("AUTH_BASE_URL of this service, or DATABASE_URL of that one")
    def test_service_with_another_database(self, play, target):
        template = "AUTH_BASE_URL of this service, or DATABASE_URL of that one"
        play.fails("proxies", template, base_url=target.url)
        play.is_well("proxies")

    @plays("AUTH_TRUSTED_PROXIES={}")
    @pytest.mark.parametrize(("proxies", "trusted"), [([], 1), (["append"], 0), (["append", "append"], 1)])
    def test_wrong_number_of_proxies(self, play, base_url, proxies, trusted):
        with ExitStack() as stack:
            url = base_url
            for forwards in proxies:
                url = stack.enter_context(ReverseProxy(url, forwards)).url
            remedy = play.fails("proxies", "AUTH_TRUSTED_PROXIES={}", base_url=url, trusted_proxies=trusted)
            play.is_well("proxies", base_url=url, trusted_proxies=int(remedy.partition("=")[2]))

    @plays(
        "X-Forwarded-For and X-Forwarded-Proto in the proxy, and AUTH_TRUSTED_PROXIES=1",
        "X-Forwarded-Proto: https in the proxy",
    )
    def test_tls_proxy_without_headers(self, play, base_url, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with ExitStack() as stack:
            stack.enter_context(certificate.trusted(monkeypatch))
            proxies = (("keep", None, 0), ("replace", None, 1))
            templates = (
                "X-Forwarded-For and X-Forwarded-Proto in the proxy, and AUTH_TRUSTED_PROXIES=1",
                "X-Forwarded-Proto: https in the proxy",
            )
            for (forwards, proto, trusted), template in zip(proxies, templates, strict=True):
                proxy = stack.enter_context(ReverseProxy(base_url, forwards, proto, certificate))
                play.fails("proxies", template, base_url=proxy.url, trusted_proxies=trusted)
            # The service of the tests trusts no proxy, and so does not believe the header.
            plain = stack.enter_context(ReverseProxy(base_url, "replace", "https"))
            play.is_well("proxies", base_url=plain.url, trusted_proxies=1)

    @plays("a proxy that leads {} to this service, or AUTH_JWT_ISSUER={}")
    def test_issuer_at_which_nothing_is_found(self, play, database, target):
        insert_client(database)
        template = "a proxy that leads {} to this service, or AUTH_JWT_ISSUER={}"
        for issuer in (target.url, f"http://127.0.0.1:{free_port()}"):
            play.fails("discovery", template, jwt_issuer=issuer)
        target.body = json.dumps({"issuer": target.url}).encode()
        play.is_well("discovery", jwt_issuer=target.url)


CREDENTIALS = "AUTH_SMTP_URL=smtp://user:password@host:587 with the right user and password, percent-encoded"
AUTHORITY = (
    "SSL_CERT_FILE=/path/to/the-authority.pem in the service's environment, which signed the server's"
    " certificate; or one of a public authority on the server"
)
TOKENS = "AUTH_SMTP_TOKEN_URL, AUTH_SMTP_CLIENT_… and AUTH_SMTP_SCOPE; see docs/messages.md"
PERMISSION = "the mailbox's permission for the application, such as SMTP.SendAsApp; see docs/messages.md"
STARTTLS = "AUTH_SMTP_URL=smtps://user:password@host:465, or with the port that offers STARTTLS"
SENDER = "AUTH_MAIL_FROM=Example <no-reply@…>, an address that the server lets this user send from"
HOST = "AUTH_SMTP_URL with the host and port of the server, and a network that leads there"
SCHEME = "AUTH_SMTP_URL=smtp://… for a port without TLS or with STARTTLS, smtps://… for one with TLS"


class TestMail:
    @plays("AUTH_SMTP_URL=smtp://user:password@host:587", HOST)
    def test_no_mail_server_and_a_closed_port(self, play):
        template = "AUTH_SMTP_URL=smtp://user:password@host:587"
        play.fails("mail-server", template, **(MAIL | {"smtp_url": None}))
        play.fails("mail-server", HOST, **(MAIL | {"smtp_url": f"smtp://127.0.0.1:{free_port()}"}))
        with MailServer() as server:
            play.is_well("mail-server", **(MAIL | {"smtp_url": server.url()}))

    @plays(SENDER, STARTTLS, SCHEME)
    def test_sender_starttls_and_scheme(self, play):
        with MailServer() as server:
            required, tls = server.url(options="?starttls=required"), server.url("smtps")
            play.fails("mail-server", STARTTLS, smtp_url=required, **MAIL_FROM)
            play.fails("mail-server", SCHEME, smtp_url=tls, **MAIL_FROM)
            server.replies["MAIL"] = "550 5.7.1 not yours"
            play.fails("mail-server", SENDER, smtp_url=server.url(), **MAIL_FROM)
            del server.replies["MAIL"]
            play.is_well("mail-server", smtp_url=server.url(), **MAIL_FROM)

    @plays(
        AUTHORITY,
        "AUTH_SMTP_URL with the host name that the server's certificate has",
        "a new certificate on the mail server",
    )
    def test_certificates(self, play, tmp_path, monkeypatch):
        certificate, expired = Certificate(tmp_path), Certificate(tmp_path, "expired", hours=-1)
        with MailServer(tls=certificate) as server, MailServer(tls=expired) as late:
            play.fails("mail-server", AUTHORITY, smtp_url=server.url("smtps"), **MAIL_FROM)
            with expired.trusted(monkeypatch):
                template = "a new certificate on the mail server"
                play.fails("mail-server", template, smtp_url=late.url("smtps"), **MAIL_FROM)
            with certificate.trusted(monkeypatch):
                template = "AUTH_SMTP_URL with the host name that the server's certificate has"
                with MailServer(tls=certificate, host="127.0.0.2") as other:
                    play.fails("mail-server", template, smtp_url=other.url("smtps", "127.0.0.2"), **MAIL_FROM)
                play.is_well("mail-server", smtp_url=server.url("smtps"), **MAIL_FROM)

    @plays(CREDENTIALS)
    def test_wrong_password(self, play, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with certificate.trusted(monkeypatch), MailServer(starttls=certificate, password=PASSWORD) as server:
            wrong, right = (server.url(credentials=f"{USER}:{each}@") for each in ("no", ENCODED_PASSWORD))
            play.fails("mail-server", CREDENTIALS, smtp_url=wrong, **MAIL_FROM)
            play.is_well("mail-server", smtp_url=right, **MAIL_FROM)

    @plays(TOKENS, PERMISSION)
    def test_access_tokens(self, play):
        with TokenMailServer("good") as server, HttpTarget() as issuer:
            client = {"smtp_token_url": issuer.url, "smtp_client_id": "c1", "smtp_client_secret": "s1"}
            changes = client | MAIL_FROM | {"smtp_url": server.url(credentials="no-reply@")}
            issuer.status, issuer.body = 401, b'{"error": "invalid_client"}'
            play.fails("mail-server", TOKENS, **changes)
            issuer.status, issuer.body = 200, b'{"access_token": "bad"}'
            play.fails("mail-server", PERMISSION, **changes)
            issuer.body = b'{"access_token": "good"}'
            play.is_well("mail-server", **changes)

    @plays("DNS: {}", "AUTH_MAIL_FROM=Example <no-reply@example.com>")
    def test_sender_without_records(self, play):
        template = "AUTH_MAIL_FROM=Example <no-reply@example.com>"
        play.fails("sender", template, **(MAIL | {"mail_from": "Latchkey <no-reply@localhost>"}))
        records = {
            "example.com": "v=spf1 include:mail.example.net -all",
            "s1._domainkey.example.com": "v=DKIM1; p=x",
            "_dmarc.example.com": "v=DMARC1; p=reject",
        }
        with DnsServer({}) as server:
            play.fails("sender", "DNS: {}", resolver=server.resolver, **MAIL)
            server.texts.update(records)
            play.is_well("sender", resolver=server.resolver, **MAIL)

    @plays("AUTH_SMS_PROVIDER=twilio or none, or AUTH_HOOK_SEND_SMS")
    def test_no_sms_provider(self, play):
        play.fails("sms", "AUTH_SMS_PROVIDER=twilio or none, or AUTH_HOOK_SEND_SMS", **PUBLIC)
        play.is_well("sms", "phones are not used", **PUBLIC, sms_provider="none")


IDLE = "UPDATE last_done SET at = now() - interval '{}'"


class TestDelivery:
    @plays("AUTH_DELIVER=true, or run: latchkey deliver", "systemctl restart latchkey; see its log")
    @pytest.mark.parametrize(
        ("delivers", "remedy"),
        [
            (False, "AUTH_DELIVER=true, or run: latchkey deliver"),
            (True, "systemctl restart latchkey; see its log"),
        ],
    )
    def test_no_delivery_process(self, play, database, parts, delivers, remedy):
        database.run(IDLE.format("5 minutes"))
        play.fails("delivery", remedy, deliver=delivers)
        queries.record_done(parts.db, task="delivery")  # as the process does
        play.is_well("delivery", deliver=delivers)

    @plays("AUTH_SMTP_URL or AUTH_SMS_PROVIDER; try latchkey mail-test ADDRESS")
    def test_message_that_waits(self, play, client, alice, database, parts):
        client.post("/magiclink", json={"email": alice.email})
        database.run("UPDATE outbox SET created_at = now() - interval '10 minutes'")
        play.fails("waiting-messages", "AUTH_SMTP_URL or AUTH_SMS_PROVIDER; try latchkey mail-test ADDRESS")
        assert deliver_due(parts) >= 1
        play.is_well("waiting-messages")

    @plays("AUTH_MAIL_FROM and AUTH_SMTP_URL that the recipients' servers accept")
    def test_messages_that_fail(self, play, client, alice, database):
        template = "AUTH_MAIL_FROM and AUTH_SMTP_URL that the recipients' servers accept"
        client.post("/magiclink", json={"email": alice.email})
        database.run("UPDATE outbox SET outcome = 'failed', finished_at = now(), secret = NULL")
        play.fails("failed-messages", template)
        database.run("UPDATE outbox SET outcome = 'sent'")
        play.is_well("failed-messages")

    @plays("{}, if your own users asked for them; docs/security.md says what strangers can do")
    def test_total_that_is_used_up(self, play, database):
        template = "{}, if your own users asked for them; docs/security.md says what strangers can do"
        database.run(
            "INSERT INTO failure_counts (key, count, expires_at)"
            " VALUES ('mail 3600', 750, now() + interval '1 hour')"
        )
        play.fails("message-totals", template, **LIMITED)
        play.is_well("message-totals", **LIMITED, rate_limit_mail_total=parse("2000/hour"))

    @plays("latchkey webhooks test {}", "latchkey webhooks enable {}, once it works")
    def test_webhook_that_fails(self, play, app, hooks, database, target, parts):
        hooks.register(target)
        database.run(
            "UPDATE webhooks SET disabled_at = now(), disabled_reason = 'failing', failing_since = now()"
        )
        remedy = play.fails("webhooks", "latchkey webhooks enable {}, once it works")
        assert run_command(app, *remedy.partition(",")[0].split()[1:], "--yes").exit_code == 0
        play.is_well("webhooks")
        database.run("UPDATE webhooks SET failing_since = now() - interval '2 days'")
        remedy = play.fails("webhooks", "latchkey webhooks test {}")
        with RunningDeliverer(deliverer(parts)):
            assert run_command(app, *remedy.split()[1:], "--yes").exit_code == 0
        play.is_well("webhooks")

    @plays("latchkey backup FILE --keep 7, in a timer; or --skip backup, if you back up another way")
    def test_no_backup(self, play, database, database_url):
        template = "latchkey backup FILE --keep 7, in a timer; or --skip backup, if you back up another way"
        database.run("DELETE FROM last_done WHERE task = 'backup'")
        play.fails("backup", template, **PUBLIC)
        backup._note(database_url, "backup")  # as the command does
        play.is_well("backup", **PUBLIC)
