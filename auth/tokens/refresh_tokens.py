"""Refresh tokens: opaque to clients, checked without the database, never stored.

A token is 42 bytes as 56 base64url characters: the session's id (16), its counter (8) and a MAC of both (18).
So a forged or garbled one never reaches the database, and a copy of the database holds no usable token. The
length leaves no spare bits: one token has one spelling.
"""

import base64
import hmac
import re
import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from auth.tokens import keys

_FORM = re.compile(r"[A-Za-z0-9_-]{56}")
_MAC_LENGTH = 18
# A Postgres bigint; a counter that would leave it is not ours.
_COUNTER_LIMIT = 2**62


class InvalidRefreshToken(Exception):
    """Not a refresh token that this service has issued."""


@dataclass(frozen=True)
class RefreshToken:
    """What a genuine token says; whether it is still good is the session's to know."""

    session_id: str
    counter: int


class RefreshTokens:
    """Makes and reads the refresh tokens of one deployment."""

    def __init__(self, secret_keys: Sequence[str]) -> None:
        self._keys = keys.derive(secret_keys, "refresh token")

    def make(self, session_id: str, counter: int) -> str:
        """Return the token for this counter of a session: always the same one."""
        body = uuid.UUID(session_id).bytes + struct.pack(">Q", counter)
        return base64.urlsafe_b64encode(body + self._mac(self._keys[0], body)).decode()

    def read(self, token: str) -> RefreshToken:
        """Return what the token says. Raises `InvalidRefreshToken` when it is not one of ours."""
        # urlsafe_b64decode drops what is not in its alphabet, so the form is matched first.
        if not _FORM.fullmatch(token):
            raise InvalidRefreshToken
        raw = base64.urlsafe_b64decode(token)
        body, mac = raw[:-_MAC_LENGTH], raw[-_MAC_LENGTH:]
        if not any(hmac.compare_digest(self._mac(key, body), mac) for key in self._keys):
            raise InvalidRefreshToken
        (counter,) = struct.unpack(">Q", body[16:])
        if counter >= _COUNTER_LIMIT:
            raise InvalidRefreshToken
        return RefreshToken(str(uuid.UUID(bytes=body[:16])), counter)

    @staticmethod
    def _mac(key: bytes, body: bytes) -> bytes:
        return keys.mac(key, body)[:_MAC_LENGTH]
