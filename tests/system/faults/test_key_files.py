"""Key files that are foreign, broken or missing: at the start, at a reload, and for a worker that is replaced."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from auth.core import files
from auth.core.keys import fingerprints
from auth.core.settings import kept_secrets
from auth.core.tokens import signing_keys
from tests.support.commands import run_with_settings
from tests.support.environment import secret
from tests.support.processes import Service, wait_until
from tests.support.server import ServerClient
from tests.support.users import Session, sign_up_anonymously
from tests.system.faults.test_run import both_workers_of, new_workers, reload, workers_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
NAMES = tuple(kept_secrets.FILES.values())
SETTINGS = {"secret_key": "AUTH_SECRET_KEY", "service_role_key": "AUTH_SERVICE_ROLE_KEY"}
SETTINGS |= {"jwt_keys.json": "AUTH_JWT_KEYS"}
FOREIGN = {"secret_key": secret("foreign"), "service_role_key": secret("foreign")}
FOREIGN |= {"jwt_keys.json": signing_keys.new_jwk_set()}
OTHERS: dict[str, Any] = {"AUTH_SECRET_KEY": secret("other"), "AUTH_SERVICE_ROLE_KEY": secret("other")}
OTHERS |= {"AUTH_JWT_SECRET": secret("other")}


@pytest.fixture
def settings(deployment) -> dict[str, Any]:
    """The settings of a service with its own state directory."""
    return {"AUTH_ANONYMOUS_ENABLED": "true", "DATABASE_URL": deployment.postgres.url}


@contextmanager
def running(state_dir: Path, **settings: Any) -> Iterator[tuple[Service, Session]]:
    """Run a service, and return it with a session of before what the test does."""
    with Service(state_dir, **settings) as service:
        client = ServerClient(service.port)
        yield service, sign_up_anonymously(client)
        client.close()


def everything_in(directory: Path) -> dict[str, object]:
    """Return mode and content of all files, without those that Postgres or a failed start writes."""
    return {
        path.name: (path.stat().st_mode, path.is_file() and path.read_bytes())
        for path in [directory, *directory.iterdir()]
        if not path.name.startswith(("postgres", "start_error", "lock"))
    }


def replace_file(path: Path, text: str) -> None:
    with files.replacing(path) as draft:
        draft.write(text.encode())


def replace_workers(service: Service) -> None:
    with new_workers(service) as old:
        for pid in old:
            os.kill(pid, signal.SIGKILL)


def kept(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text() for name in NAMES}


def put_back(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        if (directory / name).is_dir():
            (directory / name).rmdir()
        replace_file(directory / name, text)


def refuses_to_reload(service: Service, line: str, names: str) -> bool:
    """Reload, and return whether the workers stay, after a log line that begins and names something like this."""
    old, lines = both_workers_of(service), len(service.said())
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any("eload" in text for text in service.said()[lines:]))
    expected = f"Not reloaded; the workers keep running: {line}"
    said = [text for text in service.said()[lines:] if text.startswith(expected)]
    assert len(said) == 1, service.said()[lines:]
    assert names in said[0]
    return workers_of(service) == old


def published_keys(service: Service) -> list[str]:
    return [key["kid"] for key in json.loads(service.get("/.well-known/jwks.json")[1])["keys"]]


def put_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


# The faults of a file, and the rest of the line about each.
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "foreign": (lambda path: replace_file(path, FOREIGN[path.name]), "Differs from what this database last"),
    "missing": (Path.unlink, "{path} is missing. Restore it from a backup"),
    "unreadable": (put_directory, "Cannot be read: Is a directory."),
    "malformed": (lambda path: replace_file(path, "["), ""),
    "nested": (lambda path: replace_file(path, "[" * 200_000), ""),
}


class TestReload:
    def test_unusable_key_file_keeps_the_workers_and_is_named(self, new_state_dir, settings):
        with running(new_state_dir, **settings) as (service, session):
            before = kept(new_state_dir)
            for name in NAMES:
                for fault, (cause, text) in FAULTS.items():
                    path = new_state_dir / name
                    cause(path)
                    subject = SETTINGS[name] if fault in ("foreign", "missing") else path
                    assert refuses_to_reload(service, f"{subject}: {text.format(path=path)}", str(path))
                    assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)
                    put_back(new_state_dir, before)
            reload(service)
            assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)

    def test_foreign_keys_keep_the_workers_while_postgres_is_down(self, new_state_dir, deployment, settings):
        with running(new_state_dir, **settings) as (service, session):
            before = kept(new_state_dir)
            put_back(new_state_dir, FOREIGN)
            deployment.postgres.stop()
            assert refuses_to_reload(service, "DATABASE_URL: The database cannot be used: ", "")
            put_back(new_state_dir, before)
            deployment.postgres.start()
            wait_until(lambda: session.refresh().status_code == 200)
            reload(service)


class TestReplacedProcesses:
    def test_replaced_worker_has_the_keys_of_its_siblings_whatever_the_files_contain(
        self, new_state_dir, settings
    ):
        with running(new_state_dir, **settings) as (service, session):
            kids, before = published_keys(service), kept(new_state_dir)
            for cause, _ in (FAULTS["foreign"], FAULTS["missing"]):
                for name in NAMES:
                    cause(new_state_dir / name)
                replace_workers(service)
                assert published_keys(service) == kids
                assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)
                put_back(new_state_dir, before)

    def test_delivery_process_does_not_run_with_foreign_keys(self, new_state_dir, settings):
        with running(new_state_dir, **settings) as (service, _):
            before = kept(new_state_dir)
            replace_file(new_state_dir / "secret_key", FOREIGN["secret_key"])
            (pid,) = wait_until(service.delivery_processes)
            os.kill(pid, signal.SIGKILL)
            line = "AUTH_SECRET_KEY: Differs from what this database last used"
            wait_until(lambda: any(text.startswith(line) for text in service.said()))
            put_back(new_state_dir, before)
            wait_until(lambda: service.said()[-1] == "delivery_started")


class TestStart:
    def test_lost_key_is_not_made_anew_unless_the_operator_says_so(self, new_state_dir):
        with Service(new_state_dir):
            pass
        own, keys = {"AUTH_STATE_DIR": str(new_state_dir)}, kept(new_state_dir)
        for name in NAMES:
            path = new_state_dir / name
            path.unlink()
            before = everything_in(new_state_dir)
            status, text = Service(new_state_dir).refuses_to_start()
            assert (status, text.count("\n")) == (1, 1)
            assert text.startswith(f"{SETTINGS[name]}: {path} is missing. Restore it from a backup")
            for arguments in (["deliver"], ["create-admin", "carol@example.com"], ["keys", "accept"]):
                done = run_with_settings(own, *arguments)
                assert (done.exit_code, f"{path}: Is missing." in done.output) == (1, True)
            assert everything_in(new_state_dir) == before
            put_back(new_state_dir, {name: keys[name]})
            path.chmod(0o600)
        for name in ("secret_key", "jwt_keys.json"):
            (new_state_dir / name).unlink()
        done = run_with_settings(own, "keys", "accept", "--new")
        assert (done.exit_code, done.output) == (0, "The keys are accepted. Start the service.\n")
        with running(new_state_dir, AUTH_ANONYMOUS_ENABLED="true") as (_, session):
            assert session.refresh().status_code == 200
        new = kept(new_state_dir)
        assert [name for name in NAMES if new[name] == keys[name]] == ["service_role_key"]

    def test_command_with_another_key_does_not_run(self, environment, parts, database):
        fingerprints.keep(parts.db, parts.settings)
        for arguments in (["deliver"], ["explain", "alice@example.com"]):
            done = run_with_settings(environment | {"AUTH_SECRET_KEY": secret("other")}, *arguments)
            assert (done.exit_code, done.stdout) == (1, "")
            assert done.stderr.startswith("Error: AUTH_SECRET_KEY: Differs from what this database last used")

    def test_second_start_by_mistake_changes_nothing(self, new_state_dir, settings):
        """The first service has its keys in the environment; the second would make some, and a database."""
        new_state_dir.mkdir()
        with Service(new_state_dir, **settings, **OTHERS) as first:
            before = everything_in(new_state_dir)
            in_use = f"{new_state_dir} is in use by a running service, process {first.process.pid}"
            line = f"{in_use}. Stop it before you start another.\n"
            assert Service(new_state_dir).refuses_to_start() == (2, line)
            assert everything_in(new_state_dir) == before
            assert not (new_state_dir / "postgres").exists()
            changed = settings | {"AUTH_STATE_DIR": str(new_state_dir)}
            lacks = "AUTH_SECRET_KEY: The running service has this secret in its environment."
            done = run_with_settings(changed, "keys", "accept", "--new")
            assert (done.exit_code, lacks in done.output) == (1, True)
            done = run_with_settings(changed | OTHERS, "keys", "accept", "--new")
            line = f"{in_use}. Stop the service on all nodes first."
            assert (done.exit_code, line in done.output) == (1, True)
            assert everything_in(new_state_dir) == before
            assert first.get("/health")[0] == 200

    def test_database_of_another_deployment_is_not_migrated(self, new_state_dir, deployment, settings):
        with Service(new_state_dir, **settings):
            pass
        rows = deployment.rows()
        rows.outdate_functions()
        status, text = Service(new_state_dir, **settings, **OTHERS).refuses_to_start()
        assert (status, [line.split(":")[0] for line in text.splitlines()]) == (1, list(SETTINGS.values()))
        assert rows.value("SELECT functions_digest FROM schema_version") == "another"
