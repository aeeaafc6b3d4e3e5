"""Key files that are foreign, broken or missing: at the start, at a reload, and for a worker that is replaced."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from auth.settings import kept_secrets
from auth.tokens import signing_keys
from tests.conftest import secret
from tests.faults.test_run import both_workers_of, workers_of
from tests.support.cast import Session, sign_up_anonymously
from tests.support.commands import run_with_settings
from tests.support.processes import Service, wait_until
from tests.support.rows import Rows
from tests.support.server import ServerClient, at_once

pytestmark = [
    pytest.mark.selection,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
NAMES = tuple(kept_secrets.FILES.values())
SETTINGS = {"secret_key": "AUTH_SECRET_KEY", "service_role_key": "AUTH_SERVICE_ROLE_KEY"}
SETTINGS |= {"jwt_keys.json": "AUTH_JWT_KEYS"}
FOREIGN = {"secret_key": secret("foreign"), "service_role_key": secret("foreign")}
FOREIGN |= {"jwt_keys.json": signing_keys.new_jwk_set()}
OTHERS: dict[str, Any] = {"AUTH_SECRET_KEY": secret("other"), "AUTH_SERVICE_ROLE_KEY": secret("other")}
OTHERS |= {"AUTH_JWT_SECRET": secret("other")}


@pytest.fixture(params=["embedded", "DATABASE_URL"])
def settings(request) -> dict[str, Any]:
    """The settings of a service with its own state directory, for both kinds of database."""
    is_embedded = request.param == "embedded"
    place = {} if is_embedded else {"DATABASE_URL": request.getfixturevalue("world").postgres.url}
    return {"AUTH_ANONYMOUS_ENABLED": "true", **place}


@contextmanager
def running(state_dir: Path, **settings: Any) -> Iterator[tuple[Service, Session]]:
    """Run a service, and return it with a session of before what the test does."""
    with Service(state_dir, **settings) as service:
        client = ServerClient(service.port)
        yield service, sign_up_anonymously(client)
        client.close()


def everything_in(directory: Path) -> dict[str, object]:
    """Return mode and content of all files, without those that Postgres writes."""
    return {
        path.name: (path.stat().st_mode, path.is_file() and path.read_bytes())
        for path in [directory, *directory.iterdir()]
        if not path.name.startswith("postgres")
    }


def replace_file(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text)
    os.replace(draft, path)


def replace_workers(service: Service) -> None:
    """Kill the workers, and wait for those that the master starts in their place."""
    old = both_workers_of(service)
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: old.isdisjoint(workers_of(service)))
    both_workers_of(service)


def reload(service: Service) -> None:
    old = both_workers_of(service)
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: old.isdisjoint(workers_of(service)))
    both_workers_of(service)


def refuses_to_reload(service: Service, line: str, names: str) -> bool:
    """Reload, and return whether the workers stay, after a log line that begins and names something like this."""
    old, lines = both_workers_of(service), len(service.said())
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any("eload" in text for text in service.said()[lines:]))
    expected = f"Not reloaded, the workers keep running: {line}"
    said = [text for text in service.said()[lines:] if text.startswith(expected)]
    assert len(said) == 1, service.said()[lines:]
    assert names in said[0]
    return workers_of(service) == old


def published_keys(service: Service) -> list[str]:
    return [key["kid"] for key in json.loads(service.get("/.well-known/jwks.json")[1])["keys"]]


def publishes(service: Service, kids: list[str]) -> bool:
    """Return whether both workers publish these keys, as far as ten requests tell."""
    return all(published_keys(service) == kids for _ in range(10))


def put_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


# What happens to a file, and how the line about it goes on.
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "foreign": (lambda path: replace_file(path, FOREIGN[path.name]), "Is not what this database was last"),
    "missing": (Path.unlink, "{path} is missing. Restore it from a backup"),
    "unreadable": (put_directory, "Cannot be read: Is a directory."),
    "malformed": (lambda path: replace_file(path, "["), "Must be"),
    "nested": (lambda path: replace_file(path, "[" * 200_000), "Must"),
}


class TestReload:
    def test_unusable_key_file_keeps_the_workers_and_is_named(self, new_state_dir, settings):
        with running(new_state_dir, **settings) as (service, session):
            for name in NAMES:
                for fault, (cause, text) in FAULTS.items():
                    path = new_state_dir / name
                    before = path.read_text()
                    cause(path)
                    subject = SETTINGS[name] if fault in ("foreign", "missing") else path
                    assert refuses_to_reload(service, f"{subject}: {text.format(path=path)}", str(path))
                    assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)
                    if path.is_dir():
                        path.rmdir()
                    replace_file(path, before)
            reload(service)
            assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)

    def test_new_key_beside_the_old_one_is_taken_over_and_the_old_one_may_go(self, new_state_dir, settings):
        with running(new_state_dir, **settings) as (service, session):
            (old,) = published_keys(service)
            path, key = new_state_dir / "jwt_keys.json", new_state_dir / "secret_key"
            (new_jwk,) = json.loads(FOREIGN["jwt_keys.json"])["keys"]
            jwks = [new_jwk, *json.loads(path.read_text())["keys"]]
            replace_file(path, json.dumps({"keys": jwks}))
            replace_file(key, f"{FOREIGN['secret_key']},{key.read_text().strip()}")
            reload(service)
            assert published_keys(service) == [new_jwk["kid"], old]
            session = session.refreshed()
            replace_file(path, json.dumps({"keys": jwks[:1]}))
            replace_file(key, FOREIGN["secret_key"])
            reload(service)
            assert published_keys(service) == [new_jwk["kid"]]
            assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)

    def test_foreign_keys_keep_the_workers_while_postgres_is_down(self, new_state_dir, world):
        settings = {"DATABASE_URL": world.postgres.url, "AUTH_ANONYMOUS_ENABLED": "true"}
        with running(new_state_dir, **settings) as (service, session):
            before = {name: (new_state_dir / name).read_text() for name in NAMES}
            for name in NAMES:
                replace_file(new_state_dir / name, FOREIGN[name])
            world.postgres.stop()
            assert refuses_to_reload(service, "DATABASE_URL: can't use the database: ", "")
            for name, text in before.items():
                replace_file(new_state_dir / name, text)
            world.postgres.start()
            wait_until(lambda: session.refresh().status_code == 200)
            reload(service)


class TestReplacedProcesses:
    def test_replaced_worker_has_the_keys_of_its_siblings_whatever_the_files_contain(
        self, new_state_dir, settings
    ):
        with running(new_state_dir, **settings) as (service, session):
            kids = published_keys(service)
            for cause, _ in (FAULTS["foreign"], FAULTS["missing"]):
                before = {name: (new_state_dir / name).read_text() for name in NAMES}
                for name in NAMES:
                    cause(new_state_dir / name)
                replace_workers(service)
                assert published_keys(service) == kids
                assert (session.get("/user").status_code, session.refresh().status_code) == (200, 200)
                for name, text in before.items():
                    if (new_state_dir / name).is_dir():
                        (new_state_dir / name).rmdir()
                    replace_file(new_state_dir / name, text)

    def test_replaced_worker_knows_a_rotated_key(self, new_state_dir, settings):
        with running(new_state_dir, **settings) as (service, _):
            (old,) = published_keys(service)
            path = new_state_dir / "jwt_keys.json"
            (new_jwk,) = json.loads(FOREIGN["jwt_keys.json"])["keys"]
            jwks = [new_jwk, *json.loads(path.read_text())["keys"]]
            for kids, some in (([new_jwk["kid"], old], jwks), ([new_jwk["kid"]], jwks[:1])):
                replace_file(path, json.dumps({"keys": some}))
                wait_until(partial(publishes, service, kids))
                replace_workers(service)
                assert publishes(service, kids)

    def test_delivery_process_does_not_run_with_foreign_keys(self, new_state_dir, settings):
        with running(new_state_dir, **settings) as (service, _):
            before = (new_state_dir / "secret_key").read_text()
            replace_file(new_state_dir / "secret_key", FOREIGN["secret_key"])
            (pid,) = wait_until(service.delivery_processes)
            os.kill(pid, signal.SIGKILL)
            line = "AUTH_SECRET_KEY: Is not what this database was last used with"
            wait_until(lambda: any(text.startswith(line) for text in service.said()))
            replace_file(new_state_dir / "secret_key", before)
            wait_until(lambda: service.said()[-1] == "delivery_started")


class TestStart:
    def test_lost_key_is_not_made_anew_for_a_database_that_knows_it(self, new_state_dir, settings):
        with Service(new_state_dir, **settings):
            pass
        for name in NAMES:
            path = new_state_dir / name
            kept = path.read_text()
            path.unlink()
            before = everything_in(new_state_dir)
            status, text = Service(new_state_dir, **settings).refuses_to_start()
            assert (status, text.count("\n")) == (1, 1)
            assert text.startswith(f"{SETTINGS[name]}: {path} is missing. Restore it from a backup")
            for arguments in (["deliver"], ["create-admin", "carol@example.com"], ["keys", "accept"]):
                done = run_with_settings(settings | {"AUTH_STATE_DIR": str(new_state_dir)}, *arguments)
                assert (done.exit_code, f"{new_state_dir} has no {name}" in done.output) == (1, True)
            assert everything_in(new_state_dir) == before
            path.write_text(kept)
            path.chmod(0o600)
        with Service(new_state_dir, **settings):
            pass

    def test_operator_has_keys_made_for_those_that_are_lost_for_good(self, new_state_dir, settings):
        with Service(new_state_dir, **settings):
            pass
        kept = (new_state_dir / "service_role_key").read_text()
        for name in ("secret_key", "jwt_keys.json"):
            (new_state_dir / name).unlink()
        done = run_with_settings(settings | {"AUTH_STATE_DIR": str(new_state_dir)}, "keys", "accept", "--new")
        assert (done.exit_code, done.output) == (0, "The keys are accepted. Start the service.\n")
        with running(new_state_dir, **settings) as (_, session):
            assert session.refresh().status_code == 200
        assert (new_state_dir / "service_role_key").read_text() == kept

    def test_second_start_by_mistake_changes_nothing(self, new_state_dir, settings):
        """The first service has its keys in the environment; the second would make some, and a database."""
        new_state_dir.mkdir()
        with Service(new_state_dir, **settings, **OTHERS) as first:
            before = everything_in(new_state_dir)
            line = (
                f"{new_state_dir} is in use by a running service; set AUTH_STATE_DIR to another directory\n"
            )
            assert Service(new_state_dir).refuses_to_start() == (2, line)
            assert everything_in(new_state_dir) == before
            assert (new_state_dir / "postgres").exists() is ("DATABASE_URL" not in settings)
            changed = settings | {"AUTH_STATE_DIR": str(new_state_dir)}
            done = run_with_settings(changed, "keys", "accept", "--new")
            line = f"{new_state_dir} is in use by a running service. Stop the service on all nodes first."
            assert (done.exit_code, line in done.output) == (1, True)
            assert everything_in(new_state_dir) == before
            assert first.get("/health")[0] == 200

    def test_database_of_another_deployment_is_not_migrated(self, new_state_dir, world):
        url: dict[str, Any] = {"DATABASE_URL": world.postgres.url}
        with Service(new_state_dir, **url):
            pass
        rows = Rows(world.postgres.url)
        rows.outdate_functions()
        status, text = Service(new_state_dir, **url, **OTHERS).refuses_to_start()
        assert (status, [line.split(":")[0] for line in text.splitlines()]) == (1, list(SETTINGS.values()))
        assert rows.value("SELECT functions_digest FROM schema_version") == "another"
        rows.close()

    def test_one_of_several_new_nodes_makes_keys_and_the_others_nothing(self, world):
        nodes = [world.state_dir.parent / f"node{number}" / "var" for number in range(3)]
        for node in nodes:
            node.parent.mkdir()
        services = [Service(node, DATABASE_URL=world.postgres.url) for node in nodes]

        def start(number: int) -> str:
            try:
                services[number].__enter__()
            except AssertionError:
                return services[number].text()
            return ""

        texts = at_once(3, start)
        try:
            assert sorted(map(bool, texts)) == [False, True, True]
            for node, text in zip(nodes, texts, strict=True):
                assert [line.split(":")[0] for line in text.splitlines()] == list(SETTINGS.values()) * bool(
                    text
                )
                assert {name: (node / name).exists() for name in NAMES} == dict.fromkeys(NAMES, not text)
        finally:
            for service in services:
                service.__exit__()

    def test_nodes_that_share_a_state_directory_start_together(self, world):
        services = [Service(world.state_dir, DATABASE_URL=world.postgres.url) for _ in range(2)]
        try:
            at_once(2, lambda number: services[number].__enter__())
            assert published_keys(services[0]) == published_keys(services[1])
        finally:
            for service in services:
                service.__exit__()
