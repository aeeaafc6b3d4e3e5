"""Password attempts. Each counts as failed until it is checked, so that concurrent ones gain nothing."""

import functools
from typing import Any

from auth.context import latchkey
from auth.web import View, audit, g, limits
from auth.web.input import whole_body


def queued(view: View) -> View:
    """Admit requests to hashing, or refuse them before they cost a statement. Decorate outside the limits."""

    @functools.wraps(view)
    def admitted(*args: Any, **kwargs: Any) -> Any:
        # A client that sends its body slowly must not hold a place in the queue.
        whole_body()
        with latchkey.passwords.queue():
            return view(*args, **kwargs)

    return admitted


def begin_attempt(email: str | None, phone: str | None) -> Any:
    """Count an attempt for an address and return its row. Raises `ApiError` after too many failures."""
    settings = latchkey.settings
    failures, account_failures = settings.rate_limit_login_failures, settings.rate_limit_account_failures
    row = latchkey.db.one(
        "begin_password_attempt",
        email=email,
        phone=phone,
        network=g.client["network"],
        limited=settings.rate_limits_enabled,
        failures=failures.amount,
        failures_seconds=failures.get_expiry(),
        account_failures=account_failures.amount,
        account_failures_seconds=account_failures.get_expiry(),
    )
    if row.refused_for is not None:
        limits.note(limits.Window(failures.amount, 0, row.refused_for))
        raise limits.refusal("sign_in.over_request_rate_limit", row.refused_for)
    audit.about(user_id=row.user_id, tries=row.tries, of=failures.amount)
    return row


def check_attempt(attempt: Any, password: str) -> bool:
    """Check a password, always at the cost of one hash, and add rate-limit headers for a failure."""
    matches = latchkey.passwords.check(password, attempt.password_hash)
    if not matches and attempt.tries:
        most = latchkey.settings.rate_limit_login_failures.amount
        limits.note(limits.Window(most, most - attempt.tries, attempt.seconds_left))
    return matches
