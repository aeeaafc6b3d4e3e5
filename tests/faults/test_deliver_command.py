"""Delivery processes: that of the service, and `latchkey deliver`. A killed one loses nothing."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from auth.delivery.attempts import LEASE
from tests.support.cast import PASSWORD
from tests.support.commands import run_command
from tests.support.outbox import Outbox
from tests.support.processes import CHECKOUT, PATIENT_GUNICORN, Service, free_port, wait_until
from tests.support.smtp_server import BadMailServer, Certificate, MailServer

pytestmark = pytest.mark.selection

# Seconds: half of what a mail server may take for a reply, and more than a busy machine needs.
PATIENCE = 5


@pytest.fixture
def outbox(database, parts):
    return Outbox(database, parts)


class Command:
    """A command of `latchkey` that runs in a separate process inside the context."""

    def __init__(self, environment: dict[str, str], *arguments: str, **changes: str) -> None:
        self._output = Path(environment["AUTH_STATE_DIR"]).parent / f"output of {id(self)}"
        everything = {"PATH": os.environ["PATH"], "HOME": "/", **environment, **changes}
        with self._output.open("wb") as output:
            command = [sys.executable, "-m", "auth.commands", *arguments]
            self.process = subprocess.Popen(
                command, cwd=CHECKOUT, env=everything, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        # pytest shows it if the test fails.
        print(self.text())

    def text(self) -> str:
        return self._output.read_text()


def sign_up(service: Service, email: str) -> httpx.Response:
    body = {"email": email, "password": PASSWORD}
    return httpx.post(f"http://127.0.0.1:{service.port}/signup", json=body, timeout=20)


@pytest.fixture
def command(environment):
    return lambda *arguments, **changes: Command(environment, *arguments, **changes)


class TestDeliverCommand:
    def test_deliver_sends_messages_until_sigterm_and_ignores_auth_deliver(self, outbox, command):
        id = outbox.write()
        changes = {"AUTH_DELIVER": "false"}
        with MailServer() as server, command("deliver", AUTH_SMTP_URL=server.url(), **changes) as running:
            wait_until(lambda: outbox.outcome(id) == "sent")
            later = outbox.write()
            wait_until(lambda: outbox.outcome(later) == "sent")
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(30) == 0
            assert json.loads(running.text().splitlines()[-1])["event"] == "delivery_stopped"
            assert len(server.mails) == 2

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_deliver_finishes_the_message_in_flight(self, outbox, command, number):
        id = outbox.write()
        with BadMailServer("END", "wait") as server, command("deliver", AUTH_SMTP_URL=server.url) as running:
            assert server.reached.wait(30)
            another = outbox.write()
            running.process.send_signal(number)
            # The signal has arrived; the process waits for the mail server.
            with pytest.raises(subprocess.TimeoutExpired):
                running.process.wait(0.5)
            server.released.set()
            assert running.process.wait(30) == 0
            assert outbox.outcome(id) == "sent"
            assert outbox.outcome(another) is None or len(server.taken) == 2

    def test_killed_deliver_loses_no_message(self, outbox, command):
        in_flight, waiting = outbox.write(), outbox.sms()
        with (
            BadMailServer("RCPT", "hang") as server,
            command("deliver", AUTH_SMTP_URL=server.url, AUTH_SMS_PROVIDER="console") as running,
        ):
            assert server.reached.wait(30)
            wait_until(lambda: outbox.outcome(waiting) == "sent")
            running.process.kill()
            running.process.wait()
        row = outbox.row(in_flight)
        assert (row.outcome, row.attempts) == (None, 1)
        assert row.secret is not None
        outbox.let_time_pass(LEASE)
        with MailServer() as good, command("deliver", AUTH_SMTP_URL=good.url()):
            wait_until(lambda: outbox.outcome(in_flight) == "sent")
            assert [mail["To"] for mail in good.mails] == ["alice@example.com"]

    def test_deliver_warns_about_channels_without_sender(self, command):
        with command("deliver", AUTH_BASE_URL="https://auth.example.com") as running:
            wait_until(lambda: "Delivering." in running.text())
            assert running.text().splitlines()[:2] == [
                "AUTH_SMTP_URL is not set, and AUTH_BASE_URL is not this machine: messages wait, and expire.",
                "AUTH_SMS_PROVIDER is not set, and AUTH_BASE_URL is not this machine: phone sign-ins are refused."
                " Set it to a provider, or to none.",
            ]

    @pytest.mark.parametrize("setting", ["AUTH_PHONE_ENABLED", "AUTH_SMS_PROVIDER"])
    def test_deliver_does_not_warn_about_sms_when_phones_are_disabled(self, command, setting):
        changes = {setting: "none" if setting == "AUTH_SMS_PROVIDER" else "false"}
        with command("deliver", AUTH_BASE_URL="https://auth.example.com", **changes) as running:
            wait_until(lambda: "Delivering." in running.text())
            assert "AUTH_SMS_PROVIDER" not in running.text()


class TestMailTestCommand:
    @pytest.fixture
    def mail_test(self, make_app):
        def run(address: str, *options: str, **changes: str) -> tuple[int, str]:
            result = run_command(make_app(**changes), "mail-test", address, *options)
            return result.exit_code, result.output

        return run

    def test_mail_test_prints_the_reply_of_the_server(self, mail_test, database):
        with MailServer() as server:
            assert mail_test("Alice@Example.com", AUTH_SMTP_URL=server.url()) == (
                0,
                "Sent to alice@example.com: 127.0.0.1: 250 2.0.0 Ok: queued as 1\n",
            )
            assert server.subjects == ["Test mail from http://localhost:8000"]
        assert database.count("outbox") == 0

    def test_mail_test_sends_each_kind_of_mail(self, mail_test, database):
        with MailServer() as server:
            assert mail_test("alice@example.com", "--all", AUTH_SMTP_URL=server.url())[0] == 0
            assert {"Reset your password", "Your password was changed"} <= set(server.subjects)
            assert len(server.subjects) > 10
            assert (
                mail_test("alice@example.com", "--all", "--language=de", AUTH_SMTP_URL=server.url())[0] == 0
            )
            assert "Ihr Passwort wurde geändert" in server.subjects
            refused = mail_test("alice@example.com", "--language=xx", AUTH_SMTP_URL=server.url())
            assert (refused[0], "xx is not one of de, en, es, fr, zh." in refused[1]) == (2, True)
        assert database.count("outbox") == 0

    def test_mail_test_fails_when_the_mail_is_refused(self, mail_test):
        with MailServer() as server:
            server.replies["RCPT"] = "550 5.1.1 No such user"
            assert mail_test("alice@example.com", AUTH_SMTP_URL=server.url()) == (
                1,
                "Error: Not sent to alice@example.com: RCPT TO 550 5.1.1 No such user\n",
            )

    def test_mail_test_prints_no_password_when_it_cannot_connect(self, mail_test):
        assert mail_test(
            "alice@example.com", AUTH_SMTP_URL=f"smtp://latchkey:s3cret@127.0.0.1:{free_port()}"
        ) == (
            1,
            "Error: Not sent to alice@example.com: can't connect to the mail server: connection refused\n",
        )

    def test_mail_test_fails_without_a_mail_server(self, mail_test):
        assert mail_test("alice@example.com", AUTH_BASE_URL="https://auth.example.com") == (
            1,
            "Error: AUTH_SMTP_URL is not set: there is no mail server.\n",
        )

    def test_mail_test_refuses_an_invalid_address(self, mail_test):
        status, output = mail_test("alice")
        assert status == 2
        assert "must be an email address" in output

    @pytest.mark.parametrize(("trusts", "status"), [(False, 1), (True, 0)])
    def test_mail_test_trusts_the_certificates_of_ssl_cert_file(self, command, tmp_path, trusts, status):
        certificate = Certificate(tmp_path)
        with MailServer(tls=certificate) as server:
            trusted = str(certificate.path) if trusts else ""
            with command(
                "mail-test", "alice@example.com", AUTH_SMTP_URL=server.url("smtps"), SSL_CERT_FILE=trusted
            ) as running:
                assert running.process.wait(30) == status


class TestTheService:
    """gunicorn with its delivery process."""

    @pytest.fixture
    def service(self, environment, tmp_path, database):
        def start(**changes: str) -> Service:
            changes |= {
                "DATABASE_URL": environment["DATABASE_URL"],
                "AUTH_BCRYPT_COST": "4",
                "AUTH_RATE_LIMITS_ENABLED": "false",
            }
            return Service(tmp_path / "var", command=PATIENT_GUNICORN, user=None, **changes)

        return start

    @pytest.mark.parametrize(
        ("stage", "behaviour"), [("GREETING", "close"), ("GREETING", "hang"), ("END", "drip")]
    )
    def test_broken_mail_server_does_not_slow_requests(self, service, outbox, stage, behaviour):
        with BadMailServer(stage, behaviour) as server, service(AUTH_SMTP_URL=server.url) as running:
            for number in range(20):
                began = time.monotonic()
                assert sign_up(running, f"user{number}@example.com").status_code == 201
                assert time.monotonic() - began < PATIENCE
            assert server.reached.wait(30)
            server.recover()
            wait_until(lambda: outbox.end_pauses() or set(outbox.outcomes().values()) == {"sent"})
            assert set(server.taken) == {f"user{number}@example.com" for number in range(20)}

    def test_service_warns_about_channels_without_sender(self, service):
        with service(AUTH_BASE_URL="https://auth.example.com") as running:
            assert running.text().count("AUTH_SMTP_URL is not set") == 1
            assert running.text().count("AUTH_SMS_PROVIDER is not set") == 1

    def test_commands_other_than_deliver_send_no_message(self, outbox, command):
        id = outbox.write()
        with command(
            "mail-test", "alice@example.com", AUTH_SMTP_URL="console", AUTH_DELIVER="true"
        ) as running:
            assert running.process.wait(30) == 0
        assert outbox.row(id).attempts == 0
        assert len(re.findall("^To: ", running.text(), re.MULTILINE)) == 1
