"""Identifies the session of a sign-out: by an ID token, or by its claims in a URL, where it may not fit.

Not by a new ID token: the holder of an old one would get a fresh one.
"""

import time
from contextlib import suppress
from typing import Any

from auth.core import constants
from auth.core.tokens.derived_keys import CannotOpen
from auth.core.tokens.jws import InvalidAccessToken
from auth.web.context import Latchkey

_PURPOSE = "logout hint"


def read(parts: Latchkey, hint: str) -> dict[str, Any] | None:
    """Return the claims of an ID token, even if it has expired, or of a result of `shortened`; else None."""
    with suppress(InvalidAccessToken):
        return parts.client_tokens.read_hint(hint)
    try:
        kept = parts.sealer.open_from_url(hint, _PURPOSE)
    except CannotOpen:
        return None
    return kept if kept["until"] > time.time() else None


def shortened(parts: Latchkey, id_token: str) -> str | None:
    """Return a short replacement of an ID token for ten minutes, or None if the token is invalid."""
    claims = read(parts, id_token)
    if claims is None:
        return None
    kept = {"sub": claims["sub"], "aud": claims["aud"], "until": int(time.time()) + constants.FLOW_LIFETIME}
    return parts.sealer.seal_for_url(kept, _PURPOSE)
