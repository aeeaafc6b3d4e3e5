"""The service's gunicorn configuration, with a name server that does not answer for names below `SLOW` until a test
lets it: they do not exist. A thread that looks one up waits, as in glibc, and gevent cannot interrupt it.
"""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of())

import _socket  # noqa: E402
import os as _os  # noqa: E402

from tests.support.slow_names import SLOW  # noqa: E402

_find = _socket.getaddrinfo


def _find_or_wait(host, *arguments):
    if str(host).endswith(SLOW):
        # The C module's socket: gevent has replaced Python's.
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        connection.connect(("127.0.0.1", int(_os.environ["SLOW_NAMES_PORT"])))
        connection.send(host.encode() + b"\n")
        connection.recv(1)
        connection.close()
        raise _socket.gaierror(_socket.EAI_NONAME, "Name or service not known")
    return _find(host, *arguments)


_socket.getaddrinfo = _find_or_wait
