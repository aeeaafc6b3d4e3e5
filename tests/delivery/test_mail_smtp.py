"""SMTP with real servers on loopback: strict ones and broken ones."""

import contextlib
import socket

import pytest

from auth.core.sender import RefusedByServer, TryLater
from tests.support.awake import awake
from tests.support.cases import cases
from tests.support.hostile_server import HostileServer, byte_by_byte, without_end
from tests.support.outbox import message
from tests.support.processes import free_port
from tests.support.server import at_once
from tests.support.smtp_server import (
    ENCODED_PASSWORD,
    PASSWORD,
    USER,
    BadMailServer,
    Certificate,
    LoginMailServer,
    MailServer,
    sender,
)
from tests.support.users import ALICE

CREDENTIALS = f"{USER}:{ENCODED_PASSWORD}@"
# Short timeouts for tests.
IMPATIENT = {"reply_timeout": 0.2, "message_timeout": 0.6}
# Each behaviour exceeds only one timeout, which leaves time for the stages before the broken one.
TIMEOUTS = {
    "close": ({}, "the connection was closed"),
    "hang": ({"reply_timeout": 1.5}, "no answer in time"),
    "drip": ({"message_timeout": 2.5}, "not done within 2.5 s"),
}


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
    """Send one mail over its own connection, and return the reply."""
    smtp = sender(url)
    try:
        return smtp.send(to, message(**members))
    finally:
        smtp.close()


def error_of(error, smtp, to=ALICE):
    with pytest.raises(error) as raised:
        smtp.send(to, message())
    smtp.close()
    return raised.value


class TestMail:
    def test_mail_arrives_with_text_html_headers_and_envelope(self, smtp, server):
        sent_message = message(text="Hello\n\nhttps://example.com/verify?token=x\n", html="<p>Hello</p>")
        assert smtp.send(ALICE, sent_message) == "127.0.0.1: 250 2.0.0 Ok: queued as 1"
        (mail,), (envelope,) = server.mails, server.envelopes
        expected = {"From": "Example <no-reply@example.com>", "To": ALICE, "Subject": "Sign in"}
        # These headers are the same in every attempt.
        expected |= {
            "Message-ID": f"<{sent_message.id}@example.com>",
            "Date": "Fri, 02 Jan 2026 03:04:05 +0000",
        }
        expected |= {"Auto-Submitted": "auto-generated", "MIME-Version": "1.0"}
        assert {name: value for name, value in mail.items() if name != "Content-Type"} == expected
        types = [part.get_content_type() for part in mail.walk()]
        assert types == ["multipart/alternative", "text/plain", "text/html"]
        assert server.text() == sent_message.text
        assert mail.get_body(("html",)).get_content().strip() == sent_message.html
        assert (envelope.mail_from, envelope.rcpt_tos) == ("no-reply@example.com", [ALICE])

    def test_mail_without_html_is_plain_text_that_a_single_dot_does_not_end(self, smtp, server):
        sent_message = message(text="one\n.\ntwo\n", html=None)
        smtp.send(ALICE, sent_message)
        assert server.mails[0].get_content_type() == "text/plain"
        assert server.mails[0].get_content() == sent_message.text

    def test_mail_carries_any_language_in_seven_bits(self):
        text = "您好\n" + "很长" * 500 + "\n"
        with MailServer(decode_data=False) as server:
            deliver(server.url(), subject="请确认您的电子邮箱地址", text=text, html="<p>Grüße</p>")
            assert server.subjects == ["请确认您的电子邮箱地址"]
            assert server.text().splitlines() == text.splitlines()
            assert server.envelopes[0].content.isascii()


class TestHeaders:
    @cases("recipient", ["a@b.c\r\nBcc: eve@example.com", "a@b.c\nX: y", "a b@example.com", "alice", "@", ""])
    def test_invalid_recipient_is_refused(self, smtp, server, recipient):
        assert str(error_of(RefusedByServer, smtp, recipient)) == "the recipient is not an email address"
        assert server.mails == []

    @cases("recipient", ["eve@b.c>,<bob@b.c", "a,b@example.com", '"@example.com', "a<b>@example.com"])
    def test_unusual_recipient_is_one_recipient(self, smtp, server, recipient):
        with contextlib.suppress(RefusedByServer):
            smtp.send(recipient, message())
        assert {len(envelope.rcpt_tos) for envelope in server.envelopes} <= {1}
        assert {len(mail["To"].addresses) for mail in server.mails} <= {1}

    def test_subject_cannot_inject_a_header(self, smtp, server):
        with pytest.raises(ValueError, match="linefeed"):
            smtp.send(ALICE, message(subject="Hello\r\nBcc: eve@example.com"))
        assert server.mails == []

    def test_long_address_is_not_folded(self, smtp, server):
        long = "a" * 64 + "@" + ".".join(["b" * 60] * 3) + ".com"
        smtp.send(long, message())
        assert server.envelopes[0].rcpt_tos == [long]
        assert server.mails[0]["To"].addresses[0].addr_spec == long

    def test_international_address_needs_smtputf8(self, smtp, server):
        smtp.send("jürgen@example.com", message())
        (envelope,) = server.envelopes
        assert (envelope.rcpt_tos, envelope.smtp_utf8) == (["jürgen@example.com"], True)
        assert server.mails[0]["To"] == "jürgen@example.com"
        with MailServer(enable_SMTPUTF8=False) as server:
            error = error_of(RefusedByServer, sender(server.url()), "jürgen@example.com")
            assert str(error) == "the mail server has no SMTPUTF8, which a non-ASCII address needs"
            assert server.mails == []


class TestReplies:
    @pytest.mark.parametrize(
        ("stage", "reply", "error", "is_down"),
        [
            ("RCPT TO", "550 5.1.1 No such user", RefusedByServer, None),
            ("DATA", "550 5.1.1 No such user", RefusedByServer, None),
            ("RCPT TO", "451 4.7.1 Greylisted", TryLater, False),
            ("DATA", "451 4.7.1 Greylisted", TryLater, False),
            ("MAIL FROM", "550 5.7.1 Not as this", TryLater, True),
        ],
    )
    def test_permanent_reply_refuses_a_mail_and_others_defer_it(
        self, smtp, server, stage, reply, error, is_down
    ):
        server.replies[stage.split()[0]] = reply
        raised = error_of(error, smtp)
        assert (str(raised), getattr(raised, "is_down", None)) == (f"{stage} {reply}", is_down)
        server.replies.clear()
        smtp.send("bob@example.com", message())
        assert [mail["To"] for mail in server.mails] == ["bob@example.com"]

    def test_reply_is_shortened_and_stripped_of_secrets(self, smtp, server):
        server.replies["DATA"] = "250 saw 123456 \x1b[31m" + "x" * 400
        response = smtp.send(ALICE, message())
        assert response.startswith("127.0.0.1: 250 saw … [31mxxx")
        assert len(response) == 300


class TestTls:
    def test_starttls_is_used_when_offered_unless_declined_and_can_be_required(self, trusted, server):
        for options, is_encrypted in (("", True), ("?starttls=never", False)):
            with MailServer(starttls=trusted) as offering:
                deliver(offering.url(options=options))
                assert (offering.sessions[0].ssl is not None) is is_encrypted
        error = error_of(TryLater, sender(server.url(options="?starttls=required")))
        assert str(error).startswith(
            "the mail server offers no STARTTLS; if the network to it is yours alone"
        )
        assert server.mails == []

    def test_smtps_starts_with_tls(self, trusted):
        with MailServer(tls=trusted) as server:
            deliver(server.url("smtps", "localhost"))
            assert len(server.mails) == 1

    @pytest.mark.parametrize("scheme", ["smtps", "smtp"])
    def test_untrusted_or_foreign_certificate_is_refused(self, certificate, tmp_path, monkeypatch, scheme):
        def serve(certificate):
            return MailServer(tls=certificate) if scheme == "smtps" else MailServer(starttls=certificate)

        with serve(certificate) as server:
            error = error_of(TryLater, sender(server.url(scheme)))
            step = "can't connect to the mail server" if scheme == "smtps" else "STARTTLS fails"
            assert str(error) == f"{step}: TLS: self-signed certificate"
            assert (error.is_down, server.mails) == (True, [])
        other = Certificate(tmp_path, "mail.example.com", "127.0.0.9")
        with other.trusted(monkeypatch), serve(other) as server:
            error = error_of(TryLater, sender(server.url(scheme)))
            assert "certificate is not valid for '127.0.0.1'" in str(error)
            assert server.mails == []


class TestAuthentication:
    def test_sender_authenticates(self, trusted):
        with MailServer(starttls=trusted, password=PASSWORD) as server:
            deliver(server.url(credentials=CREDENTIALS))
            assert server.sessions[0].auth_data.login == USER.encode()

    @pytest.mark.parametrize(
        ("plain", "tries"),
        [(None, [["LOGIN"]]), ("504 5.7.4 Unrecognized authentication type", [["PLAIN"], ["LOGIN"]])],
    )
    def test_server_whose_login_takes_no_initial_response_gets_mail(self, trusted, plain, tries):
        with LoginMailServer(plain, starttls=trusted) as server:
            deliver(server.url(credentials=CREDENTIALS))
            assert (len(server.mails), server.sessions[0].auth_data.login) == (1, USER.encode())
            assert server.tries == tries

    def test_wrong_password_at_a_login_is_reported_without_it(self, trusted):
        with LoginMailServer(starttls=trusted) as server:
            url = server.url(credentials=f"{USER}:another@")
            error = error_of(TryLater, sender(url))
            assert (
                str(error) == "can't sign in to the mail server: 535 5.7.8 Authentication credentials invalid"
            )
            assert (error.is_down, error.step, server.mails) == (True, "login", [])
        assert "another" not in repr(error.__cause__)

    @pytest.mark.parametrize(
        ("password", "reason"),
        [
            ("another", "535 5.7.8 Authentication credentials invalid"),
            (None, "SMTP AUTH extension not supported by server."),
        ],
    )
    def test_failed_authentication_is_reported_without_the_password(self, trusted, password, reason):
        with MailServer(starttls=trusted if password else None, password=password) as server:
            error = error_of(TryLater, sender(server.url(credentials=CREDENTIALS)))
        assert str(error).endswith(reason)
        assert error.is_down
        assert PASSWORD not in repr(error.__cause__)


class TestBrokenServers:
    @pytest.mark.parametrize("behaviour", TIMEOUTS)
    def test_broken_server_is_left_at_the_deadline_at_each_stage(self, behaviour):
        timeouts, expected = TIMEOUTS[behaviour]

        def meet(stage):
            for _ in range(5):
                with BadMailServer(stage, behaviour) as server:
                    failure = error_of(TryLater, sender(server.url, **timeouts))
                if server.reached.is_set():
                    break
                # On a machine that stalls, the time may be over before this stage.
            assert str(failure).endswith(expected), stage
            assert failure.is_down == (stage in ("GREETING", "EHLO")), stage

        stages = BadMailServer.STAGES
        at_once(len(stages), lambda number: meet(stages[number]))

    @cases(
        ("greeting", "reason"),
        [
            (without_end(b"", b"220-hello\r\n"), "its answer is too large"),
            (byte_by_byte(b"220-", b"x"), "500 Line too long."),
            (without_end(b"220 ", b"x"), "500 Line too long."),
        ],
    )
    def test_reply_without_an_end_is_left_long_before_the_deadline(self, greeting, reason):
        started_at = awake()
        with HostileServer(greeting=greeting) as hostile, pytest.raises(TryLater) as raised:
            deliver(f"smtp://127.0.0.1:{hostile.port}")
        assert raised.value.reason.endswith(reason)
        assert awake() - started_at < 20

    def test_broken_tls_handshake_is_left_at_the_deadline(self):
        with BadMailServer("GREETING", "drip tls") as server:
            error_of(TryLater, sender(server.url.replace("smtp:", "smtps:"), **IMPATIENT))

    def test_next_address_is_tried(self, server, monkeypatch):
        addresses = (("127.0.0.1", port) for port in (free_port(), server.port))
        address_infos = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: address_infos)
        deliver("smtp://mail.example.com?starttls=offered")
        assert len(server.mails) == 1

    def test_failed_connection_is_reported(self):
        for host, reason in (
            (f"127.0.0.1:{free_port()}", "connection refused"),
            ("mail.invalid", "its name can't be resolved"),
        ):
            error = error_of(TryLater, sender(f"smtp://{host}"))
            assert (str(error), error.is_down) == (f"can't connect to the mail server: {reason}", True)


def test_closed_connection_is_replaced():
    port = free_port()
    with MailServer(port=port):
        smtp = sender(f"smtp://127.0.0.1:{port}")
        smtp.send(ALICE, message())
    with MailServer(port=port) as server:
        smtp.send("bob@example.com", message())
        smtp.close()
        assert [mail["To"] for mail in server.mails] == ["bob@example.com"]
