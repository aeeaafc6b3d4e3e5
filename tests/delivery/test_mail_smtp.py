"""SMTP with real servers on loopback: strict ones and broken ones."""

import contextlib
import socket
import threading
import time

import pytest

from auth.senders.sender import Refused, TryLater
from tests.support.outbox import message
from tests.support.processes import free_port
from tests.support.server import at_once
from tests.support.smtp_server import (
    ENCODED_PASSWORD,
    PASSWORD,
    USER,
    BadMailServer,
    Certificate,
    MailServer,
    sender,
)

ALICE = "alice@example.com"
CREDENTIALS = f"{USER}:{ENCODED_PASSWORD}@"
# Short timeouts for tests.
IMPATIENT = {"reply_timeout": 0.2, "message_timeout": 0.6}
# Each ends a mail by one timeout only. They leave time for the stages before a broken one.
TIMEOUTS = {"close": {}, "hang": {"reply_timeout": 0.8}, "drip": {"message_timeout": 1.2}}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def trusted(certificate, monkeypatch):
    with certificate.trusted(monkeypatch):
        yield certificate


@pytest.fixture
def server():
    with MailServer() as server:
        yield server


@pytest.fixture
def smtp(server):
    smtp = sender(server.url())
    yield smtp
    smtp.close()


def deliver(url, to=ALICE, **members):
    """Send one mail over a connection of its own, and return the reply."""
    smtp = sender(url)
    try:
        return smtp.send(to, message(**members))
    finally:
        smtp.close()


def refused_with(error, smtp, to=ALICE):
    with pytest.raises(error) as raised:
        smtp.send(to, message())
    smtp.close()
    return raised.value


def tls_server(scheme, certificate):
    return MailServer(tls=certificate) if scheme == "smtps" else MailServer(starttls=certificate)


def connections(server):
    return len({session.peer for session in server.sessions})


class TestMail:
    def test_mail_arrives_with_text_html_headers_and_envelope(self, smtp, server):
        sent = message(text="Hello\n\nhttps://example.com/verify?token=x\n", html="<p>Hello</p>")
        assert smtp.send(ALICE, sent) == "127.0.0.1: 250 2.0.0 Ok: queued as 1"
        (mail,), (envelope,) = server.mails, server.envelopes
        assert {name: value for name, value in mail.items() if name != "Content-Type"} == {
            "From": "Example <no-reply@example.com>",
            "To": ALICE,
            "Subject": "Sign in",
            "Date": "Fri, 02 Jan 2026 03:04:05 +0000",
            # The same in every attempt.
            "Message-ID": f"<{sent.id}@example.com>",
            "Auto-Submitted": "auto-generated",
            "MIME-Version": "1.0",
        }
        assert mail.get_content_type() == "multipart/alternative"
        assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
        assert server.text() == sent.text
        assert mail.get_body(("html",)).get_content().strip() == sent.html
        assert (envelope.mail_from, envelope.rcpt_tos) == ("no-reply@example.com", [ALICE])

    def test_mail_without_html_is_plain_text_that_a_single_dot_does_not_end(self, smtp, server):
        sent = message(text="one\n.\ntwo\n", html=None)
        smtp.send(ALICE, sent)
        assert server.mails[0].get_content_type() == "text/plain"
        assert server.mails[0].get_content() == sent.text

    def test_mail_carries_any_language(self, smtp, server):
        text = "您好\n" + "很长" * 500 + "\n"
        smtp.send(ALICE, message(subject="请确认您的电子邮箱地址", text=text, html="<p>Grüße</p>"))
        assert server.subjects == ["请确认您的电子邮箱地址"]
        assert server.text().splitlines() == text.splitlines()

    def test_mail_is_seven_bit_for_servers_without_8bitmime(self):
        with MailServer(decode_data=False) as server:
            deliver(server.url(), subject="Grüße", text="Grüße\n", html="<p>Grüße</p>")
            assert server.envelopes[0].content.isascii()


class TestHeaders:
    @pytest.mark.parametrize(
        "recipient",
        [
            *("alice@example.com\r\nBcc: eve@example.com", "alice@example.com\nX: y", "a b@example.com"),
            *("alice", "@", ""),
        ],
    )
    def test_invalid_recipient_is_refused(self, smtp, server, recipient):
        assert str(refused_with(Refused, smtp, recipient)) == "the recipient is not an email address"
        assert server.mails == []

    @pytest.mark.parametrize(
        "recipient",
        ["eve@example.com>,<bob@example.com", "a,b@example.com", '"@example.com', "a<b>@example.com"],
    )
    def test_unusual_recipient_is_one_recipient(self, smtp, server, recipient):
        with contextlib.suppress(Refused):
            smtp.send(recipient, message())
        for envelope in server.envelopes:
            assert len(envelope.rcpt_tos) == 1
        for mail in server.mails:
            assert len(mail["To"].addresses) == 1

    def test_subject_cannot_inject_a_header(self, smtp, server):
        with pytest.raises(ValueError, match="linefeed"):
            smtp.send(ALICE, message(subject="Hello\r\nBcc: eve@example.com"))
        assert server.mails == []

    def test_long_address_is_not_folded(self, smtp, server):
        long = "a" * 64 + "@" + ".".join(["b" * 60] * 3) + ".com"
        smtp.send(long, message())
        assert server.envelopes[0].rcpt_tos == [long]
        assert server.mails[0]["To"].addresses[0].addr_spec == long


class TestInternationalAddresses:
    def test_international_address_is_sent_with_smtputf8(self, smtp, server):
        smtp.send("jürgen@example.com", message())
        (envelope,) = server.envelopes
        assert envelope.rcpt_tos == ["jürgen@example.com"]
        assert envelope.smtp_utf8
        assert server.mails[0]["To"] == "jürgen@example.com"

    def test_server_without_smtputf8_is_named_as_the_reason(self):
        with MailServer(enable_SMTPUTF8=False) as server:
            error = refused_with(Refused, sender(server.url()), "jürgen@example.com")
            assert str(error) == "the mail server has no SMTPUTF8, which an address outside ASCII needs"
            assert server.mails == []


class TestReplies:
    @pytest.mark.parametrize(
        ("stage", "reply", "error", "reason", "is_down"),
        [
            ("RCPT", "550 5.1.1 No such user", Refused, "RCPT TO 550 5.1.1 No such user", None),
            ("DATA", "550 5.1.1 No such user", Refused, "DATA 550 5.1.1 No such user", None),
            ("RCPT", "451 4.7.1 Greylisted", TryLater, "RCPT TO 451 4.7.1 Greylisted", False),
            ("DATA", "451 4.7.1 Greylisted", TryLater, "DATA 451 4.7.1 Greylisted", False),
            ("MAIL", "550 5.7.1 Not as this", TryLater, "MAIL FROM 550 5.7.1 Not as this", True),
        ],
    )
    def test_permanent_reply_refuses_a_mail_and_any_other_defers_it(
        self, smtp, server, stage, reply, error, reason, is_down
    ):
        server.replies[stage] = reply
        raised = refused_with(error, smtp)
        assert (str(raised), getattr(raised, "is_down", None)) == (reason, is_down)
        del server.replies[stage]
        smtp.send("bob@example.com", message())
        assert [mail["To"] for mail in server.mails] == ["bob@example.com"]

    def test_reply_is_shortened_and_stripped_of_secrets(self, smtp, server):
        server.replies["DATA"] = "250 saw 123456 \x1b[31m" + "x" * 400
        response = smtp.send(ALICE, message())
        assert response.startswith("127.0.0.1: 250 saw … [31mxxx")
        assert len(response) == 300


class TestTls:
    @pytest.mark.parametrize(("options", "is_encrypted"), [("", True), ("?starttls=never", False)])
    def test_starttls_is_used_when_offered_unless_declined(self, trusted, options, is_encrypted):
        with MailServer(starttls=trusted) as server:
            deliver(server.url(options=options))
            assert (server.sessions[0].ssl is not None) is is_encrypted

    def test_starttls_can_be_required(self, server):
        error = refused_with(TryLater, sender(server.url(options="?starttls=required")))
        assert str(error) == "the mail server offers no STARTTLS, and AUTH_SMTP_URL requires it"
        assert server.mails == []

    def test_smtps_starts_with_tls(self, trusted):
        with MailServer(tls=trusted) as server:
            deliver(server.url("smtps", "localhost"))
            assert len(server.mails) == 1

    @pytest.mark.parametrize("scheme", ["smtps", "smtp"])
    def test_certificate_that_is_untrusted_or_of_another_host_is_refused(
        self, certificate, tmp_path, monkeypatch, scheme
    ):
        with tls_server(scheme, certificate) as server:
            error = refused_with(TryLater, sender(server.url(scheme)))
            assert str(error) == "can't connect to the mail server: TLS: self-signed certificate"
            assert (error.is_down, server.mails) == (True, [])
        other = Certificate(tmp_path, "mail.example.com", "127.0.0.9")
        with other.trusted(monkeypatch), tls_server(scheme, other) as server:
            error = refused_with(TryLater, sender(server.url(scheme)))
            assert "certificate is not valid for '127.0.0.1'" in str(error)
            assert server.mails == []


class TestAuthentication:
    def test_sender_authenticates(self, trusted):
        with MailServer(starttls=trusted, password=PASSWORD) as server:
            deliver(server.url(credentials=CREDENTIALS))
            assert server.sessions[0].auth_data.login == USER.encode()

    @pytest.mark.parametrize(
        ("password", "credentials", "reason"),
        [
            ("another", CREDENTIALS, "535 5.7.8 Authentication credentials invalid"),
            (PASSWORD, "", "530 5.7.0 Authentication required"),
            (None, CREDENTIALS, "SMTP AUTH extension not supported by server."),
        ],
        ids=["wrong password", "no password", "no authentication"],
    )
    def test_failed_authentication_is_reported_without_the_password(
        self, trusted, password, credentials, reason
    ):
        options = {"starttls": trusted, "password": password} if password else {}
        with MailServer(**options) as server:
            error = refused_with(TryLater, sender(server.url(credentials=credentials)))
        assert str(error).endswith(reason)
        assert error.is_down
        assert PASSWORD not in repr(error.__cause__)


class TestBrokenServers:
    @pytest.mark.parametrize("behaviour", ["close", "hang", "drip"])
    def test_broken_server_is_left_at_the_deadline_at_each_stage(self, behaviour):
        expected = {
            "close": "the connection was closed",
            "hang": "no answer in time",
            "drip": "not done within 1.2 s",
        }[behaviour]

        def meet(stage):
            with BadMailServer(stage, behaviour) as server:
                began = time.monotonic()
                error = refused_with(TryLater, sender(server.url, **TIMEOUTS[behaviour]))
                assert time.monotonic() - began < 6, stage
                assert str(error).endswith(expected), stage
                assert error.is_down == (stage in ("GREETING", "EHLO")), stage

        stages = BadMailServer.STAGES
        at_once(len(stages), lambda number: meet(stages[number]))

    @pytest.mark.parametrize("behaviour", ["hang", "drip", "drip tls"])
    def test_broken_tls_handshake_is_left_at_the_deadline(self, behaviour):
        with BadMailServer("GREETING", behaviour) as server:
            began = time.monotonic()
            refused_with(TryLater, sender(server.url.replace("smtp:", "smtps:"), **IMPATIENT))
            assert time.monotonic() - began < 5

    def test_many_silent_addresses_share_one_deadline(self, monkeypatch):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as silent, contextlib.ExitStack() as waiting:
            address = silent.getsockname()
            for _ in range(3):  # fills its backlog, so that it no longer responds
                queued = waiting.enter_context(socket.socket())
                queued.setblocking(False)
                queued.connect_ex(address)
            monkeypatch.setattr(
                socket, "getaddrinfo", lambda *_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 50
            )
            began = time.monotonic()
            error = refused_with(TryLater, sender("smtp://mail.example.com", **IMPATIENT))
            assert time.monotonic() - began < 5
            assert str(error).startswith("can't connect to the mail server: no")

    def test_next_address_is_tried(self, server, monkeypatch):
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
            for port in (free_port(), server.port)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
        deliver("smtp://mail.example.com")
        assert len(server.mails) == 1

    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            (f"smtp://127.0.0.1:{free_port()}", "connection refused"),
            ("smtp://mail.invalid", "its name can't be resolved"),
        ],
        ids=["refused", "unknown"],
    )
    def test_failed_connection_is_reported(self, url, reason):
        error = refused_with(TryLater, sender(url))
        assert (str(error), error.is_down) == (f"can't connect to the mail server: {reason}", True)

    def test_sending_leaves_no_threads_behind(self):
        before = threading.active_count()
        with BadMailServer("GREETING", "close") as server:
            refused_with(TryLater, sender(server.url, **IMPATIENT))
        timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        assert [timer for timer in timers if not timer.finished.is_set()] == []
        assert threading.active_count() <= before + 2


class TestConnections:
    def test_connection_is_replaced_after_fifty_mails(self, smtp, server):
        for number in range(51):
            smtp.send(ALICE, message())
            assert connections(server) == (1 if number < 50 else 2)

    def test_closed_connection_is_replaced(self):
        port = free_port()
        with MailServer(port=port):
            smtp = sender(f"smtp://127.0.0.1:{port}")
            smtp.send(ALICE, message())
        with MailServer(port=port) as server:
            smtp.send("bob@example.com", message())
            smtp.close()
            assert [mail["To"] for mail in server.mails] == ["bob@example.com"]

    def test_idle_connection_is_closed(self, smtp, server, monkeypatch):
        smtp.send(ALICE, message())
        smtp.close_idle()
        smtp.send(ALICE, message())
        assert connections(server) == 1
        # Moves the clock; no row holds this time.
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        smtp.close_idle()
        monkeypatch.undo()
        smtp.send(ALICE, message())
        assert connections(server) == 2
