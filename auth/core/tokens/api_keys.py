"""API keys of users (`lk_`) and administrative keys (`lka_`): the prefix, the id in 32 hex digits, 27 random
characters (160 bits), and a checksum of 6 characters.

They consist of letters and digits, so that scanners for leaked secrets find them. The database stores a MAC.
"""

import hmac
import re
import secrets
import string
import uuid
import zlib

from auth.core.tokens import derived_keys

USER_PREFIX, ADMIN_PREFIX = "lk_", "lka_"
_FORM = re.compile(r"((lka?_)([0-9a-f]{32})[0-9A-Za-z]{27})([0-9A-Za-z]{6})")
_ALPHABET = string.digits + string.ascii_letters


class InvalidApiKey(Exception):
    """The text is not such a key, or was mistyped."""


def new_key(prefix: str = USER_PREFIX) -> tuple[str, str]:
    """Return a new id and its key."""
    id = uuid.uuid4()
    body = f"{prefix}{id.hex}{''.join(secrets.choice(_ALPHABET) for _ in range(27))}"
    return str(id), body + _checksum(body)


def read_id(key: str, prefix: str = USER_PREFIX) -> str:
    """Return the id of a key. Raises `InvalidApiKey`."""
    parts = _FORM.fullmatch(key)
    if parts is None or parts[2] != prefix or _checksum(parts[1]) != parts[4]:
        raise InvalidApiKey
    return str(uuid.UUID(parts[3]))


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _ALPHABET[digit] + digits
    return digits


class ApiKeyMacs(derived_keys.Derived):
    """Computes the MACs. Each follows the id of the derived key that made it."""

    purpose = "API key"

    def has_key_of(self, mac: bytes) -> bool:
        """Whether one of the derived keys made a stored form."""
        return any(mac.startswith(derived_keys.key_id(each)) for each in self._keys)

    def macs(self, key: str) -> list[bytes]:
        """Return the possible stored forms of a key, first the one to store."""
        return [derived_keys.key_id(each) + hmac.digest(each, key.encode(), "sha256") for each in self._keys]
