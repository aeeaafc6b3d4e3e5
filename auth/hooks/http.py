"""Calls of HTTP hooks from requests. Never inside a transaction: the hook may call the admin API."""

import functools
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from auth.context import latchkey
from auth.senders import hooks
from auth.senders.hooks import HookFailed, HookRefused
from auth.settings.values.hooks import Hook
from auth.web import g

__all__ = ["Hook", "HookFailed", "HookRefused", "call"]

_MOST_FAILURES = 5  # in a row
_PAUSE = 30  # seconds


class _CircuitBreaker:
    """Keeps the requests of this process from a hook that is down. After a pause it lets one through.

    Without a lock: requests are greenlets, which do not switch in these methods.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._open_until = 0.0

    def admits(self) -> bool:
        now = time.monotonic()
        if now < self._open_until:
            return False
        if self._failures >= _MOST_FAILURES:
            self._open_until = now + _PAUSE
        return True

    def note(self, *, is_down: bool) -> None:
        self._failures = self._failures + 1 if is_down else 0
        self._open_until = time.monotonic() + _PAUSE if self._failures >= _MOST_FAILURES else 0.0


# Hooks are compared by value: one with another URL or secret starts anew.
_breaker = functools.cache(lambda _hook: _CircuitBreaker())


def call(hook: Hook, payload: dict[str, Any]) -> dict[str, Any]:
    """Ask a hook and return its answer. Raises `HookRefused` or `HookFailed`: a hook never fails open."""
    # A slow hook must not keep others from signing in, nor one that sets a password wait for itself.
    if g:
        latchkey.passwords.let_others_hash()
    return spared(hook, functools.partial(hooks.ask, hook, f"msg_{uuid.uuid4()}", payload))


def metadata(hook: Hook) -> dict[str, str]:
    """Return the member that each request has."""
    now, ip = datetime.now(UTC).isoformat(), (g.client["ip"] or "") if g else ""
    return {"uuid": str(uuid.uuid4()), "time": now, "name": hook.name, "ip_address": ip}


def spared(hook: Hook, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer to a question, which is not asked while the hook is down. Raises as `call` does."""
    breaker, is_down = _breaker(hook), False
    if not breaker.admits():
        raise HookFailed(hook.name, f"it isn't called for {_PAUSE} s after {_MOST_FAILURES} failures")
    try:
        return ask()
    except HookFailed as failure:
        # Other failures concern one request: one user whose data the hook cannot handle must not cut off all.
        is_down = failure.is_down
        raise
    finally:
        breaker.note(is_down=is_down)
