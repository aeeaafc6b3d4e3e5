"""Delivery of events: signed, retried, and not delayed by failing webhooks."""

import contextlib
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import WebhookVerificationError
from structlog.testing import capture_logs

from auth.delivery.attempts import LEASE
from auth.delivery.deliverer import Deliverer
from auth.senders.events import FIRST_PAUSE, LONGEST_PAUSE, MAX_MAILS, EventSender, as_message
from auth.senders.sender import Refused, TryLater
from auth.settings.constants import GIVE_UP
from tests.support.answers import A_TIMESTAMP
from tests.support.cast import register
from tests.support.deliverers import deliver_due
from tests.support.hooks import ALICE, DAY, Hooks, events_at, verified
from tests.support.http_target import HttpTarget
from tests.support.processes import free_port

SECRET_KEYS = ("the first root secret of these tests", "the second root secret of these tests")


class TestBody:
    def test_body_is_the_event(self, hooks, target):
        hooks.register(target)
        hooks.emit("user.created")
        assert hooks.deliver() == 1
        (posted,) = target.requests
        assert posted.path == "/hooks"
        assert posted.headers["content-type"] == "application/json"
        assert json.loads(posted.body) == {
            "event": "user.created",
            "timestamp": A_TIMESTAMP,
            "data": {"user": ALICE},
        }

    def test_webhook_gets_the_events_it_chose(self, hooks, target):
        with HttpTarget() as other:
            hooks.register(target, events=["auth.login", "user.deleted"])
            hooks.register(other)
            hooks.emit("auth.login", "user.updated")
            hooks.deliver()
            assert events_at(target) == ["auth.login"]
            assert sorted(events_at(other)) == ["auth.login", "user.updated"]

    def test_disabled_webhook_never_gets_an_event_of_that_time(self, hooks, target):
        made = hooks.register(target)
        hooks.change(made, disabled=True)
        hooks.emit()
        hooks.change(made, disabled=False)
        assert hooks.deliver() == 0

    def test_waiting_events_are_kept_while_a_webhook_is_disabled(self, hooks, target):
        made = hooks.register(target)
        hooks.emit()
        hooks.change(made, disabled=True)
        assert hooks.deliver() == 0
        assert [one["status"] for one in hooks.deliveries(made)] == ["waiting"]
        hooks.change(made, disabled=False)
        assert hooks.deliver() == 1

    def test_waiting_events_of_a_disabled_webhook_expire_after_three_days(self, hooks, target, parts):
        made = hooks.register(target)
        hooks.emit()
        hooks.change(made, disabled=True)
        hooks.let_time_pass(GIVE_UP - 60)
        assert parts.db.run("finish_stale_events", batch=500) == 0
        hooks.let_time_pass(60)
        assert parts.db.run("finish_stale_events", batch=500) == 1
        assert [one["status"] for one in hooks.deliveries(made)] == ["failed"]

    def test_text_in_any_language_arrives_intact(self, hooks, target, database):
        made = hooks.register(target)
        database.run(
            "SELECT record_acts('{}', NULL, %(email)s, ARRAY[]::text[], ARRAY['user.updated'])",
            email="用户@例子.example",
        )
        hooks.deliver()
        assert verified(target.requests[0], made["secret"])["data"] == {
            "user": {"id": None, "email": "用户@例子.example"}
        }


class TestSignature:
    def test_standard_webhooks_library_verifies_the_signature(self, hooks, target):
        made, other = hooks.register(target), hooks.register(target, events=["user.deleted"])
        hooks.emit()
        hooks.deliver()
        (posted,) = target.requests
        assert verified(posted, made["secret"])["event"] == "user.updated"
        with pytest.raises(WebhookVerificationError):
            verified(posted, other["secret"])

    def test_signature_does_not_fit_another_body(self, hooks, target):
        made = hooks.register(target)
        hooks.emit()
        hooks.deliver()
        (posted,) = target.requests
        object.__setattr__(posted, "body", posted.body.replace(b"alice", b"mallory"))
        with pytest.raises(WebhookVerificationError):
            verified(posted, made["secret"])

    def test_id_stays_and_timestamp_changes_with_each_attempt(self, hooks, target):
        made = hooks.register(target)
        target.status = 500
        hooks.emit()
        hooks.deliver()
        target.requests[0].headers["webhook-timestamp"] = "0"
        hooks.end_pauses()
        hooks.deliver()
        first, second = target.requests
        assert (
            first.headers["webhook-id"]
            == second.headers["webhook-id"]
            == hooks.deliveries(made)[0]["event_id"]
        )
        assert abs(int(second.headers["webhook-timestamp"]) - time.time()) < 60
        assert verified(second, made["secret"])

    def test_both_secrets_verify_after_a_rotation(self, hooks, target):
        made = hooks.register(target)
        rotated = hooks.change(made, rotate_secret=True)
        hooks.emit()
        hooks.deliver()
        (posted,) = target.requests
        assert posted.headers["webhook-signature"].count("v1,") == 2
        assert verified(posted, made["secret"]) == verified(posted, rotated["secret"])

    def test_previous_secret_verifies_for_a_day(self, hooks, target):
        made = hooks.register(target)
        rotated = hooks.change(made, rotate_secret=True)
        ends = datetime.fromisoformat(rotated["previous_secret_expires_at"])
        assert timedelta(hours=23, minutes=59) < ends - datetime.now(UTC) <= timedelta(hours=24)
        hooks.let_time_pass(DAY)
        hooks.emit()
        hooks.deliver()
        (posted,) = target.requests
        assert verified(posted, rotated["secret"])
        with pytest.raises(WebhookVerificationError):
            verified(posted, made["secret"])
        assert hooks.show(made)["previous_secret_expires_at"] is None

    def test_housekeeping_encrypts_secrets_with_the_new_root_secret(
        self, target, make_app, service_role, database
    ):
        def hooks_with(*keys):
            app = make_app(AUTH_SECRET_KEY=",".join(keys))
            return Hooks(app.test_client(), service_role, database, app.extensions["latchkey"])

        old, new = SECRET_KEYS
        hooks = hooks_with(old)
        made = hooks.register(target)
        rotated = hooks.change(made, rotate_secret=True)
        both = hooks_with(new, old)
        both.emit()
        assert both.deliver() == 1
        both.run_janitor()
        # The old root secret can be removed then.
        hooks = hooks_with(new)
        hooks.emit()
        assert hooks.deliver() == 1
        for posted in target.requests:
            assert verified(posted, made["secret"]) == verified(posted, rotated["secret"])

    def test_event_is_left_to_others_when_the_root_secret_is_missing(self, hooks, target, make_app):
        made = hooks.register(target)
        hooks.emit()
        deliver_due(make_app(AUTH_SECRET_KEY=SECRET_KEYS[0]).extensions["latchkey"])
        (waiting,) = hooks.deliveries(made)
        assert (waiting["status"], waiting["last_error"]) == (
            "waiting",
            "its secret can't be opened: its key is not among AUTH_SECRET_KEY",
        )
        assert hooks.show(made)["failing_since"] is None


class TestSuccess:
    @pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
    def test_any_2xx_is_a_success(self, hooks, target, status):
        made = hooks.register(target)
        target.status, target.body = status, b""
        hooks.emit()
        hooks.deliver()
        assert [one["status"] for one in hooks.deliveries(made)] == ["sent"]

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 400, 401, 404, 405, 409, 418, 429, 500, 503])
    def test_other_statuses_fail_and_redirects_are_not_followed(self, hooks, target, status):
        made = hooks.register(target)
        with HttpTarget() as other:
            target.status, target.headers = status, {"Location": other.url}
            hooks.emit()
            hooks.deliver()
            assert other.requests == []
        (waiting,) = hooks.deliveries(made)
        assert (waiting["status"], waiting["last_error"][:3]) == ("waiting", str(status))
        assert hooks.deliver() == 0
        assert len(target.requests) == 1

    def test_endless_response_is_not_read(self, hooks, target):
        made = hooks.register(target)
        target.body = b"x" * 50_000_000
        hooks.emit()
        began = time.monotonic()
        hooks.deliver()
        assert time.monotonic() - began < 8
        assert hooks.deliveries(made)[0]["response"] == "200 OK " + "x" * 293

    def test_proxy_variables_are_ignored(self, hooks, target, monkeypatch):
        with HttpTarget() as proxy:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url)
            hooks.register(target)
            hooks.emit()
            hooks.deliver()
            assert proxy.requests == []
        assert len(target.requests) == 1

    @pytest.mark.parametrize("behaviour", ["hang", "drip", "close"])
    def test_response_must_come_within_ten_seconds(self, hooks, target, parts, behaviour):
        target.behaviour = behaviour
        sender = EventSender(parts.db, parts.sealer, True, timeout=0.5)
        deliverer = Deliverer(parts.settings, parts.db, parts.sealer, {"webhook": sender})
        made = hooks.register(target)
        hooks.emit()
        began = time.monotonic()
        assert deliverer.deliver_due() == 1
        assert time.monotonic() - began < 5
        (waiting,) = hooks.deliveries(made)
        assert waiting["status"] == "waiting"
        assert waiting["last_error"].startswith("no answer: ")
        assert EventSender(parts.db, parts.sealer, True)._timeout == 10


class TestRetries:
    def test_event_is_sent_until_it_is_accepted(self, hooks, target):
        made = hooks.register(target)
        target.status = 500
        hooks.emit()
        for attempt in range(1, 4):
            assert hooks.deliver() == 1
            assert hooks.deliveries(made)[0]["attempts"] == attempt
            hooks.end_pauses()
        target.status = 200
        hooks.deliver()
        assert hooks.deliveries(made)[0]["status"] == "sent"
        assert hooks.show(made)["failing_since"] is None

    def test_pause_equals_the_time_of_failing(self, hooks, target, database):
        made = hooks.register(target)
        target.status = 500
        hooks.emit()
        first = database.now()
        hooks.deliver()
        assert hooks.pause(made, first) >= FIRST_PAUSE / 2
        assert hooks.pause(made) <= FIRST_PAUSE
        for failing, longest in ((30, 30), (100, 130), (DAY, LONGEST_PAUSE)):
            hooks.let_time_pass(failing)
            hooks.end_pauses()
            began = database.now()
            assert hooks.deliver() == 1
            assert longest / 2 <= hooks.pause(made, began)
            assert hooks.pause(made) <= longest + (database.now() - first).total_seconds()

    def test_pauses_have_jitter(self, hooks, target):
        target.status = 500
        made = [hooks.register(target) for _ in range(10)]
        hooks.emit()
        hooks.deliver()
        assert len({round(hooks.pause(one), 1) for one in made}) > 3

    def test_failing_webhook_gets_no_event_during_its_pause(self, hooks, target, database):
        hooks.register(target)
        target.status = 500
        for _ in range(5):
            hooks.emit()
        assert hooks.deliver() == 1
        # A slow machine may take as long as the first pause.
        database.run("UPDATE webhooks SET retry_at = retry_at + interval '1 minute'")
        assert hooks.deliver() == 0

    def test_failing_webhook_gets_one_event_at_a_time_until_it_works(self, hooks, target, database):
        made = hooks.register(target)
        target.status = 500
        for _ in range(5):
            hooks.emit()
        hooks.deliver()
        hooks.end_pauses()
        assert hooks.deliver() == 1
        target.status = 200
        hooks.end_pauses()
        assert hooks.deliver() == 5
        assert {one["status"] for one in hooks.deliveries(made)} == {"sent"}
        assert database.value("SELECT failing_since IS NULL AND retry_at IS NULL FROM webhooks")

    @pytest.mark.parametrize(
        ("header", "least", "most"),
        [("200", 200, 200), ("99999999", 3600, 3600), ("0", 2.5, 5), ("soon", 2.5, 5)],
    )
    def test_webhook_can_ask_for_a_longer_pause(self, hooks, target, database, header, least, most):
        made = hooks.register(target)
        target.status, target.headers = 503, {"Retry-After": header}
        hooks.emit()
        began = database.now()
        hooks.deliver()
        assert least <= hooks.pause(made, began)
        assert hooks.pause(made) <= most

    def test_event_that_fails_does_not_stop_the_others(self, hooks, target, database):
        made = hooks.register(target)
        target.status = 500
        hooks.emit("user.created")
        hooks.deliver()
        target.status = 200
        for _ in range(3):
            hooks.emit()
        database.run("UPDATE webhooks SET retry_at = now()")
        assert hooks.deliver() == 3
        assert [one["status"] for one in hooks.deliveries(made)] == ["sent"] * 3 + ["waiting"]

    def test_event_is_given_up_after_three_days(self, hooks, target):
        made = hooks.register(target)
        hooks.emit()
        hooks.let_time_pass(GIVE_UP)
        assert hooks.deliver() == 1
        assert [one["status"] for one in hooks.deliveries(made)] == ["failed"]
        assert target.requests == []

    def test_new_url_and_test_event_end_the_pause(self, hooks, target):
        made = hooks.register(target)
        for ask in (
            lambda: hooks.change(made, url=target.url + "/other"),
            lambda: hooks.ask("post", f"/{made['id']}/test"),
        ):
            target.status = 500
            hooks.emit()
            hooks.deliver()
            assert hooks.pause(made) > 0
            target.status = 200
            ask()
            hooks.emit()
            assert hooks.deliver() >= 1


class TestDisabling:
    def test_webhook_that_returns_410_is_disabled(self, hooks, target, database, carol):
        made = hooks.register(target)
        target.status = 410
        hooks.emit()
        hooks.emit()
        database.run("DELETE FROM audit_log; DELETE FROM outbox WHERE channel = 'email'")
        hooks.deliver()
        off = hooks.show(made)
        assert (off["disabled"], off["disabled_reason"]) == (True, "gone")
        assert sorted(one["status"] for one in hooks.deliveries(made)) == ["failed", "waiting"]
        assert len(target.requests) == 1
        assert hooks.acts() == [
            ("webhook_disabled", "service", {"webhook_id": made["id"], "url": target.url, "reason": "gone"})
        ]
        assert database.count("outbox", "channel = 'email'") == 0

    def test_webhook_that_fails_for_three_days_is_disabled_with_a_mail(
        self, hooks, target, database, client, service_role, alice, carol
    ):
        dave = register(client, service_role, "dave@example.com", "admin")
        banned = register(client, service_role, "erin@example.com", "admin")
        database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=banned.id)
        database.run('UPDATE users SET user_metadata = \'{"locale": "de"}\' WHERE id = %(id)s', id=dave.id)
        made = hooks.register(target)
        target.status = 500
        hooks.emit()
        hooks.deliver()
        hooks.let_time_pass(GIVE_UP - 60)
        hooks.end_pauses()
        hooks.emit()
        hooks.deliver()
        assert hooks.show(made)["disabled"] is False
        database.run("DELETE FROM audit_log; DELETE FROM outbox WHERE channel = 'email'")
        hooks.let_time_pass(60)
        hooks.end_pauses()
        hooks.emit()
        while hooks.show(made)["disabled"] is False:
            hooks.end_pauses()
            hooks.deliver()
        off = hooks.show(made)
        assert (off["disabled_at"], off["disabled_reason"]) == (A_TIMESTAMP, "failing")
        assert hooks.acts() == [
            (
                "webhook_disabled",
                "service",
                {"webhook_id": made["id"], "url": target.url, "reason": "failing"},
            )
        ]
        mails = database.all(
            "SELECT recipient, kind, variables ->> 'locale' AS locale FROM outbox WHERE channel = 'email' ORDER BY recipient"
        )
        assert mails == [
            ("carol@example.com", "webhook_disabled", None),
            ("dave@example.com", "webhook_disabled", "de"),
        ]

    def test_mail_names_the_host_of_the_webhook_only(self, hooks, target, mailbox, database, parts, carol):
        hooks.register(target.url.replace("127.0.0.1", "localhost") + "/hooks?token=s3cret")
        database.run("UPDATE webhooks SET failing_since = now() - interval '3 days'")
        target.status = 500
        hooks.emit()
        Deliverer(
            parts.settings, parts.db, parts.sealer, {"webhook": EventSender(parts.db, parts.sealer, True)}
        ).deliver_due()
        (mail,) = mailbox.messages_to(carol.email)
        assert mail.subject == "A webhook was disabled"
        assert "at localhost, have failed for three days" in mail.text
        assert "s3cret" not in mail.text

    def test_ten_administrators_at_most_get_the_mail(self, hooks, target, database, client, service_role):
        for number in range(MAX_MAILS + 2):
            register(client, service_role, f"admin{number}@example.com", "admin")
        hooks.register(target)
        database.run(
            "UPDATE webhooks SET failing_since = now() - interval '3 days'; DELETE FROM outbox WHERE channel = 'email'"
        )
        target.status = 500
        hooks.emit()
        hooks.deliver()
        assert database.count("outbox", "kind = 'webhook_disabled'") == MAX_MAILS

    def test_event_in_flight_changes_nothing_after_the_webhook_was_disabled(
        self, hooks, target, database, parts, carol
    ):
        made = hooks.register(target)
        hooks.emit()
        event = as_message(database.one("SELECT * FROM outbox WHERE channel = 'webhook'"))
        off = hooks.change(made, disabled=True)
        for status in (500, 410, 200):
            target.status = status
            with contextlib.suppress(Refused, TryLater):
                EventSender(parts.db, parts.sealer, True).send(made["id"], event)
        assert len(target.requests) == 3
        assert hooks.show(made) == off

    def test_webhook_that_works_now_and_then_is_not_disabled(self, hooks, target):
        made = hooks.register(target)
        for status in (500, 200, 500):
            target.status = status
            hooks.emit()
            hooks.end_pauses()
            hooks.deliver()
            hooks.let_time_pass(2 * DAY)
        assert hooks.show(made)["disabled"] is False

    def test_missed_events_can_be_redelivered(self, hooks, target):
        made = hooks.register(target)
        target.status = 410
        hooks.emit()
        hooks.deliver()
        target.status = 200
        assert hooks.change(made, disabled=False)["failing_since"] is None
        (failed,) = hooks.deliveries(made)
        hooks.ask("post", f"/{made['id']}/deliveries/{failed['id']}/redeliver")
        hooks.deliver()
        assert [one["status"] for one in hooks.deliveries(made)] == ["sent", "failed"]


class TestLog:
    def test_failure_and_recovery_of_a_webhook_are_logged_once(self, hooks, target):
        made = hooks.register(f"http://127.0.0.1:{free_port()}/?token=s3cret")
        with capture_logs() as logs:
            for _ in range(3):
                hooks.emit()
                hooks.end_pauses()
                hooks.deliver()
            hooks.change(made, url=target.url + "/?token=s3cret")
            target.status = 500
            hooks.deliver()
            target.status = 200
            hooks.end_pauses()
            hooks.deliver()
        told = [(entry["event"], entry["webhook_id"]) for entry in logs if entry["log_level"] == "warning"]
        assert told == [
            ("webhook_fails", made["id"]),
            ("webhook_fails", made["id"]),
            ("webhook_works_again", made["id"]),
        ]
        assert "s3cret" not in str(logs)
        assert "alice" not in str(logs)


def test_event_keeps_the_data_of_its_time(hooks, target, database):
    hooks.register(target)
    hooks.emit("user.deleted")
    row = database.one("SELECT * FROM outbox WHERE channel = 'webhook'")
    assert as_message(row).text == json.dumps(
        {"event": "user.deleted", "timestamp": row.variables["timestamp"], "data": {"user": ALICE}}
    )
    assert LEASE > 10
