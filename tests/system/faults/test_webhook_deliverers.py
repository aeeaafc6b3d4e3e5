"""Slow webhooks do not delay others, and killed delivery processes lose no event."""

import functools
import itertools
import re
import signal
import time

import httpx
import pytest

from auth.core import constants
from auth.delivery import deliverer
from auth.delivery.attempts import LEASE
from auth.delivery.deliverer import Deliverer
from auth.extensions.webhooks.events import EventSender
from sql import queries
from tests.support.awake import awake
from tests.support.commands import run_command
from tests.support.deliverers import RunningDeliverer
from tests.support.hooks import verified
from tests.support.http_target import HttpTarget
from tests.support.processes import hangups, wait_until
from tests.system.faults.test_deliver_command import Command

# In seconds; the service's are ten and five.
TIMEOUT, SLOW_AFTER = 1.0, 0.3


@pytest.fixture
def targets():
    """Make endpoints: `targets("hang")`."""
    targets = []

    def make(behaviour="", status=200):
        targets.append(HttpTarget().__enter__())
        targets[-1].behaviour, targets[-1].status = behaviour, status
        return targets[-1]

    yield make
    for target in targets:
        target.__exit__()


@pytest.fixture
def deliver(parts):
    """Run deliverers until the end of the test; one that is `patient` has the service's timeouts."""
    deliverers = []

    def begin(*, patient=False):
        timeout, slow_after = (
            (constants.HTTP_TIMEOUT, deliverer.SLOW_AFTER) if patient else (TIMEOUT, SLOW_AFTER)
        )
        sender = EventSender(parts.db, parts.sealer, True, timeout=timeout)
        deliverers.append(
            RunningDeliverer(
                Deliverer(parts.settings, parts.db, parts.sealer, {"webhook": sender}, slow_after=slow_after)
            )
        )

    yield begin
    for running in deliverers:
        running.stop()


@pytest.fixture
def command(environment):
    return lambda *arguments, **changes: Command(environment, *arguments, **changes)


def has_got(target, times):
    return len(target.requests) == times


class TestSlowWebhooks:
    def test_dead_and_dripping_webhooks_do_not_delay_a_good_one(self, hooks, targets, deliver):
        for behaviour in itertools.islice(itertools.cycle(["hang", "drip", "close"]), 8):
            hooks.register(targets(behaviour))
        good_target = targets()
        for _ in range(3):
            hooks.emit()
        deliver()
        # The service has recorded by now that all of them fail.
        wait_until(lambda: all(webhook["failing_since"] for webhook in hooks.ask("get").json["data"]))
        hooks.register(good_target)
        for number in range(10):
            started_at = awake()
            hooks.emit()
            wait_until(functools.partial(has_got, good_target, number + 1))
            assert awake() - started_at < TIMEOUT

    def test_each_event_is_sent_once_by_three_deliverers(self, hooks, targets, deliver, database):
        targets_of_two = [targets(), targets()]
        for target in targets_of_two:
            hooks.register(target)
        for _ in range(30):
            hooks.emit()
        for _ in range(3):
            deliver(patient=True)
        wait_until(lambda: database.count("outbox", "outcome = 'sent'") == 60)
        for target in targets_of_two:
            ids = [posted.headers["webhook-id"] for posted in target.requests]
            assert len(set(ids)) == len(ids) == 30

    def test_one_deliverer_at_a_time_tries_a_failing_webhook(self, hooks, targets, parts, database):
        webhook = hooks.register(targets())
        for _ in range(10):
            hooks.emit()
        database.run("UPDATE webhooks SET failing_since = now()")
        claimed = []

        def claim():
            claimed.append(queries.claim_event(parts.db, lease=LEASE, slow_targets=[], from_slow=True))

        with database.locked("webhooks", webhook["id"]) as lock:
            waiting = [lock.start(claim) for _ in range(4)]
        for one in waiting:
            one.result()
        assert [one is not None for one in claimed].count(True) == 1
        assert database.count("outbox", "attempts > 0") == 1


def test_killed_process_does_not_block_a_failing_webhook(hooks, targets, command, database):
    target = targets("hang")
    hooks.register(target)
    hooks.emit()
    database.run("UPDATE webhooks SET failing_since = now()")
    with command("deliver") as running:
        assert target.reached.wait(30)
        running.process.kill()
        running.process.wait()
    target.behaviour = ""
    hooks.let_time_pass(LEASE)
    with command("deliver"):
        wait_until(lambda: database.count("outbox", "outcome = 'sent'") == 1)


class TestListening:
    """`latchkey webhooks listen`."""

    def test_listen_prints_and_forwards_events(self, hooks, targets, command, deliver, database):
        target = targets(status=500)
        deliver(patient=True)
        with command("webhooks", "listen", "--forward", f"{target.url}/events") as running:
            (secret,) = wait_until(lambda: re.findall(r"signed with (whsec_\S+)", running.text()))
            (made,) = hooks.ask("get").json["data"]
            assert made["description"] == "latchkey webhooks listen"
            hooks.emit("auth.login")
            wait_until(lambda: target.requests)
            form = r"^\S+Z  auth.login    \S+  alice@example.com  (msg_\S+)  500 Internal Server Error$"
            (event_id,) = wait_until(lambda: re.findall(form, running.text(), re.MULTILINE))
            (posted,) = target.requests
            assert posted.path == "/events"
            assert posted.headers["webhook-id"] == event_id
            assert verified(posted, secret)["event"] == "auth.login"
            # The event counts as accepted regardless of the application's response.
            wait_until(lambda: database.count("outbox", "outcome = 'sent'") == 1)
            # The second signal may come while the first one is handled.
            for each in [signal.SIGTERM, signal.SIGINT] * 5:
                running.process.send_signal(each)
            assert running.process.wait(30) == 0
            assert running.text().splitlines()[-1] == "Stopped."
        assert database.count("webhooks") == 0

    def test_listen_ends_with_its_terminal_and_removes_its_webhook(self, command, database):
        with hangups(), command("webhooks", "listen") as running:
            wait_until(lambda: "Press Ctrl-C to stop" in running.text())
            running.process.send_signal(signal.SIGHUP)
            assert running.process.wait(30) == 0
        assert database.count("webhooks") == 0

    def test_listen_refuses_unsigned_requests(self, hooks, command, database):
        secret = "whsec_" + "c2VjcmV0" * 4
        with command("webhooks", "listen", LATCHKEY_WEBHOOK_SECRET=secret) as running:
            wait_until(lambda: f"signed with {secret}" in running.text())
            url = hooks.ask("get").json["data"][0]["url"]
            signed = {"webhook-id": "msg_1", "webhook-timestamp": str(int(time.time()))}
            for headers in ({}, signed | {"webhook-signature": "nonsense"}):
                answer = httpx.post(url, json={"event": "user.created"}, headers=headers, timeout=20)
                assert answer.status_code == 401
            assert len(running.text().splitlines()) == 1

    @pytest.mark.parametrize(
        ("arguments", "secret", "message"),
        [
            (
                ["--forward", "ftp://127.0.0.1"],
                "",
                "'--forward': Must be a URL such as https://example.com/path",
            ),
            (
                [],
                "whsec_short",
                "'LATCHKEY_WEBHOOK_SECRET': Must be whsec_ and 24 to 64 random bytes in base64",
            ),
            ([], "", "the service won't post to this machine."),
        ],
    )
    def test_listen_refuses_invalid_options_and_secrets(self, make_app, database, arguments, secret, message):
        app = make_app(AUTH_WEBHOOK_PRIVATE_NETWORKS="false")
        environment = {"LATCHKEY_WEBHOOK_SECRET": secret}
        result = run_command(app, "webhooks", "listen", *arguments, env=environment)
        assert result.exit_code != 0
        assert message in result.output
        assert database.count("webhooks") == 0
