"""Runs all checks at once, each with a deadline."""

import queue
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dns.resolver
import psycopg2

from auth.operations.doctor import addresses, database, delivery, hooks, mail, secrets
from auth.operations.doctor.check import Check, Context, Failure, NotChecked
from auth.settings import Settings
from auth.settings.state import NotRunningError
from sql import Database

CHECKS = (*database.CHECKS, *secrets.CHECKS, *addresses.CHECKS, *mail.CHECKS, *delivery.CHECKS, *hooks.CHECKS)
SECONDS = 4.0
_CONNECTIONS = 8
# If one of these fails, the statements of other checks fail too.
_FIRST = {"database", "schema"}
_DNS_SECONDS = 2.0


@dataclass(frozen=True)
class Result:
    """`status` is `ok`, `failed` or `skipped`; `text` is the check's title or the problem."""

    check: str
    status: str
    text: str
    setting: str | None = None


def examine(
    settings: Settings, skip: Collection[str] = (), resolver: dns.resolver.Resolver | None = None
) -> list[Result]:
    """Return the results in the order of `CHECKS`."""
    try:
        db: Any = closing(Database(settings.find_database(), size=_CONNECTIONS, prepare=False))
    except NotRunningError as error:
        db = nullcontext(_NoDatabase(error))
    with db as opened:
        return _results(CHECKS, skip, Context(settings, opened, resolver or _resolver()))


def examine_files(state_dir: Path, skip: Collection[str] = ()) -> list[Result]:
    """Return the results of what can be checked without valid settings."""
    settings = cast("Settings", SimpleNamespace(state_dir=state_dir, key_files={}))
    nothing = cast("Any", None)
    return _results(secrets.OF_FILES, skip, Context(settings, nothing, nothing))


class _NoDatabase:
    """In place of the embedded Postgres of a service that does not run."""

    def __init__(self, error: NotRunningError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


def _results(checks: Sequence[Check], skip: Collection[str], context: Context) -> list[Result]:
    checks = [check for check in checks if check.name not in skip]
    outcomes = _run(checks, context)
    has_failed = {name for name in _FIRST if isinstance(outcomes.get(name), Failure)}
    return [_result(check, outcomes.get(check.name, TimeoutError()), has_failed) for check in checks]


def _run(checks: list[Check], context: Context) -> dict[str, Failure | Exception | None]:
    """Return what each check found or raised. A check that hangs is missing."""
    done: queue.SimpleQueue[tuple[str, Failure | Exception | None]] = queue.SimpleQueue()

    def look(check: Check) -> None:
        try:
            done.put((check.name, check.look(context)))
        except Exception as error:
            done.put((check.name, error))

    for check in checks:
        # Daemon threads, so that the command ends even if some hang.
        threading.Thread(target=look, args=(check,), name=check.name, daemon=True).start()
    outcomes: dict[str, Failure | Exception | None] = {}
    deadline = time.monotonic() + SECONDS
    with suppress(queue.Empty):
        for _ in checks:
            name, outcome = done.get(timeout=max(0.0, deadline - time.monotonic()))
            outcomes[name] = outcome
    return outcomes


def _result(check: Check, outcome: Failure | Exception | None, has_failed: Collection[str]) -> Result:
    if outcome is None:
        return Result(check.name, "ok", check.title)
    if isinstance(outcome, Failure):
        return Result(check.name, "failed", outcome.sentence, outcome.setting)
    if isinstance(outcome, NotChecked):
        return Result(check.name, "skipped", f"{check.title}: not checked, {outcome}")
    if isinstance(outcome, NotRunningError):
        return Result(check.name, "skipped", f"{check.title}: not checked, the service does not run")
    if isinstance(outcome, psycopg2.Error) and has_failed:
        return Result(check.name, "skipped", f"{check.title}: not checked, see {min(has_failed)}")
    if isinstance(outcome, TimeoutError):
        reason = f"no answer within {SECONDS:.0f} s"
    else:
        reason = " ".join(f"{type(outcome).__name__}: {outcome}".split())
    return Result(
        check.name, "failed", f"{check.title}: could not be checked, {reason}.", f"--skip {check.name}"
    )


def _resolver() -> dns.resolver.Resolver:
    try:
        resolver = dns.resolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        resolver = dns.resolver.Resolver(configure=False)
    resolver.lifetime = _DNS_SECONDS
    return resolver
