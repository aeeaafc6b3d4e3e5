"""The code that a device shows and its user types (RFC 8628, section 6.1)."""

import secrets

from auth.core import typed
from auth.core.tokens.one_time import USER_CODE_LENGTH, USER_CODE_LETTERS
from auth.web.context import latchkey


def make() -> str:
    return "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH))


def shown(code: str) -> str:
    return f"{code[:4]}-{code[4:]}"


def canonical(text: str) -> str:
    """Return a typed code without separators and case."""
    return typed.code(text).upper()


def macs(code: str) -> list[bytes]:
    """Return the MACs of a code, first the one to store; empty if it is not a code."""
    return latchkey.user_codes.macs("", code)
