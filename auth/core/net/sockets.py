"""Outgoing connections that end at a deadline, and TLS that verifies."""

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
from typing import Any, ClassVar, Self

import certifi

NO_ANSWER = "no answer in time"
# Gives up the request's place in the hashing queue. Called here, before each wait for the network, so that
# no caller can forget it.
let_go: ContextVar[Callable[[], object]] = ContextVar("let_go", default=lambda: None)
# Concurrent lookups of names that customers of the operator choose, and documents of clients. A worker has
# ten threads for lookups, and a silent name server occupies one for ten seconds or more. Four remain for the
# operator's names. Names that owners of organisations choose take no thread: see dns_lookups.py.
OPERATORS: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
CUSTOMERS, DOCUMENTS = threading.BoundedSemaphore(3), threading.BoundedSemaphore(3)

# Those of outgoing connections are above: one could be taken before it is bound. Browsers refuse 10080.
_PORTS = range(11_000, 20_000)


class AddressRefused(OSError):
    """The host resolves only to forbidden addresses."""


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
    """Ends connections when the time is up, unlike a socket's timeout, which restarts with each byte."""

    current: ClassVar[ContextVar["Deadline"]] = ContextVar("deadline")

    seconds: float
    # Whether an address may be connected to.
    allows: Callable[[str], bool] | None = None
    # The semaphore for lookups: that of names chosen by others, or by the operator.
    lookups: contextlib.AbstractContextManager[object] = OPERATORS
    has_passed: bool = field(default=False, init=False)
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
        for watched in self._watched:
            watched.close()

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to the first address that answers, `timeout` seconds for each. Raises `OSError`."""
        failure: OSError = TimeoutError()
        for family, kind, protocol, _, address in self.resolve(host, port):
            left = self._ends_at - time.monotonic()
            if left <= 0:
                break
            connection = socket.socket(family, kind, protocol)
            try:
                # Check the address that is actually used: DNS answers may change (DNS rebinding).
                if self.allows and not self.allows(str(address[0])):
                    raise AddressRefused
                connection.settimeout(min(timeout, left))
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
        found: Future[list[Any]] = Future()

        def look_up() -> None:
            try:
                with self.lookups:
                    kind = socket.SOCK_STREAM
                    found.set_result([] if self.has_passed else socket.getaddrinfo(host, port, 0, kind))
            except Exception as error:
                found.set_exception(error)

        threading.Thread(target=look_up, daemon=True).start()
        try:
            return found.result(self._ends_at - time.monotonic())
        except TimeoutError:
            self._end()
            raise

    def watch(self, connection: socket.socket) -> None:
        """Apply the deadline to an existing connection."""
        # Duplicated, because TLS moves the connection's descriptor to another object.
        self._watched.append(socket.socket(fileno=os.dup(connection.fileno())))
        if self.has_passed:
            self._end()

    def _end(self) -> None:
        self.has_passed = True
        for watched in list(self._watched):
            with contextlib.suppress(OSError):
                watched.shutdown(socket.SHUT_RDWR)


@functools.cache
def tls() -> ssl.SSLContext:
    """Trust the system's certificates, and certifi's because small container images have none."""
    context = ssl.create_default_context()
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
        if isinstance(cause, TimeoutError):
            return NO_ANSWER
        if isinstance(cause, socket.gaierror):
            return "its name can't be resolved"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return "the connection was closed"
