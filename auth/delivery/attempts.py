"""One attempt to send a message: render it, send it, record the outcome."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import psycopg2
import structlog

from auth.core.constants import FIRST_PAUSE, LONGEST_PAUSE
from auth.core.logs import ThrottledLog
from auth.core.sender import RefusedByServer, RenderedMessage, Sender, TryLater, one_line
from auth.core.settings import Settings
from auth.core.tokens.derived_keys import CannotOpen, Sealer, UnknownKey
from auth.delivery import dev_inbox
from auth.delivery.rendering import CannotRender, Templates
from sql import Database, queries

ClaimedRow: TypeAlias = "queries.ClaimMessage | queries.ClaimEvent"
# Seconds. Longer than any sender takes.
LEASE = 90

log = structlog.get_logger()


class FailureLog(ThrottledLog):
    """Logs that a channel or the database fails, at most once a minute."""

    interval = 60

    def __init__(self) -> None:
        super().__init__("delivery_fails")


@dataclass
class Attempts:
    """Sends claimed messages, in several threads at once. Calls `count` with each channel and outcome."""

    settings: Settings
    db: Database
    sealer: Sealer
    templates: Templates
    count: Callable[[str, str], None]

    def make(self, row: ClaimedRow, sender: Sender, failures: FailureLog) -> None:
        """Send a claimed message and record the outcome. Raises `psycopg2.Error`."""
        log_fields: dict[str, str | int] = {"message_id": row.id, "channel": row.channel, "kind": row.kind}
        if row.outcome is not None:
            # The claim found that the message is void, expired or too old.
            log.info("message_not_sent", **log_fields, outcome=row.outcome, reason=row.last_error)
            self.count(row.channel, row.outcome)
            return
        log_fields["attempts"] = row.attempts
        mask: Callable[[str], str] = one_line
        try:
            message = (sender.compose or self._render)(row)
            mask = message.masked
            response = sender.send(row.recipient, message)
        except RefusedByServer as refusal:
            reason = mask(refusal.reason)
            self._record(queries.finish_message, id=row.id, outcome="failed", reason=reason, response=None)
            log.warning("message_failed", **log_fields, reason=reason)
            self.count(row.channel, "failed")
        except TryLater as failure:
            reason = mask(failure.reason)
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(row.attempts - 1, 10))
            delay = max(pause * random.uniform(0.5, 1.0), failure.retry_after)  # noqa: S311
            self._record(queries.defer_message, id=row.id, attempts=row.attempts, delay=delay, reason=reason)
            log.debug("message_deferred", **log_fields, reason=reason)
            self.count(row.channel, "deferred")
            if failure.is_down:
                failures.count(what=row.channel, reason=reason)
        else:
            self._record(queries.finish_message, id=row.id, outcome="sent", reason=None, response=response)
            log.info("message_sent", **log_fields)
            self.count(row.channel, "sent")

    def _render(self, row: ClaimedRow) -> RenderedMessage:
        countries = self.settings.sms_countries
        if row.channel == "sms" and countries and not row.recipient.startswith(countries):
            raise RefusedByServer("AUTH_SMS_COUNTRIES does not allow this number")
        try:
            secrets = self.sealer.open_json(row.secret, row.id) if row.secret else {}
            message = self.templates.render(row, secrets)
        except UnknownKey as error:
            raise TryLater(f"the secret can't be opened: {error}", is_down=True) from None
        except CannotOpen as error:
            raise RefusedByServer(f"the secret can't be opened: {error}") from None
        except CannotRender as error:
            raise TryLater(str(error), is_down=True) from None
        if self.settings.dev_inbox:
            dev_inbox.keep(self.db, self.sealer, message)
        return message

    def _record(self, query: Callable[..., int], **parameters: object) -> None:
        """Run a statement, with retries: a message without a recorded outcome would be sent twice."""
        deadline = time.monotonic() + LEASE / 2
        while True:
            try:
                query(self.db, **parameters)
                return
            except psycopg2.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
