"""One attempt to send a message: render it, send it, record the outcome."""

import random
import threading
import time
from collections.abc import Mapping
from typing import Any

import psycopg2
import structlog

from auth.delivery import dev_inbox
from auth.delivery.failure_log import FailureLog
from auth.delivery.messages import CannotRender, Message, load_templates
from auth.delivery.senders import Refused, Sender, TryLater, one_line
from auth.settings import Settings
from auth.tokens.keys import CannotOpen, Sealer
from auth.tokens.sealed import open_json
from sql import Database

# Seconds; longer than any sender takes.
LEASE = 90
# Seconds until the second attempt, doubled for each further one.
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0

log = structlog.get_logger()


class Attempts:
    """Sends claimed messages. Used by several threads at once."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        sealer: Sealer,
        senders: Mapping[str, Sender],
        failures: Mapping[str, FailureLog],
        stopping: threading.Event,
    ) -> None:
        self._settings = settings
        self._db = db
        self._sealer = sealer
        self._senders = senders
        self._failures = failures
        self._stopping = stopping
        self._templates = load_templates(settings)

    def make(self, row: Any) -> None:
        """Send a claimed message and record the outcome. Raises `psycopg2.Error`."""
        if row.outcome is not None:
            # The claim found it void, expired or too old.
            log.info(
                "message_not_sent",
                message_id=row.id,
                channel=row.channel,
                kind=row.kind,
                outcome=row.outcome,
                reason=row.last_error,
            )
            return
        failures = self._failures[row.channel]
        try:
            sender = self._senders[row.channel]
            response = sender.send(row.recipient, sender.compose(row, self._render))
        except Refused as refusal:
            self._finish(row, "failed", str(refusal))
            failures.end()
        except TryLater as failure:
            self._defer(row, str(failure), failure.seconds)
            if failure.is_down:
                failures.begin(str(failure))
            else:
                failures.end()
        except CannotOpen as error:
            self._finish(row, "failed", f"the secret can't be opened: {error}")
        except CannotRender as error:
            self._defer(row, one_line(str(error)), None)
            failures.begin(str(error))
        else:
            self._finish(row, "sent", None, response)
            failures.end()

    def _render(self, row: Any) -> Message:
        """Return the text of a row of the outbox. Raises `Refused`, `CannotOpen` and `CannotRender`."""
        countries = self._settings.sms_countries
        secrets = open_json(self._sealer, row.secret, row.id) if row.secret else {}
        if row.channel == "sms" and countries and not row.recipient.startswith(countries):
            raise Refused("AUTH_SMS_COUNTRIES does not allow this number")
        message = self._templates.render(row, secrets)
        if self._settings.dev_inbox:
            dev_inbox.keep(self._db, self._sealer, message)
        return message

    def _finish(self, row: Any, outcome: str, reason: str | None, response: str | None = None) -> None:
        self._record("finish_message", id=row.id, outcome=outcome, reason=reason, response=response)
        write = log.warning if outcome == "failed" else log.info
        write(
            f"message_{outcome}",
            message_id=row.id,
            channel=row.channel,
            kind=row.kind,
            attempts=row.attempts,
            reason=reason,
        )

    def _defer(self, row: Any, reason: str, asked: float | None) -> None:
        # Jitter, so that messages that failed together do not come back together.
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(row.attempts - 1, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        self._record(
            "defer_message", id=row.id, attempts=row.attempts, delay=max(pause, asked or 0.0), reason=reason
        )
        log.debug(
            "message_deferred",
            message_id=row.id,
            channel=row.channel,
            kind=row.kind,
            attempts=row.attempts,
            reason=reason,
        )

    def _record(self, statement: str, **parameters: Any) -> None:
        """Run a statement, again if need be: a message whose outcome is lost would be sent twice."""
        deadline = time.monotonic() + LEASE / 2
        while True:
            try:
                self._db.run(statement, **parameters)
                return
            except psycopg2.Error:
                if time.monotonic() > deadline or self._stopping.wait(1):
                    raise
