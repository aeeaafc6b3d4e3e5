"""Recovery codes: 80 random bits each, as sixteen letters and digits. Those of 0.3.1 have ten."""

import re
import secrets

from auth.core import constants, normalize

# Crockford's base 32 has no letters that look like digits.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LOOKALIKES = str.maketrans("oil", "011")


def new_codes() -> list[str]:
    return ["".join(secrets.choice(_ALPHABET) for _ in range(16)) for _ in range(constants.RECOVERY_CODES)]


def grouped(code: str) -> str:
    """Return a code in groups of four, as pages show it."""
    return "-".join(re.findall("....", code))


def canonical(code: str) -> str:
    """Return a code without case and separators. Its MAC is computed from this form."""
    return normalize.code(code).lower().translate(_LOOKALIKES)
