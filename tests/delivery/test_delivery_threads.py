"""The threads that deliver: woken at once, held up by nobody, and alive whatever happens."""

import contextlib
import functools
import threading
import time

import pytest
import structlog
from structlog.testing import capture_logs

from auth.delivery.deliverer import GRACE, Deliverer
from auth.delivery.senders import Sender, TryLater
from auth.settings.constants import statement_constants
from sql import Database
from tests.support.deliverers import RunningDeliverer
from tests.support.forwarder import Forwarder
from tests.support.outbox import Outbox
from tests.support.processes import wait_until
from tests.support.smtp_server import BadMailServer, sender


class Target(Sender):
    """Takes messages; for recipients at `held`, only when it is released."""

    def __init__(self, held=None):
        self._held = held
        self._lock = threading.Lock()
        self.sent = []
        self.holds = 0
        self.released = threading.Event()
        self.fails = None
        self.failures = 0

    def send(self, recipient, _message):
        if self._held and recipient.endswith(self._held):
            with self._lock:
                self.holds += 1
                is_early = self.holds <= 2
            # The first ones take just long enough for the target to be known as slow.
            self.released.wait(0.2 if is_early else 20)
        if self.fails:
            with self._lock:
                self.failures += 1
            raise self.fails
        self.sent.append(recipient)
        return "taken"


@pytest.fixture
def outbox(database, parts):
    return Outbox(database, parts)


@pytest.fixture
def deliver(parts):
    """Deliver from threads until the end of the test."""
    begun = []

    def begin(db=None, slow_after=0.1, grace=GRACE, **senders):
        begun.append(RunningDeliverer(Deliverer(parts.settings, db or parts.db, parts.sealer, senders, slow_after=slow_after), grace))
        return begun[-1]

    yield begin
    for deliverer in begun:
        deliverer.stop()


def is_sent(outbox, id):
    return outbox.outcome(id) == "sent"


def test_a_message_is_sent_at_once_when_they_are_woken(outbox, deliver):
    target = Target()
    deliver(email=target)
    for _ in range(5):
        id = outbox.write()
        began = time.monotonic()
        wait_until(functools.partial(is_sent, outbox, id))
        assert time.monotonic() - began < 1


def test_a_message_of_another_process_is_found_soon(outbox, deliver):
    target = Target()
    deliver(email=target)
    outbox.write()
    wait_until(lambda: target.sent == ["alice@example.com"])


def test_many_messages_are_each_sent_once(outbox, deliver):
    target = Target()
    expected = [f"user{number}@example.com" for number in range(60)]
    for recipient in expected:
        outbox.write(recipient=recipient)
    for _ in range(2):
        deliver(email=target)
    wait_until(lambda: len(target.sent) >= 60)
    assert sorted(target.sent) == sorted(expected)


class TestOneDeadTargetDelaysNoOther:
    def test_a_mail_server_that_hangs_holds_up_no_sms(self, outbox, deliver):
        sms = Target()
        with BadMailServer("GREETING", "hang") as server:
            deliver(email=sender(server.url), sms=sms)
            for number in range(10):
                outbox.write(recipient=f"user{number}@example.com")
            assert server.reached.wait(5)
            outbox.sms()
            began = time.monotonic()
            wait_until(lambda: sms.sent == ["+4915112345678"])
            assert time.monotonic() - began < 1
            server.recover()

    def test_a_slow_mail_host_holds_up_no_other(self, outbox, deliver):
        target = Target(held="@slow.example")
        slow = [outbox.write(recipient=f"user{number}@slow.example") for number in range(6)]
        for number in range(20):
            outbox.write(recipient=f"user{number}@example.com")
        deliver(email=target)
        wait_until(lambda: len([recipient for recipient in target.sent if recipient.endswith("@example.com")]) == 20)
        # By then those to the slow host are still on their way.
        assert [outbox.outcome(id) for id in slow].count("sent") <= 2
        target.released.set()
        wait_until(lambda: all(outbox.outcome(id) == "sent" for id in slow))

    def test_a_host_that_is_quick_again_is_served_like_any_other(self, outbox, deliver):
        target = Target(held="@slow.example")
        for number in range(4):
            outbox.write(recipient=f"user{number}@slow.example")
        deliver(email=target)
        wait_until(lambda: target.holds == 4)
        target.released.set()
        wait_until(lambda: len(target.sent) == 4)
        outbox.write(recipient="last@slow.example")
        wait_until(lambda: "last@slow.example" in target.sent)


class TestTheyStayAlive:
    def test_after_a_sender_that_breaks(self, outbox, deliver, database):
        target = Target()
        target.fails = RuntimeError("a bug")
        broken = [outbox.write() for _ in range(5)]
        with capture_logs() as logs:
            deliver(email=target)
            wait_until(lambda: target.failures == 5)
            assert database.count("outbox", "attempts = 1") == 5
            target.fails = None
            outbox.write(recipient="bob@example.com")
            wait_until(lambda: target.sent == ["bob@example.com"])
        # They come up again after their leases; the log has said it once.
        assert [outbox.outcome(id) for id in broken] == [None] * 5
        (entry,) = [entry for entry in logs if entry["event"] == "delivery_fails"]
        assert entry["reason"] == "unexpected: RuntimeError"

    def test_after_what_ends_a_thread_elsewhere(self, outbox, deliver, database):
        target = Target()
        target.fails = SystemExit()
        for _ in range(8):
            outbox.write()
        deliver(email=target)
        wait_until(lambda: target.failures == 8)
        assert database.count("outbox", "attempts = 1") == 8
        target.fails = None
        outbox.write(recipient="bob@example.com")
        wait_until(lambda: target.sent == ["bob@example.com"])

    def test_after_a_database_that_was_away(self, outbox, deliver, parts, database_url):
        target = Target()
        with Forwarder(database_url) as way, capture_logs() as logs:
            db = Database(way.url, size=2, constants=statement_constants(parts.settings))
            way.close()
            deliverer = deliver(db, email=target)
            wait_until(lambda: "delivery_fails" in [entry["event"] for entry in logs])
            outbox.write()
            way.open()
            wait_until(lambda: target.sent == ["alice@example.com"])
            deliverer.stop()
            db.close()
        assert [entry["what"] for entry in logs if entry["event"] == "delivery_fails"] == ["database"]

    def test_a_target_that_is_down_fills_no_log(self, outbox, deliver, database):
        target = Target()
        target.fails = TryLater("connection refused", is_down=True)
        for number in range(30):
            outbox.write(recipient=f"user{number}@example.com")
        with capture_logs() as logs:
            deliver(email=target)
            wait_until(lambda: database.count("outbox", "attempts = 1 AND last_error IS NOT NULL") == 30)
        (entry,) = [entry for entry in logs if entry["log_level"] in ("warning", "error")]
        assert (entry["event"], entry["what"], entry["reason"]) == ("delivery_fails", "email", "connection refused")

    def test_when_the_log_can_not_be_written(self, outbox, deliver, database):
        target = Target()
        before = structlog.get_config()
        with open("/dev/full", "w", buffering=1) as full:
            structlog.configure(logger_factory=structlog.PrintLoggerFactory(full), wrapper_class=structlog.make_filtering_bound_logger(0))
            try:
                for number in range(3):
                    outbox.write(recipient=f"user{number}@example.com")
                deliverer = deliver(email=target)
                wait_until(lambda: len(target.sent) == 3)
                target.fails = TryLater("closed", is_down=True)
                outbox.write(recipient="last@example.com")
                wait_until(lambda: database.count("outbox", "last_error = 'closed'") == 1)
                target.fails = None
                outbox.end_pauses()
                wait_until(lambda: database.count("outbox", "outcome = 'sent'") == 4)
                deliverer.stop()
            finally:
                structlog.configure(**before)
                with contextlib.suppress(OSError):
                    full.close()
        assert len(target.sent) == 4

    def test_nothing_that_is_logged_names_a_recipient_or_a_secret(self, outbox, deliver):
        target = Target()
        with capture_logs() as logs:
            id = outbox.write()
            deliver(email=target)
            wait_until(lambda: outbox.outcome(id) == "sent")
        assert "alice" not in str(logs)
        assert "123456" not in str(logs)


class TestTheyDontDoubleWhatWasSent:
    def test_when_the_database_goes_away_in_between(self, outbox, deliver, parts, database_url):
        target = Target(held="@example.com")
        with Forwarder(database_url) as way:
            db = Database(way.url, size=4, constants=statement_constants(parts.settings))
            id = outbox.write()
            # A quiet target counts as slow after a second here, so that nothing else is decided by that.
            deliverer = deliver(db, slow_after=60, email=target)
            target.holds = 2
            outbox.write(recipient="bob@example.com")
            wait_until(lambda: target.holds == 4)
            way.close()
            target.released.set()
            wait_until(lambda: len(target.sent) == 2)
            way.open()
            wait_until(lambda: outbox.outcome(id) == "sent")
            deliverer.stop()
            db.close()
        assert sorted(target.sent) == ["alice@example.com", "bob@example.com"]


class TestTheEnd:
    def test_a_message_in_flight_is_finished(self, outbox, deliver):
        target = Target(held="@example.com")
        target.holds = 2
        deliverer = deliver(email=target)
        id = outbox.write()
        wait_until(lambda: target.holds == 3)
        ending = threading.Thread(target=deliverer.stop)
        ending.start()
        target.released.set()
        ending.join(5)
        assert not ending.is_alive()
        assert outbox.outcome(id) == "sent"

    def test_nothing_more_is_taken(self, outbox, deliver):
        target = Target()
        deliverer = deliver(email=target)
        deliverer.stop()
        id = outbox.write()
        assert not any(thread.name.startswith("delivery") for thread in threading.enumerate())
        assert outbox.row(id).attempts == 0

    def test_one_that_takes_too_long_is_left(self, outbox, deliver):
        target = Target(held="@example.com")
        target.holds = 2
        deliverer = deliver(email=target, grace=0.2)
        outbox.write()
        wait_until(lambda: target.holds == 3)
        began = time.monotonic()
        deliverer.stop()
        assert time.monotonic() - began < 2
        target.released.set()
