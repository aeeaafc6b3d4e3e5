"""The decoder of JSON bodies: one object in UTF-8 (RFC 8259), and stricter than Python's."""

import json
import re
from typing import Any

MAX_DEPTH = 32
_REFUSED_CHARACTERS = re.compile("[\0\ud800-\udfff]")


class InvalidJson(ValueError):
    """The message says what is wrong, for people."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the object in a body; an empty body is an empty object.

    Raises `InvalidJson` for anything else, and for duplicate keys, NaN, infinities, NUL characters, lone
    surrogates and nesting deeper than 32: Postgres or clients cannot take them, or parsers disagree on them.
    """
    if not body.strip():
        return {}
    try:
        value = _JSON.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidJson("the body must be in UTF-8") from None
    except RecursionError:
        raise InvalidJson(f"the body must not be nested deeper than {MAX_DEPTH}") from None
    except InvalidJson:
        raise
    except ValueError:  # a syntax error, or an integer with more digits than Python reads
        raise InvalidJson("the body must be valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidJson("the body must be a JSON object")
    _check(value)
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise InvalidJson("the body must not name a member twice")
    return members


def _refuse_constant(name: str) -> Any:
    raise InvalidJson(f"the body must not contain {name}")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise InvalidJson("the body must not contain a number out of range")
    return number


_JSON = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


def _check(value: Any) -> None:
    # Not recursive: the client chooses the depth.
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidJson(f"the body must not be nested deeper than {MAX_DEPTH}")
        if isinstance(item, str):
            if _REFUSED_CHARACTERS.search(item):
                raise InvalidJson("the body must not contain NUL characters or lone surrogates")
        elif isinstance(item, dict):
            waiting.extend((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            waiting.extend((part, depth + 1) for part in item)
