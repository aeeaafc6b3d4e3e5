"""Trying a password: counted as failed before it is checked, so that many tries at once are no better than one after another."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flask import g

from auth import audit, limits
from auth.context import latchkey
from auth.guard import View
from auth.passwords import Slot


@dataclass(frozen=True)
class Attempt:
    """A counted try, with a place in the hashing queue. `password_hash` is None where there is nothing to match."""

    slot: Slot
    user_id: str | None
    password_hash: str | None
    is_stranger: bool
    failure: limits.Window | None

    def check(self, password: str) -> bool:
        """Whether this is the password; it takes a hash in any case. A failure shows in the response's headers."""
        matches = self.slot.check(password, self.password_hash)
        if not matches and self.failure:
            limits.note(self.failure)
        return matches


def with_room(view: View) -> View:
    """Turn a request away at once where its password would find no place in the queue: before it is counted, and asks the database.

    Outside the limits.
    """

    @functools.wraps(view)
    def checked(*args: Any, **kwargs: Any) -> Any:
        latchkey.passwords.check_room()
        return view(*args, **kwargs)

    return checked


@contextmanager
def password_attempt(email: str | None, phone: str | None) -> Iterator[Attempt]:
    """Begin to try a password for an address. Raises `ApiError` 429 after too many failures, and `TooManyWaiting`.

    The place in the queue comes first: what is turned away there is not counted.
    """
    settings = latchkey.settings
    failures, account_failures = settings.rate_limit_login_failures, settings.rate_limit_account_failures
    with latchkey.passwords.slot() as slot:
        row = latchkey.db.one(
            "begin_password_attempt",
            email=email,
            phone=phone,
            network=g.network,
            limited=settings.rate_limits_enabled,
            failures=failures.amount,
            failures_seconds=failures.get_expiry(),
            account_failures=account_failures.amount,
            account_failures_seconds=account_failures.get_expiry(),
        )
        if row.refused_for is not None:
            limits.note(limits.Window(failures.amount, 0, row.refused_for))
            raise limits.refusal("Too many failed sign-ins; try again later, or sign in by a link", row.refused_for)
        audit.about(user_id=row.user_id, tries=row.tries, of=failures.amount)
        failure = limits.Window(failures.amount, failures.amount - row.tries, row.seconds_left) if row.tries else None
        yield Attempt(slot, row.user_id, row.password_hash, row.is_stranger, failure)
