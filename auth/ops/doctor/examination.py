"""Runs all checks at once, until a deadline."""

import os
import threading
import time
from collections.abc import Collection
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import dns.resolver
import psycopg2
from psycopg2.errors import LockNotAvailable, QueryCanceled

from auth import registry
from auth.core.checks import Check, Context, Failure, NotChecked, Note
from auth.core.cores import cores
from auth.core.settings import Settings
from auth.core.settings.state import NotRunningError
from auth.ops.doctor import database, delivery, mail, public_url, secrets
from sql import Database
from sql.pool import NotInTime, reason

CHECKS = (
    *database.CHECKS,
    *secrets.CHECKS,
    *public_url.CHECKS,
    *mail.CHECKS,
    *delivery.CHECKS,
    *registry.checks(),
)
SECONDS = 4.0  # from the start of the command
_LEAST_SECONDS = 2.0  # for the checks, even after a slow start of the command
_MARGIN = 0.5  # seconds for reporting connections that were given up
_CONNECTIONS = 8
# If one of these fails, the statements of other checks also fail.
_FIRST = ("database", "schema", "locks")
_USES_DATABASE = {check.name for check in (*database.CHECKS, *secrets.CHECKS, *delivery.CHECKS)} - {
    "database"
}
_DNS_SECONDS = 2.0
_TIMEOUTS = (TimeoutError, NotInTime, LockNotAvailable, QueryCanceled)
_CheckOutcome = Failure | Exception | None  # the result or exception of a check


@dataclass(frozen=True)
class Result:
    """`status` is `ok`, `note`, `failed`, `skipped`, or `unknown` if an overloaded machine left it undone.

    `text` is the check's title or the problem.
    """

    check: str
    status: str
    text: str
    remedy: str | None = None


def examine(
    settings: Settings,
    skip: Collection[str] = (),
    resolver: dns.resolver.Resolver | None = None,
    *,
    started: float | None = None,
) -> list[Result]:
    """Return the results in the order of `CHECKS`, within `SECONDS` of `started`, a time of `time.monotonic`.

    After a slow start, the checks still have `_LEAST_SECONDS`.
    """
    now = time.monotonic()
    gives_up_at = max((started or now) + SECONDS - _MARGIN, now + _LEAST_SECONDS)
    try:
        url = settings.find_database()
        connecting: Any = closing(Database(url, size=_CONNECTIONS, prepare=False, gives_up_at=gives_up_at))
    except NotRunningError as error:
        connecting = nullcontext(_NoDatabase(error))
    with connecting as db:
        checks = [check for check in CHECKS if check.name not in skip]
        outcomes = _run(checks, Context(settings, db, resolver or _resolver(gives_up_at), gives_up_at))
    broken = (Failure, TimeoutError, psycopg2.Error)
    cause = next((name for name in _FIRST if isinstance(outcomes.get(name), broken)), None)
    return [_result(check, outcomes[check.name], cause) for check in checks]


class _NoDatabase:
    """Replaces the embedded Postgres of a stopped service."""

    def __init__(self, error: NotRunningError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> NoReturn:
        raise self._error


def _run(checks: list[Check], context: Context) -> dict[str, _CheckOutcome]:
    outcomes: dict[str, _CheckOutcome] = {check.name: TimeoutError() for check in checks}

    def look(check: Check) -> None:
        try:
            outcomes[check.name] = check.look(context)
        except Exception as error:
            outcomes[check.name] = error

    # Daemon threads, so that the command ends even if some hang.
    threads = [threading.Thread(target=look, args=(check,), daemon=True) for check in checks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, context.gives_up_at + _MARGIN - time.monotonic()))
    return dict(outcomes)


def _result(check: Check, outcome: _CheckOutcome, cause: str | None) -> Result:
    if outcome is None:
        return Result(check.name, "ok", check.title)
    if isinstance(outcome, Note):
        return Result(check.name, "note", outcome.sentence, outcome.remedy)
    if isinstance(outcome, NotChecked):
        return Result(check.name, "skipped", f"{check.title}: not checked, {outcome}")
    if isinstance(outcome, NotRunningError):
        return Result(check.name, "skipped", f"{check.title}: not checked, the service does not run")
    timed_out = isinstance(outcome, _TIMEOUTS) or getattr(outcome, "timed_out", False)
    load, core_count = os.getloadavg()[0], cores()
    if timed_out and load > 2 * core_count:
        overload = f"this machine is overloaded (load {load:.0f} on {core_count} cores)"
        return Result(check.name, "unknown", f"{check.title}: not checked: {overload}")
    if isinstance(outcome, Failure):
        return Result(check.name, "failed", outcome.sentence, outcome.remedy)
    hangs = isinstance(outcome, TimeoutError) and check.name in _USES_DATABASE
    if cause not in (None, check.name) and (hangs or isinstance(outcome, psycopg2.Error)):
        return Result(check.name, "skipped", f"{check.title}: not checked, see {cause}")
    problem = f"{type(outcome).__name__}: {' '.join(str(outcome).split())}"
    remedy = f"Report this error to the maintainers. Until it is mended: latchkey doctor --skip {check.name}"
    if timed_out:
        problem = (
            reason(outcome) if isinstance(outcome, psycopg2.Error) else f"no answer within {SECONDS:.0f} s"
        )
        remedy = "Wait until the network, DNS, the disk and Postgres respond, then run this again."
    return Result(
        check.name, "failed", f"{check.title}: could not be checked, {problem.rstrip('.')}.", remedy
    )


def _resolver(gives_up_at: float) -> dns.resolver.Resolver:
    try:
        resolver = dns.resolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        resolver = dns.resolver.Resolver(configure=False)
    resolver.lifetime = max(0.1, min(_DNS_SECONDS, gives_up_at - time.monotonic()))
    return resolver
