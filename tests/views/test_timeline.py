"""GET /admin/users/{id}/timeline."""

import json
import types
from contextlib import closing
from dataclasses import asdict, make_dataclass

import pytest

from auth.delivery.deliverer import Deliverer
from auth.history import timeline
from auth.text.labels import names
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, A_UUID, ANYTHING, Like, assert_error, assert_ok
from tests.support.audit import FIREFOX, REQUEST_ID, act, clear_history, refuse, story
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.links import PHONE, follow
from tests.support.plans import analyze, plan_of
from tests.support.smtp_server import BadMailServer, MailServer, sender
from tests.test_contract import CONTRACT
from tests.views.test_admin_list_users import links, pagination

NO_ID = "00000000-0000-0000-0000-000000000000"
# The origin that `act` and `refuse` record.
FROM = ", from 198.51.100.7 (Firefox on Linux)"
# The end reasons of sessions that have their own sentences.
ENDS = sorted(names("end_reasons"))


@pytest.fixture
def tell(client, service_role):
    return lambda id, query="": client.get(f"/admin/users/{id}/timeline{query}", headers=service_role)


class TestSessions:
    def test_session_has_a_beginning_and_an_end(self, tell, database, alice):
        session = alice.open_session()
        session.post("/logout")
        clear_history(database)
        database.run("UPDATE sessions SET ip = '198.51.100.7', user_agent = %(firefox)s", firefox=FIREFOX)
        assert story(tell(alice.id)) == ["session began, by password" + FROM, "session ended: signed out"]

    def test_sessions_that_ended_together_are_one_item(self, tell, database, alice, client, service_role):
        for _ in range(3):
            alice.sign_in()
        client.put(f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role)
        clear_history(database)
        assert story(tell(alice.id))[-1] == "3 sessions ended: banned"

    @cases("reason", ENDS)
    def test_every_end_reason_has_a_sentence(self, tell, database, alice, reason):
        database.run("DELETE FROM sessions")
        alice.open_session()
        database.run(
            "UPDATE sessions SET ended_at = now() + interval '1 second', end_reason = %(reason)s",
            reason=reason,
        )
        clear_history(database)
        assert story(tell(alice.id))[-1] == Like("a sentence", r"session ended: [\w ]+[^_]*")

    def test_end_reasons_are_those_of_the_schema(self, database):
        definition = database.value(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'session_end_reason_check'"
        )
        assert [reason for reason in ENDS if f"'{reason}'" not in definition] == []
        assert definition.count("::text,") + 1 == len(ENDS)

    def test_acts_of_the_audit_log_replace_items_of_sessions(self, tell, database, alice):
        alice.sign_in()
        database.run(
            "UPDATE sessions SET ended_at = now() + interval '1 second', end_reason = 'refresh_token_reused'"
        )
        clear_history(database)
        act(database, alice.id, "signed_in", method="password")
        database.run("UPDATE audit_log SET at = created_at FROM sessions WHERE action = 'signed_in'")
        act(database, alice.id, "refresh_token_reused")
        database.run("UPDATE audit_log SET at = ended_at FROM sessions WHERE action = 'refresh_token_reused'")
        assert story(tell(alice.id)) == [
            "signed in by password" + FROM,
            "session ended: refresh token used again after rotation" + FROM,
        ]

    def test_expired_session_ends_at_its_expiry(self, tell, database, alice):
        alice.sign_in()
        database.run(
            "UPDATE sessions SET created_at = now() - interval '40 days', refreshed_at = now() - interval '31 days'"
        )
        clear_history(database)
        response = tell(alice.id)
        assert story(response) == [Like("the beginning", "session began, by password.*"), "session expired"]
        when = database.value("SELECT iso_8601(refreshed_at + interval '30 days') FROM sessions")
        assert response.json["data"][0]["at"] == when

    def test_live_session_has_only_a_beginning(self, tell, database, alice):
        alice.sign_in()
        clear_history(database)
        assert len(story(tell(alice.id))) == 1


class TestMessages:
    @pytest.fixture
    def recover(self, client, alice, database):
        client.post("/recover", json={"email": alice.email})
        clear_history(database)

    @pytest.fixture
    def deliver(self, parts):
        def deliver(url):
            with closing(sender(url)) as mail:
                Deliverer(parts.settings, parts.db, parts.sealer, {"email": mail}).deliver_due()

        return deliver

    def test_sent_mail_has_the_reply_of_the_server(self, tell, alice, recover, deliver):
        with MailServer() as server:
            deliver(server.url())
        response = tell(alice.id)
        assert story(response) == [
            "mail (password recovery) to alice@example.com accepted by 127.0.0.1: 250 2.0.0 Ok: queued as 1"
        ]
        assert response.json["data"][0] == {
            "at": A_TIMESTAMP,
            "kind": "message",
            "text": A_SENTENCE,
            "name": "recovery",
            "reason": None,
            "count": 1,
            "actor": None,
            "actor_id": None,
            "ip": None,
            "user_agent": None,
            "request_id": None,
            "details": {
                "id": A_UUID,
                "channel": "email",
                "recipient": alice.email,
                "outcome": "sent",
                "attempts": 1,
                "last_error": None,
                "response": "127.0.0.1: 250 2.0.0 Ok: queued as 1",
                "written_at": A_TIMESTAMP,
                "next_attempt_at": None,
            },
        }

    def test_queued_mail_is_an_item(self, tell, alice, recover):
        assert story(tell(alice.id)) == ["mail (password recovery) to alice@example.com waits to be sent"]

    def test_delayed_mail_has_the_reason_and_the_next_attempt(self, tell, alice, recover, deliver):
        with MailServer() as server:
            server.replies["RCPT"] = "451 4.7.1 Greylisted"
            deliver(server.url())
        form = r"mail \(password recovery\) to alice@example.com waits, after one try, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: RCPT TO 451 4.7.1 Greylisted"
        assert story(tell(alice.id)) == [Like("the reason", form)]

    def test_refused_mail_has_the_reason(self, tell, alice, recover, deliver):
        with MailServer() as server:
            server.replies["RCPT"] = "550 5.1.1 No such user"
            deliver(server.url())
        assert story(tell(alice.id)) == [
            "mail (password recovery) to alice@example.com failed after one try: RCPT TO 550 5.1.1 No such user"
        ]

    def test_delayed_mail_has_the_failure_to_connect(self, tell, alice, recover, deliver):
        with BadMailServer("GREETING", "close") as server:
            deliver(f"smtp://127.0.0.1:{server.port}")
        assert story(tell(alice.id)) == [
            Like(
                "the reason",
                r"mail \(password recovery\) to alice@example.com waits, after one try, until .*: .+",
            )
        ]

    def test_mail_with_a_void_link_was_not_sent(
        self, tell, alice, recover, deliver, database, outbox, client
    ):
        follow(client, "recovery", outbox.last(alice.email).token)
        clear_history(database)
        with MailServer() as server:
            deliver(server.url())
            assert server.mails == []
        assert (
            "mail (password recovery) to alice@example.com was not sent: its link or code was used or voided before"
            in story(tell(alice.id))
        )

    def test_expired_mail_has_its_last_error(self, tell, alice, recover, database):
        database.run(
            "UPDATE outbox SET outcome = 'expired', finished_at = now(), secret = NULL, last_error = 'connection refused'"
        )
        assert story(tell(alice.id)) == [
            "mail (password recovery) to alice@example.com was not sent before it expired: connection refused"
        ]

    def test_sms_is_an_item(self, tell, alice, database):
        clear_history(database)
        database.run(
            "INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at, attempts, response)"
            " VALUES (gen_random_uuid(), %(id)s, 'sms', 'sms', '+491701234567', 'sent', now(), 2, '201 SM42 queued')",
            id=alice.id,
        )
        assert story(tell(alice.id)) == [
            "SMS (sign-in code) to +491701234567 accepted: 201 SM42 queued, after 2 tries"
        ]

    def test_row_without_a_message_is_left_out(self, tell, alice, database, client):
        client.post("/recover", json={"email": "nobody@example.com"})
        clear_history(database)
        database.run("UPDATE outbox SET user_id = %(id)s", id=alice.id)
        assert (database.count("outbox"), story(tell(alice.id))) == (1, [])

    def test_secrets_are_not_shown(self, tell, alice, outbox, client, deliver):
        client.post("/recover", json={"email": alice.email})
        sent = outbox.last(alice.email)
        with MailServer() as server:
            server.replies["DATA"] = f"250 your code is {sent.code}"
            deliver(server.url())
        text = tell(alice.id).text
        assert sent.code not in text
        assert sent.token not in text
        assert PASSWORD not in text


class TestEvents:
    @pytest.fixture
    def webhook(self, database):
        id = database.value("SELECT gen_random_uuid()::text")
        database.run(
            "INSERT INTO webhooks (id, url, events, secret) VALUES (%(id)s, 'https://app.example.com/hooks?key=x', '{auth.login}', '')",
            id=id,
        )
        return id

    def test_event_has_the_origin_of_its_webhook(self, tell, database, alice, webhook):
        clear_history(database)
        database.run(
            "SELECT record_acts('{}'::jsonb || '{\"actor\": \"service\"}', %(id)s, 'a', '{}', '{auth.login}')",
            id=alice.id,
        )
        assert story(tell(alice.id)) == ["event (sign-in) to https://app.example.com waits to be sent"]
        database.run(
            "UPDATE outbox SET outcome = 'sent', finished_at = now(), attempts = 1, response = '204 No Content'"
        )
        assert story(tell(alice.id)) == [
            "event (sign-in) to https://app.example.com accepted: 204 No Content"
        ]

    def test_event_of_a_deleted_webhook_has_its_id(self, tell, database, alice, webhook):
        clear_history(database)
        database.run(
            "SELECT record_acts('{\"actor\": \"service\"}', %(id)s, 'a', '{}', '{auth.login}')", id=alice.id
        )
        database.run("DELETE FROM webhooks")
        assert story(tell(alice.id)) == [f"event (sign-in) to {webhook} waits to be sent"]
        database.run("UPDATE outbox SET outcome = 'void', finished_at = now()")
        assert story(tell(alice.id)) == [
            f"event (sign-in) to {webhook} was not sent: the webhook was deleted"
        ]


class TestLimits:
    @pytest.fixture
    def limited(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()

    @pytest.fixture
    def counted(self, limited, service_role):
        return lambda id: limited.get(f"/admin/users/{id}/timeline", headers=service_role).json["limits"]

    def test_wrong_passwords_are_counted_by_network_and_for_unknown_networks(self, limited, counted, alice):
        for _ in range(3):
            alice.try_to_sign_in("wrong", limited)
        by_network, by_strangers = sorted(counted(alice.id), key=lambda limit: limit["amount"])
        assert by_network == {
            "text": Like(
                "a sentence",
                r"3 of 10 wrong passwords for alice@example.com from 127.0.0.1, until \d{4}-\d\d-\d\d \d\d:\d\d",
            ),
            "what": "passwords",
            "address": alice.email,
            "network": "127.0.0.1",
            "count": 3,
            "amount": 10,
            "until": A_TIMESTAMP,
            "is_used_up": False,
        }
        assert (by_strangers["network"], by_strangers["count"], by_strangers["amount"]) == (None, 3, 100)
        assert "from networks that its user has never signed in from" in by_strangers["text"]

    def test_used_up_limit_is_marked(self, limited, counted, alice):
        for _ in range(12):
            alice.try_to_sign_in("wrong", limited)
        by_network = [limit for limit in counted(alice.id) if limit["network"]]
        assert [limit["address"] for limit in by_network] == [alice.email, None]
        for limit in by_network:
            assert (limit["count"], limit["is_used_up"]) == (10, True)
            assert limit["text"].endswith(": more are refused")
        assert "for any address of the user from 127.0.0.1" in by_network[1]["text"]

    def test_ended_window_is_left_out(self, limited, counted, alice, database):
        alice.try_to_sign_in("wrong", limited)
        database.run("UPDATE failure_counts SET expires_at = now()")
        assert counted(alice.id) == []

    def test_right_password_is_not_counted(self, limited, counted, alice):
        alice.sign_in(client=limited)
        assert counted(alice.id) == []

    def test_wrong_codes_are_counted_with_limits_disabled(self, client, tell, alice):
        client.post("/recover", json={"email": alice.email})
        client.post("/verify", json={"type": "recovery", "email": alice.email, "token": "000000"})
        (limit,) = tell(alice.id).json["limits"]
        assert (limit["what"], limit["count"], limit["amount"], limit["is_used_up"]) == (
            "codes",
            1,
            20,
            False,
        )

    def test_limit_of_messages_is_shown_only_when_used_up(self, limited, counted, alice):
        limited.post("/recover", json={"email": alice.email})
        (limit,) = counted(alice.id)
        assert (limit["what"], limit["count"], limit["amount"], limit["network"]) == (
            "messages",
            1,
            1,
            "127.0.0.1",
        )

    TOTALS = types.MappingProxyType(
        {"AUTH_RATE_LIMIT_SMS_TOTAL": "1 per day", "AUTH_RATE_LIMIT_INVITE": "1 per 2 hours"}
    )

    def test_used_up_totals_are_shown_for_windows_of_any_length(self, make_app, service_role, alice):
        client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **self.TOTALS).test_client()
        client.post("/otp", json={"phone": PHONE})
        client.post("/admin/invite", json={"email": "dave@example.com"}, headers=service_role)
        path = f"/admin/users/{alice.id}/timeline"
        invitations, messages, new_numbers = client.get(path, headers=service_role).json["limits"]
        assert "1 of 1 SMS to numbers without a confirmed user in all" in new_numbers["text"]
        assert messages == {
            "text": Like(
                "a sentence", r"1 of 1 SMS in all, until \d{4}-\d\d-\d\d \d\d:\d\d: more are not sent"
            ),
            "what": "messages",
            "address": None,
            "network": None,
            "count": 1,
            "amount": 1,
            "until": A_TIMESTAMP,
            "is_used_up": True,
        }
        assert invitations["text"] == Like(
            "a sentence", r"1 of 1 invitations in all, until .{16}: more are refused"
        )
        assert (invitations["what"], invitations["address"], invitations["is_used_up"]) == (
            "invitations",
            None,
            True,
        )

    def test_total_of_a_window_that_is_no_longer_configured_is_left_out(self, make_app, service_role, alice):
        before = make_app(
            AUTH_RATE_LIMITS_ENABLED="true",
            AUTH_RATE_LIMIT_SMS_TOTAL="1 per hour",
            AUTH_RATE_LIMIT_INVITE="1 per hour",
        ).test_client()
        before.post("/otp", json={"phone": PHONE})
        before.post("/admin/invite", json={"email": "dave@example.com"}, headers=service_role)
        path = f"/admin/users/{alice.id}/timeline"
        assert len(before.get(path, headers=service_role).json["limits"]) == 3
        client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **self.TOTALS).test_client()
        assert client.get(path, headers=service_role).json["limits"] == []

    def test_limits_of_other_addresses_are_left_out(
        self, limited, counted, alice, mallory, client, service_role
    ):
        for email in ("alice@example.com.evil.example", "alice@example.co", "xalice@example.com"):
            limited.post("/token?grant_type=password", json={"email": email, "password": "wrong"})
        mallory.try_to_sign_in("wrong", limited)
        assert counted(alice.id) == []

    def test_wrong_passwords_are_left_out_with_limits_disabled(self, tell, alice, database):
        database.run(
            "INSERT INTO failure_counts VALUES ('login alice@example.com 127.0.0.1', 10, now() + interval '1 hour')"
        )
        assert tell(alice.id).json["limits"] == []


class TestList:
    def test_items_are_listed_the_newest_first(self, tell, alice, database):
        session = alice.open_session()
        session.put("/user", json={"data": {"a": 1}})
        response = tell(alice.id)
        times = [item["at"] for item in response.json["data"]]
        assert times == sorted(times, reverse=True)
        assert_ok(response, {"data": ANYTHING, "limits": [], "pagination": pagination(1, 20, len(times), 1)})
        assert response.headers["X-Total-Count"] == str(len(times))

    def test_item_of_an_act_has_all_members(self, tell, database, alice):
        clear_history(database)
        refuse(database, alice.id, "sign_in_refused", "invalid_credentials", tries=3, of=10)
        assert tell(alice.id).json["data"] == [
            {
                "at": A_TIMESTAMP,
                "kind": "refusal",
                "text": "sign-in refused: wrong password, 3 of 10" + FROM,
                "name": "sign_in_refused",
                "reason": "invalid_credentials",
                "count": 1,
                "actor": "anonymous",
                "actor_id": None,
                "ip": "198.51.100.7",
                "user_agent": FIREFOX,
                "request_id": REQUEST_ID,
                "details": {"tries": 3, "of": 10},
            }
        ]

    def test_acts_of_one_request_are_in_logical_order(self, tell, database, alice):
        clear_history(database)
        act(
            database,
            alice.id,
            "signed_in",
            "email_confirmed",
            "user_created",
            origin={"actor": "user", "actor_id": alice.id},
        )
        expected = ["user created" + FROM, "email confirmed" + FROM, "signed in" + FROM]
        assert story(tell(alice.id)) == expected
        assert [
            text for page in (3, 2, 1) for text in story(tell(alice.id, f"?per_page=1&page={page}"))
        ] == expected

    def test_list_is_paged(self, tell, client, service_role, database, alice):
        clear_history(database)
        for hour in range(5):
            act(database, alice.id, "user_changed")
            database.run("UPDATE audit_log SET at = at - interval '1 hour'", hour=hour)
        response, met = tell(alice.id, "?per_page=2"), []
        assert response.json["pagination"] == pagination(1, 2, 5, 3)
        while True:
            met += [item["at"] for item in response.json["data"]]
            if "next" not in links(response):
                break
            response = client.get(links(response)["next"], headers=service_role)
        assert (len(set(met)), met) == (5, sorted(met, reverse=True))
        assert tell(alice.id, "?page=9").json["data"] == []

    def test_administrator_may_read_it(self, carol, alice, tell, database):
        clear_history(database)
        act(database, alice.id, "banned")
        assert story(carol.sign_in().get(f"/admin/users/{alice.id}/timeline")) == ["banned" + FROM]

    def test_items_of_other_users_are_left_out(self, tell, alice, bob, database):
        bob.sign_in()
        clear_history(database)
        act(database, bob.id, "banned")
        assert story(tell(alice.id)) == []

    def test_deleted_user_has_a_timeline(self, tell, client, service_role, alice, database):
        alice.sign_in()
        act(database, alice.id, "user_deleted")
        client.delete(f"/admin/users/{alice.id}", headers=service_role)
        assert "user deleted" + FROM in story(tell(alice.id))
        assert tell(alice.id).json["limits"] == []

    @cases("id", [NO_ID, "1", "alice@example.com", NO_ID.replace("-", "")])
    def test_unknown_user_is_404(self, tell, id):
        assert_error(tell(id), 404, "user_not_found")

    def test_invalid_page_is_400(self, tell, alice):
        assert_error(tell(alice.id, "?page=0"), 400, "validation_failed", details=A_SENTENCE)

    def test_request_changes_nothing(self, tell, alice, database):
        before = database.everything()
        tell(alice.id)
        assert database.everything() == before


@pytest.fixture(scope="class")
def many(all_rows, database_url):
    """Many rows of many users."""
    all_rows.empty()
    all_rows.run(
        "INSERT INTO users (email, made_by) SELECT number || '@example.com', 'administrator' FROM generate_series(1, 500) AS number"
    )
    all_rows.run(
        "INSERT INTO audit_log (action, actor, user_id) SELECT 'signed_in', 'user', id FROM users, generate_series(1, 40)"
    )
    all_rows.run(
        "INSERT INTO sessions (user_id, method, ended_at, end_reason) SELECT id, 'otp', now() - make_interval(hours => number), 'logout' FROM users, generate_series(1, 40) AS number"
    )
    all_rows.run(
        "INSERT INTO outbox (id, user_id, channel, kind, recipient) SELECT gen_random_uuid(), id, 'email', 'recovery', email FROM users, generate_series(1, 40)"
    )
    all_rows.run(
        "INSERT INTO failure_counts SELECT 'login ' || email || ' ' || number, 1, 'infinity' FROM users, generate_series(1, 40) AS number"
    )
    tables = ("users", "audit_log", "sessions", "outbox", "failure_counts")
    analyze(database_url, *tables)
    yield all_rows.value("SELECT id FROM users WHERE email = '7@example.com'")
    all_rows.truncate()
    analyze(database_url, *tables)


class TestManyRows:
    LIFETIMES = types.MappingProxyType({"refresh_token_lifetime": 2_592_000})

    def test_indexes_find_the_items_of_a_user(self, many, database_url):
        plan = plan_of(
            database_url, "list_timeline", user_id=many, page_size=20, page_offset=0, **self.LIFETIMES
        )
        assert plan.read_whole <= {"webhooks"}
        plan = plan_of(database_url, "count_timeline", user_id=many, most=100_000, **self.LIFETIMES)
        assert plan.read_whole <= {"webhooks"}

    @pytest.mark.parametrize("kind", [None, "act", "refusal"])
    def test_indexes_find_a_page_of_keys(self, many, database_url, kind):
        place = {"before_at": "2100-01-01", "before_place": 1, "before_id": NO_ID}
        about = {"user_id": many, "page_size": 25, "kind": kind, **self.LIFETIMES}
        for cursor in ({}, place):
            plan = plan_of(database_url, "list_timeline_before", **about, **cursor)
            assert plan.read_whole <= {"webhooks"}
            assert kind or plan.indexes >= {"sessions_user_id", "sessions_user_id_ended_at"}

    def test_indexes_find_the_limits_of_an_address(self, many, database_url):
        assert (
            plan_of(
                database_url,
                "select_failure_counts",
                addresses=["7@example.com", "8@example.com"],
                totals=["sms 86400"],
            ).read_whole
            == set()
        )

    def test_index_finds_the_messages_to_an_address(self, many, database_url):
        assert (
            plan_of(database_url, "list_messages_to", recipient="7@example.com", most=100).read_whole == set()
        )

    def test_index_finds_the_acts_of_a_request(self, many, database_url):
        assert plan_of(database_url, "list_request_acts", request_id="request-7", most=100).read_whole <= {
            "users"
        }

    def test_indexes_find_a_user_by_address(self, many, database_url):
        # These tables are empty here, so a sequential scan of them is the fastest.
        assert plan_of(
            database_url, "select_summary", email="7@example.com", **self.LIFETIMES
        ).read_whole <= {"identities", "factors", "recovery_codes"}


def test_item_has_the_members_of_the_contract():
    names = "at kind name reason count actor actor_id ip user_agent request_id details user_id"
    told = {
        "at": "2026-01-01T00:00:00Z",
        "kind": "session",
        "name": "expired",
        "count": 1,
        "details": {},
        "user_id": NO_ID,
    }
    row = make_dataclass("Row", names.split(), namespace={"_asdict": asdict})(
        **dict.fromkeys(names.split()) | told
    )
    members = CONTRACT["components"]["schemas"]["Timeline"]["properties"]["data"]["items"]["required"]
    assert sorted(json.loads(json.dumps(timeline.item(row)))) == sorted(members)
