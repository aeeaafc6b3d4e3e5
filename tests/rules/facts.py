"""Facts as rules take them: rows have these attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from auth.rules.policy import Policy, RefreshWindow
from auth.rules.refreshing import TokenState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROSECOND, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WEEK = 7 * DAY
WINDOW = RefreshWindow(most=3, age=HOUR)
POLICY = Policy(
    refresh_token_lifetime=30 * DAY,
    refresh_window=WINDOW,
    reuse_interval=10 * SECOND,
    session_timebox=None,
    mfa_required="none",
    proof_age=15 * MINUTE,
    change_age=DAY,
)


@dataclass(frozen=True, kw_only=True)
class Person:
    now: datetime = NOW
    role: str = "authenticated"
    made_by: str = "signup"
    converted_at: datetime | None = None
    banned_until: datetime | None = None
    oldest_factor_at: datetime | None = None
    has_second_step: bool = False
    email: str | None = None
    email_added_at: datetime = NOW - 90 * DAY
    email_confirmed_at: datetime | None = None
    email_proved: bool = False
    phone: str | None = None
    phone_added_at: datetime = NOW - 90 * DAY
    phone_confirmed_at: datetime | None = None
    phone_proved: bool = False
    last_sign_in_at: datetime | None = None
    password_hash: str | None = None
    is_password_vouched: bool = False
    invited_at: datetime | None = None
    new_email: str | None = None
    new_phone: str | None = None
    app_metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Session:
    method: str
    aal: str
    session_created_at: datetime
    refreshed_at: datetime
    ended_at: datetime | None = None
    reauthenticated_at: datetime | None = None
    factor_proved_at: datetime | None = None
    code_given_at: datetime | None = None
    first_passkey_at: datetime | None = None
    opened_by: str | None = None
    resource: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tokens(TokenState):
    now: datetime = NOW


@dataclass(frozen=True, kw_only=True)
class Link:
    now: datetime = NOW
    purpose: str
    created_at: datetime
    expires_at: datetime
    spent_at: datetime | None = None
    is_of_sign_up: bool = False
    newer: int = 0
    code_expires_at: datetime | None = None
    browser_hash: memoryview | None = None


ALICE = Person(
    email="alice@example.com",
    email_confirmed_at=NOW - 90 * DAY,
    email_proved=True,
    last_sign_in_at=NOW - DAY,
    password_hash="a hash",
)
CAROL = replace(ALICE, role="admin")
BANNED = replace(ALICE, banned_until=NOW + SECOND)
ANONYMOUS = Person(made_by="anonymous")
CONVERTED = replace(ALICE, made_by="anonymous", converted_at=NOW - HOUR)
CONFIRMED = replace(ALICE, email_proved=False)
UNCONFIRMED = replace(CONFIRMED, email_confirmed_at=None)
UNUSED = replace(UNCONFIRMED, last_sign_in_at=None)
WITH_APP = replace(ALICE, oldest_factor_at=NOW - 8 * DAY, has_second_step=True)
WITH_PASSKEY = replace(ALICE, oldest_factor_at=NOW - 8 * DAY)
FRESH = Session(method="password", aal="aal1", session_created_at=NOW - MINUTE, refreshed_at=NOW - MINUTE)
STALE = replace(FRESH, session_created_at=NOW - HOUR)
ANCIENT = replace(FRESH, session_created_at=NOW - 2 * DAY)
RAISED = replace(FRESH, aal="aal2", factor_proved_at=NOW - MINUTE)
RECOVERY = replace(FRESH, method="recovery")
FACTOR_FOR_ALL = replace(POLICY, mfa_required="all")
NUMBER = "+4915100000000"


def with_phone(user: Person) -> Person:
    """Return the user with a number that was proved a day ago."""
    moment = NOW - DAY
    return replace(user, phone=NUMBER, phone_added_at=moment, phone_confirmed_at=moment, phone_proved=True)
