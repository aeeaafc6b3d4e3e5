"""Takes due messages from the outbox and sends each in a thread of its own.

A message is claimed for the length of a lease and sent outside any transaction. When the process dies,
another one claims the message after the lease, so nothing is lost and at most the messages in flight are sent
twice.

A dead target must not delay the others. Each channel has a number of threads of its own, and the same number
again for its slow targets (mail hosts, webhooks), which get no other threads until they are quick again.
"""

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg2
import structlog

from auth.delivery import channels, events, housekeeping
from auth.delivery.attempts import LEASE, Attempts
from auth.delivery.failure_log import FailureLog
from auth.delivery.senders import Sender, one_line
from auth.delivery.slow_targets import SLOW_AFTER, SlowTargets
from auth.settings import Settings
from auth.tokens.keys import Sealer
from sql import Database
from sql.notifications import Notifications

# Seconds between looks at the outbox without a notification: deferred messages become due unannounced.
POLL_INTERVAL = 2.0
HOUSEKEEPING_INTERVAL = 3600
# Seconds that the messages in flight have at the end of the process.
GRACE = 5.0

log = structlog.get_logger()


@dataclass(frozen=True)
class _Lane:
    """The slow targets of a channel, or all others, with the threads that send to them now."""

    channel: str
    is_slow: bool
    limit: int
    threads: set[threading.Thread] = field(default_factory=set)


class Deliverer:
    """Sends messages until `end` is called, with the senders of the settings unless others are given."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        sealer: Sealer,
        senders: Mapping[str, Sender] | None = None,
        *,
        slow_after: float = SLOW_AFTER,
    ) -> None:
        if senders is None:
            senders = channels.senders(settings) | {
                events.CHANNEL: events.EventSender(db, sealer, settings.webhook_private_networks)
            }
        self._db = db
        self._sealer = sealer
        self._senders = senders
        self._slow = {channel: SlowTargets(slow_after) for channel in senders}
        self._failures = {channel: FailureLog(channel) for channel in senders}
        self._database_failures = FailureLog("database")
        self._lanes = [
            _Lane(channel, is_slow, sender.threads)
            for channel, sender in senders.items()
            for is_slow in (False, True)
        ]
        self._stopping = threading.Event()
        self._attempts = Attempts(settings, db, sealer, senders, self._failures, self._stopping)
        # PgBouncer, for which AUTH_DB_PREPARE is turned off, does not pass notifications on.
        self._listen_url = settings.database_url if settings.db_prepare else None
        self._notifications: Notifications | None = None

    def run(self, grace: float = GRACE) -> None:
        """Deliver until `end` is called, then wait up to `grace` seconds for the messages in flight."""
        threading.Thread(target=self._keep_house, name="delivery housekeeping", daemon=True).start()
        with contextlib.closing(Notifications(self._listen_url)) as self._notifications:
            while not self._stopping.is_set():
                self._dispatch()
                self._notifications.wait(POLL_INTERVAL)
        deadline = time.monotonic() + grace
        for thread in [thread for lane in self._lanes for thread in list(lane.threads)]:
            thread.join(max(0.0, deadline - time.monotonic()))
        for sender in self._senders.values():
            sender.close()

    def end(self) -> None:
        """Make `run` return. Safe in signal handlers."""
        self._stopping.set()
        self._look_again()

    def deliver_due(self) -> int:
        """Send what is due in this thread, and return the number of messages. Raises `psycopg2.Error`."""
        count = 0
        while any(self._attempt_next(lane) for lane in self._lanes):
            count += 1
        return count

    def _dispatch(self) -> None:
        """Hand every message that is due to a thread, as far as there are threads."""
        # A log that cannot be written must not end the process.
        with contextlib.suppress(OSError):
            try:
                for lane in self._lanes:
                    self._fill(lane)
                self._database_failures.end()
            except psycopg2.Error as error:
                self._database_failures.begin(one_line(str(error)))
            except RuntimeError as error:
                log.error("delivery_has_no_threads", reason=one_line(str(error)))

    def _fill(self, lane: _Lane) -> None:
        while len(lane.threads) < lane.limit and (message := self._claim(lane)):
            thread = threading.Thread(
                target=self._attempt_in_thread,
                args=(lane, message),
                name=f"delivery {lane.channel}",
                daemon=True,
            )
            lane.threads.add(thread)
            try:
                thread.start()
            except RuntimeError:
                # The system has no more threads. The message is due again after its lease.
                lane.threads.discard(thread)
                raise
        if not lane.threads:
            self._senders[lane.channel].close_idle()
            self._failures[lane.channel].settle()

    def _claim(self, lane: _Lane) -> Any:
        """Return the next message of a lane, or None. Raises `psycopg2.Error`."""
        sender, slow_targets = self._senders[lane.channel], self._slow[lane.channel].names()
        if lane.is_slow and not slow_targets and not sender.tracks_slow_targets:
            return None
        return sender.claim(
            self._db, lane.channel, lease=LEASE, slow_targets=slow_targets, from_slow=lane.is_slow
        )

    def _attempt_next(self, lane: _Lane) -> bool:
        message = self._claim(lane)
        if message:
            self._attempt(lane, message)
        return message is not None

    def _attempt(self, lane: _Lane, message: Any) -> None:
        started = time.monotonic()
        self._attempts.make(message)
        self._slow[lane.channel].note(message.target, time.monotonic() - started)

    def _attempt_and_log(self, lane: _Lane, message: Any) -> None:
        try:
            self._attempt(lane, message)
        except psycopg2.Error as error:
            self._database_failures.begin(one_line(str(error)))
        except Exception as error:
            # The message is due again after its lease.
            self._failures[lane.channel].begin(f"unexpected: {type(error).__name__}", exc_info=error)

    def _attempt_in_thread(self, lane: _Lane, message: Any) -> None:
        try:
            # Also SystemExit, and errors of the log: Python would print a traceback with the message in it.
            with contextlib.suppress(BaseException):
                self._attempt_and_log(lane, message)
        finally:
            lane.threads.discard(threading.current_thread())
            self._look_again()

    def _look_again(self) -> None:
        if self._notifications:
            self._notifications.interrupt()

    def _keep_house(self) -> None:
        while not self._stopping.is_set():
            try:
                housekeeping.run(self._db, self._sealer, self._stopping.is_set)
            except psycopg2.Error as error:
                self._database_failures.begin(one_line(str(error)))
            except Exception as error:
                log.error("housekeeping_failed", exc_info=error)
            self._stopping.wait(HOUSEKEEPING_INTERVAL)
