"""JSON bodies (RFC 8259), without values that Postgres cannot store or that parsers read differently."""

import json
import math
import re
from typing import Any

MAX_DEPTH = 32
_REFUSED_CHARACTERS = re.compile("[\0\ud800-\udfff]")


class InvalidJson(Exception):
    """The message is for users."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the object in a body; an empty body is an empty object. Raises `InvalidJson`."""
    if not body.strip():
        return {}
    try:
        value = _JSON.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidJson("the body must be in UTF-8") from None
    except RecursionError:
        raise InvalidJson(f"the body must not be nested deeper than {MAX_DEPTH}") from None
    except ValueError:  # also for an integer with more digits than Python reads
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
    if math.isinf(number):
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
