"""Normalizes typed or pasted addresses, phone numbers, codes and names."""

import re
import unicodedata

# Spaces, control and format characters (such as direction marks), and hyphens and dashes.
_BETWEEN = {"Zs", "Zl", "Zp", "Cc", "Cf", "Pd"}
# Default_Ignorable_Code_Point of Unicode 16 (https://www.unicode.org/Public/16.0.0/ucd/DerivedCoreProperties.txt),
# among them the Hangul fillers.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
IGNORABLE = re.compile(f"[{_IGNORABLE}]")
# Other characters without a glyph: blanks of Braille, hieroglyphs, Khitan and music.
_INVISIBLE = re.compile(f"[{_IGNORABLE}\u2800\U00013441\U00013442\U00016fe4\U0001d159]")
# Ignorable, but a part of words: the joiners of Persian and Sinhala ones and of emoji, and the selectors of
# variants of Chinese, Japanese and Mongolian letters and of emoji.
_PARTS_OF_WORDS = re.compile("[\u200c\u200d\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


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
    are invisible or change the direction of writing, but for those that are a part of words.
    """
    if not isinstance(text, str) or len(text) > most:
        return None
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in text).strip()
    return spaced if not is_blank(spaced) and all(map(_may_be_in_a_name, _compatible(spaced))) else None


def is_blank(text: str) -> bool:
    """Whether a text has nothing that people see."""
    return not visible(text).strip()


def visible(text: str) -> str:
    """Return a text without invisible characters, and with plain ones for full-width and similar ones."""
    return _INVISIBLE.sub("", _compatible(text))


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def in_one_line(text: str) -> str:
    """Return a text with a space for what a name cannot have."""
    return "".join(char if _may_be_in_a_name(char) else " " for char in text)


def _may_be_in_a_name(char: str) -> bool:
    if _PARTS_OF_WORDS.match(char):
        return True
    return char.isprintable() and not _INVISIBLE.match(char)


def _in_ascii(text: str) -> str:
    # Full-width letters and signs too.
    return "".join(str(unicodedata.decimal(char, char)) for char in _compatible(text))
