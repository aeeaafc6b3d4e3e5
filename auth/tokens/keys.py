"""Keys, derived from `AUTH_SECRET_KEY` for each purpose (HKDF, RFC 5869), and sealing with them."""

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_ID_LENGTH = 4
_NONCE_LENGTH = 12


class CannotOpen(Exception):
    """The key is gone, or the ciphertext belongs to another row or was changed."""


class UnknownKey(CannotOpen):
    """Another process may have the key."""


def derive(secret_keys: Sequence[str], purpose: str) -> tuple[bytes, ...]:
    """Return 32-byte keys. The first one seals and signs; all open and verify."""
    return tuple(
        HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"latchkey {purpose}".encode()).derive(
            secret.encode()
        )
        for secret in secret_keys
    )


def mac(key: bytes, message: bytes) -> bytes:
    started = _hmac(key).copy()
    started.update(message)
    return started.finalize()


# Starting an HMAC takes longer than finishing it: 3 % of a refresh.
@functools.cache
def _hmac(key: bytes) -> HMAC:
    return HMAC(key, hashes.SHA256())


class Sealer:
    """Encrypts columns with AES-256-GCM. The row's id is associated data, so ciphertexts cannot be moved."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = {hashlib.sha256(key).digest()[:_KEY_ID_LENGTH]: AESGCM(key) for key in reversed(keys)}
        self._newest = hashlib.sha256(keys[0]).digest()[:_KEY_ID_LENGTH]

    def seal(self, plaintext: str, row_id: str) -> bytes:
        """Return key id, nonce and ciphertext."""
        nonce = os.urandom(_NONCE_LENGTH)
        ciphertext = self._ciphers[self._newest].encrypt(nonce, plaintext.encode(), row_id.encode())
        return self._newest + nonce + ciphertext

    def is_newest(self, sealed: bytes) -> bool:
        return sealed[:_KEY_ID_LENGTH] == self._newest

    def open(self, sealed: bytes, row_id: str) -> str:
        """Raises `CannotOpen`."""
        key_id, nonce = sealed[:_KEY_ID_LENGTH], sealed[_KEY_ID_LENGTH : _KEY_ID_LENGTH + _NONCE_LENGTH]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise UnknownKey("its key is not among AUTH_SECRET_KEY")
        try:
            return cipher.decrypt(nonce, sealed[_KEY_ID_LENGTH + _NONCE_LENGTH :], row_id.encode()).decode()
        except InvalidTag:
            raise CannotOpen("it is damaged, or belongs to another row") from None

    def seal_json(self, members: Mapping[str, Any], row_id: str) -> bytes:
        return self.seal(json.dumps(members), row_id)

    def open_json(self, sealed: bytes | memoryview, row_id: str) -> dict[str, Any]:
        try:
            return json.loads(self.open(bytes(sealed), row_id))
        except ValueError:
            raise CannotOpen("it is not JSON") from None
