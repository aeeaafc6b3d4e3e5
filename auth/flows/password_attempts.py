"""Trying a password: counted as failed before it is checked, so that many tries at once are no better than one after another."""

import functools
import re
import time
from dataclasses import dataclass
from typing import Any

from flask import g

from auth.context import latchkey
from auth.passwords.hashing import Slot
from auth.tally import Tally
from auth.web import audit, limits
from auth.web.errors import unavailable
from auth.web.guard import View
from auth.web.wire import PREFIX, has_gone, whole_body

# Seconds of waiting after which it is looked whether the client has gone; not before, for one that sends no more may still listen.
_PATIENCE = 0.1
_gone = Tally("clients_gone")

# How requests begin whose views are `in_turn`: gunicorn's worker tells them by that, before they are parsed.
REQUESTS_IN_TURN = re.compile(rf"POST (?:{PREFIX})?/(?:signup|login-admin|token\?grant_type=password)[ ?&]".encode())


@dataclass(frozen=True)
class Attempt:
    """A counted try, whose turn to hash has come. `password_hash` is None where there is nothing to match."""

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


def in_turn(view: View) -> View:
    """Give a view, as `slot`, its place in the queue of those who hash, or turn the request away: before it is counted, and asks the database.

    Outside the limits. Where more come at once than can be served, those who are turned away need not wait for what is asked for the others.
    """

    @functools.wraps(view)
    def waited(*args: Any, **kwargs: Any) -> Any:
        # Nobody is to wait for a client that sends slowly.
        whole_body()
        with latchkey.passwords.slot() as slot:
            began = time.monotonic()
            slot.await_turn()
            # A crowd that has given up must not have its passwords hashed while others wait.
            if time.monotonic() - began > _PATIENCE and has_gone():
                _gone.count()
                raise unavailable()
            return view(*args, slot=slot, **kwargs)

    return waited


def begin_attempt(slot: Slot, email: str | None, phone: str | None) -> Attempt:
    """Count a try of a password for an address, when its turn has come, and return it. Raises `ApiError` 429 after too many failures."""
    slot.await_turn()
    settings = latchkey.settings
    failures, account_failures = settings.rate_limit_login_failures, settings.rate_limit_account_failures
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
        raise limits.refusal("sign_in.over_request_rate_limit", row.refused_for)
    audit.about(user_id=row.user_id, tries=row.tries, of=failures.amount)
    failure = limits.Window(failures.amount, failures.amount - row.tries, row.seconds_left) if row.tries else None
    return Attempt(slot, row.user_id, row.password_hash, row.is_stranger, failure)
