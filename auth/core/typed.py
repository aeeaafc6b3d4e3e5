"""Normalizes typed or pasted addresses, phone numbers and codes."""

import unicodedata

# Spaces, control and format characters (such as direction marks), and hyphens and dashes.
_BETWEEN = {"Zs", "Zl", "Zp", "Cc", "Cf", "Pd"}


def trimmed(text: str) -> str:
    """Return a text without spaces and invisible characters around it."""
    shown = [
        place for place, char in enumerate(text) if not char.isspace() and unicodedata.category(char) != "Cf"
    ]
    return text[shown[0] : shown[-1] + 1] if shown else ""


def number(text: str) -> str:
    """Return a phone number in ASCII, without spaces, hyphens, slashes and invisible characters."""
    return "".join(
        char for char in _in_ascii(text) if char != "/" and unicodedata.category(char) not in _BETWEEN
    )


def code(text: str) -> str:
    """Return the letters and digits of a code, with digits of any script in ASCII."""
    return "".join(filter(str.isalnum, _in_ascii(text)))


def _in_ascii(text: str) -> str:
    # Full-width letters and signs too.
    normal = unicodedata.normalize("NFKC", text)
    return "".join(str(unicodedata.decimal(char, char)) for char in normal)
