"""One-time links and codes: the database stores the hash of a link's token, and the MAC of a code."""

import hashlib
import hmac
import re
import secrets

from auth.core.tokens import derived_keys

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_CODE = re.compile(r"[0-9]{6}")
# Consonants do not form words.
USER_CODE_LETTERS, USER_CODE_LENGTH = "BCDFGHJKLMNPQRSTVWXZ", 8
_RECOVERY_CODE = re.compile("[0-9a-hjkmnp-tv-z]{10}|[0-9a-hjkmnp-tv-z]{16}")

# The purposes of links and codes that each `type` of a verification accepts. The result depends on the
# purpose. `recovery` does not accept a magic link: a new password after it would not end keys and grants.
PURPOSES = {
    "signup": ["signup"],
    "invite": ["invite"],
    "magiclink": ["magiclink", "recovery"],
    "recovery": ["recovery"],
    "email": ["signup", "invite", "magiclink", "recovery"],
    "email_change": ["email_change"],
    "sms": ["sms", "sms_signup"],
    "phone_change": ["phone_change"],
    "undo": ["undo"],
}
CHANGES = ("email_change", "phone_change")


def new_token() -> str:
    return secrets.token_urlsafe(32)


def code_of(token: str) -> str:
    # The page of a link shows the code of its message. The stored form of the link does not reveal it.
    return f"{int.from_bytes(hashlib.sha256(f'code {token}'.encode()).digest()) % 1_000_000:06}"


def hash_token(token: str) -> bytes | None:
    return hashlib.sha256(token.encode()).digest() if _TOKEN.fullmatch(token) else None


class Codes(derived_keys.Derived):
    """Computes the MACs of codes, because a hash of six digits could be reversed."""

    purpose = "one-time code"
    form = _CODE

    def macs(self, address: str, code: str) -> list[bytes]:
        """Return a code's MAC under each key, first the one to store; empty if it is not a code."""
        message = f"{address} {code}".encode()
        return (
            [hmac.digest(key, message, "sha256") for key in self._keys] if self.form.fullmatch(code) else []
        )


class SignUpSalts(Codes):
    """Computes the salts of an address's sign-ups, which have no code."""

    purpose = "sign-up salt"
    form = re.compile("")


class RecoveryCodes(Codes):
    """Computes the MACs of recovery codes, with the user instead of the address."""

    purpose = "recovery code"
    form = _RECOVERY_CODE


class UserCodes(Codes):
    """Computes the MACs of the codes of devices, without an address."""

    purpose = "user code of a device"
    form = re.compile(f"[{USER_CODE_LETTERS}]{{{USER_CODE_LENGTH}}}")
