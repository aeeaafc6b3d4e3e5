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

    def make(self, waiting: Any) -> None:
        """Send a claimed message and record the outcome. Raises `psycopg2.Error`."""
        if waiting.outcome is not None:
            # The claim itself has found that it is void, expired or given up.
            log.info("message_not_sent", message_id=waiting.id, channel=waiting.channel, kind=waiting.kind, outcome=waiting.outcome, reason=waiting.last_error)
            return
        failures = self._failures[waiting.channel]
        try:
            sender = self._senders[waiting.channel]
            response = sender.send(waiting.recipient, sender.compose(waiting, self._render))
        except Refused as refusal:
            self._finish(waiting, "failed", str(refusal))
            failures.end()
        except TryLater as failure:
            self._defer(waiting, str(failure), failure.seconds)
            if failure.is_down:
                failures.begin(str(failure))
            else:
                failures.end()
        except CannotOpen as error:
            self._finish(waiting, "failed", f"the secret can't be opened: {error}")
        except CannotRender as error:
            self._defer(waiting, one_line(str(error)), None)
            failures.begin(str(error))
        else:
            self._finish(waiting, "sent", None, response)
            failures.end()

    def _render(self, waiting: Any) -> Message:
        """Return the text of a row of the outbox. Raises `Refused`, `CannotOpen` and `CannotRender`."""
        countries = self._settings.sms_countries
        secrets = open_json(self._sealer, waiting.secret, waiting.id) if waiting.secret else {}
        if waiting.channel == "sms" and countries and not waiting.recipient.startswith(countries):
            raise Refused("AUTH_SMS_COUNTRIES does not allow this number")
        message = self._templates.render(waiting, secrets)
        if self._settings.dev_inbox:
            dev_inbox.keep(self._db, self._sealer, message)
        return message

    def _finish(self, waiting: Any, outcome: str, reason: str | None, response: str | None = None) -> None:
        self._record("finish_message", id=waiting.id, outcome=outcome, reason=reason, response=response)
        write = log.warning if outcome == "failed" else log.info
        write(f"message_{outcome}", message_id=waiting.id, channel=waiting.channel, kind=waiting.kind, attempts=waiting.attempts, reason=reason)

    def _defer(self, waiting: Any, reason: str, asked: float | None) -> None:
        # Jitter, so that messages that failed together do not come back together.
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(waiting.attempts - 1, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        self._record("defer_message", id=waiting.id, attempts=waiting.attempts, delay=max(pause, asked or 0.0), reason=reason)
        log.debug("message_deferred", message_id=waiting.id, channel=waiting.channel, kind=waiting.kind, attempts=waiting.attempts, reason=reason)

    def _record(self, statement: str, **parameters: Any) -> None:
        """Run a statement, repeatedly if need be: losing the outcome of a message that was sent would send it twice."""
        deadline = time.monotonic() + LEASE / 2
        while True:
            try:
                self._db.run(statement, **parameters)
                return
            except psycopg2.Error:
                if time.monotonic() > deadline or self._stopping.wait(1):
                    raise
