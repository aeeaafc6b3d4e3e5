"""Acts of administrators, and the users whom they may act on: no other administrators, nor themselves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Transaction, acts, queries
from sql.acts import Act


class _Locked(Protocol):
    @property
    def role(self) -> str: ...


_User = TypeVar("_User", bound=_Locked)

# Runs first in the transaction of an act on one of many users, and marks it as done.
Claim = Callable[[Transaction], None]


@contextmanager
def act(asked: Asked, claim: Claim | None = None) -> Iterator[Act]:
    """Run a transaction of an administrator, or of the service role key. Refuse, and change nothing, if the
    caller has been demoted or signed out meanwhile."""
    with acts.begin(asked.db) as tx:
        if claim:
            claim(tx)
        yield tx
        # This comes last, because the statements may have waited for locks since the guard's check.
        if asked.actor != "service_role" and not asked.live_caller(on=tx).is_admin:
            raise ApiError("not_admin")


def lock(asked: Asked, tx: Transaction, user_id: str) -> "queries.LockUser":
    """Lock and return a user's row. Refuse if the caller may not change this user."""
    return check(asked, tx, user_id, queries.lock_user(tx, user_id=user_id))


def check(asked: Asked, tx: Transaction, user_id: str, user: _User | None) -> _User:
    """Check and return the locked row of a user, or None. Refuse like `lock`."""
    user = found(user, "user_not_found")
    actor = "service_role" if asked.actor == "service_role" else "administrator"
    if queries.select_operators_refusal(tx, user_id=user_id, actor=actor).key:
        raise refusal(asked, user_id)
    if user.role == "admin":
        # The service role key may remove the last administrator, but not while another administrator leaves.
        queries.lock_administrators(tx)
    return user


def refusal(asked: Asked, user_id: str) -> ApiError:
    """Return the error for an act on another administrator, whose id goes into the audit log."""
    asked.noted.note(user_id=user_id)
    return ApiError("target.insufficient_permissions")
