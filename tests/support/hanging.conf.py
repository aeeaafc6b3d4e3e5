"""The service's gunicorn configuration, with a bcrypt that does not return for the passwords of `HANGS`."""

import runpy

globals().update(
    {name: value for name, value in runpy.run_path("gunicorn.conf.py").items() if name[0] != "_"}
)

import bcrypt  # noqa: E402
from gevent.monkey import get_original  # noqa: E402

_check = bcrypt.checkpw
_sleep = get_original("time", "sleep")
_lock = get_original("_thread", "allocate_lock")()
_lock.acquire()
# Deadlocked, polling, and in an endless loop.
HANGS = {b"Hang-Deadlock-1": _lock.acquire, b"Hang-Polling-1": lambda: _sleep(0.1), b"Hang-Loop-1": int}


def _hang(password: bytes, hashed_password: bytes) -> bool:
    while password in HANGS:
        HANGS[password]()
    return _check(password, hashed_password)


bcrypt.checkpw = _hang
