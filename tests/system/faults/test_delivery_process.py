"""The delivery process of the service: started, restarted and stopped by the gunicorn master."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial

import httpx
import pytest

from tests.support.outbox import Outbox
from tests.support.processes import CHECKOUT, Service, children_of, is_running, send, wait_until
from tests.support.smtp_server import BadMailServer, MailServer
from tests.support.users import PASSWORD

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture
def outbox(database, parts) -> Outbox:
    return Outbox(database, parts)


def delivery_process(service: Service) -> int:
    (pid,) = wait_until(service.delivery_processes)
    return pid


def sign_up(service: Service, email: str = "dave@example.com") -> None:
    body = {"email": email, "password": PASSWORD}
    response = httpx.post(f"http://127.0.0.1:{service.port}/signup", json=body, timeout=20)
    assert response.status_code == 201


def is_replaced(service: Service, former: int) -> bool:
    pids = service.delivery_processes()
    return len(pids) == 1 and former not in pids


def accepts_connections(service: Service) -> bool:
    try:
        socket.create_connection(("127.0.0.1", service.port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def modules_of(program: str, environment: dict[str, str]) -> set[str]:
    """Return the modules that a Python process has loaded after running a program."""
    command = [sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"]
    whole_environment = {"PATH": os.environ["PATH"], "HOME": "/", **environment}
    return set(subprocess.check_output(command, cwd=CHECKOUT, env=whole_environment, text=True).split())


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


def test_stop_finishes_the_message_in_flight(service, outbox):
    with BadMailServer("END", "wait") as mail, service(AUTH_SMTP_URL=mail.url) as running:
        pid = delivery_process(running)
        id = outbox.write()
        assert mail.reached.wait(30)
        running.process.terminate()
        wait_until(lambda: not accepts_connections(running))
        assert is_running(pid)
        mail.released.set()

        assert running.process.wait(60) == 0
        assert outbox.outcome(id) == "sent"
        assert not is_running(pid)


def test_reloads_by_a_signal_to_all_processes_kill_no_delivery_process(service, outbox):
    """`systemctl kill --signal HUP` sends the signal to all processes."""
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url()) as running:
        for _ in range(4):
            former = delivery_process(running)
            for pid in (former, running.process.pid):
                send(pid, signal.SIGHUP)
            wait_until(partial(is_replaced, running, former))
        id = outbox.write()
        wait_until(lambda: outbox.outcome(id) == "sent")
        assert not [line for line in running.said() if line.startswith("The delivery process")]


def test_sign_up_mail_is_sent_by_a_delivery_process_alone(service, outbox):
    with service(AUTH_DELIVER="false") as running:
        sign_up(running)
        assert running.delivery_processes() == []
        wait_until(lambda: len(children_of(running.process.pid)) == 2)
    assert [row.attempts for row in map(outbox.row, outbox.outcomes())] == [0]
