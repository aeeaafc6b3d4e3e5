"""The delivery process of the service: started, restarted and stopped by the gunicorn master."""

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

import httpx
import pytest
from gunicorn.config import Config

from auth.core.settings import served
from auth.core.settings.state import METRICS_SLOT
from auth.ops.processes.delivery_process import DeliveryProcess
from tests.support.outbox import Outbox
from tests.support.processes import CHECKOUT, Service, children_of, is_running, send, wait_until
from tests.support.smtp_server import BadMailServer, MailServer
from tests.support.users import PASSWORD

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture
def outbox(database, parts) -> Outbox:
    return Outbox(database, parts)


@pytest.fixture
def service(environment, state_dir, database) -> Callable[..., Service]:
    """Make a service that delivers, with the secrets and the database of the tests."""
    shared = {
        name: value for name, value in environment.items() if name not in ("AUTH_STATE_DIR", "AUTH_DELIVER")
    }
    return lambda **changes: Service(state_dir, **shared, **changes)


def delivery_process(service: Service) -> int:
    (pid,) = wait_until(service.delivery_processes)
    return pid


def sign_up(service: Service, email: str = "dave@example.com") -> None:
    body = {"email": email, "password": PASSWORD}
    response = httpx.post(f"http://127.0.0.1:{service.port}/signup", json=body, timeout=20)
    assert response.status_code == 201


def is_replaced(service: Service, old: int) -> bool:
    found = service.delivery_processes()
    return len(found) == 1 and old not in found


def accepts_connections(service: Service) -> bool:
    try:
        socket.create_connection(("127.0.0.1", service.port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def modules_of(program: str, environment: dict[str, str]) -> set[str]:
    """Return the modules that a Python process has loaded after running a program."""
    command = [sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"]
    everything = {"PATH": os.environ["PATH"], "HOME": "/", **environment}
    return set(subprocess.check_output(command, cwd=CHECKOUT, env=everything, text=True).split())


def test_neither_process_loads_what_only_the_other_needs(environment):
    senders = "from auth.core import settings; channels.senders(settings.load(), object(), object())"
    program = f"import auth.delivery.__main__; from auth.delivery.senders import channels; {senders}"
    delivery = modules_of(program, environment)
    assert {"auth.extensions.webhooks.events", "auth.extensions.social"} <= delivery
    web = {"flask", "werkzeug", "app", "wsgi", "gunicorn", "gevent", "authlib", "redis", "requests"}
    assert "auth.delivery.deliverer" in delivery
    assert delivery.isdisjoint({*web, "prometheus_client"})
    worker = modules_of("import wsgi", environment)
    assert "auth.delivery" in worker
    assert worker.isdisjoint({"auth.delivery.deliverer", "prometheus_client"})


def test_delivery_process_has_the_lowest_priority(service):
    with service() as running:
        pid = delivery_process(running)
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == 19)
        tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        assert {os.getpriority(os.PRIO_PROCESS, task) for task in tasks} == {19}


def test_killed_delivery_process_is_started_again_and_ends_with_its_master(service, outbox):
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url()) as running:
        killed = delivery_process(running)
        os.kill(killed, signal.SIGKILL)
        id = outbox.write()

        wait_until(lambda: outbox.outcome(id) == "sent")
        restarted = delivery_process(running)
        assert restarted != killed
        assert running.said().count("The delivery process died. Restarting it in 1 s.") == 1
        running.process.kill()
        wait_until(lambda: not is_running(restarted))


def test_message_is_sent_where_python_does_not_look_into_the_current_directory(service, outbox):
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url(), PYTHONSAFEPATH="1") as running:
        id = outbox.write()
        wait_until(lambda: outbox.outcome(id) == "sent")
        assert not [line for line in running.said() if line.startswith("The delivery process died")]


def test_stop_finishes_the_message_in_flight(service, outbox):
    with BadMailServer("END", "wait") as mail, service(AUTH_SMTP_URL=mail.url) as running:
        pid = delivery_process(running)
        id = outbox.write()
        assert mail.reached.wait(30)
        running.process.terminate()
        wait_until(lambda: not accepts_connections(running))
        assert is_running(pid)
        mail.released.set()

        assert running.process.wait(15) == 0
        assert outbox.outcome(id) == "sent"
        assert not is_running(pid)


def test_stop_ends_in_time_and_leaves_a_message_that_hangs_to_the_next_start(service, outbox):
    with BadMailServer("GREETING", "hang") as mail, service(AUTH_SMTP_URL=mail.url) as running:
        id = outbox.write()
        assert mail.reached.wait(30)
        began = time.monotonic()
        running.process.terminate()

        assert running.process.wait(15) == 0
        assert time.monotonic() - began < 9
    assert (outbox.row(id).outcome, outbox.row(id).secret is None) == (None, False)


def test_reload_starts_a_new_delivery_process(service, outbox):
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url()) as running:
        old = delivery_process(running)
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not is_running(old))
        id = outbox.write()

        wait_until(lambda: outbox.outcome(id) == "sent")
        assert delivery_process(running) != old
        assert "died" not in running.log()


def test_reload_with_another_setting_lets_the_service_deliver(service, outbox, tmp_path):
    dotenv = tmp_path / ".env"
    dotenv.write_text("AUTH_DELIVER=false\n")
    command = [sys.executable, "-m", "gunicorn", "-c", str(CHECKOUT / "gunicorn.conf.py"), "wsgi:app"]
    started = {"command": command, "directory": tmp_path, "PYTHONPATH": str(CHECKOUT)}
    with MailServer() as mail, service(**started, AUTH_SMTP_URL=mail.url()) as running:
        assert running.delivery_processes() == []
        dotenv.write_text("AUTH_DELIVER=true\n")
        running.process.send_signal(signal.SIGHUP)
        id = outbox.write()
        wait_until(lambda: outbox.outcome(id) == "sent")


def test_ten_reloads_by_a_signal_to_all_processes_kill_no_delivery_process(service, outbox):
    """`systemctl kill --signal HUP` sends it to all of them."""
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url()) as running:
        for _ in range(10):
            old = delivery_process(running)
            for pid in (old, running.process.pid):
                send(pid, signal.SIGHUP)
            wait_until(partial(is_replaced, running, old))
        id = outbox.write()
        wait_until(lambda: outbox.outcome(id) == "sent")
        assert not [line for line in running.said() if line.startswith("The delivery process")]


def test_sign_up_mail_is_sent_by_a_delivery_process_alone(service, outbox):
    with service(AUTH_DELIVER="false") as running:
        sign_up(running)
        assert running.delivery_processes() == []
        wait_until(lambda: len(children_of(running.process.pid)) == 2)
    assert [row.attempts for row in map(outbox.row, outbox.outcomes())] == [0]


class DiesAtOnce:
    """A process that dies at once, and the time of each start; the second cannot be started."""

    started: ClassVar[list[float]] = []

    def __init__(self, *_: object, **__: object) -> None:
        self.started.append(time.monotonic())
        if len(self.started) == 2:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def poll(self) -> int:
        return 1

    def terminate(self) -> None:
        pass

    def wait(self, _seconds: float) -> None:
        pass


def test_process_that_dies_or_cannot_be_started_is_tried_again_after_ever_longer_pauses(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(subprocess, "Popen", DiesAtOnce)
    delivery = DeliveryProcess(print, Config())
    delivery.start()
    failing = []
    for _ in range(60):
        clock[0] += 1
        delivery.watch()
        failing.append(served.delivery_fails[0])

    # From the second end on.
    assert failing == [False] * 2 + [True] * 58
    assert DiesAtOnce.started == [0, 2, 5, 10, 19, 30, 41, 52]
    lines = capsys.readouterr().out.splitlines()
    assert lines.pop(1) == "Can't start the delivery process: Resource temporarily unavailable."
    assert len(lines) == 8

    monkeypatch.setattr(DiesAtOnce, "poll", lambda _self: None)
    clock[0] += 11
    delivery.watch()
    assert not served.delivery_fails[0]
    delivery.stop()


def test_process_that_replaces_one_at_work_counts_in_another_slot(monkeypatch):
    class Runs:
        slots: ClassVar[list[str]] = []
        result: int | None = None

        def __init__(self, *_: object, env: dict[str, str], **__: object) -> None:
            self.slots.append(env[METRICS_SLOT])
            processes.append(self)

        def poll(self) -> int | None:
            return self.result

        def terminate(self) -> None:
            pass

        def wait(self, _seconds: float) -> None:
            pass

    processes: list[Runs] = []
    monkeypatch.setattr(subprocess, "Popen", Runs)
    delivery = DeliveryProcess(print, Config())
    delivery.start()
    delivery.terminate()
    delivery.start()
    processes[0].result = 0
    delivery.terminate()
    delivery.start()
    delivery.stop()

    assert Runs.slots == ["delivery-0", "delivery-1", "delivery-0"]
