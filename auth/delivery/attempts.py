"""One attempt to send a message: render it, send it, record the outcome."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg2
import structlog

from auth.delivery import dev_inbox
from auth.delivery.messages import CannotRender, load_templates
from auth.senders.sender import Message, Refused, Sender, TryLater, one_line
from auth.settings import Settings
from auth.tokens.keys import CannotOpen, Sealer, UnknownKey
from sql import Database, queries

# Seconds. The lease is longer than any sender takes; the pause is doubled after each attempt.
LEASE = 90
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
# Seconds without a failure before a recovery is logged, so that a flapping target does not fill the log.
_SETTLED_AFTER = 10.0

log = structlog.get_logger()


class FailureLog:
    """Logs when a channel or the database begins to fail and when it recovers, but not each failure."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._failed_at: float | None = None
        self._has_recovered = False

    def begin(self, reason: str, exc_info: BaseException | None = None) -> None:
        with self._lock:
            is_new = self._failed_at is None
            self._failed_at, self._has_recovered = time.monotonic(), False
        if is_new:
            log.warning("delivery_fails", what=self._what, reason=reason, exc_info=exc_info)

    def end(self) -> None:
        self._has_recovered = True

    def settle(self) -> None:
        with self._lock:
            if self._failed_at is None or not self._has_recovered:
                return
            if time.monotonic() - self._failed_at < _SETTLED_AFTER:
                return
            self._failed_at = None
        log.warning("delivery_works_again", what=self._what)


class Attempts:
    """Sends claimed messages, in several threads at once. Calls `count` with each channel and outcome."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        sealer: Sealer,
        count: Callable[[str, str], None] | None = None,
    ) -> None:
        self._count = count or (lambda _channel, _outcome: None)
        self._settings = settings
        self._db = db
        self._sealer = sealer
        self._templates = load_templates(settings)

    def make(self, row: Any, sender: Sender, failures: FailureLog) -> None:
        """Send a claimed message and record the outcome. Raises `psycopg2.Error`."""
        if row.outcome is not None:
            # The claim has found that the message is void, expired or too old.
            log.info("message_not_sent", **_names(row), outcome=row.outcome, reason=row.last_error)
            self._count(row.channel, row.outcome)
            return
        masked: Callable[[str], str] = one_line
        try:
            message = sender.compose(row, self._render)
            masked = message.masked
            response = sender.send(row.recipient, message)
        except Refused as refusal:
            reason = masked(refusal.reason)
            self._record(queries.finish_message, id=row.id, outcome="failed", reason=reason, response=None)
            log.warning("message_failed", **_names(row), attempts=row.attempts, reason=reason)
            self._count(row.channel, "failed")
        except TryLater as failure:
            reason = masked(failure.reason)
            self._defer(row, reason, failure.seconds)
            self._count(row.channel, "deferred")
            if failure.is_down:
                failures.begin(reason)
                return
        else:
            self._record(queries.finish_message, id=row.id, outcome="sent", reason=None, response=response)
            log.info("message_sent", **_names(row), attempts=row.attempts)
            self._count(row.channel, "sent")
        failures.end()

    def _render(self, row: Any) -> Message:
        countries = self._settings.sms_countries
        if row.channel == "sms" and countries and not row.recipient.startswith(countries):
            raise Refused("AUTH_SMS_COUNTRIES does not allow this number")
        try:
            secrets = self._sealer.open_json(row.secret, row.id) if row.secret else {}
            message = self._templates.render(row, secrets)
        except UnknownKey as error:
            raise TryLater(f"the secret can't be opened: {error}", is_down=True) from None
        except CannotOpen as error:
            raise Refused(f"the secret can't be opened: {error}") from None
        except CannotRender as error:
            raise TryLater(str(error), is_down=True) from None
        if self._settings.dev_inbox:
            dev_inbox.keep(self._db, self._sealer, message)
        return message

    def _defer(self, row: Any, reason: str, asked: float | None) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(row.attempts - 1, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        delay = max(pause, asked or 0.0)
        self._record(queries.defer_message, id=row.id, attempts=row.attempts, delay=delay, reason=reason)
        log.debug("message_deferred", **_names(row), attempts=row.attempts, reason=reason)

    def _record(self, query: Callable[..., int], **parameters: Any) -> None:
        """Run a statement, with retries: a message whose outcome is lost would be sent twice."""
        deadline = time.monotonic() + LEASE / 2
        while True:
            try:
                query(self._db, **parameters)
                return
            except psycopg2.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)


def _names(row: Any) -> dict[str, Any]:
    return {"message_id": row.id, "channel": row.channel, "kind": row.kind}
