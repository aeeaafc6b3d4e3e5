"""Mail by SMTP (RFC 5321)."""

import base64
import binascii
import contextlib
import email.policy
import ipaddress
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from auth.core.net.networks import is_loopback
from auth.core.net.sockets import Deadline, tls, why
from auth.core.sender import RefusedByServer, RenderedMessage, Sender, TryLater, one_line
from auth.core.settings.values.urls import SmtpServer
from auth.delivery.senders.smtp_tokens import SmtpTokens

# Seconds. The reply timeout applies to connecting too.
REPLY_TIMEOUT = 10
MESSAGE_TIMEOUT = 30
IDLE_TIMEOUT = 20
# Many servers close a connection after 100 messages, and some penalize the sender for it.
_MESSAGES_PER_CONNECTION = 50
# Some servers refuse 8-bit text.
_POLICY = email.policy.SMTP.clone(cte_type="7bit")
_INTERNATIONAL_POLICY = _POLICY.clone(utf8=True)
# Replies to RCPT that require authentication or TLS.
_CLIENT_REFUSED = {530, 535, 538}


@dataclass(eq=False, repr=False)
class SmtpSender(Sender):
    server: SmtpServer
    mail_from: Address
    hostname: str
    tokens: SmtpTokens | None = None
    reply_timeout: float = REPLY_TIMEOUT
    message_timeout: float = MESSAGE_TIMEOUT

    def __post_init__(self) -> None:
        self._idle: list[_MailConnection] = []
        self._lock = threading.Lock()

    def send(self, recipient: str, message: RenderedMessage) -> str:
        mail = compose(self.mail_from, recipient, message)
        with Deadline(self.message_timeout):
            connection = self._reuse() or self._connect()
            try:
                with _as_try_later("lost the mail server", connection, is_down=False):
                    reply = connection.deliver(self.mail_from.addr_spec, recipient, mail)
            except BaseException:
                connection.close()
                raise
        connection.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(connection)
        return message.masked(f"{self.server.host}: {reply}")

    def check(self) -> None:
        """Connect, sign in, and ask whether the server accepts our sender. Raises `TryLater`."""
        with Deadline(self.message_timeout):
            connection = self._connect()
            try:
                with _as_try_later("lost the mail server", connection, is_down=True):
                    connection.begin(self.mail_from.addr_spec)
            finally:
                connection.leave()

    def close_idle(self, idle_timeout: float = IDLE_TIMEOUT) -> None:
        oldest_use = time.monotonic() - idle_timeout
        with self._lock:
            expired = [connection for connection in self._idle if connection.idle_since <= oldest_use]
            self._idle = [connection for connection in self._idle if connection not in expired]
        for connection in expired:
            connection.leave()

    def close(self) -> None:
        self.close_idle(0)

    def _connect(self) -> "_MailConnection":
        """Connect and sign in, once more if the server refuses the access token, which may have been revoked.

        Raises `TryLater`.
        """
        if self.tokens is None:
            return self._open("")
        token = self.tokens.get()
        try:
            return self._open(token)
        except _TokenRefused:
            return self._open(self.tokens.get(refused=token))

    def _open(self, token: str) -> "_MailConnection":
        with _as_try_later("can't connect to the mail server", "connect", is_down=True):
            return _MailConnection(self.server, self.hostname, self.reply_timeout, token)

    def _reuse(self) -> "_MailConnection | None":
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return None
            if connection.sent < _MESSAGES_PER_CONNECTION and connection.is_alive():
                return connection
            connection.leave()


class _TokenRefused(TryLater):
    """The server refuses the access token."""


class _MailConnection(smtplib.SMTP):
    sock: socket.socket

    def __init__(self, server: SmtpServer, hostname: str, timeout: float, token: str = "") -> None:
        self._server = server
        self.step = ""  # the command of the email in progress
        self.sent = 0
        self.idle_since = 0.0
        super().__init__(server.host, server.port, local_hostname=hostname, timeout=timeout)
        try:
            self._encrypt()
            if server.user:
                with _as_try_later("can't sign in to the mail server", "login", is_down=True):
                    self._sign_in(token)
        except BaseException:
            self.close()
            raise

    def begin(self, sender: str, options: Sequence[str] = ()) -> None:
        """Begin an email. Raises `TryLater` if the server does not accept our sender."""
        self.step = "sender"
        code, reply = self.mail(sender, options)
        if code != 250:
            raise TryLater(_reply_line("MAIL FROM", code, reply), self.step, is_down=True)

    def deliver(self, sender: str, recipient: str, mail: EmailMessage) -> str:
        """Send an email and return the reply.

        Raises `RefusedByServer`, `TryLater` and the exceptions of smtplib.
        """
        options = []
        if not recipient.isascii():
            if not self.has_extn("smtputf8"):
                problem = "the mail server has no SMTPUTF8, which a non-ASCII address needs"
                raise RefusedByServer(problem, "recipient")
            options.append("smtputf8")
        self.begin(sender, options)
        self.step = "recipient"
        code, reply = self.rcpt(recipient)
        if code not in (250, 251):
            raise _refusal(self.step, "RCPT TO", code, reply)
        self.step = "data"
        try:
            code, reply = self.data(mail.as_bytes())
        except smtplib.SMTPDataError as error:
            raise _refusal(self.step, "DATA", error.smtp_code, error.smtp_error) from None
        if code != 250:
            raise _refusal(self.step, "DATA", code, reply)
        self.sent += 1
        return f"{code} {reply.decode(errors='replace')}"

    def is_alive(self) -> bool:
        try:
            Deadline.current.get().watch(self.sock)
            return self.noop()[0] == 250
        except (smtplib.SMTPException, OSError):
            return False

    def leave(self) -> None:
        with contextlib.suppress(smtplib.SMTPException, OSError):
            self.putcmd("quit")
        self.close()

    def auth(self, mechanism: str, authobject: Any, *, initial_response_ok: bool = True) -> tuple[int, bytes]:
        # LOGIN is older than initial responses, and some servers refuse one.
        may_answer_first = initial_response_ok and mechanism != "LOGIN"
        return super().auth(mechanism, authobject, initial_response_ok=may_answer_first)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connection = Deadline.current.get().connect(host, port, timeout)
        if self._server.implicit_tls:
            return tls().wrap_socket(connection, server_hostname=host)
        return connection

    def _encrypt(self) -> None:
        server = self._server
        self.ehlo_or_helo_if_needed()
        self.is_encrypted = server.implicit_tls
        if not self.is_encrypted and server.starttls != "never" and self.has_extn("starttls"):
            with _as_try_later("STARTTLS fails", "starttls", is_down=True):
                code, reply = self.starttls(context=tls())
            if code != 220:
                raise TryLater(_reply_line("STARTTLS", code, reply), "starttls", is_down=True)
            self.ehlo()
            self.is_encrypted = True
        if server.starttls == "required" and not self.is_encrypted:
            raise TryLater(
                "the mail server offers no STARTTLS; if the network to it is yours alone, add ?starttls=never"
                " to AUTH_SMTP_URL",
                "starttls",
                is_down=True,
            )

    def _sign_in(self, token: str) -> None:
        """Sign in with an access token (SASL XOAUTH2), or without one with the password of the URL."""
        server = self._server
        # An attacker in the network can hide STARTTLS to get the password.
        if not (self.is_encrypted or server.starttls == "never" or is_loopback(self.sock.getpeername()[0])):
            raise TryLater(
                "the mail server offers no STARTTLS; to send the password without it, add"
                " ?starttls=never to AUTH_SMTP_URL",
                "starttls",
                is_down=True,
            )
        credentials = f"user={server.user}\1auth=Bearer {token}\1\1"
        try:
            if not token:
                self.login(server.user, server.password)
            elif "XOAUTH2" in self.esmtp_features.get("auth", "").split():
                # The server may first explain a failure, and refuses after an empty line.
                self.auth("XOAUTH2", lambda challenge=None: credentials if challenge is None else "")
            else:
                raise TryLater("the mail server offers no XOAUTH2", "login", is_down=True)
        except smtplib.SMTPAuthenticationError as error:
            secrets = token or server.password, base64.b64encode(credentials.encode()).decode()
            reply = one_line(_reply_line("", error.smtp_code, error.smtp_error), *secrets)
            kind = _TokenRefused if token and error.smtp_code == 535 else TryLater
            raise kind(f"can't sign in to the mail server: {reply}", "login", is_down=True) from None
        except binascii.Error:
            problem = "can't sign in to the mail server: its challenge is malformed"
            raise TryLater(problem, "login", is_down=True) from None


def compose(mail_from: Address, recipient: str, message: RenderedMessage) -> EmailMessage:
    """Return an email (RFC 5322). Raises `RefusedByServer` for a recipient that is not an address."""
    local, _, domain = recipient.rpartition("@")
    if not local or not domain or not recipient.isprintable() or " " in recipient:
        raise RefusedByServer("the recipient is not an email address", "recipient")
    mail = EmailMessage(policy=_POLICY if recipient.isascii() else _INTERNATIONAL_POLICY)
    mail["From"] = mail_from
    mail["To"] = Address(username=local, domain=domain)
    mail["Subject"] = message.subject
    mail["Date"] = format_datetime(message.created_at)
    mail["Message-ID"] = f"<{message.id}@{mail_from.domain}>"
    # Prevents vacation replies (RFC 3834).
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text)
    if message.html is not None:
        mail.add_alternative(message.html, subtype="html")
    return mail


def hostname_for(host: str) -> str:
    """Return the argument of EHLO: a host name, or an address literal (RFC 5321, section 4.1.3)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[IPv6:{address}]" if address.version == 6 else f"[{address}]"


@contextlib.contextmanager
def _as_try_later(problem: str, at: "_MailConnection | str", *, is_down: bool) -> Iterator[None]:
    """Raise errors as `TryLater` with a step, or with the step that a connection has reached."""
    deadline = Deadline.current.get()
    try:
        yield
    except (smtplib.SMTPException, OSError, UnicodeError) as error:
        if isinstance(error, smtplib.SMTPResponseException):
            reason, is_down = _reply_line("", error.smtp_code, error.smtp_error), True
        elif deadline.has_passed:
            reason = f"not done within {deadline.seconds} s"
        elif isinstance(error, smtplib.SMTPNotSupportedError):
            reason = str(error)
        else:
            reason = why(error)
        step = at if isinstance(at, str) else at.step
        if step == "connect":
            kinds = {socket.gaierror: "resolve", ssl.SSLError: "tls"}
            step = next((name for kind, name in kinds.items() if isinstance(error, kind)), step)
        raise TryLater(f"{problem}: {reason}", step, is_down=is_down) from error


def _refusal(step: str, stage: str, code: int, reply: bytes | str) -> RefusedByServer | TryLater:
    reason = _reply_line(stage, code, reply)
    if code >= 500 and code not in _CLIENT_REFUSED:
        return RefusedByServer(reason, step)
    return TryLater(reason, step, is_down=code in _CLIENT_REFUSED)


def _reply_line(stage: str, code: int, reply: bytes | str) -> str:
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return f"{stage} {code} {text}".strip()
