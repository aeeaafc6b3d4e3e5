"""Outgoing connections that a deadline bounds, in time and in bytes, and TLS that verifies."""

import contextlib
import errno
import functools
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import certifi

if TYPE_CHECKING:
    from urllib3.util.ssltransport import SSLTransport

NO_ANSWER = "no answer in time"
# Gives up the request's place in the hashing queue. Called here, before each wait for the network, so that
# no caller can forget it.
let_go: ContextVar[Callable[[], object]] = ContextVar("let_go", default=lambda: None)
# Concurrent lookups of names that customers of the operator choose, and documents of clients. A worker has
# ten threads for lookups, and a silent name server occupies one for ten seconds or more. Four remain for the
# operator's names. Names that owners of organizations choose take no thread: see dns_lookups.py.
OPERATORS: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
CUSTOMERS, DOCUMENTS = threading.BoundedSemaphore(3), threading.BoundedSemaphore(3)

# Bytes of an answer as it arrives, with interim responses, framing and TLS. A hook's answer may have 200 KiB,
# and the keys of large providers, with their certificates, have 20.
MOST_BYTES = 256 * 1024
# At most this many bytes are read before other requests run. A shorter read counts as the second number:
# it costs as much.
_MOST_AT_ONCE, _LEAST_AT_ONCE = 4096, 64
# A name can have thousands of addresses, all of them refused.
_MOST_ADDRESSES = 16

# Those of outgoing connections are above: one could be taken before it is bound. Browsers refuse 10080.
_PORTS = range(11_000, 20_000)


class AddressRefused(OSError):
    """The host resolves only to forbidden addresses."""


class AnswerTooLarge(OSError):
    """The server sends more than `MOST_BYTES`."""


def wait_for(semaphore: threading.BoundedSemaphore, seconds: float) -> bool:
    """Acquire a semaphore of network calls. Return whether this succeeded in time."""
    let_go.get()()
    return semaphore.acquire(timeout=max(0.0, seconds))


def is_here(host: str) -> bool:
    """Whether a host is this machine: its address can be bound."""
    with contextlib.suppress(OSError, UnicodeError):
        for family, kind, _, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
            with contextlib.suppress(OSError), socket.socket(family, kind) as bound:
                bound.bind(address)
                return True
    return False


def free_port() -> int:
    """Return a port of this machine that no program uses."""
    while True:
        port = secrets.choice(_PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return port


@dataclass(eq=False)
class Deadline:
    """Ends connections when the time is up, or when the server sends more than `MOST_BYTES`.

    A socket's timeout restarts with each byte.
    """

    current: ClassVar[ContextVar["Deadline"]] = ContextVar("deadline")

    seconds: float
    # Whether an address may be connected to.
    allows: Callable[[str], bool] | None = None
    # The semaphore for lookups of names that the operator has chosen, or customers have.
    lookups: contextlib.AbstractContextManager[object] = OPERATORS
    has_passed: bool = field(default=False, init=False)
    _bytes_left: int = field(default=MOST_BYTES, init=False)
    _watched: list[socket.socket] = field(default_factory=list, init=False)

    def __enter__(self) -> Self:
        let_go.get()()
        self._ends_at = time.monotonic() + self.seconds
        self._timer = threading.Timer(self.seconds, self._end)
        self._timer.daemon = True
        self._timer.start()
        self._token = Deadline.current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        Deadline.current.reset(self._token)
        self._timer.cancel()
        # Otherwise the timer could shut down a descriptor that was closed and reused.
        self._timer.join()
        for connection in self._watched:
            connection.close()

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to the first address that answers, `timeout` seconds for each. Raises `OSError`."""
        failure: OSError = TimeoutError()
        for family, kind, protocol, _, address in self.resolve(host, port)[:_MOST_ADDRESSES]:
            seconds = self._ends_at - time.monotonic()
            if seconds <= 0:
                break
            connection = _BoundedSocket(family, kind, protocol)
            try:
                # Check the address that is actually used: DNS answers may change (DNS rebinding).
                if self.allows and not self.allows(str(address[0])):
                    raise AddressRefused
                connection.settimeout(min(timeout, seconds))
                connection.connect(address)
            except OSError as error:
                connection.close()
                failure = error
                continue
            connection.settimeout(timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.watch(connection)
            return connection
        raise failure

    def resolve(self, host: str, port: int) -> list[Any]:
        """Return the addresses of a host, as `socket.getaddrinfo` does. Raises `OSError`."""
        # The resolver's timeouts are longer, and it cannot be interrupted. A lookup counts until it ends.
        addresses: Future[list[Any]] = Future()

        def look_up() -> None:
            try:
                with self.lookups:
                    kind = socket.SOCK_STREAM
                    addresses.set_result([] if self.has_passed else socket.getaddrinfo(host, port, 0, kind))
            except Exception as error:
                addresses.set_exception(error)

        threading.Thread(target=look_up, daemon=True).start()
        try:
            return addresses.result(self._ends_at - time.monotonic())
        except TimeoutError:
            self._end()
            raise

    def watch(self, connection: socket.socket) -> None:
        """Apply the deadline to an existing connection."""
        # Duplicated, because TLS moves the connection's descriptor to another object.
        self._watched.append(socket.socket(fileno=os.dup(connection.fileno())))
        if self.has_passed:
            self._end()

    def expect_answer(self) -> None:
        """Let a server send `MOST_BYTES` from now on."""
        self._bytes_left = MOST_BYTES

    def count(self, size: int) -> None:
        """Count bytes of an answer. Raises `TimeoutError` or `AnswerTooLarge`."""
        # While bytes keep coming, gevent's recv never waits, and no other greenlet would run.
        time.sleep(0)
        if time.monotonic() >= self._ends_at:
            self._end()
        if self.has_passed:
            raise TimeoutError
        self._bytes_left -= max(size, _LEAST_AT_ONCE)
        if self._bytes_left < 0:
            raise AnswerTooLarge

    def _end(self) -> None:
        self.has_passed = True
        for connection in list(self._watched):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _BoundedSocket(socket.socket):
    """A socket that asks the current deadline at each read of http.client, smtplib or TLS."""

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        data = super().recv(min(bufsize, _MOST_AT_ONCE), flags)
        Deadline.current.get().count(len(data))
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        size = super().recv_into(buffer, min(nbytes or len(buffer), _MOST_AT_ONCE), flags)
        Deadline.current.get().count(size)
        return size


class _BoundedTls(ssl.SSLContext):
    """TLS that reads by `recv` of the socket. OpenSSL would read from the descriptor, and not return while
    session tickets keep coming.
    """

    def wrap_socket(  # type: ignore[override]
        self, sock: socket.socket, *, server_hostname: str | None = None
    ) -> "SSLTransport":
        # Imported late: what needs no TLS saves 4 MiB.
        from urllib3.util.ssltransport import SSLTransport

        try:
            return SSLTransport(sock, self, server_hostname)
        except BaseException:
            sock.close()
            raise


@functools.cache
def tls() -> ssl.SSLContext:
    """Trust the system's certificates, and certifi's because small container images have none."""
    context = _BoundedTls(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags = ssl.create_default_context().verify_flags
    context.load_default_certs()
    context.load_verify_locations(certifi.where())
    return context


def root_certificates() -> str:
    """Return SSL_CERT_FILE or the system's file of root certificates; without either, that of certifi."""
    return ssl.get_default_verify_paths().cafile or certifi.where()


def why(error: BaseException) -> str:
    """Return the cause of a failed connection, without the URL."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"TLS: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS: {cause.reason or 'handshake failed'}"
        if isinstance(cause, AddressRefused):
            return "its address is refused"
        if isinstance(cause, AnswerTooLarge):
            return "its answer is too large"
        if isinstance(cause, TimeoutError):
            return NO_ANSWER
        if isinstance(cause, socket.gaierror):
            return "its name can't be resolved"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return "the connection was closed"
