"""JSON objects that are encrypted in the database."""

import json
from collections.abc import Mapping
from typing import Any

from auth.tokens.keys import CannotOpen, Sealer


def seal_json(sealer: Sealer, members: Mapping[str, Any], bound_to: str) -> bytes:
    """Encrypt an object. `open_json` needs the same `bound_to`."""
    return sealer.seal(json.dumps(members), bound_to)


def open_json(sealer: Sealer, sealed: bytes | memoryview, bound_to: str) -> dict[str, Any]:
    """Decrypt an object. Raises `CannotOpen`."""
    try:
        return json.loads(sealer.open(bytes(sealed), bound_to))
    except ValueError:
        raise CannotOpen("it is not JSON") from None
