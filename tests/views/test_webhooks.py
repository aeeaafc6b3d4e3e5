"""/admin/webhooks: who is to hear of events, and what was sent there."""

import itertools
import json

import pytest

from auth.delivery import webhooks
from tests.support.answers import A_TIMESTAMP, A_UUID, Like, assert_error, assert_ok
from tests.support.hooks import verified

URL = "https://192.0.1.1/hooks"
A_SECRET = Like("a secret", r"whsec_[A-Za-z0-9+/]{43}=")
AN_EVENT_ID = Like("the id of an event", r"msg_[0-9a-f-]{36}")
ALL = ["user.created", "user.updated", "user.deleted", "auth.login", "auth.logout"]
NOBODY = "00000000-0000-0000-0000-000000000000"


def webhook(**changes):
    """Return a webhook as it is expected."""
    expected = {
        "id": A_UUID,
        "url": URL,
        "description": None,
        "events": ALL,
        "disabled": False,
        "disabled_at": None,
        "disabled_reason": None,
        "failing_since": None,
        "previous_secret_expires_at": None,
        "created_at": A_TIMESTAMP,
        "updated_at": A_TIMESTAMP,
    }
    return expected | changes


def delivery(**changes):
    expected = {
        "id": A_UUID,
        "event": "user.updated",
        "event_id": AN_EVENT_ID,
        "status": "waiting",
        "attempts": 0,
        "last_error": None,
        "response": None,
        "created_at": A_TIMESTAMP,
        "next_attempt_at": A_TIMESTAMP,
        "finished_at": None,
    }
    return expected | changes


class TestRegistering:
    def test_it_wants_all_events_and_tells_its_secret(self, hooks):
        assert_ok(hooks.ask("post", url=URL), webhook(secret=A_SECRET))

    def test_it_may_want_some_each_once(self, hooks):
        response = hooks.ask("post", url=URL, events=["auth.logout", "user.created", "auth.logout"], description="Billing")
        assert_ok(response, webhook(secret=A_SECRET, events=["user.created", "auth.logout"], description="Billing"))

    def test_the_secret_is_told_this_once_and_kept_encrypted(self, hooks, database):
        made = hooks.register(URL)
        assert hooks.show(made) == {name: value for name, value in made.items() if name != "secret"}
        assert hooks.ask("get").json["data"] == [hooks.show(made)]
        assert made["secret"].removeprefix("whsec_") not in database.value("SELECT encode(secret, 'escape') FROM webhooks")

    def test_each_has_a_secret_of_its_own(self, hooks):
        assert hooks.register(URL)["secret"] != hooks.register(URL)["secret"]

    @pytest.mark.parametrize("events", [[], ["user.banned"], ["user.created", 5], "user.created", {}])
    def test_other_events_are_refused(self, hooks, database, events):
        assert_error(hooks.ask("post", url=URL, events=events), 400, "validation_failed", details="events: must be a list of at least one of " + ", ".join(ALL))
        assert database.count("webhooks") == database.count("audit_log") == 0

    @pytest.mark.parametrize(
        ("body", "details"),
        [
            ({}, "url: is required"),
            ({"url": 5}, "url: must be a string"),
            ({"url": "https://192.0.1.1/" + "x" * 2048}, "url: must be at most 2048 characters"),
            ({"url": URL, "description": 5}, "description: must be a string"),
        ],
    )
    def test_what_it_can_not_read_is_refused(self, hooks, body, details):
        assert_error(hooks.ask("post", **body), 400, "validation_failed", details=details)

    def test_there_are_twenty_at_most(self, hooks, database):
        for _ in range(webhooks.MAX_WEBHOOKS):
            hooks.register(URL)
        assert_error(hooks.ask("post", url=URL), 400, "validation_failed", details="url: must be one of at most 20")
        assert database.count("webhooks") == database.count("audit_log") == webhooks.MAX_WEBHOOKS

    def test_nor_are_there_more_when_two_ask_at_once(self, hooks, parts, database):
        def create(id):
            return parts.db.one("create_webhook", id=id, url=URL, description=None, events=ALL, secret=b"x", most=1)

        insert = "INSERT INTO webhooks (id, url, events, secret) SELECT %s, 'https://192.0.1.1/', ARRAY['auth.login'], '' WHERE has_room_for_webhook(1)"
        with database.locked("webhooks", NOBODY, insert) as lock:
            second = lock.start(lambda: create("00000000-0000-0000-0000-000000000002"))
        assert second.result() is None
        assert database.count("webhooks") == 1


class TestListing:
    def test_the_oldest_is_first(self, hooks):
        made = [hooks.register(f"{URL}/{number}")["id"] for number in range(5)]
        first = hooks.ask("get", "?per_page=2")
        assert [one["id"] for one in first.json["data"]] == made[:2]
        assert first.json["pagination"] == {"page": 1, "per_page": 2, "total": 5, "total_pages": 3}
        assert first.headers["X-Total-Count"] == "5"
        assert 'rel="next"' in first.headers["Link"]
        assert [one["id"] for one in hooks.ask("get", "?per_page=2&page=3").json["data"]] == made[4:]

    def test_there_may_be_none(self, hooks):
        assert_ok(hooks.ask("get"), {"data": [], "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0}})


class TestChanging:
    def test_what_is_absent_stays(self, hooks):
        made = hooks.register(URL, description="Billing", events=["user.created"])
        assert hooks.change(made, url=URL + "/2") == webhook(url=URL + "/2", description="Billing", events=["user.created"])
        assert hooks.change(made, events=["auth.login"]) == webhook(url=URL + "/2", description="Billing", events=["auth.login"])
        assert hooks.change(made, description=None) == webhook(url=URL + "/2", events=["auth.login"])

    def test_it_is_switched_off_and_on(self, hooks):
        made = hooks.register(URL)
        off = hooks.change(made, disabled=True)
        assert off == webhook(disabled=True, disabled_at=A_TIMESTAMP, disabled_reason="by_administrator")
        assert hooks.change(made, disabled=True)["disabled_at"] == off["disabled_at"]
        assert hooks.change(made, disabled=False) == webhook()

    def test_a_new_secret_is_told_once(self, hooks):
        made = hooks.register(URL)
        rotated = hooks.change(made, rotate_secret=True)
        assert rotated == webhook(secret=A_SECRET, previous_secret_expires_at=A_TIMESTAMP)
        assert rotated["secret"] != made["secret"]
        assert "secret" not in hooks.show(made)

    def test_a_bad_change_changes_nothing(self, hooks, database):
        made = hooks.register(URL)
        before = database.everything()
        for body in ('{"url": "ftp://192.0.1.1"}', '{"events": []}', '{"disabled": "true"}', '{"rotate_secret": 1}', '{"url": "http:x", "disabled": true}'):
            response = hooks.ask("put", f"/{made['id']}", **json.loads(body))
            assert (body, response.status_code, response.json["error_code"]) == (body, 400, "validation_failed")
        assert database.everything() == before


class TestDeleting:
    def test_it_is_gone_and_what_waits_is_void(self, hooks, database, target):
        made, kept = hooks.register(target), hooks.register(target)
        hooks.happen()
        assert_ok(hooks.ask("delete", f"/{made['id']}"), {})
        assert_error(hooks.ask("delete", f"/{made['id']}"), 404, "not_found")
        outcomes = "SELECT recipient, outcome FROM outbox ORDER BY outcome"
        assert database.all(outcomes) == [(made["id"], "void"), (kept["id"], None)]
        hooks.deliver()
        assert len(target.requests) == 1

    def test_what_was_written_for_it_meanwhile_is_void_in_the_end(self, hooks, parts, database, target):
        made = hooks.register(target)
        hooks.happen()
        database.run("DELETE FROM webhooks")
        assert hooks.deliver() == 0
        assert parts.db.run("finish_stale_events", batch=500) == 1
        assert database.one("SELECT recipient, outcome FROM outbox") == (made["id"], "void")
        assert target.requests == []


class TestUnknownOnes:
    @pytest.mark.parametrize("id", [NOBODY, "nonsense", "7C4E0A52"])
    @pytest.mark.parametrize(
        ("method", "path"), [("get", ""), ("put", ""), ("delete", ""), ("get", "/deliveries"), ("post", "/test"), ("post", f"/deliveries/{NOBODY}/redeliver")]
    )
    def test_they_are_not_found(self, hooks, database, id, method, path):
        assert_error(hooks.ask(method, f"/{id}{path}"), 404, "not_found")
        assert database.count("audit_log") == 0

    def test_an_id_in_capitals_is_the_same(self, hooks, target):
        made = hooks.register(target)
        assert hooks.ask("get", f"/{made['id'].upper()}").json["id"] == made["id"]
        rotated = hooks.ask("put", f"/{made['id'].upper()}", rotate_secret=True).json
        hooks.ask("post", f"/{made['id'].upper()}/test")
        hooks.deliver()
        assert verified(target.requests[0], rotated["secret"])


class TestDeliveries:
    def test_they_tell_what_became_of_each_event(self, hooks, target):
        made = hooks.register(target)
        hooks.happen("auth.login")
        assert hooks.deliveries(made) == [delivery(event="auth.login")]
        target.body = b"thanks\n\x00"
        hooks.deliver()
        sent = delivery(event="auth.login", status="sent", attempts=1, response="200 OK thanks", next_attempt_at=None, finished_at=A_TIMESTAMP)
        assert hooks.deliveries(made) == [sent]

    def test_the_newest_is_first_page_by_page(self, hooks, target):
        made, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        for event in ("user.created", "user.updated", "auth.login"):
            hooks.happen(event)
        assert [one["event"] for one in hooks.deliveries(made)] == ["auth.login", "user.updated", "user.created"]
        second = hooks.ask("get", f"/{made['id']}/deliveries?per_page=2&page=2").json
        assert ([one["event"] for one in second["data"]], second["pagination"]["total"]) == (["user.created"], 3)
        assert hooks.deliveries(other) == []


class TestRedelivering:
    def test_it_is_sent_again_under_the_same_id(self, hooks, target):
        made = hooks.register(target)
        hooks.happen()
        hooks.deliver()
        (first,) = hooks.deliveries(made)
        assert_ok(hooks.ask("post", f"/{made['id']}/deliveries/{first['id']}/redeliver"), delivery(event_id=first["event_id"]))
        hooks.deliver()
        assert [posted.headers["webhook-id"] for posted in target.requests] == [first["event_id"]] * 2
        assert len({posted.body for posted in target.requests}) == 1
        assert len({one["id"] for one in hooks.deliveries(made)}) == 2

    def test_what_waits_waits_no_longer_and_is_not_doubled(self, hooks, target):
        made = hooks.register(target)
        target.status = 503
        hooks.happen()
        hooks.deliver()
        target.status = 200
        assert hooks.deliver() == 0
        (waiting,) = hooks.deliveries(made)
        response = hooks.ask("post", f"/{made['id']}/deliveries/{waiting['id']}/redeliver")
        assert_ok(response, delivery(id=waiting["id"], event_id=waiting["event_id"], attempts=1, last_error="503 Service Unavailable {}"))
        assert hooks.deliver() == 1
        assert [one["status"] for one in hooks.deliveries(made)] == ["sent"]

    def test_another_webhooks_delivery_is_not_found(self, hooks, target):
        made, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        hooks.happen()
        (waiting,) = hooks.deliveries(made)
        assert_error(hooks.ask("post", f"/{other['id']}/deliveries/{waiting['id']}/redeliver"), 404, "not_found")

    def test_a_mail_is_no_delivery(self, hooks, target, database):
        made = hooks.register(target)
        database.run("INSERT INTO outbox (id, channel, kind, recipient) VALUES (%(id)s, 'email', 'signup', %(recipient)s)", id=NOBODY, recipient=made["id"])
        assert_error(hooks.ask("post", f"/{made['id']}/deliveries/{NOBODY}/redeliver"), 404, "not_found")

    def test_one_that_is_switched_off_gets_nothing(self, hooks, target, database):
        made = hooks.register(target)
        hooks.happen()
        (waiting,) = hooks.deliveries(made)
        hooks.change(made, disabled=True)
        for path in (f"/deliveries/{waiting['id']}/redeliver", "/test"):
            assert_error(hooks.ask("post", f"/{made['id']}{path}"), 400, "validation_failed", details="disabled: must be false")
        assert database.count("outbox") == 1


class TestTesting:
    def test_it_sends_an_event_of_nobody(self, hooks, target):
        made = hooks.register(target)
        assert_ok(hooks.ask("post", f"/{made['id']}/test"), delivery())
        hooks.deliver()
        assert verified(target.requests[0], made["secret"]) == {
            "event": "user.updated",
            "timestamp": A_TIMESTAMP,
            "data": {"user": {"id": NOBODY, "email": "webhook-test@example.com"}},
        }

    def test_of_any_kind_and_to_this_webhook_alone(self, hooks, target):
        made = hooks.register(target, events=["auth.login"])
        hooks.register(target)
        assert_ok(hooks.ask("post", f"/{made['id']}/test", event="user.deleted"), delivery(event="user.deleted"))
        assert hooks.deliver() == 1

    def test_of_no_other_kind(self, hooks, target):
        made = hooks.register(target)
        assert_error(
            hooks.ask("post", f"/{made['id']}/test", event="webhook.test"), 400, "validation_failed", details="event: must be one of " + ", ".join(ALL)
        )


class TestTheAuditLog:
    def test_it_has_each_act(self, hooks, target, database):
        made = hooks.register(target)
        about = {"webhook_id": made["id"], "url": made["url"]}

        def acts():
            found = hooks.acts()
            database.run("DELETE FROM audit_log")
            return found

        assert acts() == [("webhook_created", "service_role", about)]
        hooks.ask("post", f"/{made['id']}/test")
        assert acts() == [("webhook_tested", "service_role", about)]
        (waiting,) = hooks.deliveries(made)
        hooks.ask("post", f"/{made['id']}/deliveries/{waiting['id']}/redeliver")
        assert acts() == [("event_redelivered", "service_role", about | {"event_id": waiting["event_id"]})]
        for body, action in (
            ({"events": ["auth.login"]}, "webhook_changed"),
            ({"rotate_secret": True}, "webhook_secret_rotated"),
            ({"disabled": True}, "webhook_disabled"),
            ({"disabled": False}, "webhook_enabled"),
        ):
            hooks.change(made, **body)
            assert acts() == [(action, "service_role", about)]
        hooks.change(made, disabled=False)
        assert acts() == []
        hooks.ask("delete", f"/{made['id']}")
        assert acts() == [("webhook_deleted", "service_role", about)]

    def test_it_has_no_secret(self, hooks, database, target):
        made = hooks.register(target)
        rotated = hooks.change(made, rotate_secret=True)
        text = str(database.everything("audit_log", "outbox", "webhooks"))
        for one, part in itertools.product((made, rotated), (slice(6, 20), slice(20, 40))):
            assert one["secret"][part] not in text
