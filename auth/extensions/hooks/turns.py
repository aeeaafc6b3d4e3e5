"""Calls of hooks from requests, never inside a transaction: the hook may call the admin API."""

import functools
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from threading import BoundedSemaphore
from typing import Any
from weakref import WeakValueDictionary

import structlog

from auth.core import promises
from auth.core.net.sockets import wait_for
from auth.core.settings.values.hooks import Hook
from auth.delivery.senders.sender import one_line
from auth.extensions.hooks import http_hooks as hooks
from auth.extensions.hooks.http_hooks import HookFailed, HookRefused
from auth.web import g
from auth.web.error_handlers import as_api_error
from auth.web.errors import ApiError, unavailable

__all__ = ["Hook", "HookFailed", "HookRefused", "call"]
log = structlog.get_logger()

# Seconds for which a request waits for its turn. A hook that calls itself is refused before its call ends.
_PATIENCE = 1.9
# A semaphore lives as long as a request holds it or waits for it.
_semaphores: "WeakValueDictionary[tuple[Hook, str | None], BoundedSemaphore]" = WeakValueDictionary()


def call(hook: Hook, payload: Mapping[str, object], user_id: str | None = None) -> dict[str, Any]:
    """Ask a hook and return its answer. A hook never fails open.

    Raises `HookRefused` or `HookFailed`. Refuses if the hook cannot be asked.
    """
    return in_turn(hook, user_id, functools.partial(hooks.ask, hook, f"msg_{uuid.uuid4()}", payload))


def in_turn(hook: Hook, user_id: str | None, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Ask a hook when no other call for the same user, or else the same network, is in progress."""
    with _turn(hook, user_id or (g.client["network"] if g else "")):
        return ask()


@contextmanager
def _turn(hook: Hook, subject: str) -> Iterator[None]:
    """Limit concurrent calls per user, of a slow hook, and of a hook that causes calls of itself."""
    last = time.monotonic() + _PATIENCE
    with ExitStack() as held:
        for name, most in ((subject, 1), (None, promises.MOST_CALLS_OF_A_HOOK)):
            semaphore = _semaphores.setdefault((hook, name), BoundedSemaphore(most))
            if not wait_for(semaphore, last - time.monotonic()):
                raise unavailable()
            held.callback(semaphore.release)
        yield


def metadata(hook: Hook) -> dict[str, str]:
    """Return the `metadata` of each request."""
    now, ip = datetime.now(UTC).isoformat(), (g.client["ip"] or "") if g else ""
    return {"uuid": str(uuid.uuid4()), "time": now, "name": hook.name, "ip_address": ip}


@as_api_error.register
def _hook_refused(error: HookRefused) -> ApiError:
    _log_answer("hook_refused", error.hook, f"{error.status} {one_line(error.message)}")
    refusal = ApiError("hook_refused", message=one_line(error.message))
    refusal.status = error.status
    return refusal


@as_api_error.register
def _hook_failed(error: HookFailed) -> ApiError:
    _log_answer("hook_failed", error.hook, one_line(error.reason))
    return unavailable("hook_failed")


def _log_answer(event: str, hook: str, said: str) -> None:
    log.warning(event, hook=hook, said=said)
    known = g.subject or g.note(user_id=g.user_id)
    known["details"] |= {"hook": hook, "said": said}
