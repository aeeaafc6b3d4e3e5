"""Derives keys from `AUTH_SECRET_KEY` for each purpose (HKDF, RFC 5869), and seals with them."""

import base64
import hashlib
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_ID_LENGTH = 4
_NONCE_LENGTH = 12
_TIMED = re.compile(r"(.+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", re.DOTALL)
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


class CannotOpen(Exception):
    """The key is gone, or the ciphertext belongs to another row or was changed."""


class UnknownKey(CannotOpen):
    """Another process may have the key."""


def parse_time(text: str) -> float:
    """Return Unix seconds. Raises `ValueError`."""
    return datetime.strptime(text, _TIME_FORMAT).replace(tzinfo=UTC).timestamp()


def format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(_TIME_FORMAT)


def split_time(secret_key: str) -> tuple[str, float]:
    """Split `secret@2026-11-22T00:00:00Z` into secret and the start of its use, or 0. Raises `ValueError`."""
    match = _TIMED.fullmatch(secret_key)
    return (match[1], parse_time(match[2])) if match else (secret_key, 0.0)


def index_in_use(times: Sequence[float]) -> int:
    """Return the position of the key to use now: the latest active one, else the earliest."""
    now = time.time()
    past = [moment for moment in times if moment <= now]
    return times.index(max(past) if past else min(times))


def next_change(secret_keys: Sequence[str]) -> float:
    """Return the time of the next change of keys, or infinity."""
    now = time.time()
    return min((moment for _, moment in map(split_time, secret_keys) if moment > now), default=math.inf)


def derive(secret_keys: Sequence[str], purpose: str) -> tuple[bytes, ...]:
    """Return 32-byte keys. The first one seals and signs; all open and verify."""
    secrets = [split_time(key) for key in secret_keys]
    first = index_in_use([moment for _, moment in secrets]) if secrets else 0
    return tuple(
        HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"latchkey {purpose}".encode()).derive(
            secret.encode()
        )
        for secret, _ in [*secrets[first : first + 1], *secrets[:first], *secrets[first + 1 :]]
    )


def key_id(key: bytes) -> bytes:
    """Return the id that begins each row sealed with a derived key."""
    return hashlib.sha256(key).digest()[:_KEY_ID_LENGTH]


class Derived:
    """Keys of one purpose, derived from `AUTH_SECRET_KEY`."""

    purpose = ""

    def __init__(self, secret_keys: Sequence[str]) -> None:
        self.use(secret_keys)

    def use(self, secret_keys: Sequence[str]) -> None:
        self._keys = derive(secret_keys, self.purpose)


class Sealer(Derived):
    """Encrypts columns with AES-256-GCM. The first key seals, all open.

    The row's id is associated data, so a ciphertext works in its row only.
    """

    purpose = "outbox"

    def use(self, secret_keys: Sequence[str]) -> None:
        super().use(secret_keys)
        self._ciphers = {key_id(key): AESGCM(key) for key in reversed(self._keys)}
        self.newest = key_id(self._keys[0])

    def seal(self, plaintext: str, row_id: str) -> bytes:
        """Return key id, nonce and ciphertext."""
        nonce, newest = os.urandom(_NONCE_LENGTH), self.newest
        return newest + nonce + self._ciphers[newest].encrypt(nonce, plaintext.encode(), row_id.encode())

    def open(self, sealed: bytes, row_id: str) -> str:
        """Return the plaintext of a row's column. Raises `CannotOpen`."""
        cipher = self._ciphers.get(sealed[:_KEY_ID_LENGTH])
        nonce = sealed[_KEY_ID_LENGTH : _KEY_ID_LENGTH + _NONCE_LENGTH]
        if cipher is None:
            raise UnknownKey("its key is not among AUTH_SECRET_KEY")
        try:
            return cipher.decrypt(nonce, sealed[_KEY_ID_LENGTH + _NONCE_LENGTH :], row_id.encode()).decode()
        except InvalidTag:
            raise CannotOpen("it is damaged, or belongs to another row") from None

    def seal_json(self, members: Mapping[str, object], row_id: str) -> bytes:
        return self.seal(json.dumps(members), row_id)

    def open_json(self, sealed: bytes | memoryview, row_id: str) -> dict[str, Any]:
        try:
            return json.loads(self.open(bytes(sealed), row_id))
        except ValueError:
            raise CannotOpen("it is not JSON") from None

    def seal_for_url(self, members: Mapping[str, object], row_id: str) -> str:
        return base64.urlsafe_b64encode(self.seal_json(members, row_id)).rstrip(b"=").decode()

    def open_from_url(self, text: str, row_id: str) -> dict[str, Any]:
        """Return the members that `seal_for_url` sealed. Raises `CannotOpen`."""
        try:
            return self.open_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), row_id)
        except ValueError:
            raise CannotOpen("it is not base64url") from None
