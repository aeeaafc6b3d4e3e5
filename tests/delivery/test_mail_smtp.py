"""Mail by SMTP: to real servers on loopback, which are strict, or broken."""

import contextlib
import socket
import threading
import time

import pytest

from auth.delivery.senders import Refused, TryLater
from tests.support.outbox import message
from tests.support.processes import free_port
from tests.support.smtp_server import ENCODED_PASSWORD, PASSWORD, USER, BadMailServer, Certificate, MailServer, sender

ALICE = "alice@example.com"
CREDENTIALS = f"{USER}:{ENCODED_PASSWORD}@"
# Time-outs that tests have the patience for.
IMPATIENT = {"reply_timeout": 0.2, "message_timeout": 0.6}


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


def refused_with(error, smtp, to=ALICE, **members):
    with pytest.raises(error) as raised:
        smtp.send(to, message(**members))
    smtp.close()
    return raised.value


def tls_server(kind, certificate):
    """Return a server with TLS from the start (smtps), or by STARTTLS (smtp)."""
    return MailServer(tls=certificate) if kind == "smtps" else MailServer(starttls=certificate)


class TestAMail:
    def test_it_arrives(self, smtp, server):
        sent = message(text="Hello\n\nhttps://example.com/verify?token=x\n", html="<p>Hello</p>")
        assert smtp.send(ALICE, sent) == "127.0.0.1: 250 2.0.0 Ok: queued as 1"
        (mail,) = server.mails
        assert {name: value for name, value in mail.items() if name != "Content-Type"} == {
            "From": "Example <no-reply@example.com>",
            "To": ALICE,
            "Subject": "Sign in",
            "Date": "Fri, 02 Jan 2026 03:04:05 +0000",
            "Message-ID": f"<{sent.id}@example.com>",
            "Auto-Submitted": "auto-generated",
            "MIME-Version": "1.0",
        }
        assert mail.get_content_type() == "multipart/alternative"
        assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
        assert server.text() == sent.text
        assert mail.get_body(("html",)).get_content().strip() == sent.html

    def test_it_goes_from_and_to_whom_its_headers_name(self, smtp, server):
        smtp.send(ALICE, message())
        (envelope,) = server.envelopes
        assert (envelope.mail_from, envelope.rcpt_tos) == ("no-reply@example.com", [ALICE])

    def test_it_is_plain_text_alone_where_there_is_no_html(self, smtp, server):
        smtp.send(ALICE, message(html=None))
        assert server.mails[0].get_content_type() == "text/plain"

    def test_it_says_anything_in_any_language(self, smtp, server):
        sent = message(subject="请确认您的电子邮箱地址", text="您好\n" + "很长" * 500 + "\n", html="<p>Grüße</p>")
        smtp.send(ALICE, sent)
        (mail,) = server.mails
        assert mail["Subject"] == sent.subject
        assert server.text().splitlines() == sent.text.splitlines()

    def test_it_is_seven_bits_for_servers_that_know_no_more(self):
        with MailServer(decode_data=False) as server:
            smtp = sender(server.url())
            smtp.send(ALICE, message(subject="Grüße", text="Grüße\n", html="<p>Grüße</p>"))
            smtp.close()
            assert server.envelopes[0].content.isascii()

    def test_a_line_of_a_dot_does_not_end_it(self, smtp, server):
        sent = message(text="one\n.\ntwo\n", html=None)
        smtp.send(ALICE, sent)
        assert server.mails[0].get_content() == sent.text

    def test_its_id_stays_the_same_when_it_is_tried_again(self, smtp, server):
        sent = message()
        for _ in range(2):
            smtp.send(ALICE, sent)
        assert len({mail["Message-ID"] for mail in server.mails}) == 1


class TestHeaders:
    @pytest.mark.parametrize("recipient", ["alice@example.com\r\nBcc: eve@example.com", "alice@example.com\nX: y", "a b@example.com", "alice", "@", ""])
    def test_a_recipient_that_is_no_address_is_refused(self, smtp, server, recipient):
        assert str(refused_with(Refused, smtp, recipient)) == "the recipient is no email address"
        assert server.mails == []

    @pytest.mark.parametrize("recipient", ["eve@example.com>,<bob@example.com", "a,b@example.com", '"@example.com', "a<b>@example.com"])
    def test_an_odd_recipient_is_one_recipient(self, smtp, server, recipient):
        with contextlib.suppress(Refused):
            smtp.send(recipient, message())
        for envelope in server.envelopes:
            assert len(envelope.rcpt_tos) == 1
        for mail in server.mails:
            assert len(mail["To"].addresses) == 1

    def test_a_subject_can_not_become_a_header(self, smtp, server):
        with pytest.raises(ValueError, match="linefeed"):
            smtp.send(ALICE, message(subject="Hello\r\nBcc: eve@example.com"))
        assert server.mails == []

    def test_a_long_address_stays_whole(self, smtp, server):
        long = "a" * 64 + "@" + ".".join(["b" * 60] * 3) + ".com"
        smtp.send(long, message())
        assert server.envelopes[0].rcpt_tos == [long]
        assert server.mails[0]["To"].addresses[0].addr_spec == long


class TestAddressesOutsideAscii:
    def test_they_are_written_to_where_the_server_takes_them(self, smtp, server):
        smtp.send("jürgen@example.com", message())
        (envelope,) = server.envelopes
        assert envelope.rcpt_tos == ["jürgen@example.com"]
        assert envelope.smtp_utf8
        assert server.mails[0]["To"] == "jürgen@example.com"

    def test_where_it_does_not_the_reason_is_clear(self):
        with MailServer(enable_SMTPUTF8=False) as server:
            error = refused_with(Refused, sender(server.url()), "jürgen@example.com")
            assert str(error) == "the mail server has no SMTPUTF8, which an address outside ASCII needs"
            assert server.mails == []


class TestRefusals:
    @pytest.mark.parametrize("stage", ["RCPT", "DATA"])
    def test_a_permanent_one_is_final(self, smtp, server, stage):
        server.replies[stage] = "550 5.1.1 No such user"
        assert str(refused_with(Refused, smtp)) == f"{'RCPT TO' if stage == 'RCPT' else 'DATA'} 550 5.1.1 No such user"

    @pytest.mark.parametrize("stage", ["RCPT", "DATA"])
    def test_a_temporary_one_is_not(self, smtp, server, stage):
        server.replies[stage] = "451 4.7.1 Greylisted"
        error = refused_with(TryLater, smtp)
        assert "451 4.7.1 Greylisted" in str(error)
        assert not error.is_down

    def test_one_of_the_sender_is_about_us_and_not_about_this_mail(self, smtp, server):
        server.replies["MAIL"] = "550 5.7.1 You may not send as this"
        error = refused_with(TryLater, smtp)
        assert str(error) == "MAIL FROM 550 5.7.1 You may not send as this"
        assert error.is_down

    def test_the_next_mail_is_sent_all_the_same(self, smtp, server):
        server.replies["RCPT"] = "550 5.1.1 No such user"
        refused_with(Refused, smtp)
        del server.replies["RCPT"]
        smtp.send("bob@example.com", message())
        assert [mail["To"] for mail in server.mails] == ["bob@example.com"]

    def test_what_a_server_says_is_kept_short_and_without_the_secrets(self, smtp, server):
        server.replies["DATA"] = "250 saw 123456 \x1b[31m" + "x" * 400
        response = smtp.send(ALICE, message())
        assert response.startswith("127.0.0.1: 250 saw … [31mxxx")
        assert len(response) == 300


class TestTls:
    def test_starttls_is_used_where_it_is_offered(self, trusted):
        with MailServer(starttls=trusted) as server:
            smtp = sender(server.url())
            smtp.send(ALICE, message())
            smtp.close()
            assert server.sessions[0].ssl is not None

    def test_smtps_begins_with_tls(self, trusted):
        with MailServer(tls=trusted) as server:
            smtp = sender(server.url("smtps", "localhost"))
            smtp.send(ALICE, message())
            smtp.close()
            assert len(server.mails) == 1

    @pytest.mark.parametrize("kind", ["smtps", "smtp"])
    def test_a_certificate_that_nobody_vouches_for_is_refused(self, certificate, kind):
        with tls_server(kind, certificate) as server:
            error = refused_with(TryLater, sender(server.url(kind)))
            assert str(error) == "can't connect to the mail server: TLS: self-signed certificate"
            assert error.is_down
            assert server.mails == []

    @pytest.mark.parametrize("kind", ["smtps", "smtp"])
    def test_a_certificate_of_another_host_is_refused(self, tmp_path, monkeypatch, kind):
        other = Certificate(tmp_path, "mail.example.com", "127.0.0.9")
        with other.trusted(monkeypatch), tls_server(kind, other) as server:
            error = refused_with(TryLater, sender(server.url(kind)))
            assert "certificate is not valid for '127.0.0.1'" in str(error)
            assert server.mails == []

    def test_starttls_can_be_required(self, server):
        error = refused_with(TryLater, sender(server.url(options="?starttls=required")))
        assert str(error) == "the mail server offers no STARTTLS, and AUTH_SMTP_URL requires it"
        assert server.mails == []

    def test_starttls_can_be_declined(self, certificate):
        with MailServer(starttls=certificate) as server:
            smtp = sender(server.url(options="?starttls=never"))
            smtp.send(ALICE, message())
            smtp.close()
            assert server.sessions[0].ssl is None


class TestAuthentication:
    def test_it_signs_in(self, trusted):
        with MailServer(starttls=trusted, password=PASSWORD) as server:
            smtp = sender(server.url(credentials=CREDENTIALS))
            smtp.send(ALICE, message())
            smtp.close()
            assert server.sessions[0].auth_data.login == USER.encode()

    def test_a_wrong_password_is_told_without_it(self, trusted):
        with MailServer(starttls=trusted, password="another") as server:
            error = refused_with(TryLater, sender(server.url(credentials=CREDENTIALS)))
            assert str(error) == "can't connect to the mail server: 535 5.7.8 Authentication credentials invalid"
            assert error.is_down
            assert PASSWORD not in repr(error.__cause__)

    def test_a_server_that_wants_a_password_makes_mail_wait(self, trusted):
        with MailServer(starttls=trusted, password=PASSWORD) as server:
            error = refused_with(TryLater, sender(server.url()))
            assert "530 5.7.0 Authentication required" in str(error)
            assert error.is_down

    def test_a_server_without_authentication_is_told(self, server):
        error = refused_with(TryLater, sender(server.url(credentials=CREDENTIALS)))
        assert str(error) == "can't connect to the mail server: SMTP AUTH extension not supported by server."


class TestBrokenServers:
    @pytest.mark.parametrize("behaviour", ["close", "hang", "drip"])
    @pytest.mark.parametrize("stage", BadMailServer.STAGES)
    def test_they_hold_nobody(self, stage, behaviour):
        with BadMailServer(stage, behaviour) as server:
            began = time.monotonic()
            error = refused_with(TryLater, sender(server.url, **IMPATIENT))
            assert time.monotonic() - began < 1.5
            expected = {"close": "the connection was closed", "hang": "no answer in time", "drip": "not done within 0.6 s"}[behaviour]
            assert str(error).endswith(expected)
            assert error.is_down == (stage in ("GREETING", "EHLO"))

    @pytest.mark.parametrize("behaviour", ["hang", "drip", "drip tls"])
    def test_neither_in_the_middle_of_tls(self, behaviour):
        with BadMailServer("GREETING", behaviour) as server:
            began = time.monotonic()
            refused_with(TryLater, sender(server.url.replace("smtp:", "smtps:"), **IMPATIENT))
            assert time.monotonic() - began < 1.5

    def test_neither_do_many_addresses_that_are_all_silent(self, monkeypatch):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as silent, contextlib.ExitStack() as waiting:
            address = silent.getsockname()
            for _ in range(3):  # until its queue is full, and nobody is answered any more
                queued = waiting.enter_context(socket.socket())
                queued.setblocking(False)
                queued.connect_ex(address)
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 10)
            began = time.monotonic()
            error = refused_with(TryLater, sender("smtp://mail.example.com", **IMPATIENT))
            assert time.monotonic() - began < 1
            assert str(error).startswith("can't connect to the mail server: no")

    def test_the_next_address_is_tried(self, server, monkeypatch):
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in (free_port(), server.port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
        smtp = sender("smtp://mail.example.com")
        smtp.send(ALICE, message())
        smtp.close()
        assert len(server.mails) == 1

    def test_nobody_there_is_told(self):
        error = refused_with(TryLater, sender(f"smtp://127.0.0.1:{free_port()}"))
        assert (str(error), error.is_down) == ("can't connect to the mail server: connection refused", True)

    def test_a_name_that_does_not_exist_is_told(self):
        error = refused_with(TryLater, sender("smtp://mail.invalid"))
        assert (str(error), error.is_down) == ("can't connect to the mail server: its name can't be resolved", True)

    def test_no_thread_is_left_behind(self):
        before = threading.active_count()
        with BadMailServer("GREETING", "close") as server:
            refused_with(TryLater, sender(server.url, **IMPATIENT))
        assert [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer) and not thread.finished.is_set()] == []
        assert threading.active_count() <= before + 2


class TestConnections:
    def test_one_serves_several_mails(self, smtp, server):
        for _ in range(3):
            smtp.send(ALICE, message())
        assert len({session.peer for session in server.sessions}) == 1

    def test_one_is_enough_for_fifty(self, smtp, server):
        for _ in range(51):
            smtp.send(ALICE, message())
        assert len({session.peer for session in server.sessions}) == 2

    def test_one_that_the_server_has_ended_is_replaced(self):
        port = free_port()
        with MailServer(port=port):
            smtp = sender(f"smtp://127.0.0.1:{port}")
            smtp.send(ALICE, message())
        with MailServer(port=port) as server:
            smtp.send("bob@example.com", message())
            smtp.close()
            assert [mail["To"] for mail in server.mails] == ["bob@example.com"]

    def test_an_idle_one_is_given_back_in_time(self, smtp, server, monkeypatch):
        smtp.send(ALICE, message())
        smtp.close_idle()
        smtp.send(ALICE, message())
        assert len({session.peer for session in server.sessions}) == 1
        # A clock that has gone on; there is no row that holds it.
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        smtp.close_idle()
        monkeypatch.undo()
        smtp.send(ALICE, message())
        assert len({session.peer for session in server.sessions}) == 2
