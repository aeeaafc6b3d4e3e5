"""Signing in with OAuth and OpenID providers."""

import re
from typing import Literal, get_args

# What is wrong with the identity that a signed ID token is about.
CauseOfIdentity = Literal["email_missing", "email_unverified", "email_elsewhere", "workspace_elsewhere"]
# The errors of a token endpoint (RFC 6749, section 5.2).
CauseOfTokens = Literal[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
]
Cause = Literal[CauseOfIdentity, CauseOfTokens, "issuer_elsewhere"]
CAUSES_OF_IDENTITY: frozenset[str] = frozenset(get_args(CauseOfIdentity))
CAUSES_OF_TOKENS: dict[object, CauseOfTokens] = {cause: cause for cause in get_args(CauseOfTokens)}

_LONG_WORD = re.compile(r"[^\s\"',;:()]{33,}")
_LONGEST = 200


class ProviderError(Exception):
    """The provider failed, or its response is not valid. The message is for the log.

    The `cause` is for the owner of a customer's provider, with the domain or issuer that was `named`.
    """

    def __init__(self, message: str, cause: Cause | None = None, named: str = "") -> None:
        super().__init__(message)
        self.cause, self.named = cause, named


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached now."""


def said(error: object, description: object, *secrets: str) -> str:
    """Return the error of a token endpoint, without secrets, which it may repeat."""
    text = ": ".join(part for part in (error, description) if part and isinstance(part, str))
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    # Remove control characters and possible codes or tokens.
    return _LONG_WORD.sub("…", "".join(char if char.isprintable() else " " for char in text))[:_LONGEST]
