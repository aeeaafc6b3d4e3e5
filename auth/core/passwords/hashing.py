"""Hashing of passwords.

A stored hash is `_SCHEME` and a bcrypt hash. A bare bcrypt hash was imported, or written by version 0.1.0.
Other imported hashes begin with `$wp` (WordPress), `bcrypt_sha256` (Django) or a scheme of legacy.py.
"""

import base64
import hashlib
import hmac
import os
import re
import string
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from auth.core.net.sockets import let_go
from auth.core.passwords import bcrypt_hash, legacy
from auth.core.passwords.legacy import UnusableHash
from auth.core.passwords.threads import THREADS, HashingThreads
from auth.core.settings import Settings
from auth.core.tokens.one_time import SignUpSalts

MAX_BYTES = 1024
_SCHEME = "latchkey1"  # an imported bcrypt hash may be of a password that was cut at 72 bytes
_LEAST_COST = 4
_SALT_BYTES = 16
_SETTING = b"$2b$%02d$%b"  # cost and salt
_FILLING_SALT = b"." * 22
# bcrypt's base64 has the digits of the standard one in another order.
_BASE64 = bytes.maketrans(
    (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode(),
    ("./" + string.ascii_uppercase + string.ascii_lowercase + string.digits).encode(),
)
# bcrypt refuses stray bits in the last characters of salt and digest.
_BCRYPT = re.compile(
    rf"({_SCHEME}|\$wp|bcrypt_sha256|)"
    r"(\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{30}[.CGKOSWaeimquy26])"
)
# An imported hash may take at most four times as long as one of ours, and 64 MiB of memory.
_MOST_TIME, _MOST_MEMORY = 4, 64 * 1024 * 1024
# Without this prefix, a leaked SHA-256 of a longer password would work as the password.
_LABEL = b"latchkey password over 72 bytes: "
# More than the threads, because a request in the queue also waits for the database.
_ADMITTED = 3 * THREADS
# More than can be served within PATIENCE (seconds): a waiting client sends nothing else, but a refused one
# retries.
LONGEST_QUEUE = _ADMITTED + 200
PATIENCE = 5.0


class TooManyWaiting(Exception):
    """The hashing queue is full, moves too slowly, or hangs."""


def normalize(password: str) -> str:
    """Return a password in NFC, as keyboards compose letters differently (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFC", password)


class Passwords:
    """Hashes and checks passwords, which must be in NFC (`normalize`)."""

    def __init__(self, settings: Settings, sign_up_salts: SignUpSalts) -> None:
        self._sign_up_salts = sign_up_salts
        self._cost = settings.bcrypt_cost
        # Checked for users without a password, so that a check takes equally long.
        password, setting = os.urandom(16).hex().encode(), _SETTING % (self._cost, _FILLING_SALT)
        self._dummy_hash = _SCHEME + bcrypt_hash.hashpw(password, setting).decode()
        # Hashes that a log-in does not renew: they have the current scheme and cost, and belong to no
        # sign-up.
        self.lasting_form = re.compile(rf"{_SCHEME}\$2b\${self._cost:02}\$")
        self.threads = HashingThreads()
        self._admission = self.threads.semaphore(_ADMITTED)
        # Requests in the queue or waiting for it, and refused ones. Exact under gevent.
        self.queue_length, self.refusals = 0, 0

    @contextmanager
    def queue(self) -> Iterator[None]:
        """Hold a place in the hashing queue. May be nested. Raises `TooManyWaiting`."""
        if let_go.get() == self._leave:
            yield
            return
        is_admitted = False
        if not self.threads.is_stuck() and self.queue_length < LONGEST_QUEUE:
            self.queue_length += 1
            try:
                is_admitted = self._admission.acquire(timeout=PATIENCE)
            finally:
                if not is_admitted:
                    self.queue_length -= 1
        if not is_admitted:
            self.refusals += 1
            raise TooManyWaiting
        token = let_go.set(self._leave)
        try:
            yield
        finally:
            let_go.get()()
            let_go.reset(token)

    def _leave(self) -> None:
        """Give up the place. The next hash of the request waits for another one."""
        let_go.set(lambda: None)
        self._admission.release()
        self.queue_length -= 1

    def hash(self, password: str, address: str | None = None) -> str:
        """Hash a password, with an `address` for its sign-up.

        Until the first log-in, equal passwords of an address's sign-ups get equal hashes.
        """
        prepared = _inputs(password.encode(), _SCHEME)[0]
        salt = os.urandom(_SALT_BYTES)
        if address:
            salt = self._sign_up_salts.macs(address, "")[0][:_SALT_BYTES]
        setting = _SETTING % (self._cost, base64.b64encode(salt).translate(_BASE64, b"="))
        with self.queue():
            hashed = self.threads.run(lambda: bcrypt_hash.hashpw(prepared, setting)).decode()
        # Mark it with the prefix of another version of bcrypt, which computes the same.
        return _SCHEME + (hashed.replace("$2b$", "$2y$", 1) if address else hashed)

    def check(self, password: str, password_hash: str | None) -> bool:
        """Check a password.

        Takes equally long for a user without one, and at least as long for a foreign hash.
        """
        compared = password_hash or self._dummy_hash
        with self.queue():
            matches = self.threads.run(lambda: self._matches(password.encode(), compared))
        return matches and password_hash is not None

    def stored_form(self, notation: str) -> str:
        """Return a hash of another service in its stored form. Raises `UnusableHash`."""
        try:
            password_hash = legacy.stored_form(notation)
        except ValueError as error:
            raise UnusableHash(f"password_hash is malformed: {error}") from None
        self.check_cost(password_hash)
        return password_hash

    def check_cost(self, password_hash: str) -> None:
        """Raise `UnusableHash` if a hash of another service cannot be checked, or not cheaply enough."""
        match = _BCRYPT.fullmatch(password_hash)
        if match and int(match[3]) < _LEAST_COST:
            raise UnusableHash(f"password_hash is malformed: bcrypt has a cost of at least {_LEAST_COST}")
        if match:
            rounds, memory = float(1 << int(match[3])), 0
        else:
            rounds, memory, _matches = legacy.read(password_hash)
        if (times := rounds / (1 << self._cost)) > _MOST_TIME:
            most = f"at most {_MOST_TIME} are accepted with AUTH_BCRYPT_COST={self._cost}"
            raise UnusableHash(f"password_hash takes as long as {times:.1f} log-ins; {most}")
        if memory > _MOST_MEMORY:
            raise UnusableHash(f"password_hash takes {memory >> 20} MiB; at most 64 MiB are accepted")

    def _matches(self, password: bytes, password_hash: str) -> bool:
        # A longer password is hashed twice, even for an unknown address.
        rounds = len(_inputs(password, _SCHEME)) << self._cost
        match = _BCRYPT.fullmatch(password_hash)
        if match is None:
            began_at, matches = time.thread_time(), False
            # Release 0.2.0 imported short digests, which other passwords match too.
            with suppress(UnusableHash):
                matches = legacy.read(password_hash).matches(password)
            _fill(rounds, time.thread_time() - began_at)
            return matches
        inputs, bcrypt = _inputs(password, match[1]), match[2].encode()
        results = [hmac.compare_digest(bcrypt_hash.hashpw(each, bcrypt), bcrypt) for each in inputs]
        if rounds_left := max(0, rounds - (len(inputs) << int(match[3]))):
            _fill(rounds_left)
        return any(results)


def _fill(rounds: int, foreign_seconds: float = 0.0) -> None:
    """Compute bcrypt for the time of a number of rounds, minus the CPU seconds of another scheme.

    The time of a round is measured meanwhile, because a fixed ratio between schemes was wrong by up to 46 %.
    At cost 10 the check then takes 1 to 4 % longer than one of ours, which itself varies by 4 %.
    """
    rounds_done, began_at = 0, time.thread_time()
    rounds_left: float = max(rounds >> 4, 1 << _LEAST_COST) if foreign_seconds else rounds
    while rounds_left >= (1 << _LEAST_COST) / 2:
        cost = max(int(rounds_left).bit_length() - 1, _LEAST_COST)
        bcrypt_hash.hashpw(b"", _SETTING % (cost, _FILLING_SALT))
        rounds_done += 1 << cost
        # On a coarse clock (gVisor's ticks are 10 ms) both may seem to take no time.
        seconds_per_round = (time.thread_time() - began_at) / rounds_done
        rounds_left = rounds - rounds_done - (foreign_seconds / seconds_per_round if seconds_per_round else 0)


def _inputs(password: bytes, scheme: str) -> list[bytes]:
    """Return the inputs of bcrypt for a password: equally many for both of our schemes, so that times are
    equal."""
    if scheme == "$wp":
        return [base64.b64encode(hmac.digest(b"wp-sha384", password, "sha384"))]
    if scheme == "bcrypt_sha256":
        return [hashlib.sha256(password).hexdigest().encode()]
    if len(password) <= bcrypt_hash.MOST_BYTES:
        return [password]
    if scheme == _SCHEME:
        return 2 * [_digest(_LABEL + password)]
    return [password[: bcrypt_hash.MOST_BYTES], _digest(password)]


def _digest(data: bytes) -> bytes:
    return base64.b64encode(hashlib.sha256(data).digest())
