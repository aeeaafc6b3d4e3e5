"""The service's gunicorn configuration, with a bcrypt that does not return for the password of `HANGS`."""

import runpy

globals().update(
    {name: value for name, value in runpy.run_path("gunicorn.conf.py").items() if name[0] != "_"}
)

import bcrypt  # noqa: E402
from gevent.monkey import get_original  # noqa: E402

_check = bcrypt.checkpw
_lock = get_original("_thread", "allocate_lock")()
_lock.acquire()
HANGS = b"Hanging-Horse-1"


def _hang(password: bytes, hashed_password: bytes) -> bool:
    if password == HANGS:
        _lock.acquire()
    return _check(password, hashed_password)


bcrypt.checkpw = _hang
