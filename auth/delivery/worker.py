"""The threads that send what waits in the outbox.

A thread takes one message for the length of a lease and sends it outside any transaction; should the process die, another takes
it after the lease. So nothing is lost, and at most the message in flight is doubled.

One dead target delays no other: each channel has threads of its own, and within a channel a target that has kept a thread waiting
(a mail host, an endpoint) is left to threads that serve only such targets, until it is quick again.
"""

import atexit
import contextlib
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg2
import structlog

from auth.delivery import channels, dev_inbox, events, janitor, webhooks
from auth.delivery.messages import CannotRender, Message, load_templates
from auth.delivery.senders import Refused, Sender, TryLater, one_line
from auth.delivery.signals import Signal, SlowTargets, Trouble
from auth.settings import Settings
from auth.tokens.keys import CannotOpen, Sealer
from auth.tokens.sealed import open_json
from sql import Database

# Seconds. The interval is for what other processes have written: our own wakes a thread. The lease is longer than any sender takes.
INTERVAL = 2.0
LEASE = 90
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
HOUSEKEEPING_INTERVAL = 3600
# How long the end of the process waits for messages in flight.
GRACE = 3.0
# From when on a target is slow.
SLOW_AFTER = 5.0

log = structlog.get_logger()


@dataclass(frozen=True)
class _Lane:
    """The messages that some threads share."""

    channel: str
    is_slow: bool
    signal: Signal


class Deliverer:
    """Sends messages, from threads of this process; by the settings' senders unless it is given others."""

    def __init__(
        self, settings: Settings, db: Database, sealer: Sealer, senders: Mapping[str, Sender] | None = None, *, slow_after: float = SLOW_AFTER
    ) -> None:
        self._settings = settings
        self._db = db
        self._sealer = sealer
        if senders is None:
            senders = channels.senders(settings) | {events.CHANNEL: events.EventSender(db, sealer, settings.webhook_private_networks)}
        self._senders = senders
        self._templates = load_templates(settings)
        self._slow = {channel: SlowTargets(slow_after) for channel in self._senders}
        self._trouble = {channel: Trouble(channel) for channel in self._senders}
        self._database_trouble = Trouble("database")
        self._lanes = [_Lane(channel, is_slow, Signal()) for channel in self._senders for is_slow in (False, True)]
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin to send until the process ends, unless other processes do (`AUTH_DELIVER`)."""
        if self._settings.deliver:
            self.begin()
            atexit.register(self.stop)

    def begin(self) -> None:
        """Begin to send until `stop`."""
        targets = [(self._run, lane) for lane in self._lanes for _ in range(self._senders[lane.channel].threads)]
        self._threads = [threading.Thread(target=run, args=(lane,), name=f"delivery {lane.channel}", daemon=True) for run, lane in targets]
        self._threads.append(threading.Thread(target=self._keep_house, name="delivery housekeeping", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float = GRACE) -> None:
        """End the threads, after the messages in flight if they are done within so many seconds."""
        self._stopping.set()
        for lane in self._lanes:
            lane.signal.end()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for sender in self._senders.values():
            sender.close()

    def wake(self) -> None:
        """Say that a message may have been written."""
        for lane in self._lanes:
            if not lane.is_slow:
                lane.signal.give()

    def deliver_due(self) -> int:
        """Send what is due now from this thread, and return how many messages were taken. Raises `psycopg2.Error`."""
        taken = 0
        for channel in self._senders:
            while self._deliver_one(channel, [], is_slow=False) or self._deliver_one(channel, [], is_slow=True):
                taken += 1
        return taken

    def _run(self, lane: _Lane) -> None:
        while not self._stopping.is_set():
            was_busy = False
            # The log can't be written; or what ends a thread elsewhere, such as SystemExit: nobody would send in its place.
            with contextlib.suppress(BaseException):
                was_busy = self._turn(lane)
            if not was_busy:
                lane.signal.wait(INTERVAL)

    def _turn(self, lane: _Lane) -> bool:
        """Send one message; return whether there may be more."""
        trouble, slow_targets = self._trouble[lane.channel], self._slow[lane.channel].names()
        was_busy = False
        try:
            if slow_targets or not lane.is_slow or self._senders[lane.channel].are_slow_known:
                was_busy = self._deliver_one(lane.channel, slow_targets, is_slow=lane.is_slow, signal=lane.signal)
                self._database_trouble.end()
            if not was_busy:
                self._senders[lane.channel].rest()
                trouble.settle()
        # The database is away; what waits there waits.
        except psycopg2.Error as error:
            self._database_trouble.begin(one_line(str(error)))
        # Whatever it is, the next message must still be sent. This one comes up again after its lease.
        except Exception as error:
            trouble.begin(f"unexpected: {type(error).__name__}", exc_info=error)
        return was_busy

    def _deliver_one(self, channel: str, slow_targets: list[str], *, is_slow: bool, signal: Signal | None = None) -> bool:
        """Take one message and send it; return whether there was one. Raises `psycopg2.Error`."""
        waiting = self._senders[channel].claim(self._db, channel, lease=LEASE, slow_targets=slow_targets, from_slow=is_slow)
        if waiting is None:
            return False
        if waiting.outcome is not None:
            log.info("message_not_sent", message_id=waiting.id, channel=channel, kind=waiting.kind, outcome=waiting.outcome, reason=waiting.last_error)
            return True
        # While this thread sends, another one may look for more.
        if signal:
            signal.give()
        began = time.monotonic()
        self._attempt(waiting)
        self._slow[channel].note(waiting.target, time.monotonic() - began)
        return True

    def _attempt(self, waiting: Any) -> None:
        """Send a message, and note what became of it. Raises `psycopg2.Error`."""
        trouble = self._trouble[waiting.channel]
        try:
            sender = self._senders[waiting.channel]
            response = sender.send(waiting.recipient, sender.compose(waiting, self._render))
        except Refused as refusal:
            self._finish(waiting, "failed", str(refusal))
            trouble.end()
        except TryLater as failure:
            self._defer(waiting, str(failure), failure.seconds)
            if failure.is_down:
                trouble.begin(str(failure))
            else:
                trouble.end()
        except CannotOpen as error:
            self._finish(waiting, "failed", f"the secret can't be opened: {error}")
        except CannotRender as error:
            self._defer(waiting, one_line(str(error)), None)
            trouble.begin(str(error))
        else:
            self._finish(waiting, "sent", None, response)
            trouble.end()

    def _render(self, waiting: Any) -> Message:
        """Return what a row of the outbox says to people. Raises `Refused`, `CannotOpen` and `CannotRender`."""
        countries = self._settings.sms_countries
        secrets = open_json(self._sealer, waiting.secret, waiting.id) if waiting.secret else {}
        if waiting.channel == "sms" and countries and not waiting.recipient.startswith(countries):
            raise Refused("AUTH_SMS_COUNTRIES does not allow this number")
        message = self._templates.render(waiting, secrets)
        if self._settings.dev_inbox:
            dev_inbox.keep(self._db, self._sealer, message)
        return message

    def _finish(self, waiting: Any, outcome: str, reason: str | None, response: str | None = None) -> None:
        self._note("finish_message", id=waiting.id, outcome=outcome, reason=reason, response=response)
        write = log.warning if outcome == "failed" else log.info
        write(f"message_{outcome}", message_id=waiting.id, channel=waiting.channel, kind=waiting.kind, attempts=waiting.attempts, reason=reason)

    def _defer(self, waiting: Any, reason: str, asked: float | None) -> None:
        # Jitter, so that what has failed together does not come back together.
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(waiting.attempts - 1, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        self._note("defer_message", id=waiting.id, attempts=waiting.attempts, delay=max(pause, asked or 0.0), reason=reason)
        log.debug("message_deferred", message_id=waiting.id, channel=waiting.channel, kind=waiting.kind, attempts=waiting.attempts, reason=reason)

    def _note(self, statement: str, **parameters: Any) -> None:
        """Run a statement on a message that is ours until its lease ends: a database that is away for a moment must not double it."""
        deadline = time.monotonic() + LEASE / 2
        while True:
            try:
                self._db.run(statement, **parameters)
                return
            except psycopg2.Error:
                if time.monotonic() > deadline or self._stopping.wait(1):
                    raise

    def _keep_house(self) -> None:
        while True:
            try:
                self._clean()
            # Next time will do.
            except Exception as error:
                with contextlib.suppress(OSError):
                    log.error("housekeeping_failed", exc_info=error)
            if self._stopping.wait(HOUSEKEEPING_INTERVAL):
                return

    def _clean(self) -> None:
        try:
            self._db.run("expire_messages")
            webhooks.reseal(self._db, self._sealer)
            janitor.clean(self._db, self._stopping.is_set)
        except psycopg2.Error as error:
            self._database_trouble.begin(one_line(str(error)))
