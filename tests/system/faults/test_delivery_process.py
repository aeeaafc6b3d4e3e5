"""The delivery process of the service: started, restarted and stopped by the gunicorn master."""

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from functools import partial

import httpx
import pytest

from auth.core.settings.running import is_serving
from auth.delivery.attempts import LEASE
from tests.support.outbox import Outbox
from tests.support.processes import (
    CHECKOUT,
    GUNICORN,
    Service,
    children_of,
    is_running,
    send,
    short_directory,
    wait_until,
)
from tests.support.slow_names import SLOW, SlowNames
from tests.support.smtp_server import BadMailServer, Certificate, MailServer
from tests.support.users import PASSWORD

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


GUNICORN_ELSEWHERE = [sys.executable, *GUNICORN, "--config", str(CHECKOUT / "gunicorn.conf.py")]


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


def write_event(database, parts, url: str) -> None:
    """Write an event for a new webhook."""
    id, variables = str(uuid.uuid4()), {"event_id": "1", "timestamp": "2026-11-29T00:00:00Z", "data": {}}
    database.run(
        "INSERT INTO webhooks (id, url, events, secret) VALUES (%(id)s, %(url)s, '{user.deleted}', %(secret)s)",
        id=id,
        url=url,
        secret=parts.sealer.seal("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id),
    )
    database.run(
        "INSERT INTO outbox (id, channel, kind, recipient, variables, expires_at)"
        " VALUES (gen_random_uuid(), 'webhook', 'user.deleted', %(id)s, %(variables)s, now() + interval '1 h')",
        id=id,
        variables=json.dumps(variables),
    )


def is_replaced(service: Service, former: int) -> bool:
    pids = service.delivery_processes()
    return len(pids) == 1 and former not in pids


def accepts_connections(service: Service) -> bool:
    try:
        socket.create_connection(("127.0.0.1", service.port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def pipes_of(pid: int) -> int:
    paths = [os.path.realpath(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    return sum("pipe:" in path for path in paths)


def modules_of(program: str, environment: dict[str, str]) -> set[str]:
    """Return the modules that a Python process has loaded after running a program."""
    command = [sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"]
    whole_environment = {"PATH": os.environ["PATH"], "HOME": "/", **environment}
    return set(subprocess.check_output(command, cwd=CHECKOUT, env=whole_environment, text=True).split())


def test_program_of_latchkey_deliver_loads_neither_the_application_nor_gevent(environment):
    senders = "from auth.core import settings; channels.senders(settings.load(), object(), object())"
    program = f"import auth.delivery.__main__; from auth.delivery.senders import channels; {senders}"
    delivery = modules_of(program, environment)
    assert {"auth.extensions.webhooks.events", "auth.extensions.social"} <= delivery
    web = {"flask", "werkzeug", "app", "wsgi", "gunicorn", "gevent", "authlib", "redis", "requests"}
    assert "auth.delivery.deliverer" in delivery
    assert delivery.isdisjoint({*web, "prometheus_client"})


def test_stopped_delivery_process_keeps_neither_port_nor_locks_of_a_killed_service():
    """A process that is stopped, as by a debugger, does not end with the master."""
    with short_directory() as directory, Service(directory / "var") as running:
        stopped = delivery_process(running)
        others = {*children_of(running.process.pid)} - {stopped}
        os.kill(stopped, signal.SIGSTOP)
        running.process.kill()
        running.process.wait()
        wait_until(lambda: not any(map(is_running, others)))
        assert is_running(stopped)
        assert not accepts_connections(running)
        assert not is_serving(running.state_dir)

        running.start_again()  # in the same directory, with the same Postgres
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: not is_running(stopped))


def test_killed_delivery_process_is_started_again_and_ends_with_its_master(service, outbox):
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url()) as running:
        killed = delivery_process(running)
        os.kill(killed, signal.SIGKILL)
        id = outbox.write()

        # A claim that Postgres has not run yet takes the message for its lease.
        wait_until(lambda: outbox.outcome(id) == "sent", LEASE + 30)
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


def test_reloads_give_the_delivery_process_new_settings_and_leave_the_master_no_pipes(
    service, outbox, tmp_path
):
    with MailServer() as first, MailServer() as second:
        (tmp_path / ".env").write_text(f"AUTH_SMTP_URL={first.url()}")
        with service(command=GUNICORN_ELSEWHERE, directory=tmp_path) as running:
            former = delivery_process(running)
            id = outbox.write()
            wait_until(lambda: outbox.outcome(id) == "sent")
            (tmp_path / ".env").write_text(f"AUTH_SMTP_URL={second.url()}")
            for _ in range(3):
                running.process.send_signal(signal.SIGHUP)
                wait_until(partial(is_replaced, running, former))
                former = delivery_process(running)
            id = outbox.write()
            wait_until(lambda: outbox.outcome(id) == "sent")
            wait_until(lambda: pipes_of(running.process.pid) == 1)  # the heartbeats of this one
        assert (len(first.mails), len(second.mails)) == (1, 1)


def test_replaced_delivery_process_finishes_its_message_beside_the_new_one(service, outbox):
    with BadMailServer("END", "wait") as mail, service(AUTH_SMTP_URL=mail.url) as running:
        former = delivery_process(running)
        id = outbox.write()
        assert mail.reached.wait(30)
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(running.delivery_processes()) == 2)
        mail.released.set()
        wait_until(partial(is_replaced, running, former))
        assert outbox.outcome(id) == "sent"
        assert mail.taken == ["alice@example.com"]


def test_mail_server_that_never_answers_does_not_keep_the_delivery_process_from_ending(service, outbox):
    with BadMailServer("END", "hang") as mail, service(AUTH_SMTP_URL=mail.url) as running:
        outbox.write()
        assert mail.reached.wait(30)
        running.process.terminate()
        assert running.process.wait(60) == 0
        assert "delivery_stopped" in running.log()  # the master has not killed it


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_mail_is_sent_by_tls_to_a_server_with_a_trusted_certificate(service, outbox, tmp_path, scheme):
    certificate = Certificate(tmp_path)
    kind = {"smtp": {"starttls": certificate}, "smtps": {"tls": certificate}}[scheme]
    with MailServer(host="localhost", **kind) as mail:  # type: ignore[arg-type]
        url = mail.url(scheme, "localhost")
        with service(AUTH_SMTP_URL=url, SSL_CERT_FILE=str(certificate.path)):
            id = outbox.write()
            wait_until(lambda: outbox.outcome(id) == "sent")
        assert scheme == "smtps" or mail.sessions[0].ssl


def test_silent_name_servers_of_webhooks_delay_no_mail(service, outbox, database, parts):
    """Their lookups go on for long after their deliveries have been given up."""
    for number in range(20):
        write_event(database, parts, f"http://receiver{number}{SLOW}/")
    with (
        SlowNames() as names,
        MailServer() as mail,
        service(command=names.command, AUTH_SMTP_URL=mail.url(host="localhost"), **names.settings),
    ):
        wait_until(lambda: len(names.looked_up) > 10)  # more than gevent's threads for lookups
        id = outbox.write()
        wait_until(lambda: outbox.outcome(id) == "sent", 8)
        names.over.set()


def test_sign_up_mail_is_sent_by_a_delivery_process_alone(service, outbox):
    with service(AUTH_DELIVER="false") as running:
        sign_up(running)
        assert running.delivery_processes() == []
        wait_until(lambda: len(children_of(running.process.pid)) == 2)
    assert [row.attempts for row in map(outbox.row, outbox.outcomes())] == [0]
