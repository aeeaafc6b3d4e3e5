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
KEY_FILES = tuple(kept_secrets.FILES.values())
SETTING_OF = {"secret_key": "AUTH_SECRET_KEY", "service_role_key": "AUTH_SERVICE_ROLE_KEY"}
SETTING_OF |= {"jwt_keys.json": "AUTH_JWT_KEYS"}
FOREIGN = {"secret_key": secret("foreign"), "service_role_key": secret("foreign")}
FOREIGN |= {"jwt_keys.json": signing_keys.new_jwk_set()}
OTHER_SECRETS: dict[str, Any] = {"AUTH_SECRET_KEY": secret("other"), "AUTH_SERVICE_ROLE_KEY": secret("other")}
OTHER_SECRETS |= {"AUTH_JWT_SECRET": secret("other")}


@pytest.fixture
def settings(deployment) -> dict[str, Any]:
    """The settings of a service with its own state directory."""
    return {"AUTH_ANONYMOUS_ENABLED": "true", "DATABASE_URL": deployment.postgres.url}


@contextmanager
def running(state_dir: Path, **settings: Any) -> Iterator[tuple[Service, Session]]:
    """Run a service, and yield it with a session that begins before the test's fault."""
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
    with new_workers(service) as former:
        for pid in former:
            os.kill(pid, signal.SIGKILL)


def texts_of_keys(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text() for name in KEY_FILES}


def put_back(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        if (directory / name).is_dir():
            (directory / name).rmdir()
        replace_file(directory / name, text)


def refuses_to_reload(service: Service, line: str, names: str) -> bool:
    """Reload, assert that one line of the log begins with `line` and contains `names`, and return whether the workers
    are still the same.
    """
    former, lines = both_workers_of(service), len(service.said())
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any("eload" in text for text in service.said()[lines:]))
    beginning = f"Not reloaded; the workers keep running: {line}"
    lines_about_it = [text for text in service.said()[lines:] if text.startswith(beginning)]
    assert len(lines_about_it) == 1, service.said()[lines:]
    assert names in lines_about_it[0]
    return workers_of(service) == former


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
            before = texts_of_keys(new_state_dir)
            for name in KEY_FILES:
                for fault, (cause, text) in FAULTS.items():
                    path = new_state_dir / name
                    cause(path)
                    subject = SETTING_OF[name] if fault in ("foreign", "missing") else path
                    assert refuses_to_reload(service, f"{subject}: {text.format(path=path)}", str(path))
                    assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)
                    put_back(new_state_dir, before)
            reload(service)
            assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)

    def test_foreign_keys_keep_the_workers_while_postgres_is_down(self, new_state_dir, deployment, settings):
        with running(new_state_dir, **settings) as (service, session):
            before = texts_of_keys(new_state_dir)
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
            kids, before = published_keys(service), texts_of_keys(new_state_dir)
            for cause, _ in (FAULTS["foreign"], FAULTS["missing"]):
                for name in KEY_FILES:
                    cause(new_state_dir / name)
                replace_workers(service)
                assert published_keys(service) == kids
                assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)
                put_back(new_state_dir, before)

    def test_replaced_delivery_process_has_the_keys_of_the_workers_whatever_the_files_contain(
        self, new_state_dir, settings
    ):
        with running(new_state_dir, **settings) as (service, _):
            put_back(new_state_dir, FOREIGN)
            wait_until(lambda: service.said().count("delivery_started") == 1)
            (pid,) = service.delivery_processes()
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: service.said().count("delivery_started") == 2)

    def test_delivery_process_does_not_run_with_the_database_of_other_keys(
        self, new_state_dir, settings, deployment
    ):
        """As when another deployment is restored into it while the service runs."""
        with running(new_state_dir, **settings) as (service, _):
            (pid,) = wait_until(service.delivery_processes)
            deployment.rows().run(
                "UPDATE key_fingerprints SET fingerprint = '00' WHERE setting = 'AUTH_SECRET_KEY'"
            )
            os.kill(pid, signal.SIGKILL)
            line = "AUTH_SECRET_KEY: Differs from what this database last used"
            wait_until(lambda: any(text.startswith(line) for text in service.said()))


class TestStart:
    def test_lost_key_is_not_made_anew_unless_the_operator_says_so(self, new_state_dir):
        with Service(new_state_dir):
            pass
        environment, texts = {"AUTH_STATE_DIR": str(new_state_dir)}, texts_of_keys(new_state_dir)
        for name in KEY_FILES:
            path = new_state_dir / name
            path.unlink()
            before = everything_in(new_state_dir)
            status, text = Service(new_state_dir).refuses_to_start()
            assert (status, text.count("\n")) == (1, 1)
            assert text.startswith(f"{SETTING_OF[name]}: {path} is missing. Restore it from a backup")
            for arguments in (["deliver"], ["create-admin", "carol@example.com"], ["keys", "accept"]):
                result = run_with_settings(environment, *arguments)
                assert (result.exit_code, f"{path}: Is missing." in result.output) == (1, True)
            assert everything_in(new_state_dir) == before
            put_back(new_state_dir, {name: texts[name]})
            path.chmod(0o600)
        for name in ("secret_key", "jwt_keys.json"):
            (new_state_dir / name).unlink()
        result = run_with_settings(environment, "keys", "accept", "--new")
        assert (result.exit_code, result.output) == (0, "The keys are accepted. Start the service.\n")
        with running(new_state_dir, AUTH_ANONYMOUS_ENABLED="true") as (_, session):
            assert session.refresh().status_code == 200
        new_texts = texts_of_keys(new_state_dir)
        assert [name for name in KEY_FILES if new_texts[name] == texts[name]] == ["service_role_key"]

    def test_command_with_another_key_does_not_run(self, environment, parts, database):
        fingerprints.keep(parts.db, parts.settings)
        for arguments in (["deliver"], ["explain", "alice@example.com"]):
            result = run_with_settings(environment | {"AUTH_SECRET_KEY": secret("other")}, *arguments)
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr.startswith(
                "Error: AUTH_SECRET_KEY: Differs from what this database last used"
            )

    def test_second_start_by_mistake_changes_nothing(self, new_state_dir, settings):
        """The first service has its keys in the environment; the second would make its own, and a database."""
        new_state_dir.mkdir()
        with Service(new_state_dir, **settings, **OTHER_SECRETS) as first:
            before = everything_in(new_state_dir)
            in_use = f"{new_state_dir} is in use by a running service, process {first.process.pid}"
            line = f"{in_use}. Stop it before you start another.\n"
            assert Service(new_state_dir).refuses_to_start() == (2, line)
            assert everything_in(new_state_dir) == before
            assert not (new_state_dir / "postgres").exists()
            environment = settings | {"AUTH_STATE_DIR": str(new_state_dir)}
            reason = "AUTH_SECRET_KEY: The running service has this secret in its environment."
            result = run_with_settings(environment, "keys", "accept", "--new")
            assert (result.exit_code, reason in result.output) == (1, True)
            result = run_with_settings(environment | OTHER_SECRETS, "keys", "accept", "--new")
            line = f"{in_use}. Stop the service on all nodes first."
            assert (result.exit_code, line in result.output) == (1, True)
            assert everything_in(new_state_dir) == before
            assert first.get("/health")[0] == 200

    def test_database_of_another_deployment_is_not_migrated(self, new_state_dir, deployment, settings):
        with Service(new_state_dir, **settings):
            pass
        rows = deployment.rows()
        rows.outdate_functions()
        status, text = Service(new_state_dir, **settings, **OTHER_SECRETS).refuses_to_start()
        assert (status, [line.split(":")[0] for line in text.splitlines()]) == (1, list(SETTING_OF.values()))
        assert rows.value("SELECT functions_digest FROM schema_version") == "another"
