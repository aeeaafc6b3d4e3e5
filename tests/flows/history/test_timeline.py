"""GET /admin/users/{id}/timeline."""

import re
from contextlib import closing

import pytest

from auth.delivery.deliverer import Deliverer
from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    ANYTHING,
    NO_ID,
    Like,
    assert_error,
    assert_ok,
    page_of,
)
from tests.support.audit import FIREFOX, clear_history, record, timeline_texts
from tests.support.cases import cases
from tests.support.links import PHONE
from tests.support.query_plans import analyze, plan_of
from tests.support.smtp_server import BadMailServer, MailServer, sender
from tests.support.users import PASSWORD

# The origin that `record` and `refuse` write.
FROM = ", from 198.51.100.7 (Firefox on Linux)"
MAIL = "email (password recovery) to alice@example.com "


def item(**members):
    origin = ("actor", "actor_id", "ip", "user_agent", "request_id")
    return {"at": A_TIMESTAMP, "count": 1, "reason": None} | dict.fromkeys(origin) | members


def limit(text, **members):
    """Return an expected limit, with a pattern of its text."""
    expected = {"what": "passwords", "address": None, "network": None, "until": A_TIMESTAMP}
    until = r", until \d{4}-\d\d-\d\d \d\d:\d\d"
    return expected | {"text": Like(text, text + until + ".*"), "is_used_up": False} | members


@pytest.fixture
def get_timeline(client, service_role):
    return lambda id, query="": client.get(f"/admin/users/{id}/timeline{query}", headers=service_role)


class TestSessions:
    def test_sessions_have_beginnings_and_an_end_together(
        self, get_timeline, database, alice, client, service_role
    ):
        session = alice.open_session()
        clear_history(database)
        database.run("UPDATE sessions SET ip = '198.51.100.7', user_agent = %(firefox)s", firefox=FIREFOX)
        beginning = "session started with a password" + FROM
        assert timeline_texts(get_timeline(alice.id)) == [beginning]
        session.post("/logout")
        clear_history(database)
        assert timeline_texts(get_timeline(alice.id)) == [beginning, "session ended: signed out"]
        for _ in range(3):
            alice.sign_in()
        client.put(f"/admin/users/{alice.id}", json={"ban_duration": "1h"}, headers=service_role)
        clear_history(database)
        assert timeline_texts(get_timeline(alice.id))[-1] == "3 sessions ended: banned"

    def test_acts_of_the_audit_log_replace_items_of_sessions(self, get_timeline, database, alice):
        alice.sign_in()
        clear_history(database)
        database.run(
            "UPDATE sessions SET ended_at = now() + interval '1 second', end_reason = 'refresh_token_reused'"
        )
        record(database, alice.id, "signed_in", method="password")
        record(database, alice.id, "refresh_token_reused")
        for column, action in (("created_at", "signed_in"), ("ended_at", "refresh_token_reused")):
            database.run(f"UPDATE audit_log SET at = {column} FROM sessions WHERE action = '{action}'")
        assert timeline_texts(get_timeline(alice.id)) == [
            "signed in with a password" + FROM,
            "session ended: refresh token reused after rotation" + FROM,
        ]

    def test_expired_session_ends_at_its_expiry(self, get_timeline, database, alice):
        alice.sign_in()
        ages = "created_at = now() - interval '40 days', refreshed_at = now() - interval '31 days'"
        database.run(f"UPDATE sessions SET {ages}")
        clear_history(database)
        response = get_timeline(alice.id)
        assert timeline_texts(response) == [
            Like("the beginning", "session started with a password.*"),
            "session expired",
        ]
        expired_at = database.value("SELECT iso_8601(refreshed_at + interval '30 days') FROM sessions")
        assert response.json["data"][0]["at"] == expired_at


def test_each_row_of_an_act_says_only_what_changed_by_its_name(
    get_timeline, client, service_role, alice, database
):
    clear_history(database)
    change = {"email": "new@example.com", "phone": PHONE, "role": "editor"}
    assert client.put(f"/admin/users/{alice.id}", json=change, headers=service_role).status_code == 200
    sentences = {text.partition(", by ")[0] for text in timeline_texts(get_timeline(alice.id))}
    assert {text for text in sentences if " changed" in text} == {
        "email changed from alice@example.com",
        "phone changed",
        "role changed from authenticated to editor",
    }


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

    def test_queued_and_sent_mail_is_an_item_with_the_servers_reply(
        self, get_timeline, alice, recover, deliver
    ):
        assert timeline_texts(get_timeline(alice.id)) == [MAIL + "waiting to be sent"]
        with MailServer() as server:
            deliver(server.url())
        response = get_timeline(alice.id)
        assert timeline_texts(response) == [MAIL + "accepted by 127.0.0.1: 250 2.0.0 Ok: queued as 1"]
        details = {"id": A_UUID, "channel": "email", "recipient": alice.email, "outcome": "sent"}
        details |= {"attempts": 1, "last_error": None, "response": "127.0.0.1: 250 2.0.0 Ok: queued as 1"}
        details |= {"written_at": A_TIMESTAMP, "next_attempt_at": None}
        assert response.json["data"] == [
            item(kind="message", text=A_SENTENCE, name="recovery", details=details)
        ]

    def test_delayed_or_refused_mail_has_the_reason(self, get_timeline, alice, recover, deliver, database):
        until = r"to be retried at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, after 1 attempt: "
        with BadMailServer("GREETING", "close") as server:
            deliver(f"smtp://127.0.0.1:{server.port}")
        assert timeline_texts(get_timeline(alice.id)) == [Like("the reason", re.escape(MAIL) + until + ".+")]
        for reply, sentence in (
            ("451 4.7.1 Greylisted", until + "RCPT TO 451 4.7.1 Greylisted"),
            ("550 5.1.1 No such user", "failed after 1 attempt: RCPT TO 550 5.1.1 No such user"),
        ):
            database.run("UPDATE outbox SET next_attempt_at = now(), attempts = attempts - 1")
            with MailServer() as server:
                server.replies["RCPT"] = reply
                deliver(server.url())
            assert timeline_texts(get_timeline(alice.id)) == [Like("the reason", re.escape(MAIL) + sentence)]

    def test_sms_is_an_item_and_a_row_without_a_message_is_not(self, get_timeline, alice, database, client):
        client.post("/recover", json={"email": "nobody@example.com"})
        clear_history(database)
        database.run("UPDATE outbox SET user_id = %(id)s", id=alice.id)
        assert (database.count("outbox"), timeline_texts(get_timeline(alice.id))) == (1, [])
        database.run(
            "INSERT INTO outbox (id, user_id, channel, kind, recipient, outcome, finished_at, attempts, response)"
            " VALUES (gen_random_uuid(), %(id)s, 'sms', 'sms', '+491701234567', 'sent', now(), 2, '201 SM42 queued')",
            id=alice.id,
        )
        sentence = "SMS (sign-in code) to +491701234567 accepted: 201 SM42 queued, after 2 attempts"
        assert timeline_texts(get_timeline(alice.id)) == [sentence]

    def test_secrets_are_not_shown(self, get_timeline, alice, outbox, client, deliver):
        client.post("/recover", json={"email": alice.email})
        message = outbox.last(alice.email)
        with MailServer() as server:
            server.replies["DATA"] = f"250 your code is {message.code}"
            deliver(server.url())
        text = get_timeline(alice.id).text
        assert [secret for secret in (message.code, message.token, PASSWORD) if secret in text] == []


def test_event_names_the_origin_or_the_id_of_a_deleted_webhook(get_timeline, database, alice):
    webhook = database.value(
        "INSERT INTO webhooks (id, url, events, secret) VALUES (gen_random_uuid(),"
        " 'https://app.example.com/hooks?key=x', '{auth.login}', '') RETURNING id::text"
    )
    clear_history(database)
    statement = (
        "SELECT record_acts_at(now(), '{\"actor\": \"service\"}', %(id)s, 'a', '{}', '{auth.login}', '{}')"
    )
    database.run(statement, id=alice.id)
    event = "event (sign-in) to https://app.example.com "
    assert timeline_texts(get_timeline(alice.id)) == [event + "waiting to be sent"]
    assignments = "outcome = 'sent', finished_at = now(), attempts = 1, response = '204 No Content'"
    database.run(f"UPDATE outbox SET {assignments}")
    assert timeline_texts(get_timeline(alice.id)) == [event + "accepted: 204 No Content"]
    database.run("DELETE FROM webhooks; UPDATE outbox SET outcome = 'void'")
    sentence = f"event (sign-in) to {webhook} not sent: the webhook was deleted"
    assert timeline_texts(get_timeline(alice.id)) == [sentence]


class TestLimits:
    @pytest.fixture
    def limited(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client()

    @pytest.fixture
    def limits_of(self, limited, service_role):
        def limits_of(id, client=limited):
            return client.get(f"/admin/users/{id}/timeline", headers=service_role).json["limits"]

        return limits_of

    def test_wrong_passwords_are_counted_by_network_and_for_unknown_networks(self, limited, limits_of, alice):
        for _ in range(3):
            alice.try_to_sign_in("wrong", limited)
        by_network, by_strangers = sorted(limits_of(alice.id), key=lambda limit: limit["amount"])
        text = "3 of 10 wrong passwords for alice@example.com from 127.0.0.1"
        members = {"address": alice.email, "count": 3}
        assert by_network == limit(text, **members, network="127.0.0.1", amount=10)
        text = "3 of 100 .* from networks that are not known"
        assert by_strangers == limit(text, **members, amount=100)
        for _ in range(9):
            alice.try_to_sign_in("wrong", limited)
        by_address, by_user = (limit for limit in limits_of(alice.id) if limit["network"])
        used_up = {"network": "127.0.0.1", "count": 10, "amount": 10, "is_used_up": True}
        assert by_address == limit("10 of 10 .*", **used_up, address=alice.email)
        assert by_user == limit("10 of 10 .* for any of the user's addresses from 127.0.0.1", **used_up)
        assert by_address["text"].endswith("; further attempts are refused")
        assert by_user["text"].endswith("; further attempts are refused")

    def test_other_addresses_and_ended_windows_are_left_out(
        self, limited, limits_of, alice, mallory, database
    ):
        alice.sign_in(client=limited)
        for email in (
            "alice@example.com.evil.example",
            "alice@example.co",
            "xalice@example.com",
            mallory.email,
        ):
            limited.post("/token?grant_type=password", json={"email": email, "password": "wrong"})
        assert limits_of(alice.id) == []
        alice.try_to_sign_in("wrong", limited)
        database.run("UPDATE failure_counts SET expires_at = now()")
        assert limits_of(alice.id) == []

    def test_limit_of_messages_is_shown_only_when_used_up(self, limited, limits_of, alice):
        limited.post("/recover", json={"email": alice.email})
        (shown_limit,) = limits_of(alice.id)
        used_up = {"network": "127.0.0.1", "count": 1, "amount": 1, "is_used_up": True}
        assert shown_limit == limit("1 of 1 .*", **used_up, what="messages", address=alice.email)

    def test_used_up_totals_of_configured_windows_are_shown(self, make_app, limits_of, service_role, alice):
        def client(**limits):
            return make_app(AUTH_RATE_LIMITS_ENABLED="true", **limits).test_client()

        by_day = client(AUTH_RATE_LIMIT_SMS_TOTAL="1 per day", AUTH_RATE_LIMIT_INVITE="1 per 2 hours")
        by_day.post("/otp", json={"phone": PHONE})
        by_day.post("/admin/invite", json={"email": "dave@example.com"}, headers=service_role)
        total = {"count": 1, "amount": 1, "is_used_up": True}
        invitations, messages = limits_of(alice.id, by_day)
        assert invitations == limit("1 of 1 invitations in total", **total, what="invitations")
        assert messages == limit("1 of 1 SMS in total", **total, what="messages")
        assert invitations["text"].endswith("; further ones are refused")
        assert messages["text"].endswith("; no more are sent")
        by_hour = client(AUTH_RATE_LIMIT_SMS_TOTAL="1 per hour", AUTH_RATE_LIMIT_INVITE="1 per hour")
        assert limits_of(alice.id, by_hour) == []


class TestList:
    def test_items_are_listed_the_newest_first_without_a_change(self, get_timeline, alice, database):
        alice.open_session().put("/user", json={"data": {"a": 1}})
        before = database.everything()
        response = get_timeline(alice.id)
        times = [item["at"] for item in response.json["data"]]
        assert times == sorted(times, reverse=True)
        assert_ok(response, {"data": ANYTHING, "limits": [], "pagination": page_of(1, 20, len(times), 1)})
        assert response.headers["X-Total-Count"] == str(len(times))
        assert database.everything() == before

    def test_acts_of_one_request_are_in_logical_order(self, get_timeline, database, alice):
        clear_history(database)
        actions = ("signed_in", "email_confirmed", "user_created")
        record(database, alice.id, *actions, origin={"actor": "user", "actor_id": alice.id})
        expected = ["user created" + FROM, "email confirmed" + FROM, "signed in" + FROM]
        assert timeline_texts(get_timeline(alice.id)) == expected
        pages = [timeline_texts(get_timeline(alice.id, f"?per_page=1&page={page}")) for page in (3, 2, 1)]
        assert pages == [[sentence] for sentence in expected]

    def test_unknown_user_is_404(self, get_timeline):
        for id in (NO_ID, "1", "alice@example.com", NO_ID.replace("-", "")):
            assert_error(get_timeline(id), 404, "user_not_found")


@pytest.fixture(scope="class")
def many(all_rows, database_url):
    all_rows.truncate()
    all_rows.run("""
        INSERT INTO users (email, made_by)
        SELECT number || '@example.com', 'administrator' FROM generate_series(1, 5000) AS number;
        CREATE TEMP VIEW many AS SELECT id, email, number
          FROM (SELECT * FROM users LIMIT 500) AS users, generate_series(1, 40) AS number;
        INSERT INTO audit_log (action, actor, user_id) SELECT 'signed_in', 'user', id FROM many;
        INSERT INTO sessions (user_id, method, ended_at, end_reason)
        SELECT id, 'otp', now() - make_interval(hours => number), 'logout' FROM many;
        INSERT INTO outbox (id, user_id, channel, kind, recipient)
        SELECT gen_random_uuid(), id, 'email', 'recovery', email FROM many;
        INSERT INTO failure_counts
        SELECT 'login ' || email || ' ' || number, 1, 'infinity', 'login', email, number FROM many;
        DROP VIEW many
    """)
    analyze(database_url)
    yield all_rows.value("SELECT id FROM users WHERE email = '7@example.com'")
    all_rows.truncate()
    analyze(database_url)


class TestManyRows:
    LIFETIME = 2_592_000

    @cases(
        ("statement", "parameters", "read_whole"),
        [
            ("list_timeline", {"page_size": 20, "page_offset": 0}, {"webhooks"}),
            ("count_timeline", {"most": 100_000}, {"webhooks"}),
            ("select_failure_counts", {"subjects": ["7@example.com"]}, set()),
            ("list_messages_to", {"recipient": "7@example.com", "most": 100}, set()),
            ("list_request_acts", {"request_id": "request-7", "most": 100}, {"users"}),
            # These tables are empty here, so a sequential scan of them is the fastest.
            (
                "select_summary",
                {"email": "7@example.com"},
                {"identities", "factors", "recovery_codes", "oauth_clients", "oauth_grants", "api_keys"},
            ),
        ],
    )
    def test_indexes_find_the_rows(self, many, database_url, statement, parameters, read_whole):
        user_parameters = {"user_id": many, "refresh_token_lifetime": self.LIFETIME}
        assert plan_of(database_url, statement, **parameters, **user_parameters).read_whole <= read_whole

    @cases("kind", [None, "act", "refusal"])
    @cases("cursor", [{}, {"before_at": "2100-01-01", "before_place": 1, "before_id": NO_ID}])
    def test_indexes_find_a_page_of_keys(self, many, database_url, kind, cursor):
        user_parameters = {"user_id": many, "page_size": 25, "refresh_token_lifetime": self.LIFETIME}
        plan = plan_of(database_url, "list_timeline_before", kind=kind, **user_parameters, **cursor)
        assert plan.read_whole <= {"webhooks"}
        assert kind or plan.indexes >= {"sessions_user_id", "sessions_user_id_ended_at"}
