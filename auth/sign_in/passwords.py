"""Signing in with a password. Each attempt counts as failed until it is checked, so that concurrent ones gain
nothing."""

import functools
from typing import Any

from auth.context import latchkey
from auth.hooks import before_user_created
from auth.hooks.issuing import Issue, about_new
from auth.sign_in.token_response import Session
from auth.web import View, audit, g, limits
from auth.web.errors import ApiError
from auth.web.input import whole_body
from sql import queries


def queued(view: View) -> View:
    """Admit requests to hashing, or refuse them before they cost a statement. Decorate outside the limits."""

    @functools.wraps(view)
    def admitted(*args: Any, **kwargs: Any) -> Any:
        # A client that sends its body slowly must not hold a place in the queue.
        whole_body()
        with latchkey.passwords.queue():
            return view(*args, **kwargs)

    return admitted


def begin_attempt(email: str | None, phone: str | None) -> "queries.BeginPasswordAttempt":
    """Count an attempt for an address and return its row. Raises `ApiError` after too many failures."""
    settings = latchkey.settings
    failures, account_failures = settings.rate_limit_login_failures, settings.rate_limit_account_failures
    row = queries.begin_password_attempt(
        latchkey.db,
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


def sign_in_with_password(body: dict[str, Any], *, for_client: bool, admin_only: bool = False) -> Session:
    """Open a session for a `PasswordGrant` body. Raises `ApiError`."""
    email, phone, password = body.get("email"), body.get("phone"), body["password"]
    before_user_created.check_enabled(email, phone)
    attempt = begin_attempt(email, phone)
    # An unknown address and a user without a password cost the same statement and hash as a wrong password.
    if not check_attempt(attempt, password) or attempt.password_hash is None:
        raise ApiError("invalid_credentials")
    checked: dict[str, Any] = {
        "user_id": attempt.user_id,
        "address": email or phone,
        "admin_only": admin_only,
    }
    checked |= {"provider": "email" if email else "phone", "is_stranger": attempt.is_stranger}
    password_hash, issue, lasting = attempt.password_hash, None, latchkey.passwords.lasting
    while True:
        checked["checked_password_hash"] = password_hash
        renewed_hash = None if lasting.match(password_hash) else latchkey.passwords.hash(password)
        try:
            issue = issue or about_new(attempt.user_id, "password", for_client=for_client)
            row = _open(issue, new_password_hash=renewed_hash, **checked, **g.client)
        except ApiError:
            # A hook refused or failed, but the password was right: take back the attempt.
            queries.select_sign_in_refusal(latchkey.db, network=g.client["network"], **checked)
            raise
        if row is not None:
            return Session(row, issue)
        refusal = queries.select_sign_in_refusal(latchkey.db, network=g.client["network"], **checked)
        if refusal is None or refusal.password_hash == password_hash:
            error_code = (refusal and refusal.error_code) or "invalid_credentials"
            raise ApiError("sign_in.not_admin" if error_code == "not_admin" else error_code)
        # A simultaneous log-in has renewed the hash, or the password was changed.
        if refusal.password_hash is None:
            raise ApiError("invalid_credentials")
        password_hash = refusal.password_hash
        if not latchkey.passwords.check(password, password_hash):
            raise ApiError("invalid_credentials")


def _open(issue: Issue, **columns: Any) -> "queries.SignIn | None":
    if issue.decides is None:
        return queries.sign_in(latchkey.db, session_id=issue.session_id, **columns)
    with latchkey.db.transaction() as tx:
        row = queries.sign_in(tx, session_id=issue.session_id, **columns)
        if row is not None or issue.answer:
            issue.confirm(tx)
    return row
