"""One-time links: a token of 256 random bits, of which only the hash is stored."""

import hashlib
import re
import secrets
import uuid
from dataclasses import dataclass

# Seconds that a link is good for.
LINK_LIFETIME = 3600
_FORM = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class OneTimeToken:
    """A new link's token, with the id and hash of its row."""

    id: str
    token: str
    token_hash: bytes


def new() -> OneTimeToken:
    """Return a new token."""
    token = secrets.token_urlsafe(32)
    return OneTimeToken(str(uuid.uuid4()), token, hash_token(token))


def hash_token(token: str) -> bytes:
    """Return what is stored of a token. A plain hash does: there is nothing to guess in 256 random bits."""
    return hashlib.sha256(token.encode()).digest()


def is_well_formed(token: str) -> bool:
    """Whether a string could be a token at all."""
    return bool(_FORM.fullmatch(token))
