"""Errors of OAuth (RFC 6749, section 5.2), which clients read from `error` and `error_description`."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field


@dataclass(eq=False)
class OAuthError(Exception):
    """An error of the RFCs. `members` are added to the body; `remedy` is only for the log.

    `reason` is the error_code in the audit log, if any.
    """

    error: str
    description: str
    status: int = 400
    _: KW_ONLY
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)
    remedy: str | None = None
    reason: str | None = None


def invalid_client(description: str, headers: Mapping[str, str] | None = None) -> OAuthError:
    """Return the refusal of a client's credentials, with the members of our envelope."""
    members = {"code": 401, "msg": description, "error_code": "invalid_credentials"}
    return OAuthError("invalid_client", description, 401, headers=headers or {}, members=members)
