"""Requests of devices (RFC 8628): who may enter the code of one and decide about it, and what a device
learns.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

PollState = Literal["approved", "access_denied", "expired_token", "slow_down", "authorization_pending"]
# The interval is a second shorter than the announced one, for requests that the network delays.
_DELAY = timedelta(seconds=1)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """`polled_at` is when the device asked before, and `has_session` whether its code was used."""

    code_expires_at: datetime
    interval: timedelta
    polled_at: datetime | None = None
    decision: str | None = None
    has_session: bool = False


def is_early(poll: Poll, now: datetime) -> bool:
    """Whether a device asks again within its interval, which then grows."""
    return poll.polled_at is not None and poll.polled_at > now - poll.interval + _DELAY


def state_of_poll(poll: Poll, now: datetime) -> PollState:
    """What a device learns. A second use of its code goes on like the first, which ends the session."""
    if poll.has_session:
        return "approved"
    if poll.decision == "denied":
        return "access_denied"
    if poll.code_expires_at <= now:
        return "expired_token"
    if poll.decision == "approved":
        return "approved"
    return "slow_down" if is_early(poll, now) else "authorization_pending"
