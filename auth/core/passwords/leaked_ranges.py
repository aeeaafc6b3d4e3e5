"""The range API of Have I Been Pwned, which returns all hashes that begin with the same five digits.

It learns 20 bits of the SHA-1. With padding, an observer does not learn the number of results.
"""

import hashlib
import re
import threading
import time
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import requests

from auth.core.logs import ThrottledLog
from auth.core.net import webhook_urls
from auth.core.net.bounded_http import BoundedSession
from auth.core.net.sockets import Deadline, why
from auth.core.passwords.leaked_file import number_of
from auth.core.settings import Settings

_RANGES = "https://api.pwnedpasswords.com/range/"
_TIMEOUT = 1.0  # seconds
_DIGITS = 5
PREFIXES = 1 << 4 * _DIGITS
# A suffix and its number of occurrences; 0 for padding.
_LINE = re.compile(r"([0-9A-Fa-f]{35}):([0-9]{1,12})")
# Per worker: a slow API must not occupy all requests.
_semaphore = threading.BoundedSemaphore(50)
_failure_log = ThrottledLog("leaked_passwords_not_asked")
# For `fetch`: ranges per connection, concurrent connections, tries, and seconds for a connection's ranges.
_BATCH, _CONNECTIONS, _TRIES, _PATIENCE = 64, 32, 4, 100.0


class Unfetched(Exception):
    """The API did not return a range."""


class _NoList(Exception):
    """The answer is not a list of hashes."""


class RangeApi:
    """The API, or the mirror in AUTH_PASSWORD_LEAKED."""

    def __init__(self, settings: Settings) -> None:
        mirror = settings.password_leaked
        self._url = f"{mirror.rstrip('/')}/" if mirror.startswith("http") else _RANGES
        self._allows = webhook_urls.allowed_for_operator(self._url, settings.webhook_private_networks)
        self.failures = 0

    def contains(self, password: str) -> bool:
        """Whether a password has leaked. Without an answer within a second, logs why and returns False."""
        sha1 = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()
        try:
            if not _semaphore.acquire(blocking=False):
                raise _NoList("too many wait for its answer")
            try:
                with Deadline(_TIMEOUT, self._allows), BoundedSession() as session:
                    counts = self._range(session, sha1[:_DIGITS])
            finally:
                _semaphore.release()
        except (requests.RequestException, OSError, _NoList) as error:
            self.failures += 1
            _failure_log.count(reason=_reason(error))
            return False
        return any(suffix == sha1[_DIGITS:] for suffix, _ in counts)

    def fetch(self, prefixes: range, least: int) -> Iterator[int]:
        """Yield the numbers of all hashes with these prefixes that were found `least` times.

        Raises `Unfetched`.
        """
        batches = [prefixes[start : start + _BATCH] for start in range(0, len(prefixes), _BATCH)]
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            try:
                for numbers in pool.map(lambda batch: self._fetch(batch, least), batches):
                    yield from numbers
            finally:
                pool.shutdown(cancel_futures=True)

    def _fetch(self, batch: range, least: int) -> "array[int]":
        for tries_left in reversed(range(_TRIES)):
            numbers, prefix = array("Q"), ""
            try:
                with Deadline(_PATIENCE, self._allows), BoundedSession() as session:
                    for number in batch:
                        prefix = f"{number:0{_DIGITS}X}"
                        counts = self._range(session, prefix)
                        numbers.extend(
                            number_of(prefix + suffix) for suffix, times in counts if times >= least
                        )
                return numbers
            except (requests.RequestException, OSError, _NoList) as error:
                problem = _reason(error)
                if tries_left:
                    time.sleep(2.0 ** (_TRIES - tries_left))
        raise Unfetched(f"{self._url}{prefix}: {problem}")

    def _range(self, session: BoundedSession, prefix: str) -> list[tuple[str, int]]:
        """Return the suffixes of a range, and how often each was found. Raises `_NoList`."""
        response = session.get(self._url + prefix, headers={"Add-Padding": "true"})
        if response.status_code != 200:
            raise _NoList(f"it answered {response.status_code}")
        text = response.content.decode("utf-8-sig", errors="replace")
        lines = [_LINE.fullmatch(line) for line in text.splitlines() if line]
        if not lines or None in lines:
            raise _NoList("its answer is not a list of hashes")
        return [(line[1].upper(), int(line[2])) for line in lines if line and int(line[2])]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _NoList) else why(error)
