"""Outgoing requests end in a response or a `requests.RequestException`, however the server misbehaves."""

import socket
import struct
import threading

import pytest
import requests

from auth.core.net.bounded_http import BoundedSession
from auth.core.net.sockets import Deadline

LINGER_NOT = struct.pack("ii", 1, 0)


@pytest.fixture
def resetting_port():
    """Return the port of a server that resets each connection as soon as it is made."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_reset_all, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _reset_all(listener):
    while True:
        try:
            connection = listener.accept()[0]
        except OSError:
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        connection.close()


def test_connection_that_is_reset_at_once_is_a_request_exception(resetting_port):
    # More than half of the resets arrive before connect() returns.
    for _ in range(40):
        with Deadline(5), BoundedSession() as session, pytest.raises(requests.ConnectionError):
            session.post(f"http://127.0.0.1:{resetting_port}/", data=b"body")
