"""Mail servers on loopback: a strict one, and one that misbehaves at a chosen stage."""

import base64
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from auth.core.settings.values.urls import mail_address, smtp_server

MAIL_FROM = mail_address("Example <no-reply@example.com>")
USER, PASSWORD = "latchkey", "s3cret/?#@%"
ENCODED_PASSWORD = "s3cret%2F%3F%23%40%25"


class _Controller(Controller):
    def __init__(self, handler: "MailServer", host: str, port: int, **options: Any) -> None:
        super().__init__(handler, hostname=host, port=port, ready_timeout=30, **options)

    def factory(self) -> SMTP:
        return SMTP(self.handler, **self.SMTP_kwargs)

    def _trigger_server(self) -> None:
        # The base class connects to the given port 0, but the system has chosen another one.
        listening: Any = self.server
        self.port = listening.sockets[0].getsockname()[1]
        super()._trigger_server()


class MailServer:
    """Accepts and records mail. `replies` overrides replies by stage (EHLO, MAIL, RCPT, DATA)."""

    _controller_type = _Controller

    def __init__(
        self,
        *,
        tls: "Certificate | None" = None,
        starttls: "Certificate | None" = None,
        password: str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        **options: Any,
    ):
        self.mails: list[EmailMessage] = []
        self.envelopes: list[Any] = []
        self.sessions: list[Any] = []
        self.replies: dict[str, str] = {}
        self._password = password
        options = {"enable_SMTPUTF8": True, "ident": "Test", **options}
        if starttls:
            options |= {"tls_context": starttls.server_context}
        if password:
            options |= {
                "authenticator": self._authenticate,
                "auth_required": True,
                "auth_require_tls": bool(tls or starttls),
            }
        self._controller = self._controller_type(
            self, host=host, port=port, ssl_context=tls.server_context if tls else None, **options
        )

    def __enter__(self) -> Self:
        self._controller.start()
        self.port = self._controller.port
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    def url(
        self, scheme: str = "smtp", host: str = "127.0.0.1", credentials: str = "", options: str = ""
    ) -> str:
        return f"{scheme}://{credentials}{host}:{self.port}{options}"

    def text(self) -> str:
        """Return the plain text of the newest mail."""
        part = self.mails[-1].get_body(("plain",))
        assert part
        return part.get_content()

    @property
    def subjects(self) -> list[str]:
        return [mail["Subject"] for mail in self.mails]

    def _authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        is_right = data == LoginPassword(USER.encode(), (self._password or "").encode())
        return AuthResult(success=is_right, handled=False, auth_data=data)

    # The interface of aiosmtpd handlers.

    async def handle_MAIL(
        self, _server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if "MAIL" not in self.replies:
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return self.replies.get("MAIL", "250 OK")

    async def handle_RCPT(
        self, _server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if "RCPT" not in self.replies:
            envelope.rcpt_tos.append(address)
        return self.replies.get("RCPT", "250 OK")

    async def handle_DATA(self, _server: Any, session: Any, envelope: Any) -> str:
        if "DATA" in self.replies:
            return self.replies["DATA"]
        self.sessions.append(session)
        self.envelopes.append(envelope)
        mail = message_from_bytes(envelope.content.replace(b"\r\n", b"\n"), policy=policy.SMTPUTF8)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return f"250 2.0.0 Ok: queued as {len(self.mails)}"


class _LongLines(SMTP):
    # The limit for AUTH (RFC 4954, section 4).
    line_length_limit = 12_288


class _TokenController(_Controller):
    def factory(self) -> SMTP:
        smtp = _LongLines(self.handler, **self.SMTP_kwargs)
        smtp.command_size_limits["AUTH"] = _LongLines.line_length_limit
        return smtp


class TokenMailServer(MailServer):
    """Takes access tokens by SASL XOAUTH2. `credentials` has the user and token of each try.

    It accepts the tokens in `accepted`; `refusals` are replies instead, for the next tries.
    """

    _controller_type = _TokenController

    def __init__(self, *accepted: str, **options: Any) -> None:
        self.accepted = set(accepted)
        self.refusals: list[str] = []
        self.credentials: list[tuple[str, str]] = []
        super().__init__(auth_exclude_mechanism=["LOGIN", "PLAIN"], auth_require_tls=False, **options)

    async def auth_XOAUTH2(self, server: Any, args: list[str]) -> AuthResult:
        user, token, *rest = base64.b64decode(args[1]).decode().split("\1")
        assert rest == ["", ""]
        token = token.removeprefix("auth=Bearer ")
        self.credentials.append((user.removeprefix("user="), token))
        if self.refusals:
            return AuthResult(success=False, handled=False, message=self.refusals.pop(0))
        if token in self.accepted:
            return AuthResult(success=True)
        # Google's explanation before it refuses.
        assert await server.challenge_auth('{"status": "401", "schemes": "Bearer"}') == b""
        return AuthResult(success=False, handled=False, message="535 5.7.3 Authentication unsuccessful")


class LoginMailServer(MailServer):
    """Takes the password by AUTH LOGIN, and refuses an initial response, as Exchange and older servers do.

    Unless `plain` is None, it offers PLAIN as well, and replies `plain` to that.
    """

    def __init__(self, plain: str | None = None, **options: Any) -> None:
        self._plain = plain
        # The words after each AUTH.
        self.tries: list[list[str]] = []
        excluded = [] if plain else ["PLAIN"]
        super().__init__(password=PASSWORD, auth_exclude_mechanism=excluded, **options)

    async def auth_LOGIN(self, server: Any, args: list[str]) -> Any:
        self.tries.append(args)
        if len(args) > 1:
            return AuthResult(success=False, handled=False, message="501 5.5.4 No initial response, please")
        return await server.auth_LOGIN(server, args)

    async def auth_PLAIN(self, server: Any, args: list[str]) -> AuthResult:
        self.tries.append(args[:1])
        return AuthResult(success=False, handled=False, message=self._plain)


class BadMailServer:
    """Misbehaves at a stage: GREETING, EHLO, AUTH, MAIL, RCPT, DATA, or END, after the mail was sent.

    `close` closes the connection, `hang` is silent, `drip` sends a byte now and then without end (`drip tls`:
    inside a TLS record); `wait` continues when `released` is set.
    """

    STAGES = ("GREETING", "EHLO", "MAIL", "RCPT", "DATA", "END")

    def __init__(self, stage: str, behaviour: str) -> None:
        self._stage = stage
        self._behaviour = behaviour
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        self.taken: list[str] = []
        # `reached` is set when a connection has reached the stage.
        self.reached = threading.Event()
        self.released = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def recover(self) -> None:
        """Behave well from now on."""
        self._stage = "NEVER"

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                self._talk(connection, lines)
            except OSError:
                return  # the client has closed the connection

    def _talk(self, connection: socket.socket, lines: Any) -> None:
        recipient = ""

        def say(stage: str, reply: str) -> bool:
            if stage == self._stage:
                self.reached.set()
                if self._behaviour != "wait" or not self.released.wait(20):
                    self._misbehave(connection)
                    return False
            if stage == "END":  # record it before the client gets the reply
                self.taken.append(recipient)
            connection.sendall(f"{reply}\r\n".encode())
            return True

        going_on = say("GREETING", "220 ready")
        while going_on and (line := lines.readline().decode().strip()):
            verb = line.upper().split()[0]
            if verb == "RCPT":
                recipient = line.partition("<")[2].partition(">")[0]
            if verb == "DATA":
                going_on = say("DATA", "354 go on")
                while going_on and lines.readline() not in (b".\r\n", b""):
                    pass
                going_on = going_on and say("END", "250 taken")
            elif verb == "QUIT":
                return
            else:
                going_on = say(verb, "250-yes\r\n250 AUTH XOAUTH2" if verb == "EHLO" else "250 yes")

    def _misbehave(self, connection: socket.socket) -> None:
        if self._behaviour == "close":
            return
        if self._behaviour == "drip tls":
            connection.sendall(b"\x16\x03\x03\x40\x00")  # a handshake record of 16 KiB
        while not self._over.wait(0.05) and self._stage != "NEVER":
            if self._behaviour.startswith("drip"):
                connection.sendall(b"2")


class Certificate:
    """A self-signed certificate for 127.0.0.1 and localhost, with a key for ECDSA or RSA, valid for hours."""

    def __init__(
        self,
        directory: Path,
        host: str = "localhost",
        address: str = "127.0.0.1",
        is_rsa: bool = False,
        hours: int = 1,
    ) -> None:
        key = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=2))
            .not_valid_after(now + datetime.timedelta(hours=hours))
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address(address))]
                ),
                critical=False,
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.path = directory / f"{host}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        self.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_context.load_cert_chain(self.path)

    @contextmanager
    def trusted(self, monkeypatch: Any) -> Iterator[None]:
        """Make this process trust the certificate, by `SSL_CERT_FILE`."""
        from auth.core.net import sockets

        with monkeypatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", str(self.path))
            sockets.tls.cache_clear()
            yield
        sockets.tls.cache_clear()


def sender(url: str, tokens: Any = None, **timeouts: float):
    """Return a sender for the mail server at a URL."""
    from auth.delivery.senders.smtp import SmtpSender

    return SmtpSender(smtp_server(url), MAIL_FROM, "localhost", tokens, **timeouts)
