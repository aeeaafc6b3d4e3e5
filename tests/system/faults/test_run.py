"""Running the service: start, output, signals, and recovery after a crash."""

import http.client
import json
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from auth.core.settings import kept_secrets
from tests.support.cases import cases
from tests.support.processes import (
    CHECKOUT,
    GUNICORN,
    Service,
    UnfinishedRequest,
    free_port,
    name_of,
    processes_of,
    python_for,
    send,
    serves,
    short_directory,
    user_of,
    wait_until,
)
from tests.support.server import repeated

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    """A service for tests that do not change its state."""
    with short_directory() as directory, Service(directory / "var") as service:
        yield service


@pytest.fixture(scope="module")
def used_directory() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory / "var"


def kill_all(directory: Path) -> None:
    for pid in processes_of(directory):
        send(pid, signal.SIGKILL)  # the death of another process may have ended it
    wait_until(lambda: none_left(directory))


@pytest.fixture
def state_dir(used_directory: Path) -> Iterator[Path]:
    """A state directory that is not in use; from the second test on, it has a database."""
    yield used_directory
    kill_all(used_directory)


def none_left(state_dir: Path) -> bool:
    return not processes_of(state_dir)


def workers_of(service: Service) -> set[int]:
    forks = {pid for pid, command in processes_of(service.state_dir).items() if "gunicorn" in command}
    return {pid for pid in forks - {service.process.pid} if name_of(pid) != "auth.delivery"}


def both_workers_of(service: Service) -> set[int]:
    """Return the two workers as soon as they obey signals."""
    return wait_until(lambda: pids if len(pids := set(filter(serves, workers_of(service)))) == 2 else set())


@contextmanager
def new_workers(service: Service) -> Iterator[set[int]]:
    """Yield the workers, and wait for those that the master starts in their place."""
    former = both_workers_of(service)
    yield former
    wait_until(lambda: former.isdisjoint(workers_of(service)))
    both_workers_of(service)


def reload(service: Service) -> None:
    with new_workers(service):
        service.process.send_signal(signal.SIGHUP)


def test_start_names_the_state_directory_which_is_closed_to_others(running):
    text = running.text()
    directory = running.state_dir
    assert {
        f"State: {directory} (secrets and signing keys, database). Back it up.",
        f"Serving http://localhost:{running.port}, listening on 127.0.0.1:{running.port}. Press Ctrl-C to stop.",
    } <= set(running.said())
    secrets_of_directory = {
        name: (directory / name).read_text().strip() for name in kept_secrets.FILES.values()
    }
    (jwk,) = json.loads(secrets_of_directory.pop("jwt_keys.json"))["keys"]
    assert [secret for secret in (*secrets_of_directory.values(), jwk["d"]) if secret in text] == []
    assert stat.S_IMODE(directory.stat().st_mode) == (0o711 if os.geteuid() == 0 else 0o700)
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir() if path.is_file()} == {0o600}


def test_reload_rereads_the_dotenv_file_whole(state_dir, tmp_path):
    def offered() -> tuple[bool, bool]:
        settings = json.loads(service.get("/settings")[1])
        return settings["disable_signup"], settings["external_anonymous_users_enabled"]

    (tmp_path / ".env").write_text("AUTH_DISABLE_SIGNUP=true\nAUTH_LOG_FORMAT=json\n")
    command = [sys.executable, *GUNICORN, "--config", str(CHECKOUT / "gunicorn.conf.py")]
    with Service(state_dir, command=command, directory=tmp_path) as service:
        assert offered() == (True, False)
        (tmp_path / ".env").write_text("AUTH_ANONYMOUS_ENABLED=true\n")
        reload(service)
        assert offered() == (False, True)
        # A command has the same settings as the service.
        environment = service.environment | {"PYTHONPATH": str(CHECKOUT)}
        latchkey = [sys.executable, "-m", "auth.ops.commands", "clients", "list"]
        subprocess.run(latchkey, cwd=tmp_path, env=environment, check=True)
        (tmp_path / ".env").write_text("AUTH_PAGES=maybe\n")
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: any(line.startswith("Not reloaded") for line in service.said()))
        assert offered() == (False, True)
    (tmp_path / ".env").write_text("AUTH_DISABLE_SIGNUP=maybe\nAUTH_LOG_FORMAT=json\n")
    assert service.refuses_to_start()[0] == 1
    assert service.said() == ["AUTH_DISABLE_SIGNUP: Must be true or false."]


def test_start_fails_when_the_port_is_in_use(running, state_dir):
    line = f"Can't listen on 127.0.0.1:{running.port}: Address already in use. Set PORT or AUTH_BIND to use another address.\n"
    assert Service(state_dir, PORT=str(running.port)).refuses_to_start() == (1, line)
    assert none_left(state_dir)
    assert running.get("/health")[0] == 200


def test_start_fails_when_other_machines_would_reach_a_service_of_this_machine(state_dir):
    """Its owners may name providers that listen on this machine alone."""
    line = "AUTH_BIND: gunicorn listens on 0.0.0.0, not 127.0.0.1. Set AUTH_BIND=0.0.0.0.\n"
    service = Service(state_dir)
    service.environment["GUNICORN_CMD_ARGS"] = f"--bind 0.0.0.0:{service.port}"
    assert service.refuses_to_start() == (1, line)
    # As systemd starts a service with a socket.
    bound = (
        "import os, socket, sys; listening = socket.create_server(('0.0.0.0', int(os.environ['PORT'])));"
        " os.dup2(listening.fileno(), 3); os.set_inheritable(3, True);"
        " os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
        " os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    inherits = Service(state_dir, command=[sys.executable, "-c", bound, *GUNICORN])
    assert inherits.refuses_to_start() == (1, line)
    assert none_left(state_dir)


@cases(
    ("changes", "status", "reason"),
    [
        ({"AUTH_WORKERS": "many"}, 1, "AUTH_WORKERS: Must be a whole number from 1 to 256."),
        ({"AUTH_STATE_DIR": "/dev/null"}, 1, "AUTH_STATE_DIR: /dev/null cannot be used"),
        (
            {"AUTH_STATE_DIR": "{running}"},
            2,
            "{running} is in use by a running service, process {pid}. Stop it",
        ),
        ({"AUTH_BIND": "no.such.name"}, 1, "AUTH_BIND: no.such.name is not an address of this machine."),
    ],
)
def test_failed_start_is_an_event_where_the_log_is_json(running, state_dir, changes, status, reason):
    changes = {name: value.format(running=running.state_dir) for name, value in changes.items()}
    service = Service(state_dir, AUTH_LOG_FORMAT="json", **changes)
    assert service.refuses_to_start()[0] == status
    event = json.loads(service.log().splitlines()[-1])
    assert (event.keys(), event["level"]) == ({"event", "level", "timestamp"}, "error")
    assert event["event"].startswith(reason.format(running=running.state_dir, pid=running.process.pid))


@contextmanager
def as_journal(path: Path, *, is_other: bool = False) -> Iterator[tuple[int, str]]:
    """Yield a descriptor for the log, and the variable by which systemd says that this is the journal."""
    with path.open("wb") as file:
        status = os.fstat(file.fileno())
        yield file.fileno(), f"{status.st_dev}:{status.st_ino + is_other}"


def test_lines_of_the_journal_have_their_priority(state_dir, tmp_path):
    with (
        as_journal(tmp_path / "log") as (descriptor, journal),
        Service(state_dir, log_to=descriptor, JOURNAL_STREAM=journal, AUTH_LOG_FORMAT="json") as service,
    ):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
            assert b" 400 " in connection.recv(100)
        service.get("/settings")
        wait_until(lambda: b"/settings" in (tmp_path / "log").read_bytes())
    lines = (tmp_path / "log").read_text().splitlines()
    priorities = {(json.loads(line[3:])["level"], line[:3]) for line in lines}
    assert priorities == {("info", "<6>"), ("warning", "<4>")}


@pytest.mark.parametrize(("is_other", "beginning"), [(False, "<3>AUTH_WORKERS: "), (True, "AUTH_WORKERS: ")])
def test_failed_start_is_an_error_only_of_the_journal_that_it_writes_to(
    state_dir, tmp_path, is_other, beginning
):
    """A process that the service's environment has reached may write elsewhere."""
    with as_journal(tmp_path / "log", is_other=is_other) as (descriptor, journal):
        service = Service(state_dir, log_to=descriptor, JOURNAL_STREAM=journal, AUTH_WORKERS="many")
        service._start()
        assert service.process.wait(60) == 1
    assert (tmp_path / "log").read_text().startswith(beginning)


def test_start_fails_when_the_database_is_unreachable(state_dir):
    url = f"postgresql://auth:correcthorse@127.0.0.1:{free_port()}/auth"
    status, text = Service(state_dir, DATABASE_URL=url).refuses_to_start()

    assert status == 1
    assert re.match(
        "DATABASE_URL: The database cannot be used: .*Connection refused. Is the server running", text
    )
    assert text.count("\n") == 1
    assert "correcthorse" not in text


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_running_request_is_finished_before_the_stop(name, state_dir):
    with Service(state_dir) as service, UnfinishedRequest(service, "/signup") as request:
        # A supervisor signals one process, Ctrl-C in a terminal the whole group.
        send = os.killpg if name == "SIGINT" else os.kill
        send(service.process.pid, signal.Signals[name])
        wait_until(lambda: not accepts_requests(service))

        assert request.finish().startswith(b"HTTP/1.1 4")
        assert service.process.wait(60) == 0
        assert service.said()[-1] == "Stopped."
    assert none_left(state_dir)


@pytest.mark.parametrize("configuration", ["gunicorn.conf.py", "tests/support/slow_close.conf.py"])
def test_stop_answers_or_refuses_each_connection_and_resets_none(configuration, state_dir):
    results = Counter[Any]()
    with Service(state_dir, command=[sys.executable, *GUNICORN, "--config", configuration]) as service:

        def ask() -> None:
            try:
                results[service.get("/health")[0]] += 1
            except ConnectionRefusedError as error:
                results[type(error)] += 1

        with repeated(*[ask] * 20):
            wait_until(lambda: results[200] > 50)
            service.process.terminate()
            assert service.process.wait(60) == 0
            wait_until(lambda: results[ConnectionRefusedError] > 20)
    assert set(results) == {200, ConnectionRefusedError}


def accepts_requests(service: Service) -> bool:
    try:
        service.get("/health", timeout=0.5)
    except (OSError, http.client.HTTPException):
        return False
    return True


@pytest.mark.skipif(Path(".venv").is_symlink(), reason="make would empty the shared environment")
def test_make_run_forwards_the_stop_signal(state_dir):
    with Service(state_dir, command=["make", "run", f"PYTHON={sys.executable}"]) as service:
        service.process.terminate()
        service.process.wait(60)
    wait_until(lambda: none_left(state_dir))
    assert "Stopped." in service.said()


def test_no_process_outlives_a_killed_master_and_the_next_start_works(state_dir):
    with Service(state_dir) as killed, UnfinishedRequest(killed, "/signup"):
        remaining = set(processes_of(state_dir))
        killed.process.kill()

        # Start again without waiting, as a supervisor does.
        with Service(state_dir, PORT=str(killed.port)) as service:
            wait_until(lambda: remaining.isdisjoint(processes_of(state_dir)))
            kill_all(state_dir)

    with Service(state_dir, PORT=str(service.port)):
        pass


def test_service_ends_when_its_postgres_dies(state_dir):
    with Service(state_dir) as service:
        postmaster = int((state_dir / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)

        assert service.process.wait(30) == 1
        assert f"The embedded Postgres died; see {state_dir}/postgres.log. Stopping." in service.said()
    wait_until(lambda: none_left(state_dir))  # the other processes of Postgres notice the death by themselves


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_service_runs_as_an_ordinary_user():
    python = python_for("nobody")
    if python is None:
        pytest.skip("there is no Python that the user nobody may run with our packages")
    command, environment = python
    nobody = pwd.getpwnam("nobody")
    with short_directory() as parent:
        directory = parent / "var"
        os.chown(parent, nobody.pw_uid, nobody.pw_gid)
        with Service(directory, command=command, user="nobody", **environment):
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
            assert {user_of(pid) for pid in processes_of(directory)} - {None} == {nobody.pw_uid}
        assert none_left(directory)
