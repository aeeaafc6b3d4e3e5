"""Sockets that can't hold a thread: an end to all waiting on them together, and TLS that verifies."""

import contextlib
import functools
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Self

import certifi


class AddressRefused(OSError):
    """A name leads to addresses that must not be connected to."""


class Deadline:
    """Ends the connections that it watches when the time is up, whatever waits on them.

    A socket's own time-out begins anew with each byte, so that a server which sends one now and then would
    hold us for ever. `allows` says which addresses may be connected to. It is asked of the very address that
    is then used: what a name led to when it was looked up before tells nothing (DNS rebinding). To look a
    name up takes as long as the system's resolver is set to wait: that can't be ended.
    """

    def __init__(self, seconds: float, allows: Callable[[str], bool] | None = None) -> None:
        self.seconds = seconds
        self._allows = allows
        self.has_passed = False
        self._end_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._watched: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._end_at = time.monotonic() + self.seconds
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for watched in self._watched:
                watched.close()
            self._watched.clear()

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to the first of a host's addresses that answers; `timeout` is for each. Raises `OSError`.

        A host may have ten addresses, and all may be silent.
        """
        failure: OSError = TimeoutError()
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
            left = self._end_at - time.monotonic()
            if left <= 0:
                break
            if self._allows and not self._allows(str(address[0])):
                failure = AddressRefused()
                continue
            connection = socket.socket(family, kind, protocol)
            try:
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

    def watch(self, connection: socket.socket) -> None:
        """Watch a connection. By a descriptor of our own: TLS takes the connection's into another object."""
        with self._lock:
            self._watched.append(socket.socket(fileno=os.dup(connection.fileno())))
            if self.has_passed:
                self._end()

    def _pass(self) -> None:
        with self._lock:
            self.has_passed = True
            self._end()

    def _end(self) -> None:
        for watched in self._watched:
            # The other side may have ended it.
            with contextlib.suppress(OSError):
                watched.shutdown(socket.SHUT_RDWR)


@functools.cache
def tls() -> ssl.SSLContext:
    """Return how we verify servers: by the system's certificates (or `SSL_CERT_FILE`), and those of certifi,
    as small images have none.
    """
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def why(error: BaseException) -> str:
    """Return what is at the bottom of a failed connection, in a few words that hold no URL."""
    known: BaseException | None = error
    while known is not None:
        if isinstance(known, ssl.SSLError):
            return (
                f"TLS: {known.verify_message}"
                if isinstance(known, ssl.SSLCertVerificationError)
                else f"TLS: {known.reason or 'handshake failed'}"
            )
        if isinstance(known, AddressRefused):
            return "its address is refused"
        if isinstance(known, TimeoutError):
            return "no answer in time"
        if isinstance(known, socket.gaierror):
            return "its name can't be resolved"
        if isinstance(known, OSError) and known.errno:
            return os.strerror(known.errno).lower()
        known = known.__cause__ or known.__context__
    return "the connection was closed"
