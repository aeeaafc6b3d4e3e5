"""The deliverer: notified at commit, not delayed by slow targets, alive after every failure, stopped in time."""

import re
import threading
from functools import partial

import pytest
from structlog.testing import capture_logs

from auth.core.sender import Sender, TryLater
from auth.core.settings.statement_constants import statement_constants
from auth.delivery import deliverer as deliverer_module
from auth.delivery.deliverer import GRACE, Deliverer
from auth.flows.messages import outgoing
from sql import Database
from tests.support.deliverers import RunningDeliverer
from tests.support.forwarder import Forwarder
from tests.support.outbox import Outbox
from tests.support.processes import wait_until
from tests.support.timeouts import LONGEST_DELAY
from tests.support.users import PASSWORD


class Target(Sender):
    """A sender that takes messages, but those to recipients of a slow host only when it is released."""

    def __init__(self, slow_host=None, holds=0):
        self._slow_host = slow_host
        self._lock = threading.Lock()
        self.sent = []
        self.holds = holds
        self.released = threading.Event()
        self.fails = None
        self.failures = 0

    def send(self, recipient, _message):
        if self._slow_host and recipient.endswith(self._slow_host):
            with self._lock:
                self.holds += 1
                is_early = self.holds <= 2
            # The first two take just long enough to make the target a slow one.
            self.released.wait(0.2 if is_early else 20)
        if self.fails:
            with self._lock:
                self.failures += 1
            raise self.fails
        self.sent.append(recipient)
        return "taken"

    def close(self):
        self.sent_at_the_end = [*self.sent]

    def await_sent(self, *recipients):
        wait_until(lambda: self.sent == [f"{name}@example.com" for name in recipients])


@pytest.fixture
def outbox(database, parts):
    return Outbox(database, parts)


@pytest.fixture
def deliver(parts):
    """Run a deliverer until the end of the test."""
    running = []

    def begin(db=parts.db, settings=parts.settings, slow_after=0.1, grace=GRACE, **senders):
        deliverer = Deliverer(settings, db, parts.sealer, senders, slow_after=slow_after)
        running.append(RunningDeliverer(deliverer, grace))
        return running[-1]

    yield begin
    for deliverer in running:
        deliverer.stop()


@pytest.fixture
def listens(database):
    query = "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN outbox' AND datname = current_database()"
    return lambda: [row.pid for row in database.all(query)]


@pytest.fixture
def cut_off(parts, database_url):
    """A pool of connections that the test can cut, and the forwarder that they go through."""
    with Forwarder(database_url) as forwarder:
        db = Database(forwarder.url, size=4, constants=statement_constants(parts.settings))
        yield db, forwarder
        db.close()


def is_sent(outbox, id):
    return outbox.outcome(id) == "sent"


def delivery_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("delivery")]


def sending_threads():
    return [thread for thread in delivery_threads() if thread.name != "delivery housekeeping"]


class TestWaking:
    def test_notification_wakes_the_deliverer_even_after_a_reconnect(
        self, outbox, deliver, listens, database, monkeypatch
    ):
        monkeypatch.setattr(deliverer_module, "POLL_INTERVAL", 600)
        target = Target()
        # This message is written before the deliverer listens.
        outbox.write()
        deliver(email=target)
        target.await_sent("alice")
        (former_pid,) = wait_until(listens)
        for _ in range(5):
            id = outbox.write()
            wait_until(partial(is_sent, outbox, id))
        database.run("SELECT pg_terminate_backend(%(pid)s)", pid=former_pid)
        wait_until(lambda: listens() not in ([], [former_pid]))
        id = outbox.write()
        wait_until(partial(is_sent, outbox, id))

    def test_message_of_a_request_wakes_the_deliverer(self, client, alice, deliver, listens, monkeypatch):
        monkeypatch.setattr(deliverer_module, "POLL_INTERVAL", 600)
        target = Target()
        deliver(email=target)
        wait_until(listens)
        assert client.post("/otp", json={"email": "alice@example.com"}).status_code == 200
        target.await_sent("alice")

    def test_strangers_message_is_due_within_a_second(self, client, alice, deliver, database, monkeypatch):
        monkeypatch.setattr(deliverer_module, "POLL_INTERVAL", 600)
        monkeypatch.setattr(outgoing, "_LONGEST_DELAY", LONGEST_DELAY)
        target = Target()
        # Every second request is for an address that gets no user.
        for number in range(10):
            body = {"email": f"user{number}@example.com", "create_user": bool(number % 2)}
            assert client.post("/otp", json=body).status_code == 200
        delays = "SELECT extract(epoch FROM next_attempt_at - created_at)::float AS delay FROM outbox"
        due = [row.delay for row in database.all(delays)]
        assert (0 <= min(due) < max(due) < 0.8, len(set(due))) == (True, 10)
        password = {"password": "Fresh-Horse-2", "current_password": PASSWORD}
        assert alice.open_session().put("/user", json=password).status_code == 200
        assert database.one(f"{delays} WHERE recipient = 'alice@example.com'").delay == 0
        deliver(email=target)
        wait_until(lambda: len(target.sent) == 6)

    def test_polling_finds_messages_behind_pgbouncer(self, outbox, deliver, make_app, listens):
        settings = make_app(AUTH_DB_PREPARE="false").extensions["latchkey"].settings
        deliver(settings=settings, email=Target())
        for _ in range(2):
            id = outbox.write()
            wait_until(partial(is_sent, outbox, id))
        assert listens() == []


def test_slow_mail_host_does_not_delay_other_hosts_until_it_is_quick_again(outbox, deliver):
    target = Target(slow_host="@slow.example")
    slow = [outbox.write(recipient=f"user{number}@slow.example") for number in range(6)]
    for number in range(20):
        outbox.write(recipient=f"user{number}@example.com")
    deliver(email=target)
    wait_until(lambda: len([to for to in target.sent if to.endswith("@example.com")]) == 20)
    # At this time, the slow host still holds its other messages.
    assert [outbox.outcome(id) for id in slow].count("sent") <= 2
    target.released.set()
    wait_until(lambda: all(outbox.outcome(id) == "sent" for id in slow))
    outbox.write(recipient="last@slow.example")
    wait_until(lambda: "last@slow.example" in target.sent)


class TestFailures:
    @pytest.mark.parametrize("error", [RuntimeError("a bug"), SystemExit()])
    def test_exception_in_a_sender_is_logged_once_and_frees_threads(self, outbox, deliver, database, error):
        target = Target()
        target.fails = error
        for _ in range(8):
            outbox.write()
        with capture_logs() as logs:
            deliver(email=target)
            wait_until(lambda: target.failures == 8 and not sending_threads())
        assert database.count("outbox", "attempts = 1 AND outcome IS NULL") == 8
        if isinstance(error, RuntimeError):
            (entry,) = [entry for entry in logs if entry["event"] == "delivery_fails"]
            assert entry["reason"] == "unexpected: RuntimeError"
        target.fails = None
        outbox.write(recipient="bob@example.com")
        target.await_sent("bob")

    def test_unreachable_database_is_logged_once_and_delivery_resumes(self, outbox, deliver, cut_off):
        target, (db, forwarder) = Target(), cut_off
        with capture_logs() as logs:
            forwarder.close()
            deliverer = deliver(db, email=target)
            wait_until(lambda: "delivery_fails" in [entry["event"] for entry in logs])
            outbox.write()
            forwarder.open()
            target.await_sent("alice")
            deliverer.stop()
        assert [entry["what"] for entry in logs if entry["event"] == "delivery_fails"] == ["database"]

    def test_target_that_is_down_is_logged_once(self, outbox, deliver, database):
        target = Target()
        target.fails = TryLater("connection refused", is_down=True)
        for number in range(30):
            outbox.write(recipient=f"user{number}@example.com")
        with capture_logs() as logs:
            deliver(email=target)
            wait_until(lambda: database.count("outbox", "attempts > 0 AND last_error IS NOT NULL") == 30)
            wait_until(lambda: not sending_threads())
        (entry,) = [entry for entry in logs if entry["log_level"] in ("warning", "error")]
        failure = (entry["event"], entry["what"], entry["reason"])
        assert failure == ("delivery_fails", "email", "connection refused")
        assert not re.search("user|123456", str(logs))

    def test_message_is_not_sent_twice_when_the_database_is_lost_after_sending(
        self, outbox, deliver, cut_off
    ):
        target, (db, forwarder) = Target(slow_host="@example.com", holds=2), cut_off
        id = outbox.write()
        # Both messages go to one target, which must not count as slow.
        deliverer = deliver(db, slow_after=60, email=target)
        outbox.write(recipient="bob@example.com")
        wait_until(lambda: target.holds == 4)
        forwarder.close()
        target.released.set()
        wait_until(lambda: len(target.sent) == 2)
        forwarder.open()
        wait_until(partial(is_sent, outbox, id))
        deliverer.stop()
        assert sorted(target.sent) == ["alice@example.com", "bob@example.com"]


class TestStopping:
    def test_stop_finishes_the_message_in_flight_and_takes_no_other(self, outbox, deliver, listens):
        target = Target(slow_host="@example.com", holds=2)
        deliverer = deliver(email=target, grace=300)
        id = outbox.write()
        wait_until(lambda: target.holds == 3)
        stopping = threading.Thread(target=deliverer.stop)
        stopping.start()
        wait_until(lambda: listens() == [])
        target.released.set()
        stopping.join(60)
        assert not stopping.is_alive()
        assert (outbox.outcome(id), target.sent_at_the_end) == ("sent", ["alice@example.com"])
        late = outbox.write()
        wait_until(lambda: not delivery_threads())
        assert outbox.row(late).attempts == 0

    def test_stop_leaves_a_message_that_takes_longer_than_the_grace(self, outbox, deliver):
        target = Target(slow_host="@example.com", holds=2)
        deliverer = deliver(email=target, grace=0.2)
        outbox.write()
        wait_until(lambda: target.holds == 3)
        deliverer.stop()
        # If the deliverer waited, the target would take the message after 20 s.
        assert target.sent == []
        target.released.set()
        wait_until(lambda: not sending_threads())
