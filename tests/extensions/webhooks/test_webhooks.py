"""/admin/webhooks: registering webhooks and looking at their deliveries."""

import itertools
from typing import Any

from auth.core import constants
from auth.core.net.webhook_urls import EVENTS
from auth.delivery import janitor
from sql import queries
from tests.support.answers import A_TIMESTAMP, A_UUID, ANYTHING, NO_ID, Like, assert_error, assert_ok, page_of
from tests.support.cases import cases
from tests.support.hooks import verified

URL = "https://192.0.1.1/hooks"
A_SECRET = Like("a secret", r"whsec_[A-Za-z0-9+/]{43}=")
AN_EVENT_ID = Like("the id of an event", r"msg_[0-9a-f-]{36}")
ALL = [*EVENTS]


def expected_webhook(**changes):
    expected = {"id": A_UUID, "url": URL, "events": ALL, "disabled": False}
    expected |= dict.fromkeys(["description", "disabled_at", "disabled_reason", "failing_since"])
    expected |= {"previous_secret_expires_at": None, "created_at": A_TIMESTAMP, "updated_at": A_TIMESTAMP}
    return expected | changes


def assert_invalid(response, details):
    assert_error(response, 400, "validation_failed", details=details)


def expected_delivery(**changes):
    expected = {"id": A_UUID, "event": "user.updated", "event_id": AN_EVENT_ID, "status": "waiting"}
    expected |= {"attempts": 0, "created_at": A_TIMESTAMP, "next_attempt_at": A_TIMESTAMP}
    return expected | dict.fromkeys(["last_error", "response", "finished_at"]) | changes


class TestRegistering:
    def test_new_webhook_gets_all_events_and_shows_its_secret_once(self, hooks, database):
        response = hooks.ask("post", url=URL)
        assert_ok(response, expected_webhook(secret=A_SECRET))
        webhook = response.json
        assert hooks.show(webhook) == expected_webhook()
        assert_ok(hooks.ask("get"), {"data": [expected_webhook()], "pagination": page_of(1, 20, 1, 1)})
        stored = database.value("SELECT encode(secret, 'escape') FROM webhooks")
        assert webhook["secret"].removeprefix("whsec_") not in stored
        assert hooks.register(URL)["secret"] != webhook["secret"]

    def test_events_are_chosen_without_duplicates(self, hooks):
        duplicates = ["auth.logout", "user.created", "auth.logout"]
        response = hooks.ask("post", url=URL, events=duplicates, description="Billing")
        events = ["user.created", "auth.logout"]
        assert_ok(response, expected_webhook(secret=A_SECRET, events=events, description="Billing"))

    def test_concurrent_requests_cannot_exceed_the_limit(self, hooks, database):
        for _ in range(constants.MOST_WEBHOOKS - 1):
            hooks.register(URL)
        insert = "INSERT INTO webhooks (id, url, events, secret) SELECT %s, 'https://192.0.1.1/', ARRAY['auth.login'], '' FROM pg_advisory_xact_lock(7239004118)"
        with database.locked("webhooks", NO_ID, insert) as lock:
            request = lock.start(lambda: hooks.ask("post", url=URL))
        assert_invalid(request.result(), "url: must be one of at most 20 webhooks")
        assert database.count("webhooks") == constants.MOST_WEBHOOKS


class TestListing:
    def test_oldest_webhook_is_first_and_the_list_can_be_empty(self, hooks):
        assert_ok(hooks.ask("get"), {"data": [], "pagination": page_of(1, 20, 0, 0)})
        ids = [hooks.register(f"{URL}/{number}")["id"] for number in range(3)]
        assert [each["id"] for each in hooks.ask("get").json["data"]] == ids


class TestChanging:
    def test_absent_members_stay_and_a_new_secret_is_shown_once(self, hooks, database):
        webhook = hooks.register(URL, description="Billing", events=["user.created"])
        expected = expected_webhook(description="Billing", events=["user.created"])
        for change in ({"url": URL + "/2"}, {"events": ["auth.login"]}, {"description": None}):
            expected |= change
            assert hooks.change(webhook, **change) == expected
        disabling = {"disabled": True, "disabled_at": A_TIMESTAMP, "disabled_reason": "by_administrator"}
        disabled = hooks.change(webhook, disabled=True)
        assert disabled == expected | disabling
        assert hooks.change(webhook, disabled=True)["disabled_at"] == disabled["disabled_at"]
        assert hooks.change(webhook, disabled=False) == expected
        assert hooks.acts()[-1][0] == "webhook_enabled"
        database.run("DELETE FROM audit_log")
        assert (hooks.change(webhook, disabled=False), hooks.acts()) == (expected, [])
        rotated = hooks.change(webhook, rotate_secret=True)
        expected |= {"previous_secret_expires_at": A_TIMESTAMP}
        assert rotated == expected | {"secret": A_SECRET}
        assert rotated["secret"] != webhook["secret"]
        assert hooks.show(webhook) == expected

    def test_janitor_forgets_a_secret_that_has_ended(self, hooks, parts, database):
        hooks.change(hooks.register(URL), rotate_secret=True)
        for interval, count in (("1 minute", 1), ("-1 minute", 0)):
            database.run(f"UPDATE webhooks SET previous_secret_expires_at = now() + interval '{interval}'")
            janitor.keep_house(parts.settings, parts.db, parts.sealer)
            assert database.count("webhooks", "previous_secret IS NOT NULL") == count

    def test_invalid_change_changes_nothing(self, hooks, database):
        webhook = hooks.register(URL)
        before = database.everything()
        bodies: list[dict[str, Any]] = [{"url": "ftp://192.0.1.1"}, {"events": []}, {"rotate_secret": 1}]
        bodies += [{"url": "http:x", "disabled": True}]
        for body in bodies:
            assert_invalid(hooks.ask("put", f"/{webhook['id']}", **body), ANYTHING)
        assert database.everything() == before


class TestDeleting:
    def test_deletion_voids_waiting_events(self, hooks, database, target):
        webhook, other = hooks.register(target), hooks.register(target)
        hooks.emit()
        assert_ok(hooks.ask("delete", f"/{webhook['id']}"), {})
        assert_error(hooks.ask("delete", f"/{webhook['id']}"), 404, "not_found")
        outcomes = "SELECT recipient, outcome FROM outbox ORDER BY outcome"
        assert database.all(outcomes) == [(webhook["id"], "void"), (other["id"], None)]
        hooks.deliver()
        assert len(target.requests) == 1

    def test_event_written_during_the_deletion_is_voided(self, hooks, parts, database, target):
        webhook = hooks.register(target)
        hooks.emit()
        database.run("DELETE FROM webhooks")
        assert hooks.deliver() == 0
        assert queries.finish_stale_events(parts.db, batch=500) == 1
        assert database.one("SELECT recipient, outcome FROM outbox") == (webhook["id"], "void")
        assert target.requests == []


class TestIds:
    @cases("id", [NO_ID, "nonsense"])
    @cases(
        "route",
        ["get", "put", "delete", "get /deliveries", "post /test", f"post /deliveries/{NO_ID}/redeliver"],
    )
    def test_unknown_id_is_404(self, hooks, database, id, route):
        method, _, path = route.partition(" ")
        assert_error(hooks.ask(method, f"/{id}{path}"), 404, "not_found")
        assert database.count("audit_log") == 0


class TestDeliveries:
    def test_deliveries_show_the_outcome_of_each_event(self, hooks, target):
        webhook = hooks.register(target)
        hooks.emit("auth.login")
        assert hooks.deliveries(webhook) == [expected_delivery(event="auth.login")]
        target.body = b"thanks\n\x00"
        hooks.deliver()
        expected = expected_delivery(event="auth.login", status="sent", attempts=1, response="200 OK thanks")
        assert hooks.deliveries(webhook) == [expected | {"next_attempt_at": None, "finished_at": A_TIMESTAMP}]


def redeliver(hooks, webhook, delivery_id):
    return hooks.ask("post", f"/{webhook['id']}/deliveries/{delivery_id}/redeliver")


class TestRedelivering:
    def test_event_is_sent_again_with_the_same_id(self, hooks, target):
        webhook = hooks.register(target)
        hooks.emit()
        hooks.deliver()
        (first,) = hooks.deliveries(webhook)
        assert_ok(redeliver(hooks, webhook, first["id"]), expected_delivery(event_id=first["event_id"]))
        hooks.deliver()
        assert [posted.headers["webhook-id"] for posted in target.requests] == [first["event_id"]] * 2
        assert len({posted.body for posted in target.requests}) == 1
        assert len({each["id"] for each in hooks.deliveries(webhook)}) == 2

    def test_waiting_event_is_sent_at_once_and_not_doubled(self, hooks, target):
        webhook = hooks.register(target)
        target.status = 503
        hooks.emit()
        hooks.deliver()
        target.status = 200
        assert hooks.deliver() == 0
        (delivery,) = hooks.deliveries(webhook)
        ids = {name: delivery[name] for name in ("id", "event_id")}
        failed = expected_delivery(**ids, attempts=1, last_error="503 Service Unavailable {}")
        assert_ok(redeliver(hooks, webhook, delivery["id"]), failed)
        assert hooks.deliver() == 1
        assert [each["status"] for each in hooks.deliveries(webhook)] == ["sent"]

    def test_pause_of_another_webhook_goes_on(self, hooks, target, database):
        webhook, other = (hooks.register(target) for _ in range(2))
        target.status = 503
        hooks.emit()
        hooks.deliver()
        assert redeliver(hooks, webhook, hooks.deliveries(webhook)[0]["id"]).status_code == 200
        paused = database.all("SELECT id::text FROM webhooks WHERE retry_at IS NOT NULL")
        assert [row.id for row in paused] == [other["id"]]

    def test_mail_or_delivery_of_another_webhook_is_404(self, hooks, target, database):
        webhook, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        hooks.emit()
        (delivery,) = hooks.deliveries(webhook)
        assert_error(redeliver(hooks, other, delivery["id"]), 404, "not_found")
        mail = "INSERT INTO outbox (id, channel, kind, recipient) VALUES (%(id)s, 'email', 'signup', %(to)s)"
        database.run(mail, id=NO_ID, to=webhook["id"])
        assert_error(redeliver(hooks, webhook, NO_ID), 404, "not_found")

    def test_disabled_webhook_gets_nothing(self, hooks, target, database):
        webhook = hooks.register(target)
        hooks.emit()
        (delivery,) = hooks.deliveries(webhook)
        hooks.change(webhook, disabled=True)
        assert_invalid(redeliver(hooks, webhook, delivery["id"]), "disabled: must be false")
        assert_invalid(hooks.ask("post", f"/{webhook['id']}/test"), "disabled: must be false")
        assert database.count("outbox") == 1


class TestTestEvents:
    def test_test_event_of_any_known_kind_is_sent_to_one_webhook_with_a_placeholder_user(self, hooks, target):
        webhook, _ = hooks.register(target, events=["auth.login"]), hooks.register(target)
        path = f"/{webhook['id']}/test"
        assert_ok(hooks.ask("post", path), expected_delivery())
        assert hooks.deliver() == 1
        assert verified(target.requests[0], webhook["secret"]) == {
            "event": "user.updated",
            "timestamp": A_TIMESTAMP,
            "data": {"user": {"id": NO_ID, "email": "webhook-test@example.com"}},
        }
        assert_ok(hooks.ask("post", path, event="user.deleted"), expected_delivery(event="user.deleted"))
        response = hooks.ask("post", path, event="webhook.test")
        assert_invalid(response, "event: must be one of " + ", ".join(ALL))
        assert hooks.deliver() == 1


class TestAuditLog:
    def test_audit_log_has_no_secret(self, hooks, database, target):
        webhook = hooks.register(target)
        rotated = hooks.change(webhook, rotate_secret=True)
        text = str(database.everything("audit_log", "outbox", "webhooks"))
        for each, part in itertools.product((webhook, rotated), (slice(6, 20), slice(20, 40))):
            assert each["secret"][part] not in text
