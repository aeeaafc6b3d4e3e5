"""Signs in with a password. A verdict is recorded before it is revealed."""

from typing import Any

from auth.flows import admission
from auth.flows.sessions.issuing import Issue, about_new, is_asked
from auth.flows.sessions.token_response import Session, notify_of_sign_in
from auth.web import limits
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import queries


def sign_in_with_password(
    asked: Asked, body: dict[str, Any], *, for_client: bool, admin_only: bool = False
) -> Session:
    """Open a session for a `PasswordGrant` body."""
    email, phone, password = body.get("email"), body.get("phone"), body["password"]
    admission.check_channel(asked, email, phone, sends=False)
    address = {"email": email, "phone": phone}
    # An unknown address, or a user without a password, costs the same statements and hash as a wrong
    # password.
    known = _look_up(asked, address)
    password_hash, issue = known.password_hash, Issue()
    while True:
        is_right, renewed_hash = asked.parts.passwords.check(password, password_hash), None
        if is_right and not asked.parts.passwords.lasting.match(password_hash or ""):
            renewed_hash = asked.parts.passwords.hash(password)
        if is_right and issue.decides is None and is_asked(asked, for_client=for_client):
            # The call of the hook also reveals that the password was right.
            _record_verdict(asked, address, is_right)
            issue = about_new(asked, known.user_id, "password", for_client=for_client)
        row = _open(
            asked,
            issue,
            is_right=is_right,
            checked_password_hash=password_hash,
            new_password_hash=renewed_hash,
            provider="email" if email else "phone",
            admin_only=admin_only,
            **address,
            **asked.client,
        )
        if row.state == "live":
            # Only now: a refused attempt must not reveal whether its password has leaked.
            leaked = asked.parts.leaked_passwords
            is_leaked = leaked is not None and leaked.when_used(password)
            if is_leaked:
                queries.mark_password_leaked(asked.db, user_id=row.user_id)
            return Session(row, issue, is_leaked)
        if row.state != "password_changed":
            raise _refusal(asked, row.state, row)
        # A concurrent log-in has renewed the hash, or the password was changed.
        password_hash = row.password_hash


def _open(asked: Asked, issue: Issue, **columns: Any) -> "queries.SignIn":
    columns |= {
        "session_id": issue.session_id,
        "browser": asked.browser,
    }
    if issue.decides is None:
        row = queries.sign_in(asked.db, **columns, tells=False)
        if row.state != "new_sign_in":
            return row
    with asked.db.transaction() as tx:
        row = queries.sign_in(tx, **columns, tells=True)
        if row.state == "live":
            notify_of_sign_in(asked, tx, found(row.user_id, "user_not_found"), row)
        if row.state == "live" or issue.answer:
            issue.confirm(tx)
    return row


def check_current_password(asked: Asked, password: str, known: Any) -> None:
    """Check the password of a signed-in user, a row with `email` and `phone`."""
    address = {"email": known.email, "phone": None if known.email else known.phone}
    with asked.parts.passwords.queue():
        is_right = asked.parts.passwords.check(password, _look_up(asked, address).password_hash)
        _record_verdict(
            asked,
            address,
            is_right,
            "current_password_invalid",
            "current_password: must be the user's password",
        )


def _look_up(asked: Asked, address: dict[str, Any]) -> "queries.SelectPassword":
    """Return the row of a user, or of an address without one. Refuse after too many failures."""
    row = queries.select_password(asked.db, **address, network=asked.client["network"])
    if row.refused_for is not None:
        raise _too_many(asked, row.refused_for)
    return row


def _record_verdict(asked: Asked, address: dict[str, Any], is_right: bool, *wrong: str) -> None:
    """Record a verdict. Refuse a right password that must not be revealed like a wrong one."""
    network = asked.client["network"]
    row = queries.record_password_verdict(asked.db, **address, network=network, is_right=is_right)
    if row.refused_by or not is_right:
        raise _refusal(asked, row.refused_by, row, *wrong)


def _refusal(asked: Asked, state: str | None, row: Any, *wrong: str) -> ApiError:
    """Return the error for a `state` of `sign_in`, with rate-limit headers for a wrong password."""
    most = asked.settings.rate_limit_login_failures.amount
    asked.noted.note(user_id=row.user_id, tries=row.tries, of=most)
    if state in ("login", "account"):
        return _too_many(asked, row.refused_for)
    if state in (None, "user", "nobody", "invalid_credentials"):
        if row.tries:
            asked.noted.add_window(limits.Window(most, most - row.tries, row.seconds_left))
        return ApiError(*wrong or ("invalid_credentials",))
    return ApiError("sign_in.not_admin" if state == "not_admin" else state)


def _too_many(asked: Asked, seconds: float) -> ApiError:
    asked.noted.add_window(limits.Window(asked.settings.rate_limit_login_failures.amount, 0, seconds))
    return limits.refusal("sign_in.over_request_rate_limit", seconds)
