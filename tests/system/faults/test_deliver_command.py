"""`latchkey deliver`, which loses no message when it is killed, and `latchkey mail-test`."""

import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from auth.delivery.attempts import LEASE
from tests.support.commands import run_command, start_process
from tests.support.outbox import Outbox
from tests.support.processes import free_port, wait_until
from tests.support.smtp_server import BadMailServer, MailServer


@pytest.fixture
def outbox(database, parts):
    return Outbox(database, parts)


class Command:
    """A command of `latchkey` that runs in a separate process inside the context."""

    def __init__(self, environment: dict[str, str], *arguments: str, **changes: str) -> None:
        self._output = Path(environment["AUTH_STATE_DIR"]).parent / f"output of {id(self)}"
        with self._output.open("wb") as output:
            self.process = start_process(environment | changes, *arguments, stdout=output, stderr=output)

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


@pytest.fixture
def command(environment):
    return lambda *arguments, **changes: Command(environment, *arguments, **changes)


class TestDeliverCommand:
    def test_deliver_finishes_the_message_in_flight_and_ignores_auth_deliver(self, outbox, command):
        id = outbox.write()
        with (
            BadMailServer("END", "wait") as server,
            command("deliver", AUTH_SMTP_URL=server.url, AUTH_DELIVER="false") as running,
        ):
            assert server.reached.wait(30)
            another = outbox.write()
            running.process.send_signal(signal.SIGINT)
            # The signal has arrived; the process waits for the mail server.
            with pytest.raises(subprocess.TimeoutExpired):
                running.process.wait(0.5)
            server.released.set()
            assert running.process.wait(30) == 0
            assert json.loads(running.text().splitlines()[-1])["event"] == "delivery_stopped"
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
        with MailServer() as working, command("deliver", AUTH_SMTP_URL=working.url()):
            wait_until(lambda: outbox.outcome(in_flight) == "sent")
            assert [mail["To"] for mail in working.mails] == ["alice@example.com"]


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
            assert server.subjects == ["Test email from localhost:8000"]
            assert mail_test("alice@example.com", AUTH_SMTP_URL=server.url(), AUTH_BRAND_NAME="Acme")[0] == 0
            assert server.subjects[1] == "Test email from Acme"
            option = "--unit=latchkey-backup.service"
            assert mail_test("alice@example.com", option, AUTH_SMTP_URL=server.url())[0] == 0
            assert server.subjects[2] == f"latchkey-backup.service has failed on {socket.gethostname()}"
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
            result = mail_test("alice@example.com", "--language=xx", AUTH_SMTP_URL=server.url())
            assert (result[0], "There are no emails in xx. Use de, en, es, fr, zh." in result[1]) == (
                2,
                True,
            )
        assert database.count("outbox") == 0

    def test_mail_test_prints_no_password(self, mail_test):
        url = f"smtp://latchkey:s3cret@127.0.0.1:{free_port()}"
        status, output = mail_test("alice@example.com", AUTH_SMTP_URL=url)
        assert (status, "s3cret" in output) == (1, False)


def test_commands_other_than_deliver_send_no_message(outbox, command):
    id = outbox.write()
    with command("mail-test", "alice@example.com", AUTH_SMTP_URL="console", AUTH_DELIVER="true") as running:
        assert running.process.wait(30) == 0
    assert outbox.row(id).attempts == 0
    assert len(re.findall("^To: ", running.text(), re.MULTILINE)) == 1
