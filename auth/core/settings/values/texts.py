"""The check of texts that are used as they stand, for what shells, `echo` and editors add to a value."""

import re
from collections.abc import Callable, Iterator

_LONGEST = 4096
# The byte order mark that editors of Windows write before a text.
MARK = "\ufeff"
# Yields the texts in a value that are used as they stand.
Texts = Callable[[str], Iterator[str]]
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# What is copied from pages without being seen, and what reverses the letters behind it. Names may contain
# those that join letters.
_INVISIBLE = re.compile(r"[\xad\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")


def whole(value: str) -> Iterator[str]:
    yield value


def parts(value: str) -> Iterator[str]:
    """Yield the members of a list, without the white space around them, which means nothing."""
    if _is_quoted(value.strip()):
        yield value.strip()
    yield from (part.strip() for part in value.split(","))


def none(_value: str) -> Iterator[str]:
    """For values that are parsed: numbers, choices, JSON, PEM."""
    yield from ()


def document(value: str) -> Iterator[str]:
    """Yield the path of a file with JSON, and nothing of JSON itself."""
    if not value.lstrip().startswith(("{", "[")):
        yield value


def problem_of(text: str, *, is_header: bool = False) -> str | None:
    """Return what is wrong with a text, or with one that is sent in a header, without quoting it, or None."""
    if text.rstrip("\r\n") != text:
        return "ends with a line break"
    if text.strip() != text:
        return "has a space at its beginning or end"
    if text.startswith(MARK):
        return "begins with a byte order mark"
    if _is_quoted(text):
        return "has quotes around it, which are part of the value here"
    if control := _CONTROL.search(text):
        return f"has a control character (U+{ord(control[0]):04X})"
    if invisible := _INVISIBLE.search(text):
        return f"has an invisible character (U+{ord(invisible[0]):04X})"
    if len(text) > _LONGEST:
        return f"has text beyond {_LONGEST} characters"
    if is_header and not text.isascii():
        return "is sent in a header, and has letters beyond ASCII"
    return None


def is_utf8(value: str) -> bool:
    """Whether a variable was UTF-8. Python has surrogates for other bytes, which nothing can be sent with."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "\"'" and text.find(text[0], 1) == len(text) - 1
