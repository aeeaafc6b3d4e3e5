"""Notices of changes: to whom they go, and how many."""

import re

import pytest

from auth.delivery.deliverer import Deliverer
from sql import load_statements, schema
from tests.support import previous_release
from tests.support.api_keys import ROUTE, make_key
from tests.support.factors import enrol, raised, set_up, verify
from tests.support.links import PHONE, type_in
from tests.support.outbox import Outbox, Recorder
from tests.support.server import at_once
from tests.support.users import PASSWORD, session_of

VICTIM = "victim@example.com"
# Statements and functions that write rows of the outbox, and why.
WRITERS = {
    "write_message_at": "the home of emails and SMS",
    "write_logout": "ends of sessions at applications, from a trigger",
    "record_acts_at": "events of webhooks",
    "record_organization_act": "an event of webhooks about an organization",
    "redeliver_event": "an event of a webhook, once more",
    "send_test_event": "an event of a webhook, as a test",
}


def test_only_one_function_writes_messages():
    writes = re.compile(r"\bINSERT INTO outbox\b")
    writers = {name for name, each in load_statements().items() if writes.search(each.direct)}
    for path in {*schema.FUNCTIONS.glob("*.sql")} - {schema.FUNCTIONS / previous_release.FILE}:
        for function in path.read_text().split("CREATE OR REPLACE FUNCTION ")[1:]:
            if writes.search(function):
                writers.add(function.partition("(")[0])
    assert writers == WRITERS.keys()


@pytest.mark.parametrize("setting", [{"AUTOCONFIRM": "true"}, {"EMAIL_CONFIRM_REQUIRED": "false"}], ids=str)
def test_changes_of_a_user_send_nothing_to_an_email_that_nobody_proved(make_app, outbox, setting):
    client = make_app(**{f"AUTH_{name}": value for name, value in setting.items()}).test_client()
    body = {"email": VICTIM, "password": PASSWORD}
    assert client.post("/signup", json=body).status_code in (200, 201)
    before = outbox.kinds()
    session = session_of(client, client.post("/token?grant_type=password", json=body))
    for old, new in 10 * [(PASSWORD, "Another-Horse-1"), ("Another-Horse-1", PASSWORD)]:
        change = {"password": new, "current_password": old}
        assert session.put("/user", json=change).status_code == 200
    assert outbox.kinds() == before


def sign_up_by_phone(client, outbox):
    assert client.post("/signup", json={"phone": PHONE, "password": PASSWORD}).status_code == 201
    return session_of(client, type_in(client, "sms", PHONE, outbox.last(PHONE).code))


def test_user_without_an_email_gets_the_notice_of_a_new_password_by_sms(client, outbox):
    session = sign_up_by_phone(client, outbox)
    assert session.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
    notice = outbox.last()
    assert (notice.kind, notice.channel, notice.to) == ("password_changed", "sms", PHONE)


@pytest.fixture
def make_deliverer(parts):
    return lambda **senders: Deliverer(parts.settings, parts.db, parts.sealer, senders)


def kinds_and_times(database):
    rows = database.all(
        "SELECT kind, variables ->> 'times' AS times FROM outbox WHERE is_notice ORDER BY created_at"
    )
    return [(row.kind, int(row.times or 1)) for row in rows]


class TestGathering:
    """The notice of the first change of a kind is sent at once, and one of all further changes after a pause.

    The pause is ten minutes for mails, and an hour for SMS.
    """

    @pytest.fixture
    def app(self, make_app):
        return make_app(
            AUTH_API_KEYS="true", AUTH_RATE_LIMITS_ENABLED="true", AUTH_MFA_MAX_ENROLLED_FACTORS="10"
        )

    @pytest.mark.parametrize(("channel", "minutes"), [("email", 10), ("sms", 60)])
    def test_flood_of_changes_sends_two_notices_of_a_kind_and_never_stops_the_owner(
        self, client, alice, outbox, database, parts, make_deliverer, channel, minutes
    ):
        """A thief makes 60 changes of factors, and 360 of API keys from 12 networks."""
        if channel == "sms":
            database.run(f"UPDATE users SET phone = '{PHONE}', phone_proved = true, phone_confirmed_at = now(),"
                         " email = NULL, email_proved = false, email_confirmed_at = NULL")  # fmt: skip
        app, thief = set_up(alice.open_session())
        owner = raised(alice.open_session(), app)
        recorder = Recorder()
        deliverer = make_deliverer(**{channel: recorder})
        deliverer.deliver_due()
        for number in range(180):
            origin = {"environ_overrides": {"REMOTE_ADDR": f"203.0.113.{number % 12}"}}
            response = thief.post(ROUTE, json={"name": "CI"}, **origin)
            assert response.status_code == 201, response.text
            assert thief.delete(f"{ROUTE}/{response.json['id']}", **origin).status_code in (200, 204)
            if number % 6 == 0:
                second_app = enrol(thief)
                assert verify(thief, second_app).status_code == 200
                assert thief.delete(f"/factors/{second_app.id}").status_code in (200, 204)
                database.run("DELETE FROM request_counts")
                # The session last used the factor that is now deleted, and would have to use another.
                database.run(
                    "UPDATE sessions SET aal = 'aal2', factor_id = %(id)s, factor_proved_at = now()",
                    id=app.id,
                )
            deliverer.deliver_due()
        first_notices = ["factor_added", "api_key_added", "api_key_removed", "factor_removed"]
        assert sorted(message.kind for _, message in recorder.sent) == sorted(first_notices)
        assert owner.put("/user", json={"password": "Another-Horse-1"}).status_code == 200
        assert owner.post("/logout?scope=others").status_code == 200
        assert owner.delete(f"/factors/{app.id}").status_code in (200, 204)
        deliverer.deliver_due()
        recorder.sent.clear()
        Outbox(database, parts).let_time_pass(60 * minutes)
        deliverer.deliver_due()
        assert sorted(message.kind for _, message in recorder.sent) == sorted(first_notices)
        gathered = dict(sorted(kinds_and_times(database)))
        assert (gathered["api_key_added"], gathered["factor_removed"]) == (179, 30)

    @pytest.mark.parametrize(("channel", "minutes"), [("email", 10), ("sms", 60)])
    def test_next_notice_is_due_a_pause_after_the_one_before(
        self, alice, database, parts, make_deliverer, channel, minutes
    ):
        if channel == "sms":
            database.run(f"UPDATE users SET phone = '{PHONE}', phone_proved = true, email_proved = false")
        session, recorder, outbox = alice.open_session(), Recorder(), Outbox(database, parts)
        deliverer = make_deliverer(**{channel: recorder})

        def add_and_deliver(names):
            for name in names:
                make_key(session, name)
            deliverer.deliver_due()
            return len(recorder.sent)

        assert add_and_deliver("ab") == 1
        outbox.let_time_pass(minutes * 60 - 60)
        assert add_and_deliver("c") == 1
        outbox.let_time_pass(60)
        assert add_and_deliver("d") == 2
        assert [times for _, times in sorted(kinds_and_times(database))] == [1, 1, 2]
        # After a pause without changes, the next notice is sent at once again.
        database.run(
            "UPDATE outbox SET finished_at = now() - interval '2 hours', outcome = 'sent', secret = NULL"
        )
        assert add_and_deliver("e") == 3

    def test_changes_that_come_at_once_are_all_in_two_notices(self, app, alice, database):
        session = alice.open_session()
        at_once(20, lambda number: make_key(session.on(app.test_client()), f"key {number}"))
        assert sorted(kinds_and_times(database)) == [("api_key_added", 1), ("api_key_added", 19)]

    def test_gathered_notice_lists_twenty_changes_and_counts_all(self, alice, database):
        session = alice.open_session()
        for _ in range(25):
            make_key(session)
            database.run("DELETE FROM request_counts")
            database.run("DELETE FROM api_keys")
        others = database.value(
            "SELECT jsonb_array_length(variables -> 'others') FROM outbox WHERE variables ? 'times'"
        )
        assert (kinds_and_times(database), others) == ([("api_key_added", 1), ("api_key_added", 24)], 19)

    def test_gathered_notice_whose_link_was_used_is_not_sent(self, alice, database, parts, make_deliverer):
        session, recorder = alice.open_session(), Recorder()
        for _ in range(2):
            make_key(session)
        database.run("UPDATE one_time_tokens SET spent_at = now() WHERE purpose = 'undo'")
        Outbox(database, parts).let_time_pass(600)
        make_deliverer(email=recorder).deliver_due()
        assert recorder.sent == []


def write_notices(database, count, channel="email"):
    to = "'user' || n || '@example.com'" if channel == "email" else "'+4917012' || 10000 + n"
    database.run(
        "INSERT INTO outbox (id, channel, kind, recipient, is_notice, next_attempt_at)"
        f" SELECT gen_random_uuid(), '{channel}', 'api_key_added', {to}, true, now() - interval '1 hour'"
        f"   FROM generate_series(1, {count}) AS n"
    )


def test_codes_leave_before_notices_but_no_more_than_nine_in_a_row(database, parts, make_deliverer):
    write_notices(database, 3)
    for _ in range(20):
        Outbox(database, parts).write()
    recorder = Recorder()
    make_deliverer(email=recorder).deliver_due()
    sequence = "".join("N" if message.kind == "api_key_added" else "c" for _, message in recorder.sent)
    assert sequence == "cccccccccNcccccccccNccN"


class TestSmsTotal:
    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_NOTICES_SMS_TOTAL="3 per hour")

    def test_notices_beyond_their_total_wait_for_the_next_hour_and_codes_do_not(
        self, database, parts, make_deliverer
    ):
        write_notices(database, 5, "sms")
        Outbox(database, parts).sms()
        recorder = Recorder()
        deliverer = make_deliverer(sms=recorder)
        for _ in range(5):
            deliverer.deliver_due()
        kinds = [message.kind for _, message in recorder.sent]
        assert kinds == ["sms", *["api_key_added"] * 3]
        assert database.count("outbox", "outcome IS NULL AND attempts = 0 AND next_attempt_at > now()") == 2
        Outbox(database, parts).let_time_pass(3600)
        database.run("DELETE FROM failure_counts")
        deliverer.deliver_due()
        assert len(recorder.sent) == 6

    def test_concurrent_deliverers_send_exactly_the_total(self, database, parts, make_deliverer):
        write_notices(database, 20, "sms")
        recorder = Recorder()
        at_once(8, lambda _: [make_deliverer(sms=recorder).deliver_due() for _ in range(5)])
        assert len(recorder.sent) == 3

    def test_notices_by_mail_have_no_total(self, database, make_deliverer):
        write_notices(database, 20)
        recorder = Recorder()
        make_deliverer(email=recorder).deliver_due()
        assert len(recorder.sent) == 20
