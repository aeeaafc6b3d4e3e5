"""What waits sealed: JSON objects, of which a copy of the database tells nothing."""

import json
from collections.abc import Mapping
from typing import Any

from auth.tokens.keys import CannotOpen, Sealer


def seal_json(sealer: Sealer, members: Mapping[str, Any], bound_to: str) -> bytes:
    """Return an object sealed, for `open_json` with the same binding."""
    return sealer.seal(json.dumps(members), bound_to)


def open_json(sealer: Sealer, sealed: bytes | memoryview, bound_to: str) -> dict[str, Any]:
    """Return the members of a sealed object. Raises `CannotOpen`."""
    try:
        return json.loads(sealer.open(bytes(sealed), bound_to))
    except ValueError:
        raise CannotOpen("it is no JSON") from None
