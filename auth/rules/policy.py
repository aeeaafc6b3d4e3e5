"""The settings and the ages that decide."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

# How long a proof is fresh.
FRESH_AGE = timedelta(minutes=15)
# How long an addition is recent: a thief may have made it.
RECENT_AGE = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`change_age` is AUTH_REAUTHENTICATION_AGE, None for `never`; `proof_age` is `FRESH_AGE`, or that if it
    is less.
    """

    refresh_token_lifetime: timedelta
    session_timebox: timedelta | None
    mfa_required: Literal["none", "admins", "all"]
    proof_age: timedelta
    change_age: timedelta | None
