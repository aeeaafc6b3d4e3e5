"""Refresh tokens: opaque to clients, verified without the database, never stored.

A token is 42 bytes in 56 base64url characters: the session's id (16), its counter (8), and a MAC of both
(18). All bits of the last character are used, so a token has only one spelling.
"""

import base64
import hmac
import re
import time
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from auth.core.tokens import derived_keys

_FORM = re.compile(r"[A-Za-z0-9_-]{56}")
_MAC_LENGTH = 18
_COUNTER_LIMIT = 2**62  # within a Postgres bigint


class InvalidRefreshToken(Exception):
    """This service did not issue the token."""


class RefreshToken(NamedTuple):
    """An authentic token, which may have been used before."""

    session_id: str
    counter: int


class RefreshTokens(derived_keys.Derived):
    """The tokens of users' sessions."""

    purpose = "refresh token"

    def use(self, secret_keys: Sequence[str]) -> None:
        super().use(secret_keys)
        self._secret_keys = secret_keys
        self._next_change = derived_keys.next_change(secret_keys)

    def make(self, session_id: str, counter: int) -> str:
        """Return the token of a session's counter. It stays the same until the key changes."""
        # All workers change keys at the same moment, or concurrent refreshes would get different tokens.
        if time.time() >= self._next_change:
            self.use(self._secret_keys)
        body = uuid.UUID(session_id).bytes + counter.to_bytes(8)
        return base64.urlsafe_b64encode(
            body + hmac.digest(self._keys[0], body, "sha256")[:_MAC_LENGTH]
        ).decode()

    def read(self, token: str) -> RefreshToken:
        """Return the session and the counter of a token. Raises `InvalidRefreshToken`."""
        # urlsafe_b64decode ignores characters outside its alphabet.
        if not _FORM.fullmatch(token):
            raise InvalidRefreshToken
        raw = base64.urlsafe_b64decode(token)
        body, mac = raw[:-_MAC_LENGTH], raw[-_MAC_LENGTH:]
        counter = int.from_bytes(body[16:])
        macs = (hmac.digest(key, body, "sha256")[:_MAC_LENGTH] for key in self._keys)
        is_ours = any(hmac.compare_digest(each, mac) for each in macs)
        if not is_ours or counter >= _COUNTER_LIMIT:
            raise InvalidRefreshToken
        return RefreshToken(str(uuid.UUID(bytes=body[:16])), counter)


class ClientRefreshTokens(RefreshTokens):
    """The tokens of clients' sessions."""

    purpose = "refresh token of a client"


class OrganizationRefreshTokens(RefreshTokens):
    """The tokens of clients' sessions for an organization."""

    purpose = "refresh token of a client for an organization"
