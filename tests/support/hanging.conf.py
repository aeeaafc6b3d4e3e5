"""The service's gunicorn configuration, with a bcrypt that does not return for the password of `HANGS`."""

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of())

from gevent.monkey import get_original  # noqa: E402

from auth.core.passwords import bcrypt_hash  # noqa: E402

_hash = bcrypt_hash.hashpw
_lock = get_original("_thread", "allocate_lock")()
_lock.acquire()
HANGS = b"Hanging-Horse-1"


def _hang(password: bytes, setting: bytes) -> bytes:
    if password == HANGS:
        _lock.acquire()
    return _hash(password, setting)


bcrypt_hash.hashpw = _hang
