"""Requests of devices (RFC 8628): which session may decide about one, and what a device learns."""

from datetime import datetime, timedelta
from typing import Literal

PollState = Literal["approved", "access_denied", "expired_token", "slow_down", "authorization_pending"]
# The interval is a second shorter than the announced one, for requests that the network delays.
_DELAY = timedelta(seconds=1)


def is_open_to(
    session_id: str, *, entered_in: str | None, is_decided: bool, expires_at: datetime, now: datetime
) -> bool:
    """Whether a request waits for its code, or for the decision of the session where its code was entered."""
    if is_decided or expires_at <= now:
        return False
    return entered_in is None or entered_in == session_id


def is_early(polled_at: datetime | None, interval: timedelta, now: datetime) -> bool:
    """Whether a device that asked at `polled_at` asks again within its interval, which then grows."""
    return polled_at is not None and polled_at > now - interval + _DELAY


def state_of_poll(
    decision: str | None, *, is_early: bool, has_session: bool, expires_at: datetime, now: datetime
) -> PollState:
    """What a device learns. `has_session` if its code was used: a second use is approved too, so that it ends
    the session.
    """
    if has_session:
        return "approved"
    if decision == "denied":
        return "access_denied"
    if expires_at <= now:
        return "expired_token"
    if decision == "approved":
        return "approved"
    return "slow_down" if is_early else "authorization_pending"
