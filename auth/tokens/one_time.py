"""One-time links and codes: made here, and known to the database only by their hash or MAC."""

import hashlib
import re
import secrets
from collections.abc import Sequence

from auth.tokens import keys

# Seconds that they are good for.
LINK_LIFETIME = 3600
INVITATION_LIFETIME = 7 * 86_400
RESTORE_LIFETIME = 7 * 86_400
MAIL_CODE_LIFETIME = 3600
SMS_CODE_LIFETIME = 600
AUTHORIZATION_CODE_LIFETIME = 300

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_CODE = re.compile(r"[0-9]{6}")

# Which of the things that were sent a type of verification accepts.
PURPOSES = {
    "signup": ["signup"],
    "invite": ["invite"],
    "magiclink": ["magiclink"],
    "recovery": ["recovery"],
    "email": ["signup", "magiclink"],
    "email_change": ["email_change"],
    "sms": ["sms", "sms_signup"],
    "phone_change": ["phone_change"],
    "email_restore": ["email_restore"],
}
CHANGES = ("email_change", "phone_change")


def new_token() -> str:
    """Return the token of a link: 256 random bits."""
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """Return a code of six random digits."""
    return f"{secrets.randbelow(1_000_000):06}"


def hash_token(token: str) -> bytes | None:
    """Return what is stored of a token, or None for what can't be one. A plain hash does: nobody guesses 256
    random bits.
    """
    return hashlib.sha256(token.encode()).digest() if _TOKEN.fullmatch(token) else None


class Codes:
    """The codes of one deployment."""

    def __init__(self, secret_keys: Sequence[str]) -> None:
        # While the root secret is rotated, a code that was sent before fails once; it lives for an hour at
        # most.
        self._key = keys.derive(secret_keys, "one-time code")[0]

    def mac(self, address: str, code: str) -> bytes | None:
        """Return what is stored of a code for an address, or None for what can't be one. A hash of six digits
        would hide nothing.
        """
        return keys.mac(self._key, f"{address} {code}".encode()) if _CODE.fullmatch(code) else None
