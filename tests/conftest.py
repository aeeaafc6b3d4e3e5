"""Fixtures of all tests: a real Postgres, the application, a real server, a mailbox, and users.

Alice and Bob are users, Carol is an administrator, Mallory is a user and an attacker. Each has a confirmed
email address and the password `PASSWORD`, and is signed in by tests only.
"""

import contextlib
import gc
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psycopg2
import pytest
import structlog
from flask import Flask

# ruff: noqa: E402
# Importing and collecting take 5 s, and garbage collection meanwhile would take another second.
gc.disable()
# Modules with fixtures and hooks for all tests.
pytest_plugins = [
    "tests.support.elapsed",
    "tests.support.bounds",
    "tests.support.services",
    "tests.support.log_watch",
    "tests.support.order",
    "latchkey_auth.pytest_plugin",
]
# They are registered before they are imported, so that their assertions are rewritten like those of the tests.
pytest.register_assert_rewrite(
    "tests.support.answers",
    "tests.support.bounds",
    "tests.support.users",
    "tests.support.contract",
    "tests.support.devices",
    "tests.support.inbox",
    "tests.support.links",
    "tests.support.log_watch",
    "tests.support.openid",
    "tests.support.server",
)

import sql
from auth.core import health, settings
from auth.core.logs import ThrottledLog
from auth.core.passwords import bcrypt_hash
from auth.core.settings.state import of_requests
from auth.core.tokens.derived_keys import Sealer
from auth.delivery import rendering
from auth.ops.processes.embedded_postgres import EmbeddedPostgres
from auth.web.application import Application
from auth.web.context import EXTENSION
from sql import pool, schema
from tests.support import bounds, catalog, checked_rows, contract, oldest_release
from tests.support.apps import Apps, KeptRule, mail_environment, new_app
from tests.support.contract import CheckedClient
from tests.support.databases import emptied, new_databases
from tests.support.environment import (
    CLOCK,
    ENVIRONMENT,
    SERVICE_ROLE_KEY,
    SIGN_INS_LEAD_ON,
    clear_settings,
    make_keys,
)
from tests.support.extensions import EVERY_EXTENSION
from tests.support.hooks import Hooks
from tests.support.http_target import HttpTarget
from tests.support.inbox import Mailbox
from tests.support.links import Outbox
from tests.support.openid import Client, make_client
from tests.support.processes import PATIENT_GUNICORN, Service
from tests.support.server import ServerClient
from tests.support.tables import Rows
from tests.support.timeouts import PATIENCE
from tests.support.users import Person, Session, register

# The tests' Postgres. Nothing outlives the run, and nothing happens at its own time: `Rows.empty` vacuums.
OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "bgwriter_lru_maxpages": "0",
    "shared_buffers": "64MB",
    "max_connections": "200",
    # A connection runs most statements less than the five times after which Postgres keeps a plan.
    "plan_cache_mode": "force_generic_plan",
}


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    """Compile routes and the templates of mails once, and not for each application and deliverer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Application, "url_rule_class", KeptRule)
        patch.setattr(rendering, "ImmutableSandboxedEnvironment", mail_environment)
        yield


@pytest.fixture(scope="session", autouse=True)
def _every_event_is_logged() -> Iterator[None]:
    """Log each event, also in the second after an equal event of the test before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThrottledLog, "interval", 0)
        yield


@pytest.fixture(scope="session")
def state_dir() -> Iterator[Path]:
    """A directory for the secrets and the database. Its path is short, as that of a socket must be."""
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as name:
        directory = Path(name).resolve() / "var"
        make_keys(directory)
        yield directory


def pytest_sessionstart(session: pytest.Session) -> None:
    """Lock the database of `TEST_DATABASE_URL` for this run."""
    url = os.environ.get("TEST_DATABASE_URL")
    if url is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    connection = psycopg2.connect(url)
    session.config.add_cleanup(connection.close)
    connection.autocommit = True
    name = connection.info.dbname
    if "test" not in name:
        pytest.exit(
            f"the tests delete everything in the database of TEST_DATABASE_URL, so its name must contain test: {name} does not",
            2,
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext('latchkey tests'))")
        if cursor.fetchone() != (True,):
            pytest.exit("another test run uses the database of TEST_DATABASE_URL", 2)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than cores: each waits for its Postgres and services a third of the time, and for the programs
    of tests/system half of it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    starts_programs = any("tests/system" in argument for argument in config.args)
    return min(cores * 2 if starts_programs else cores + 1, 4)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each xdist worker collect the files of a directory in another order: in a new checkout, all workers would
    rewrite the assertions of one file at the same time, which takes three seconds of CPU in each."""
    report = yield
    if isinstance(collector, pytest.Dir) and report.result:
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        first = number * len(report.result) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        report.result = report.result[first:] + report.result[:first]
    return report


def pytest_collection_finish() -> None:
    """Exclude the 7,000 tests from garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _patient_pool() -> Iterator[None]:
    """Wait longer on a busy machine; tests/system/faults keeps the deadlines of the service."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in PATIENCE:
            patch.setattr(module, name, value)
        yield


@pytest.fixture
def lock_timeout(monkeypatch) -> Callable[[str], None]:
    """Set the lock timeout of the connections that are opened from now on."""

    def set_timeout(duration: str) -> None:
        timeouts = re.sub(r"(?<=lock_timeout = )'\w+'", f"'{duration}'", pool._TIMEOUTS)
        monkeypatch.setattr(pool, "_TIMEOUTS", timeouts)

    return set_timeout


@pytest.fixture(scope="session", autouse=True)
def _problems_told_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "problems-of-the-contract"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "REPORTED", folder)
        yield


@pytest.fixture(scope="session", autouse=True)
def _checked_rows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql, "NamedTupleCursor", checked_rows.CheckedCursor)
        yield


@pytest.fixture(scope="session")
def database_url(state_dir: Path) -> Iterator[str]:
    """A database for this xdist worker: next to that of `TEST_DATABASE_URL`, or in an embedded Postgres. Tests look at
    it as its owner.
    """
    if url := os.environ.get("TEST_DATABASE_URL"):
        url = emptied(url, os.environ.get("PYTEST_XDIST_WORKER"))
        schema.apply(url)
        yield url
        return
    postgres = EmbeddedPostgres(state_dir, OPTIONS, CLOCK)
    with bounds.for_all_tests_of_the_worker():
        url = postgres.start()
    schema.apply(url, requests_url=of_requests(url))
    yield url
    postgres.stop()


@pytest.fixture(scope="session")
def all_rows(database_url: str, state_dir: Path) -> Iterator[Rows]:
    sealer = Sealer([(state_dir / "secret_key").read_text().strip()])
    rows, schema_before = Rows(database_url, sealer.newest), set(catalog.lines(database_url))
    yield rows
    rows.close()
    changed = set(catalog.lines(database_url)) ^ schema_before
    assert not changed, "a test of this worker leaves these changed: " + "; ".join(sorted(changed))


@pytest.fixture
def database(all_rows: Rows) -> Iterator[Rows]:
    """The tables, empty at the start of a test. Tests move time in the rows, and check effects."""
    all_rows.empty()
    yield all_rows
    assert all_rows.leave() == []


@pytest.fixture
def no_openid_keys(database: Rows) -> Iterator[None]:
    """Set aside the OpenID keys of the suite, which running services cache."""
    rows = database.all("DELETE FROM openid_keys RETURNING *")
    yield
    database.run("DELETE FROM openid_keys")
    for row in rows:
        database.run(
            "INSERT INTO openid_keys VALUES (%(id)s, %(algorithm)s, %(sealed)s, %(active_from)s, %(created_at)s)",
            **row._asdict(),
        )


@pytest.fixture
def new_database(all_rows: Rows, database_url: str) -> Iterator[Callable[..., str]]:
    """Create an empty database, or one filled by statements, and return its URL."""
    with new_databases(all_rows, database_url) as make:
        yield make


@pytest.fixture(scope="session")
def oldest_release_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return oldest_release.unpack(tmp_path_factory.mktemp("oldest-release"))


@pytest.fixture(scope="session")
def requests_url(database_url: str) -> str:
    """The database as the role of requests, or, with `TEST_DATABASE_URL`, as its owner."""
    return database_url if "TEST_DATABASE_URL" in os.environ else of_requests(database_url)


@pytest.fixture(scope="session")
def environment(requests_url: str, state_dir: Path) -> dict[str, str]:
    own = {"DATABASE_URL": requests_url, "AUTH_STATE_DIR": str(state_dir)}
    return {**ENVIRONMENT, **SIGN_INS_LEAD_ON, **own}


@pytest.fixture
def load(monkeypatch, tmp_path) -> Callable[..., settings.Settings]:
    """Load the settings of an environment with these variables only."""
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    make_keys(tmp_path / "var")
    # Loading adds the variables of .env to os.environ.
    variables = os.environ.copy()

    def load(**environment: str) -> settings.Settings:
        monkeypatch.setattr(
            os, "environ", variables | {"AUTH_STATE_DIR": str(tmp_path / "var")} | environment
        )
        return settings.load()

    return load


@pytest.fixture(scope="session")
def apps(environment) -> Iterator[Apps]:
    apps = Apps(environment)
    yield apps
    apps.close()


@pytest.fixture(autouse=True)
def _unchanged_apps(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that a test does not change the applications. Set up before everything that the test may undo."""
    apps = request.getfixturevalue("apps") if {"apps", "app"} & set(request.fixturenames) else None
    yield
    if apps:
        apps.check()


@pytest.fixture(autouse=True)
def _health_of_this_test(monkeypatch) -> None:
    """Forget that a disk was full, which the service remembers until a request of GET /health. Let each such
    request ask the database: the service keeps an answer for a second."""
    monkeypatch.setattr(health, "_disk_was_full", [0])
    monkeypatch.setattr(health, "_INTERVAL", 0.0)


@pytest.fixture
def make_app(apps: Apps, database) -> Iterator[Callable]:
    """Make an application with other settings: `make_app(AUTH_AUTOCONFIRM="true")`.

    It may have served earlier tests, and will serve later ones: `fresh=True` makes a new one, with empty caches and
    connections of its own, which a test may change.
    """
    lent, fresh_apps = [], []
    log = structlog.get_config()

    def make(fresh: bool = False, **changes: str) -> Flask:
        if fresh:
            fresh_apps.append(app := apps.make(changes))
        else:
            lent.append((changes, app := apps.take(changes)))
        return app

    yield make
    structlog.configure(**log)
    for changes, app in lent:
        apps.give_back(changes, app)
    for app in fresh_apps:
        app.extensions[EXTENSION].db.close()


@pytest.fixture(scope="session")
def default_app(environment):
    app = new_app(environment)
    yield app
    app.extensions[EXTENSION].db.close()


@pytest.fixture
def app(default_app, apps, database):
    """The application with the default settings."""
    apps.use(default_app)
    return default_app


@pytest.fixture
def whole_app(make_app) -> Flask:
    """The application with every extension."""
    return make_app(**EVERY_EXTENSION)


@pytest.fixture
def client(app) -> CheckedClient:
    """A client without credentials, which checks each response against openapi.yaml."""
    return app.test_client()


@pytest.fixture
def parts(app):
    """The parts of the application (auth/web/context.py)."""
    return app.extensions[EXTENSION]


@pytest.fixture(scope="session")
def _running(serve) -> Iterator[tuple[Service, ServerClient]]:
    """gunicorn with two workers, which log at level debug."""
    with contextlib.ExitStack() as stack:
        with bounds.for_all_tests_of_the_worker():
            running = stack.enter_context(serve(PATIENT_GUNICORN, AUTH_LOG_LEVEL="debug"))
        yield running


@pytest.fixture(scope="session")
def running_service(_running) -> Service:
    return _running[0]


@pytest.fixture(scope="session")
def running_server(_running) -> ServerClient:
    return _running[1]


@pytest.fixture
def server(running_server: ServerClient, database, app) -> ServerClient:
    """gunicorn with two workers, over real sockets, on the same database and with the same secrets as `app`."""
    running_server.forget_cookies()
    return running_server


@pytest.fixture
def mailbox(parts) -> Mailbox:
    """Receives all mail of the application."""
    return Mailbox(parts)


@pytest.fixture
def outbox(parts, database) -> Outbox:
    """The messages that the application has queued, with their links and codes."""
    return Outbox(parts, database)


@pytest.fixture
def hooks(client, service_role, database, parts) -> Hooks:
    """The webhooks of the application, and the actions that cause their events."""
    return Hooks(client, service_role, database, parts)


@pytest.fixture
def target() -> Iterator[HttpTarget]:
    """An HTTP server that receives events or SMS."""
    with HttpTarget() as target:
        yield target


@pytest.fixture
def service_role() -> dict[str, str]:
    """The headers of a caller with the service role key."""
    return {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}


@pytest.fixture
def alice(client, service_role) -> Person:
    return register(client, service_role, "alice@example.com")


@pytest.fixture
def bob(client, service_role) -> Person:
    return register(client, service_role, "bob@example.com")


@pytest.fixture
def carol(client, service_role) -> Person:
    """The administrator."""
    return register(client, service_role, "carol@example.com", role="admin")


@pytest.fixture
def mallory(client, service_role) -> Person:
    """The attacker."""
    return register(client, service_role, "mallory@example.com")


class Hashes:
    """Counts the calls of bcrypt, and their rounds."""

    count = rounds = 0


@pytest.fixture
def hashes(monkeypatch) -> Hashes:
    hashes = Hashes()

    def counting(function):
        def counted_function(password, salt_or_hash):
            hashes.count += 1
            hashes.rounds += 1 << int(salt_or_hash.split(b"$")[2])
            return function(password, salt_or_hash)

        return counted_function

    monkeypatch.setattr(bcrypt_hash, "hashpw", counting(bcrypt_hash.hashpw))
    return hashes


@pytest.fixture
def session(alice) -> Session:
    """A session of Alice's, as after a sign-in with her password."""
    return alice.open_session()


@pytest.fixture
def app_client(database) -> Client:
    """An application with a secret."""
    return make_client(database)
