"""The users that administrators may act on: not other administrators, and not themselves."""

from typing import Any

from auth.web import audit, guard
from auth.web.errors import ApiError, found
from sql import Transaction


def lock(tx: Transaction, user_id: str) -> Any:
    """Lock and return a user's row. Raises `ApiError` if the caller may not change this user."""
    return check(tx, user_id, tx.one("lock_user", user_id=user_id))


def check(tx: Transaction, user_id: str, user: Any) -> Any:
    """Check and return the locked row of a user, or None. Raises `ApiError` like `lock`."""
    found(user, "user_not_found")
    # Since the guard looked, the caller may have been demoted or signed out, while the lock was waited for.
    if not guard.is_service_role() and not guard.admit(tx.one("select_caller", **guard.caller())).is_admin:
        raise ApiError("not_admin")
    if user.role != "admin":
        return user
    if not guard.is_service_role():
        raise refusal(user_id)
    # The service role key may remove the last administrator, but not while the second-to-last one leaves.
    tx.one("lock_administrators")
    return user


def refusal(user_id: str) -> ApiError:
    """Return the error for an act on another administrator, whose id goes into the audit log."""
    audit.about(user_id=user_id)
    return ApiError("target.insufficient_permissions")
