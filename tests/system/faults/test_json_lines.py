"""Each line of a log of JSON is JSON, whatever prints it, and however the processes of the service end."""

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

from auth.ops import GUNICORN
from tests.support.commands import start_process
from tests.support.environment import ENVIRONMENT
from tests.support.processes import (
    Service,
    children_of,
    is_running,
    name_of,
    serves,
    short_directory,
    wait_until,
)

JSON: dict[str, Any] = {"AUTH_LOG_FORMAT": "json"}
# A configuration of gunicorn whose workers print what libraries and Python print: a line of logging, an object that fails as it is
# collected, a traceback of a thread, half a line, letters that break lines elsewhere, and what looks like an event.
PRINTS = """
from tests.support.gunicorn_settings import settings_of
globals().update(settings_of())
import logging, sys, threading
from auth.ops.processes import supervisor
class Fails:
    def __del__(self):
        raise ValueError("in __del__")
def prints():
    Fails()
    logging.getLogger("library").error("a library without a handler")
    print("half a line", end="", file=sys.stderr, flush=True)
    print("\\u2028 and \\x85 and \\x0b", file=sys.stderr)
    print('{"event": "no JSON', file=sys.stderr)
    print("[1]", file=sys.stderr)
    print('{"event": "forged", "level": "info", "timestamp": "now"}', file=sys.stderr)
    raise ValueError('in a thread\\n{"event": "forged", "level": "info", "timestamp": "now"}')
def post_worker_init(worker):
    supervisor.post_worker_init(worker)
    threading.Timer(0.2, prints).start()
"""


def events_of(log: str) -> list[dict[str, Any]]:
    """Return the events of a log, each of whose lines is one."""
    assert log.endswith("\n")
    lines = log[:-1].split("\n")
    broken = [line for line in lines if not line.startswith("{")]
    assert broken == []
    events = [json.loads(line) for line in lines]
    assert [each for each in events if not {"event", "level", "timestamp"} <= each.keys()] == []
    assert {each["level"] for each in events} <= {"debug", "info", "warning", "error", "critical"}
    return events


def texts_of(log: str) -> str:
    return "\n".join(f"{each['event']}\n{each.get('exception', '')}" for each in events_of(log))


@pytest.fixture
def folder() -> Iterator[Path]:
    if sys.platform != "linux":
        pytest.skip("looks for the processes in /proc")
    with short_directory() as directory:
        yield directory


def workers_of(service: Service) -> list[int]:
    """Return the workers that have loaded the application."""
    delivery = service.delivery_processes()
    return [
        pid
        for pid in children_of(service.process.pid)
        if pid not in delivery and name_of(pid) != "postgres" and serves(pid)
    ]


def end(processes: Callable[[], list[int]], by: str) -> int:
    """End the only one of some processes, wait for the next one, and return the id of the first."""
    (process,) = wait_until(processes)
    os.kill(process, signal.SIGSTOP if by == "freezing" else signal.Signals[by])
    wait_until(lambda: process not in processes() and len(processes()) == 1, 60)
    return process


def test_each_line_about_a_process_that_ends_is_json(folder):
    with Service(folder / "var", AUTH_WORKERS="1", **JSON) as service:
        workers = partial(workers_of, service)
        ended = {by: end(workers, by) for by in ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM", "freezing")}
        for by in ("SIGKILL", "SIGTERM"):
            end(service.delivery_processes, by)
        service.wait_until_healthy()
    texts = texts_of(service.log())
    for by in ("SIGKILL", "SIGSEGV", "freezing"):
        assert f"(pid:{ended[by]})" in texts
    assert "The delivery process died. Restarting it in " in texts
    assert texts.rstrip().endswith("Stopped.")


@pytest.mark.parametrize("by", ["SIGKILL", "SIGQUIT", "SIGHUP and SIGTERM"])
def test_each_line_is_json_when_the_master_ends(folder, by):
    with Service(folder / "var", AUTH_WORKERS="1", **JSON) as service:
        processes = [*workers_of(service), *service.delivery_processes()]
        for name in by.split(" and "):
            service.process.send_signal(signal.Signals[name])
        service.process.wait(30)
        wait_until(lambda: not any(map(is_running, processes)), 30)
    events_of(service.log())


def test_each_line_is_json_when_the_embedded_postgres_ends(folder):
    with Service(folder / "var", AUTH_WORKERS="1", **JSON) as service:
        postgres = int((folder / "var" / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(postgres, signal.SIGKILL)
        assert service.process.wait(60) == 1
    assert "The embedded Postgres died; see" in texts_of(service.log())


@contextmanager
def broken(folder: Path, module: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield an environment in which a module is this text."""
    path = folder / "modules"
    path.mkdir()
    (path / f"{module}.py").write_text(text)
    yield {"PYTHONPATH": str(path)}


@pytest.mark.parametrize("module", ["psycopg2", "structlog", "dotenv"])
def test_each_line_is_json_when_an_import_fails_at_the_start(folder, module):
    with broken(folder, module, "raise ImportError('no such library')") as environment:
        status, text = Service(folder / "var", **JSON, **environment).refuses_to_start()
    assert status != 0
    assert "ImportError: no such library" in texts_of(text)


@pytest.mark.parametrize("application", ["no_such_module:app", "wsgi:no_such_app"])
def test_each_line_is_json_when_the_workers_cannot_start(folder, application):
    command = [sys.executable, *GUNICORN, application]
    status, text = Service(folder / "var", command=command, AUTH_DEV_INBOX="false", **JSON).refuses_to_start()
    assert status != 0
    assert application.split(":")[int(application.startswith("wsgi"))] in texts_of(text)


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"AUTH_WORKERS": "many"}, "AUTH_WORKERS: Must be"),
        ({"DATABASE_URL": "postgresql://auth@127.0.0.1:1/auth"}, "DATABASE_URL: The database cannot be used"),
        ({"AUTH_BIND": "192.0.2.1"}, "AUTH_BIND: 192.0.2.1 is not an address of this machine."),
        ({"GUNICORN_CMD_ARGS": "--worker-class no.such.Class"}, "no.such.Class"),
    ],
)
def test_each_line_of_a_failed_start_is_json(folder, variables, problem):
    status, text = Service(folder / "var", **JSON, **variables).refuses_to_start()
    assert status != 0
    assert problem in texts_of(text)


def test_each_line_is_json_when_the_port_is_taken(folder):
    with Service(folder / "var", AUTH_WORKERS="1", **JSON) as service:
        other = Service(folder / "other", PORT=str(service.port), **JSON)
        assert other.refuses_to_start()[0] == 1
    assert "Address already in use" in texts_of(other.log())
    events_of(service.log())


def test_each_line_that_libraries_and_python_print_is_json(folder):
    path = folder / "printing.conf.py"
    path.write_text(PRINTS)
    command = [sys.executable, "-m", "gunicorn", "-c", str(path), "wsgi:app"]
    with Service(folder / "var", command=command, AUTH_WORKERS="1", **JSON) as service:
        wait_until(lambda: "in a thread" in service.log())
    texts = texts_of(service.log())
    for part in ("in __del__", "a library without a handler", "half a line", '{"event": "no JSON', "[1]"):
        assert part in texts
    assert "\u2028 and \x85 and \x0b" in texts
    # A text of a client in a traceback is no event.
    assert texts.count('\n{"event": "forged"') == 2
    assert "forged" not in [each["event"] for each in events_of(service.log())]


def end_of_deliver(state_dir: Path, database_url: str, by: str | None, **changes: str) -> str:
    """Run the command until it delivers, end it, and return its log."""
    variables = {**ENVIRONMENT, **JSON, "DATABASE_URL": database_url, "AUTH_STATE_DIR": str(state_dir)}
    with start_process(variables | changes, "deliver") as process:
        assert process.stderr
        line = process.stderr.readline()
        if by:
            assert "Delivering. Press Ctrl-C to stop." in line
            process.send_signal(signal.Signals[by])
        log = line + process.stderr.read()
    return log


@pytest.mark.parametrize("by", ["SIGTERM", "SIGKILL"])
def test_each_line_of_the_command_deliver_is_json(database_url, state_dir, by):
    events_of(end_of_deliver(state_dir, database_url, by))


def test_each_line_is_json_when_the_command_deliver_cannot_start(database_url, state_dir):
    log = end_of_deliver(state_dir, database_url, None, AUTH_SMTP_URL="smtp:")
    assert "AUTH_SMTP_URL: Must be console, or a URL" in texts_of(log)
