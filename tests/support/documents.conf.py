"""The service's gunicorn configuration, with more patience, and a network in which a document of a client has a
public address that is forwarded to a port of this machine. The guard against private addresses stays.
"""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of("tests/support/long_timeouts.conf.py"))

import os as _os  # noqa: E402
import socket as _socket  # noqa: E402

from tests.support.documents import HOST, PUBLIC_ADDRESS  # noqa: E402

_find, _connect = _socket.getaddrinfo, _socket.socket.connect


def _find_host(host, *arguments, **options):
    return _find(PUBLIC_ADDRESS if host == HOST else host, *arguments, **options)


def _connect_here(self, address):
    local_address = ("127.0.0.1", int(_os.environ["DOCUMENTS_PORT"]))
    return _connect(self, local_address if address[0] == PUBLIC_ADDRESS else address)


_socket.getaddrinfo = _find_host
setattr(_socket.socket, "connect", _connect_here)  # noqa: B010
