"""The service's gunicorn configuration, with half a second between the last look into the backlog and the close."""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of())

from gevent.monkey import get_original  # noqa: E402

from auth.ops.processes.gunicorn_worker import Listener  # noqa: E402

_Socket = get_original("socket", "socket")
_close = _Socket.close


def _close_slowly(socket):
    if isinstance(socket, Listener):
        get_original("time", "sleep")(0.5)
    _close(socket)


_Socket.close = _close_slowly
