"""Delivery of events: signed, retried, and not delayed by failing webhooks."""

import contextlib
import dataclasses
import json
import time
from datetime import datetime

import pytest
import requests
from standardwebhooks.webhooks import WebhookVerificationError

from auth.core.constants import FIRST_PAUSE, GIVE_UP, LONGEST_PAUSE, MOST_MAILS
from auth.core.net.bounded_http import BoundedSession
from auth.core.net.sockets import Deadline
from auth.core.sender import RefusedByServer, TryLater
from auth.delivery.deliverer import Deliverer
from auth.extensions.webhooks.events import EventSender, as_message
from sql import queries
from tests.support.answers import A_TIMESTAMP
from tests.support.elapsed import assert_left
from tests.support.environment import secret
from tests.support.hooks import ALICE, DAY, Hooks, events_at, verified
from tests.support.http_target import HttpTarget
from tests.support.users import register

OLD, NEW = secret("old"), secret("new")


def statuses(hooks, webhook):
    """Return the statuses of the deliveries of a webhook, the newest first."""
    return [delivery["status"] for delivery in hooks.deliveries(webhook)]


@pytest.fixture
def webhook(hooks, target):
    return hooks.register(target)


def deliver_event(hooks, *events):
    hooks.emit(*events)
    return hooks.deliver()


def deliver_again(hooks):
    hooks.end_pauses()
    return hooks.deliver()


# Interim responses, some with headers that belong to no final response. RFC 9110, section 15.2, and RFC 8297.
INTERIM = {
    "one": b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
    "several": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103\r\n\r\n",
    "with the headers of another": b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\nContent-Length: 5\r\nRetry-After: 9\r\n\r\n",
    "unknown": b"HTTP/1.1 199 What\r\n\r\n",
}


@pytest.mark.parametrize("before", INTERIM.values(), ids=INTERIM)
def test_interim_responses_are_not_the_answer(hooks, webhook, target, before):
    target.before = before
    assert (deliver_event(hooks, "user.created"), statuses(hooks, webhook)) == (1, ["sent"])
    assert deliver_again(hooks) == 0
    assert events_at(target) == ["user.created"]
    with Deadline(60), BoundedSession() as session:
        answer = session.get(f"{target.url}/document")
    assert (answer.status_code, answer.content, "Retry-After" in answer.headers) == (200, b"{}", False)


def test_failure_after_an_interim_response_is_a_failure(hooks, webhook, target):
    target.before, target.status = INTERIM["one"], 500
    deliver_event(hooks, "user.created")
    (delivery,) = hooks.deliveries(webhook)
    assert (delivery["status"], delivery["last_error"]) == ("waiting", "500 Internal Server Error {}")


def test_server_that_only_sends_interim_responses_is_left_at_the_deadline(target):
    target.before, target.behaviour = INTERIM["one"] * 1000, "hang"
    with Deadline(0.5), BoundedSession() as session, pytest.raises(requests.RequestException):
        session.get(target.url)


class TestBody:
    def test_body_is_the_event_in_any_language(self, hooks, webhook, target, database):
        assert deliver_event(hooks, "user.created") == 1
        (posted,) = target.requests
        assert (posted.path, posted.headers["content-type"]) == ("/hooks", "application/json")
        event = {"event": "user.created", "timestamp": A_TIMESTAMP, "data": {"user": ALICE}}
        assert json.loads(posted.body) == event
        hooks.emit()
        database.run('UPDATE outbox SET variables = variables || \'{"data": "用户"}\' WHERE outcome IS NULL')
        hooks.deliver()
        assert verified(target.requests[1], webhook["secret"])["data"] == "用户"

    def test_webhook_gets_the_events_it_chose(self, hooks, target):
        with HttpTarget() as other:
            hooks.register(target, events=["auth.login", "user.deleted"])
            hooks.register(other)
            deliver_event(hooks, "auth.login", "user.updated")
            assert events_at(target) == ["auth.login"]
            assert sorted(events_at(other)) == ["auth.login", "user.updated"]

    def test_disabled_webhook_keeps_waiting_events_for_three_days(self, hooks, webhook, target, parts):
        hooks.emit("user.created")
        hooks.change(webhook, disabled=True)
        assert (deliver_event(hooks, "user.deleted"), statuses(hooks, webhook)) == (0, ["waiting"])
        hooks.change(webhook, disabled=False)
        assert (hooks.deliver(), events_at(target)) == (1, ["user.created"])
        hooks.emit()
        hooks.change(webhook, disabled=True)
        hooks.let_time_pass(GIVE_UP - 60)
        assert queries.finish_stale_events(parts.db, batch=500) == 0
        hooks.let_time_pass(60)
        assert queries.finish_stale_events(parts.db, batch=500) == 1
        assert sorted(statuses(hooks, webhook)) == ["failed", "sent"]


class TestSignature:
    def test_signature_fits_its_webhook_and_its_body_only(self, hooks, webhook, target):
        other = hooks.register(target, events=["user.deleted"])
        deliver_event(hooks)
        (posted,) = target.requests
        assert verified(posted, webhook["secret"])["event"] == "user.updated"
        changed = dataclasses.replace(posted, body=posted.body.replace(b"alice", b"mallory"))
        for request, another in ((posted, other["secret"]), (changed, webhook["secret"])):
            with pytest.raises(WebhookVerificationError):
                verified(request, another)

    def test_id_stays_and_timestamp_changes_with_each_attempt(self, hooks, webhook, target):
        target.status, started_at = 500, int(time.time())
        deliver_event(hooks)
        target.requests[0].headers["webhook-timestamp"] = "0"
        deliver_again(hooks)
        first, second = (posted.headers["webhook-id"] for posted in target.requests)
        assert first == second == hooks.deliveries(webhook)[0]["event_id"]
        assert started_at <= int(target.requests[1].headers["webhook-timestamp"]) <= time.time()
        assert verified(target.requests[1], webhook["secret"])

    def test_previous_secret_verifies_for_a_day_after_a_rotation(self, hooks, webhook, target, database):
        rotated = hooks.change(webhook, rotate_secret=True)
        ends = datetime.fromisoformat(rotated["previous_secret_expires_at"])
        assert_left((ends - database.now()).total_seconds(), of=DAY)
        deliver_event(hooks)
        hooks.let_time_pass(DAY)
        deliver_event(hooks)
        first_request, second_request = target.requests
        assert first_request.headers["webhook-signature"].count("v1,") == 2
        assert verified(first_request, webhook["secret"]) == verified(first_request, rotated["secret"])
        assert verified(second_request, rotated["secret"])
        with pytest.raises(WebhookVerificationError):
            verified(second_request, webhook["secret"])
        assert hooks.show(webhook)["previous_secret_expires_at"] is None

    def test_housekeeping_encrypts_secrets_by_the_new_secret(self, target, make_app, service_role, database):
        def hooks_with(key_setting):
            app = make_app(AUTH_SECRET_KEY=key_setting)
            return Hooks(app.test_client(), service_role, database, app.extensions["latchkey"])

        hooks = hooks_with(OLD)
        webhook = hooks.register(target)
        rotated = hooks.change(webhook, rotate_secret=True)
        hooks_with_both_keys = hooks_with(f"{NEW},{OLD}")
        assert deliver_event(hooks_with_both_keys) == 1
        hooks_with_both_keys.run_janitor()
        # After housekeeping, the old secret can be removed.
        assert deliver_event(hooks_with(NEW)) == 1
        for posted in target.requests:
            assert verified(posted, webhook["secret"]) == verified(posted, rotated["secret"])


class TestResponses:
    @pytest.mark.parametrize("status", [301, 308, 400, 404, 429, 503])
    def test_other_statuses_fail_and_redirects_are_not_followed(self, hooks, webhook, target, status):
        with HttpTarget() as other:
            target.status, target.headers = status, {"Location": other.url}
            deliver_event(hooks)
            assert other.requests == []
        (waiting,) = hooks.deliveries(webhook)
        assert (waiting["status"], waiting["last_error"][:3]) == ("waiting", str(status))
        assert (hooks.deliver(), len(target.requests)) == (0, 1)

    def test_response_must_come_within_ten_seconds(self, hooks, webhook, target, parts):
        target.behaviour = "hang"
        sender = EventSender(parts.db, parts.sealer, True, timeout=0.5)
        hooks.emit()
        assert Deliverer(parts.settings, parts.db, parts.sealer, {"webhook": sender}).deliver_due() == 1
        (waiting,) = hooks.deliveries(webhook)
        assert (waiting["status"], waiting["last_error"][:11]) == ("waiting", "no answer: ")
        assert EventSender(parts.db, parts.sealer, True).timeout == 10


class TestRetries:
    def test_event_is_sent_until_accepted_with_growing_pauses(self, hooks, webhook, target, database):
        target.status = 500
        hooks.emit()
        first = database.now()
        for attempt, failing, longest in ((1, 0, FIRST_PAUSE), (2, 100, 100), (3, DAY, LONGEST_PAUSE)):
            hooks.let_time_pass(failing)
            started_at = database.now()
            assert deliver_again(hooks) == 1
            assert longest / 2 <= hooks.pause(webhook, started_at)
            assert hooks.pause(webhook) <= longest + (database.now() - first).total_seconds()
            assert hooks.deliveries(webhook)[0]["attempts"] == attempt
        target.status = 200
        deliver_again(hooks)
        assert (statuses(hooks, webhook), hooks.show(webhook)["failing_since"]) == (["sent"], None)

    def test_failing_webhook_gets_one_event_a_pause_until_it_works(self, hooks, webhook, target, database):
        target.status = 500
        for _ in range(4):
            hooks.emit()
        assert deliver_event(hooks) == 1
        # A slow machine may take as long as the first pause.
        database.run("UPDATE webhooks SET retry_at = retry_at + interval '1 minute'")
        assert [hooks.deliver(), deliver_again(hooks)] == [0, 1]
        target.status = 200
        assert deliver_again(hooks) == 5
        assert set(statuses(hooks, webhook)) == {"sent"}
        assert database.value("SELECT failing_since IS NULL AND retry_at IS NULL FROM webhooks")

    @pytest.mark.parametrize(("header", "least", "most"), [("200", 200, 200), ("0", 2.5, 5)])
    def test_webhook_can_ask_for_a_longer_pause(self, hooks, webhook, target, database, header, least, most):
        target.status, target.headers = 503, {"Retry-After": header}
        hooks.emit()
        started_at = database.now()
        hooks.deliver()
        assert least <= hooks.pause(webhook, started_at)
        assert hooks.pause(webhook) <= most

    def test_event_is_given_up_after_three_days(self, hooks, webhook, target):
        hooks.emit()
        hooks.let_time_pass(GIVE_UP)
        assert hooks.deliver() == 1
        assert (statuses(hooks, webhook), target.requests) == (["failed"], [])

    def test_new_url_and_test_event_end_the_pause(self, hooks, webhook, target):
        change_url, test = lambda: hooks.change(webhook, url=f"{target.url}/x"), f"/{webhook['id']}/test"
        for end_pause in (change_url, lambda: hooks.ask("post", test)):
            target.status = 500
            deliver_event(hooks)
            assert hooks.pause(webhook) > 0
            target.status = 200
            end_pause()
            assert deliver_event(hooks) >= 1


class TestDisabling:
    def test_webhook_that_returns_410_is_disabled_until_enabled(
        self, hooks, carol, webhook, target, database
    ):
        target.status = 410
        hooks.emit()
        database.run("DELETE FROM audit_log; DELETE FROM outbox WHERE channel = 'email'")
        deliver_event(hooks)
        state = hooks.show(webhook)
        assert (state["disabled"], state["disabled_reason"]) == (True, "gone")
        assert sorted(statuses(hooks, webhook)) == ["failed", "waiting"]
        assert len(target.requests) == 1
        details = {"webhook_id": webhook["id"], "url": target.url, "reason": "gone"}
        assert hooks.acts() == [("webhook_disabled", "service", details)]
        assert database.count("outbox", "channel = 'email'") == 0

        target.status = 200
        assert hooks.change(webhook, disabled=False)["failing_since"] is None
        (failed,) = [delivery for delivery in hooks.deliveries(webhook) if delivery["status"] == "failed"]
        hooks.ask("post", f"/{webhook['id']}/deliveries/{failed['id']}/redeliver")
        hooks.deliver()
        assert sorted(statuses(hooks, webhook)) == ["failed", "sent", "sent"]

    def test_webhook_that_fails_for_three_days_is_disabled_with_a_mail(
        self, hooks, target, database, client, service_role, carol
    ):
        register(client, service_role, "erin@example.com", "admin")
        database.run("UPDATE users SET banned_until = 'infinity' WHERE email = 'erin@example.com'")
        webhook = hooks.register(target)
        target.status = 500
        deliver_event(hooks)
        hooks.let_time_pass(GIVE_UP - 60)
        hooks.emit()
        deliver_again(hooks)
        assert hooks.show(webhook)["disabled"] is False
        database.run("DELETE FROM audit_log; DELETE FROM outbox WHERE channel = 'email'")
        hooks.let_time_pass(60)
        hooks.emit()
        while hooks.show(webhook)["disabled"] is False:
            deliver_again(hooks)
        state = hooks.show(webhook)
        assert (state["disabled_at"], state["disabled_reason"]) == (A_TIMESTAMP, "failing")
        details = {"webhook_id": webhook["id"], "url": target.url, "reason": "failing"}
        assert hooks.acts() == [("webhook_disabled", "service", details)]
        recipients = database.all("SELECT recipient FROM outbox WHERE kind = 'webhook_disabled'")
        assert recipients == [("carol@example.com",)]

    def test_mail_names_the_host_of_the_webhook_only(self, hooks, target, mailbox, database, parts, carol):
        hooks.register(target.url.replace("127.0.0.1", "localhost") + "/hooks?token=s3cret")
        database.run("UPDATE webhooks SET failing_since = now() - interval '3 days'")
        target.status = 500
        hooks.emit()
        sender = EventSender(parts.db, parts.sealer, True)
        Deliverer(parts.settings, parts.db, parts.sealer, {"webhook": sender}).deliver_due()
        (mail,) = mailbox.messages_to(carol.email)
        assert mail.subject == "A webhook was disabled"
        assert "at localhost failed for three days" in mail.text
        assert "s3cret" not in mail.text

    def test_at_most_ten_administrators_get_a_mail(
        self, hooks, webhook, target, database, client, service_role
    ):
        for number in range(MOST_MAILS + 2):
            register(client, service_role, f"admin{number}@example.com", "admin")
        database.run("UPDATE webhooks SET failing_since = now() - interval '3 days'")
        target.status = 500
        deliver_event(hooks)
        assert database.count("outbox", "kind = 'webhook_disabled'") == MOST_MAILS == 10

    def test_event_in_flight_does_not_change_a_disabled_webhook(
        self, hooks, webhook, target, database, parts
    ):
        hooks.emit()
        event = as_message(database.one("SELECT * FROM outbox WHERE channel = 'webhook'"))
        state = hooks.change(webhook, disabled=True)
        for status in (500, 410, 200):
            target.status = status
            with contextlib.suppress(RefusedByServer, TryLater):
                EventSender(parts.db, parts.sealer, True).send(webhook["id"], event)
        assert (len(target.requests), hooks.show(webhook)) == (3, state)
