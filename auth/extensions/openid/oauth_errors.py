"""Errors of OAuth (RFC 6749, section 5.2), which clients read from `error` and `error_description`."""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

_SIMILAR = {ord('"'): "'", ord("\\"): "/", 0x2019: "'"}  # and the typographic apostrophe
_OTHERS = re.compile(r"[^ !#-\[\]-~]")


@dataclass(eq=False)
class OAuthError(Exception):
    """An error of the RFCs. `members` are added to the body.

    `remedy`, and what the client has `sent`, are only for the log. `reason` is the error_code in the audit
    log, if any.
    """

    error: str
    description: str
    status: int = 400
    _: KW_ONLY
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)
    remedy: str | None = None
    sent: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None


def described(text: str) -> str:
    """Return a text in the characters of `error_description` (RFC 6749, sections 4.1.2.1 and 5.2)."""
    return _OTHERS.sub("?", text.translate(_SIMILAR))


def invalid_client(description: str, headers: Mapping[str, str] | None = None) -> OAuthError:
    """Return the refusal of a client's credentials, with the members of our envelope."""
    members = {"code": 401, "msg": description, "error_code": "invalid_credentials"}
    return OAuthError("invalid_client", description, 401, headers=headers or {}, members=members)
