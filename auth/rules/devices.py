"""Requests of devices (RFC 8628): who may enter the code of one, and decide about it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """`session_id` is the session whose user entered the code first."""

    code_expires_at: datetime
    session_id: str | None = None
    is_decided: bool = False


def is_open_to(request: DeviceRequest, session_id: str, now: datetime) -> bool:
    """Whether a request waits for its code, or for the session where that was entered first to decide."""
    if request.is_decided or request.code_expires_at <= now:
        return False
    return request.session_id is None or request.session_id == session_id
