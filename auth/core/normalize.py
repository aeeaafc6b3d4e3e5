"""Normalizes typed or pasted addresses, phone numbers, codes and names."""

import unicodedata

# Spaces, control and format characters (such as direction marks), and hyphens and dashes.
_BETWEEN = {"Zs", "Zl", "Zp", "Cc", "Cf", "Pd"}
# Invisible, but a part of Persian and Sinhala words, and of emoji.
_JOINERS = "\u200c\u200d"
# Letters without a glyph.
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"


def trimmed(text: str) -> str:
    """Return a text without spaces and invisible characters around it."""
    visible = [
        place for place, char in enumerate(text) if not char.isspace() and unicodedata.category(char) != "Cf"
    ]
    return text[visible[0] : visible[-1] + 1] if visible else ""


def number(text: str) -> str:
    """Return a phone number in ASCII, without spaces, hyphens, slashes and invisible characters."""
    return "".join(
        char for char in _in_ascii(text) if char != "/" and unicodedata.category(char) not in _BETWEEN
    )


def code(text: str) -> str:
    """Return the letters and digits of a code, with digits of any script in ASCII."""
    return "".join(filter(str.isalnum, _in_ascii(text)))


def name(text: object, most: int) -> str | None:
    """Return a name with plain spaces, and none around it.

    None for other types, blank texts, texts of more than `most` characters, and those with characters that
    are invisible or change the direction of writing.
    """
    if not isinstance(text, str) or len(text) > most:
        return None
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in text).strip()
    is_blank = not spaced.strip(f"{_JOINERS}{_FILLERS} ")
    return spaced if not is_blank and all(map(_may_be_in_a_name, spaced)) else None


def in_one_line(text: str) -> str:
    """Return a text with a space for what a name cannot have."""
    return "".join(char if _may_be_in_a_name(char) else " " for char in text)


def _may_be_in_a_name(char: str) -> bool:
    return char.isprintable() or char in _JOINERS


def _in_ascii(text: str) -> str:
    # Full-width letters and signs too.
    normal = unicodedata.normalize("NFKC", text)
    return "".join(str(unicodedata.decimal(char, char)) for char in normal)
