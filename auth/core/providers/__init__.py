"""Signing in with OAuth and OpenID providers."""

import re

_LONG_WORD = re.compile(r"[^\s\"',;:()]{33,}")
_LONGEST = 200


class ProviderError(Exception):
    """The provider failed, or its response is not valid. The message is for the log."""


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached now."""


def said(error: object, description: object, *secrets: str) -> str:
    """Return the error of a token endpoint, without secrets, which it may repeat."""
    text = ": ".join(part for part in (error, description) if part and isinstance(part, str))
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    # Remove control characters and possible codes or tokens.
    return _LONG_WORD.sub("…", "".join(char if char.isprintable() else " " for char in text))[:_LONGEST]
