"""Recovery codes: 50 random bits each, as two groups of five letters and digits."""

import re
import secrets

from auth.core import promises

# Crockford's base 32 has no letters that look like digits.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LOOKALIKES = str.maketrans("oil", "011")


def new_codes() -> list[str]:
    codes = ("".join(secrets.choice(_ALPHABET) for _ in range(10)) for _ in range(promises.RECOVERY_CODES))
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def canonical(code: str) -> str:
    """Return the form of a code that its MAC is computed from. Ignores case, spaces and hyphens."""
    return re.sub(r"[\s-]", "", code).lower().translate(_LOOKALIKES)
