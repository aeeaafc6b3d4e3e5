"""The service's gunicorn configuration, with half a second between the last look into the backlog and the close."""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of())

from gevent.monkey import get_original  # noqa: E402

from auth.ops.processes.gunicorn_worker import Listener  # noqa: E402

_accept = Listener.accept


def _accept_slowly(listener):
    try:
        return _accept(listener)
    except BlockingIOError:
        get_original("time", "sleep")(0.5)
        raise


Listener.accept = _accept_slowly
