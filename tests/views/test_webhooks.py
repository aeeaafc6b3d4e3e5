"""/admin/webhooks: registering webhooks and looking at their deliveries."""

import itertools
import json

from auth.senders import webhooks
from tests.support.answers import A_TIMESTAMP, A_UUID, Like, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.hooks import verified

URL = "https://192.0.1.1/hooks"
A_SECRET = Like("a secret", r"whsec_[A-Za-z0-9+/]{43}=")
AN_EVENT_ID = Like("the id of an event", r"msg_[0-9a-f-]{36}")
ALL = ["user.created", "user.updated", "user.deleted", "auth.login", "auth.logout"]
NOBODY = "00000000-0000-0000-0000-000000000000"


def webhook(**changes):
    """Return the expected representation of a webhook."""
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
    def test_new_webhook_gets_all_events_and_shows_its_secret(self, hooks):
        assert_ok(hooks.ask("post", url=URL), webhook(secret=A_SECRET))

    def test_events_are_chosen_without_duplicates(self, hooks):
        response = hooks.ask(
            "post", url=URL, events=["auth.logout", "user.created", "auth.logout"], description="Billing"
        )
        assert_ok(
            response, webhook(secret=A_SECRET, events=["user.created", "auth.logout"], description="Billing")
        )

    def test_secret_is_shown_once_and_stored_encrypted(self, hooks, database):
        made = hooks.register(URL)
        assert hooks.show(made) == {name: value for name, value in made.items() if name != "secret"}
        assert hooks.ask("get").json["data"] == [hooks.show(made)]
        assert made["secret"].removeprefix("whsec_") not in database.value(
            "SELECT encode(secret, 'escape') FROM webhooks"
        )

    def test_each_webhook_has_its_own_secret(self, hooks):
        assert hooks.register(URL)["secret"] != hooks.register(URL)["secret"]

    @cases("events", [[], ["user.banned"], ["user.created", 5], "user.created", {}])
    def test_unknown_events_are_refused(self, hooks, database, events):
        assert_error(
            hooks.ask("post", url=URL, events=events),
            400,
            "validation_failed",
            details="events: must be a list of at least one of " + ", ".join(ALL),
        )
        assert database.count("webhooks") == database.count("audit_log") == 0

    @cases(
        ("body", "details"),
        [
            ({}, "url: is required"),
            ({"url": 5}, "url: must be a string"),
            ({"url": "https://192.0.1.1/" + "x" * 2048}, "url: must be at most 2048 characters"),
            ({"url": URL, "description": 5}, "description: must be a string"),
        ],
    )
    def test_invalid_body_is_refused(self, hooks, body, details):
        assert_error(hooks.ask("post", **body), 400, "validation_failed", details=details)

    def test_twenty_first_webhook_is_refused(self, hooks, database):
        for _ in range(webhooks.MAX_WEBHOOKS):
            hooks.register(URL)
        assert_error(
            hooks.ask("post", url=URL), 400, "validation_failed", details="url: must be one of at most 20"
        )
        assert database.count("webhooks") == database.count("audit_log") == webhooks.MAX_WEBHOOKS

    def test_concurrent_requests_cannot_exceed_the_limit(self, hooks, parts, database):
        def create(id):
            return parts.db.one(
                "create_webhook", id=id, url=URL, description=None, events=ALL, secret=b"x", most=1
            )

        insert = "INSERT INTO webhooks (id, url, events, secret) SELECT %s, 'https://192.0.1.1/', ARRAY['auth.login'], '' WHERE has_room_for_webhook(1)"
        with database.locked("webhooks", NOBODY, insert) as lock:
            second = lock.start(lambda: create("00000000-0000-0000-0000-000000000002"))
        assert second.result() is None
        assert database.count("webhooks") == 1


class TestListing:
    def test_oldest_webhook_is_first(self, hooks):
        made = [hooks.register(f"{URL}/{number}")["id"] for number in range(5)]
        first = hooks.ask("get", "?per_page=2")
        assert [one["id"] for one in first.json["data"]] == made[:2]
        assert first.json["pagination"] == {"page": 1, "per_page": 2, "total": 5, "total_pages": 3}
        assert first.headers["X-Total-Count"] == "5"
        assert 'rel="next"' in first.headers["Link"]
        assert [one["id"] for one in hooks.ask("get", "?per_page=2&page=3").json["data"]] == made[4:]

    def test_list_can_be_empty(self, hooks):
        assert_ok(
            hooks.ask("get"),
            {"data": [], "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0}},
        )


class TestChanging:
    def test_absent_members_stay(self, hooks):
        made = hooks.register(URL, description="Billing", events=["user.created"])
        assert hooks.change(made, url=URL + "/2") == webhook(
            url=URL + "/2", description="Billing", events=["user.created"]
        )
        assert hooks.change(made, events=["auth.login"]) == webhook(
            url=URL + "/2", description="Billing", events=["auth.login"]
        )
        assert hooks.change(made, description=None) == webhook(url=URL + "/2", events=["auth.login"])

    def test_webhook_is_disabled_and_enabled(self, hooks):
        made = hooks.register(URL)
        off = hooks.change(made, disabled=True)
        assert off == webhook(disabled=True, disabled_at=A_TIMESTAMP, disabled_reason="by_administrator")
        assert hooks.change(made, disabled=True)["disabled_at"] == off["disabled_at"]
        assert hooks.change(made, disabled=False) == webhook()

    def test_new_secret_is_shown_once(self, hooks):
        made = hooks.register(URL)
        rotated = hooks.change(made, rotate_secret=True)
        assert rotated == webhook(secret=A_SECRET, previous_secret_expires_at=A_TIMESTAMP)
        assert rotated["secret"] != made["secret"]
        assert "secret" not in hooks.show(made)

    def test_invalid_change_changes_nothing(self, hooks, database):
        made = hooks.register(URL)
        before = database.everything()
        for body in (
            '{"url": "ftp://192.0.1.1"}',
            '{"events": []}',
            '{"disabled": "true"}',
            '{"rotate_secret": 1}',
            '{"url": "http:x", "disabled": true}',
        ):
            response = hooks.ask("put", f"/{made['id']}", **json.loads(body))
            assert (body, response.status_code, response.json["error_code"]) == (
                body,
                400,
                "validation_failed",
            )
        assert database.everything() == before


class TestDeleting:
    def test_deletion_voids_waiting_events(self, hooks, database, target):
        made, kept = hooks.register(target), hooks.register(target)
        hooks.emit()
        assert_ok(hooks.ask("delete", f"/{made['id']}"), {})
        assert_error(hooks.ask("delete", f"/{made['id']}"), 404, "not_found")
        outcomes = "SELECT recipient, outcome FROM outbox ORDER BY outcome"
        assert database.all(outcomes) == [(made["id"], "void"), (kept["id"], None)]
        hooks.deliver()
        assert len(target.requests) == 1

    def test_event_written_during_the_deletion_is_voided(self, hooks, parts, database, target):
        made = hooks.register(target)
        hooks.emit()
        database.run("DELETE FROM webhooks")
        assert hooks.deliver() == 0
        assert parts.db.run("finish_stale_events", batch=500) == 1
        assert database.one("SELECT recipient, outcome FROM outbox") == (made["id"], "void")
        assert target.requests == []


class TestUnknownIds:
    @cases("id", [NOBODY, "nonsense", "7C4E0A52"])
    @cases(
        ("method", "path"),
        [
            ("get", ""),
            ("put", ""),
            ("delete", ""),
            ("get", "/deliveries"),
            ("post", "/test"),
            ("post", f"/deliveries/{NOBODY}/redeliver"),
        ],
    )
    def test_unknown_id_is_404(self, hooks, database, id, method, path):
        assert_error(hooks.ask(method, f"/{id}{path}"), 404, "not_found")
        assert database.count("audit_log") == 0

    def test_id_in_capitals_is_found(self, hooks, target):
        made = hooks.register(target)
        assert hooks.ask("get", f"/{made['id'].upper()}").json["id"] == made["id"]
        rotated = hooks.ask("put", f"/{made['id'].upper()}", rotate_secret=True).json
        hooks.ask("post", f"/{made['id'].upper()}/test")
        hooks.deliver()
        assert verified(target.requests[0], rotated["secret"])


class TestDeliveries:
    def test_deliveries_show_the_outcome_of_each_event(self, hooks, target):
        made = hooks.register(target)
        hooks.emit("auth.login")
        assert hooks.deliveries(made) == [delivery(event="auth.login")]
        target.body = b"thanks\n\x00"
        hooks.deliver()
        sent = delivery(
            event="auth.login",
            status="sent",
            attempts=1,
            response="200 OK thanks",
            next_attempt_at=None,
            finished_at=A_TIMESTAMP,
        )
        assert hooks.deliveries(made) == [sent]

    def test_newest_delivery_is_first_with_pagination(self, hooks, target):
        made, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        for event in ("user.created", "user.updated", "auth.login"):
            hooks.emit(event)
        assert [one["event"] for one in hooks.deliveries(made)] == [
            "auth.login",
            "user.updated",
            "user.created",
        ]
        second = hooks.ask("get", f"/{made['id']}/deliveries?per_page=2&page=2").json
        assert ([one["event"] for one in second["data"]], second["pagination"]["total"]) == (
            ["user.created"],
            3,
        )
        assert hooks.deliveries(other) == []


class TestRedelivering:
    def test_event_is_sent_again_with_the_same_id(self, hooks, target):
        made = hooks.register(target)
        hooks.emit()
        hooks.deliver()
        (first,) = hooks.deliveries(made)
        assert_ok(
            hooks.ask("post", f"/{made['id']}/deliveries/{first['id']}/redeliver"),
            delivery(event_id=first["event_id"]),
        )
        hooks.deliver()
        assert [posted.headers["webhook-id"] for posted in target.requests] == [first["event_id"]] * 2
        assert len({posted.body for posted in target.requests}) == 1
        assert len({one["id"] for one in hooks.deliveries(made)}) == 2

    def test_waiting_event_is_sent_at_once_and_not_doubled(self, hooks, target):
        made = hooks.register(target)
        target.status = 503
        hooks.emit()
        hooks.deliver()
        target.status = 200
        assert hooks.deliver() == 0
        (waiting,) = hooks.deliveries(made)
        response = hooks.ask("post", f"/{made['id']}/deliveries/{waiting['id']}/redeliver")
        assert_ok(
            response,
            delivery(
                id=waiting["id"],
                event_id=waiting["event_id"],
                attempts=1,
                last_error="503 Service Unavailable {}",
            ),
        )
        assert hooks.deliver() == 1
        assert [one["status"] for one in hooks.deliveries(made)] == ["sent"]

    def test_delivery_of_another_webhook_is_404(self, hooks, target):
        made, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        hooks.emit()
        (waiting,) = hooks.deliveries(made)
        assert_error(
            hooks.ask("post", f"/{other['id']}/deliveries/{waiting['id']}/redeliver"), 404, "not_found"
        )

    def test_mail_is_404_as_a_delivery(self, hooks, target, database):
        made = hooks.register(target)
        database.run(
            "INSERT INTO outbox (id, channel, kind, recipient) VALUES (%(id)s, 'email', 'signup', %(recipient)s)",
            id=NOBODY,
            recipient=made["id"],
        )
        assert_error(hooks.ask("post", f"/{made['id']}/deliveries/{NOBODY}/redeliver"), 404, "not_found")

    def test_disabled_webhook_gets_nothing(self, hooks, target, database):
        made = hooks.register(target)
        hooks.emit()
        (waiting,) = hooks.deliveries(made)
        hooks.change(made, disabled=True)
        for path in (f"/deliveries/{waiting['id']}/redeliver", "/test"):
            assert_error(
                hooks.ask("post", f"/{made['id']}{path}"),
                400,
                "validation_failed",
                details="disabled: must be false",
            )
        assert database.count("outbox") == 1


class TestTestEvents:
    def test_test_event_is_sent_with_a_placeholder_user(self, hooks, target):
        made = hooks.register(target)
        assert_ok(hooks.ask("post", f"/{made['id']}/test"), delivery())
        hooks.deliver()
        assert verified(target.requests[0], made["secret"]) == {
            "event": "user.updated",
            "timestamp": A_TIMESTAMP,
            "data": {"user": {"id": NOBODY, "email": "webhook-test@example.com"}},
        }

    def test_test_event_of_any_kind_goes_to_one_webhook(self, hooks, target):
        made = hooks.register(target, events=["auth.login"])
        hooks.register(target)
        assert_ok(
            hooks.ask("post", f"/{made['id']}/test", event="user.deleted"), delivery(event="user.deleted")
        )
        assert hooks.deliver() == 1

    def test_test_event_of_an_unknown_kind_is_refused(self, hooks, target):
        made = hooks.register(target)
        assert_error(
            hooks.ask("post", f"/{made['id']}/test", event="webhook.test"),
            400,
            "validation_failed",
            details="event: must be one of " + ", ".join(ALL),
        )


class TestAuditLog:
    def test_every_act_is_recorded(self, hooks, target, database):
        made = hooks.register(f"{target.url}/hooks?key=a-secret")
        about = {"webhook_id": made["id"], "url": target.url}

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

    def test_audit_log_has_no_secret(self, hooks, database, target):
        made = hooks.register(target)
        rotated = hooks.change(made, rotate_secret=True)
        text = str(database.everything("audit_log", "outbox", "webhooks"))
        for one, part in itertools.product((made, rotated), (slice(6, 20), slice(20, 40))):
            assert one["secret"][part] not in text
