"""The settings and the ages that decide."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

# How long a proof is fresh.
FRESH_AGE = timedelta(minutes=15)
# How long an addition is recent: a thief may have made it.
RECENT_AGE = timedelta(days=7)
# The pages ask for a proof on another page, before the change.
_LEAST_AGE_ON_PAGES = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWindow:
    """At most `most` refreshes of a session, or uses of an API key, in `age`; any number if it is None."""

    most: int | None
    age: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`change_age` is AUTH_REAUTHENTICATION_AGE, zero for `always` and None for `never`. `proof_age`, how
    long a proof is fresh, is `FRESH_AGE`, or `change_age` if that is shorter. `reuse_interval` is how long a
    refresh token gives the same successor.
    """

    refresh_token_lifetime: timedelta
    refresh_window: RefreshWindow
    reuse_interval: timedelta
    session_timebox: timedelta | None
    mfa_required: Literal["none", "admins", "all"]
    proof_age: timedelta
    change_age: timedelta | None


def on_pages(policy: Policy) -> Policy:
    """The policy for browsers on our pages: a proof counts for five minutes at least."""
    if policy.change_age is None:
        return policy
    change_age = max(policy.change_age, _LEAST_AGE_ON_PAGES)
    return replace(policy, change_age=change_age, proof_age=min(change_age, FRESH_AGE))
