"""Calls of hooks from requests, never inside a transaction: the hook may call the admin API."""

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from threading import BoundedSemaphore
from weakref import WeakValueDictionary

import structlog

from auth.core import constants
from auth.core.net.sockets import wait_for
from auth.core.sender import one_line
from auth.core.settings.values.hooks import Hook
from auth.extensions.hooks.http_hooks import HookFailed, HookRefused
from auth.registry import HookContext
from auth.web.errors import ApiError, unavailable

log = structlog.get_logger()

# Seconds for which a request waits for its turn. A hook that calls itself is refused before its call ends.
_PATIENCE = 1.9
# A semaphore lives as long as a request holds it or waits for it.
_semaphores: "WeakValueDictionary[tuple[Hook, str | None], BoundedSemaphore]" = WeakValueDictionary()


@contextmanager
def asking(context: HookContext, hook: Hook, subject: str) -> Iterator[None]:
    """Wait until no other call for the same subject, a user or else a network, is in progress.

    This also limits the calls of a slow hook, and of one that causes calls of itself. A hook never fails
    open: refuse if it cannot be asked, refuses or fails. The log and the audit log get the reason.
    """
    last = time.monotonic() + _PATIENCE
    with ExitStack() as permits:
        for name, most in ((subject, 1), (None, constants.MOST_CALLS_OF_A_HOOK)):
            semaphore = _semaphores.setdefault((hook, name), BoundedSemaphore(most))
            if not wait_for(semaphore, last - time.monotonic()):
                raise unavailable()
            permits.callback(semaphore.release)
        try:
            yield
        except HookFailed as failure:
            _log_answer(context, "hook_failed", hook.name, one_line(failure.reason))
            raise unavailable("hook_failed") from failure
        except HookRefused as refusal:
            message = one_line(refusal.message)
            _log_answer(context, "hook_refused", hook.name, f"{refusal.status} {message}")
            raise ApiError("hook_refused", status=refusal.status, message=message) from refusal


def metadata(context: HookContext, hook: Hook) -> dict[str, str]:
    """Return the `metadata` of each request."""
    now, ip = datetime.now(UTC).isoformat(), context.client["ip"] or ""
    return {"uuid": str(uuid.uuid4()), "time": now, "name": hook.name, "ip_address": ip}


def _log_answer(context: HookContext, event: str, hook: str, said: str) -> None:
    log.warning(event, hook=hook, said=said)
    context.note_details(hook=hook, said=said)
