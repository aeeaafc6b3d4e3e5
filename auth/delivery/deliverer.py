"""Takes due messages from the outbox and sends each in its own thread.

A process claims a message with a lease and sends it outside any transaction. If it dies, another process
claims the message after the lease: nothing is lost, and at most the messages in flight are sent twice.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg2
import structlog

from auth.core import constants
from auth.core.sender import EVENT_CHANNEL, Sender, one_line
from auth.core.settings import Settings
from auth.core.tokens.derived_keys import Sealer
from auth.delivery import janitor
from auth.delivery.attempts import LEASE, Attempts, ClaimedRow, FailureLog
from auth.delivery.rendering import Templates, load_templates
from sql import Database, queries
from sql.notifications import Notifications

# All in seconds. There is no notification when a deferred message becomes due, so we also poll the outbox.
POLL_INTERVAL = 2.0
_SHORT_INTERVAL = 0.2  # in the second after a message was written, within which it becomes due
HOUSEKEEPING_INTERVAL = 3600
_KEY_INTERVAL = 10.0  # between checks for a new key
_COUNT_INTERVAL = 60.0
_HEARTBEAT_INTERVAL = 60.0
GRACE = 5.0
SLOW_AFTER = 5.0
_SLOW_FOR = 300.0

log = structlog.get_logger()


@dataclass(eq=False, repr=False)
class _Channel:
    name: str
    sender: Sender
    failures: FailureLog = field(default_factory=FailureLog)
    slow_until: dict[str, float] = field(default_factory=dict)
    codes_in_a_row: int = 0

    def slow_targets(self) -> list[str]:
        now = time.monotonic()
        for target, until in list(self.slow_until.items()):
            if until <= now:
                self.slow_until.pop(target, None)
        return list(self.slow_until)


@dataclass(eq=False, repr=False)
class _Lane:
    """The threads for a channel's slow targets (mail hosts, webhooks), or for its quick ones."""

    channel: _Channel
    is_slow: bool
    threads: set[threading.Thread] = field(default_factory=set)


class Deliverer:
    """Sends due messages until it is ended. `count` gets the channel and the outcome of each attempt."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        sealer: Sealer,
        senders: Mapping[str, Sender],
        *,
        slow_after: float = SLOW_AFTER,
        count: Callable[[str, str], None] | None = None,
        templates: Templates | None = None,
    ) -> None:
        self._settings, self._db, self._sealer, self._slow_after = settings, db, sealer, slow_after
        count = count or (lambda _channel, _outcome: None)
        self._attempts = Attempts(settings, db, sealer, templates or load_templates(settings), count)
        self._channels = [_Channel(name, sender) for name, sender in senders.items()]
        self._lanes = [_Lane(channel, slow) for channel in self._channels for slow in (False, True)]
        self._database_failures = FailureLog()
        self._stopping = threading.Event()
        self._beat_at = -_HEARTBEAT_INTERVAL
        self._notifications: Notifications | None = None

    def run(self, grace: float = GRACE) -> None:
        """Deliver until `end` is called, then wait up to `grace` seconds for the threads to finish."""
        housekeeping = threading.Thread(target=self._keep_house, name="delivery housekeeping", daemon=True)
        housekeeping.start()
        written_at = float("-inf")
        # PgBouncer, for which AUTH_DB_PREPARE is off, does not forward notifications.
        listen_url = self._settings.database_url if self._settings.db_prepare else None
        with contextlib.closing(Notifications(listen_url)) as self._notifications:
            while not self._stopping.is_set():
                self._dispatch()
                is_recent = time.monotonic() < written_at + 1
                if self._notifications.wait(_SHORT_INTERVAL if is_recent else POLL_INTERVAL):
                    written_at = time.monotonic()
        deadline = time.monotonic() + grace
        in_flight = [thread for lane in self._lanes for thread in list(lane.threads)]
        for thread in [*in_flight, housekeeping]:
            thread.join(max(0.0, deadline - time.monotonic()))
        for channel in self._channels:
            channel.sender.close()

    def end(self) -> None:
        """Make `run` return. Safe in signal handlers."""
        self._stopping.set()
        self._look_again()

    def deliver_due(self) -> int:
        """Send all due messages in this thread and return their number. Raises `psycopg2.Error`."""
        total, previous_total = 0, -1
        # The failure of a webhook may write an email, for a lane that was empty.
        while total > previous_total:
            previous_total = total
            for lane in self._lanes:
                while row := self._claim(lane):
                    self._attempt(lane, row)
                    total += 1
        return total

    def _dispatch(self) -> None:
        try:
            for lane in self._lanes:
                self._fill(lane)
            if time.monotonic() - self._beat_at >= _HEARTBEAT_INTERVAL:
                queries.record_done(self._db, task="delivery")
                self._beat_at = time.monotonic()
        except psycopg2.Error as error:
            self._database_failures.count(what="database", reason=one_line(str(error)))
        except RuntimeError as error:
            log.error("delivery_has_no_threads", reason=one_line(str(error)))
        for channel in self._channels:
            channel.sender.close_idle()

    def _fill(self, lane: _Lane) -> None:
        name = f"delivery {lane.channel.name}"
        while len(lane.threads) < lane.channel.sender.threads and (row := self._claim(lane)):
            thread = threading.Thread(
                target=self._attempt_in_thread, args=(lane, row), name=name, daemon=True
            )
            lane.threads.add(thread)
            try:
                thread.start()
            except RuntimeError:
                # The system has no more threads. The message is due again after its lease.
                lane.threads.discard(thread)
                raise

    def _claim(self, lane: _Lane) -> "ClaimedRow | None":
        """Lease due messages: codes before notices, but a notice after nine codes in a row."""
        channel, slow_targets = lane.channel, lane.channel.slow_targets()
        options: dict[str, Any] = {"lease": LEASE, "slow_targets": slow_targets, "from_slow": lane.is_slow}
        if channel.name == EVENT_CHANNEL:
            return queries.claim_event(self._db, **options)
        if lane.is_slow and not slow_targets:
            return None
        notices_first = channel.codes_in_a_row >= constants.MOST_CODES_IN_A_ROW
        for is_notice in (notices_first, not notices_first):
            row = queries.claim_message(self._db, channel=channel.name, is_notice=is_notice, **options)
            if row and not row.waits:
                channel.codes_in_a_row = 0 if is_notice else channel.codes_in_a_row + 1
                return row
        return None

    def _attempt(self, lane: _Lane, row: ClaimedRow) -> None:
        started_at = time.monotonic()
        self._attempts.make(row, lane.channel.sender, lane.channel.failures)
        if time.monotonic() - started_at >= self._slow_after:
            lane.channel.slow_until[row.target] = time.monotonic() + _SLOW_FOR
        else:
            lane.channel.slow_until.pop(row.target, None)

    def _attempt_in_thread(self, lane: _Lane, row: ClaimedRow) -> None:
        try:
            self._attempt(lane, row)
        except psycopg2.Error as error:
            self._database_failures.count(what="database", reason=one_line(str(error)))
        except BaseException as error:
            reason = f"unexpected: {type(error).__name__}"
            lane.channel.failures.count(what=row.channel, reason=reason, exc_info=error)
        finally:
            lane.threads.discard(threading.current_thread())
            self._look_again()

    def _look_again(self) -> None:
        if self._notifications:
            self._notifications.interrupt()

    def _keep_house(self) -> None:
        key, due_at, count_at = None, 0.0, 0.0
        while not self._stopping.is_set():
            if time.monotonic() >= due_at or self._sealer.newest != key:
                key = self._sealer.newest
                self._do(lambda: janitor.keep_house(self._settings, self._db, self._sealer))
                due_at = time.monotonic() + HOUSEKEEPING_INTERVAL
            if time.monotonic() >= count_at:
                self._do(lambda: janitor.count_hours(self._db))
                # GET /user lists unverified factors.
                self._do(lambda: janitor.clean(self._db, [queries.delete_unverified_factors]))
                if self._settings.log_audit:
                    self._do(lambda: janitor.log_entries(self._db))
                count_at = time.monotonic() + _COUNT_INTERVAL
            self._stopping.wait(_KEY_INTERVAL)

    def _do(self, chore: Callable[[], object]) -> None:
        try:
            chore()
        except psycopg2.Error as error:
            self._database_failures.count(what="database", reason=one_line(str(error)))
        except Exception as error:
            log.error("housekeeping_failed", exc_info=error)
        self._db.close()  # the plans of these statements take 5 MiB in Postgres
