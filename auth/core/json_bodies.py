"""JSON bodies (RFC 8259), without values that Postgres cannot store or that parsers read differently."""

import json
import math
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NoReturn, TypeAlias

# The members of an object, which a schema has checked or our own code has written.
JsonObject: TypeAlias = dict[str, Any]
MAX_DEPTH = 32
# Brackets and commas outside of strings: the most that two objects of metadata, 8 KiB each, can contain.
MAX_STRUCTURE = 16_384
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0}
_OTHERS = bytes(set(range(256)) - {*_STEPS, ord('"')})
# NUL and lone surrogates.
_REFUSED_ESCAPE = re.compile(
    r"\\u(?:0000|d[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\u)d[c-f])", re.IGNORECASE | re.DOTALL
)


class InvalidJson(Exception):
    """The message is for users."""


def decode(body: bytes) -> JsonObject:
    """Return the object in a body; an empty body is an empty object. Raises `InvalidJson`."""
    if not body.strip():
        return {}
    is_deep = body.count(b"{") + body.count(b"[") > MAX_DEPTH
    if is_deep or body.count(b",") > MAX_STRUCTURE - 2 * MAX_DEPTH:
        _bound_work(body)
    try:
        text = body.decode("utf-8")
        value = _JSON.decode(text)
    except UnicodeDecodeError:
        raise InvalidJson("the body must be in UTF-8") from None
    except ValueError:  # also for an integer with too many digits for Python
        raise InvalidJson("the body must be valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidJson("the body must be a JSON object")
    refuse_escapes(text)
    return value


def refuse_escapes(text: str) -> None:
    """Refuse JSON with an escape of what Postgres cannot store. Raises `InvalidJson`."""
    # After removing escaped backslashes, each remaining one begins an escape. UTF-8 contains no other
    # surrogates.
    if "\\u" in text and _REFUSED_ESCAPE.search(text.replace("\\\\", "--")):
        raise InvalidJson("the body must not contain NUL characters or lone surrogates")


def without_duplicates(pairs: list[tuple[str, object]]) -> JsonObject:
    """Return an object. Raises `InvalidJson` if it repeats a member, which parsers read differently."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise InvalidJson("the body must not repeat a member")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"the body must not contain {name}")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidJson("the body must not contain a number out of range")
    return number


_JSON = json.JSONDecoder(
    object_pairs_hook=without_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


def _bound_work(body: bytes) -> None:
    """Refuse deep and wide JSON before the parser makes objects of it. Raises `InvalidJson`."""
    # Every second part is in a string. After a syntax error this is wrong, but the parser stops there.
    marks = body.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS)
    structure = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    if len(structure) > MAX_STRUCTURE:
        raise InvalidJson(f"the body must not contain more than {MAX_STRUCTURE:,} brackets and commas")
    if max(accumulate(map(_STEPS.__getitem__, structure)), default=0) > MAX_DEPTH:
        raise InvalidJson(f"the body must not be nested deeper than {MAX_DEPTH}")


def encode_with(members: Mapping[str, object], **encoded: str) -> str:
    """Return an object as JSON, with further members that Postgres has written as JSON."""
    further = "".join(f', "{name}": {value}' for name, value in encoded.items())
    return f"{json.dumps(members)[:-1]}{further}}}"
