"""The outbox: each message is sent once and in time or not at all, and its secrets are erased."""

import re

import pytest

from auth.core.constants import FIRST_PAUSE, GIVE_UP, LONGEST_PAUSE
from auth.core.sender import RefusedByServer, TryLater
from auth.delivery import janitor
from auth.delivery.attempts import LEASE
from auth.delivery.deliverer import Deliverer
from sql import queries
from tests.support.answers import DAY
from tests.support.environment import secret
from tests.support.outbox import CODE, TOKEN, Outbox, Recorder
from tests.support.server import at_once
from tests.support.users import PASSWORD

DAVE = {"email": "dave@example.com", "password": PASSWORD}


@pytest.fixture
def outbox(database, parts):
    return Outbox(database, parts)


@pytest.fixture
def mail():
    return Recorder()


@pytest.fixture
def sms():
    return Recorder()


@pytest.fixture
def make_deliverer(parts):
    return lambda **senders: Deliverer(parts.settings, parts.db, parts.sealer, senders)


@pytest.fixture
def deliverer(make_deliverer, mail, sms):
    return make_deliverer(email=mail, sms=sms)


class TestSending:
    def test_due_message_is_sent_once(self, outbox, deliverer, mail):
        id = outbox.write()
        assert [deliverer.deliver_due(), deliverer.deliver_due()] == [1, 0]
        ((recipient, message),) = mail.sent
        assert recipient == "alice@example.com"
        assert (message.id, message.kind, message.code) == (id, "magiclink", CODE)
        assert TOKEN in message.link
        row = outbox.row(id)
        assert (row.outcome, row.attempts, row.response, row.last_error) == ("sent", 1, "250 taken", None)
        assert (row.secret, row.finished_at is not None) == (None, True)

    def test_each_channel_uses_its_own_sender_or_waits(self, outbox, deliverer, make_deliverer, mail, sms):
        id = outbox.sms()
        assert (make_deliverer(email=mail).deliver_due(), outbox.outcome(id)) == (0, None)
        outbox.write()
        deliverer.deliver_due()
        assert (mail.recipients, sms.recipients) == (["alice@example.com"], ["+4915112345678"])

    def test_only_messages_of_kind_none_lack_a_recipient_and_stay(self, client, database, deliverer):
        client.post("/magiclink", json={"email": "nobody@example.com", "create_user": False})
        assert database.one("SELECT kind, channel, outcome FROM outbox") == ("none", None, "none")
        assert deliverer.deliver_due() == 0
        with pytest.raises(Exception, match="outbox_sendable_check"):
            database.run("INSERT INTO outbox (id, kind) VALUES (gen_random_uuid(), 'signup')")


class TestRetries:
    def test_pause_doubles_with_each_failure(self, outbox, deliverer, mail, database):
        id = outbox.write(lifetime=None)
        mail.fails = TryLater("greylisted")
        for attempt in range(1, 10):
            outbox.let_time_pass(int(LONGEST_PAUSE))
            started_at = database.now()
            assert deliverer.deliver_due() == 1
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
            assert longest / 2 <= outbox.waits_for(id, started_at)
            assert outbox.waits_for(id) <= longest
            assert (outbox.row(id).attempts, outbox.row(id).last_error) == (attempt, "greylisted")
        assert deliverer.deliver_due() == 0
        outbox.let_time_pass(int(LONGEST_PAUSE))
        mail.fails = None
        deliverer.deliver_due()
        assert (outbox.outcome(id), mail.recipients) == ("sent", ["alice@example.com"])

    def test_pauses_have_jitter(self, outbox, deliverer, mail):
        ids = [outbox.write(recipient=f"user{number}@example.com") for number in range(20)]
        mail.fails = TryLater("closed")
        deliverer.deliver_due()
        assert len({round(outbox.waits_for(id), 2) for id in ids}) > 10

    def test_server_can_ask_for_a_longer_pause_but_not_a_shorter_one(self, outbox, deliverer, sms, database):
        for requested, least, most in ((60, 60, 60), (0, FIRST_PAUSE / 2, FIRST_PAUSE)):
            id = outbox.sms()
            sms.fails = TryLater("busy", retry_after=requested)
            started_at = database.now()
            deliverer.deliver_due()
            assert least <= outbox.waits_for(id, started_at)
            assert outbox.waits_for(id) <= most

    def test_refused_message_is_not_retried_and_one_that_cannot_be_rendered_is(self, outbox, deliverer, mail):
        refused, unknown = outbox.write(), outbox.write("no_such_kind")
        mail.fails = RefusedByServer(f"RCPT TO 550 {TOKEN} {CODE}\n{'x' * 283}{CODE}")
        deliverer.deliver_due()
        row = outbox.row(refused)
        # The secrets are masked before the reason is cut.
        masked = f"RCPT TO 550 … … {'x' * 283}…"
        assert (row.outcome, row.last_error, row.secret) == ("failed", masked, None)
        assert outbox.outcome(unknown) is None
        assert "no_such_kind" in outbox.row(unknown).last_error


class TestExpiry:
    def test_message_is_retried_until_its_link_expires(self, outbox, deliverer, mail):
        id = outbox.write(lifetime=3600)
        mail.fails = TryLater("closed")
        for seconds in (0, 3590):
            outbox.let_time_pass(seconds)
            deliverer.deliver_due()
        assert outbox.row(id).attempts == 2
        # The message is not deferred past its expiry, when its secret is erased.
        assert outbox.waits_for(id) <= 10
        mail.fails = None
        outbox.let_time_pass(10)
        deliverer.deliver_due()
        row = outbox.row(id)
        assert (row.outcome, row.secret, row.last_error) == ("expired", None, "closed")
        assert mail.sent == []

    def test_notice_is_given_up_after_three_days(self, outbox, deliverer, mail):
        id = outbox.write("password_changed", token=None, code=None, lifetime=None)
        mail.fails = TryLater("closed")
        outbox.let_time_pass(GIVE_UP - 60)
        deliverer.deliver_due()
        assert outbox.outcome(id) is None
        outbox.let_time_pass(400)
        deliverer.deliver_due()
        assert (outbox.outcome(id), outbox.row(id).last_error) == ("failed", "closed")
        assert GIVE_UP == 3 * DAY

    @pytest.mark.parametrize(
        "statement",
        ["DELETE FROM one_time_tokens", "UPDATE one_time_tokens SET spent_at = now()", "DELETE FROM users"],
        ids=["voided", "spent", "user deleted"],
    )
    @pytest.mark.parametrize("is_retried", [False, True])
    def test_message_with_void_link_is_not_sent(
        self, client, database, outbox, deliverer, mail, statement, is_retried
    ):
        for number in range(8):
            client.post("/signup", json=DAVE | {"email": f"user{number}@example.com"})
        if is_retried:
            mail.fails = TryLater("closed")
            deliverer.deliver_due()
            mail.fails = None
            outbox.let_time_pass(300)
        database.run(statement)
        client.post("/signup", json=DAVE)
        deliverer.deliver_due()
        assert mail.recipients == [DAVE["email"]]
        void = "SELECT DISTINCT outcome, secret FROM outbox WHERE recipient <> 'dave@example.com'"
        assert database.one(void) == ("void", None)

    def test_sms_to_a_country_no_longer_allowed_is_not_sent(self, make_app, database, sms):
        parts = make_app(AUTH_SMS_COUNTRIES="+1,+49").extensions["latchkey"]
        outbox = Outbox(database, parts)
        allowed, refused = outbox.sms(), outbox.sms(recipient="+882123456789")
        Deliverer(parts.settings, parts.db, parts.sealer, {"sms": sms}).deliver_due()
        assert sms.recipients == ["+4915112345678"]
        assert outbox.outcomes() == {allowed: "sent", refused: "failed"}


class TestSecrets:
    def test_secret_is_encrypted_in_a_waiting_message(self, outbox, database):
        id = outbox.write()
        assert TOKEN.encode() not in bytes(outbox.row(id).secret)
        assert not re.search(f"{TOKEN}|{CODE}", str(database.everything()))

    def test_secret_copied_from_another_row_cannot_be_opened(self, outbox, deliverer, mail, database):
        target, source = outbox.write(recipient="mallory@example.com"), outbox.write()
        copy = "UPDATE outbox SET secret = (SELECT secret FROM outbox WHERE id = %(source)s) WHERE id = %(target)s"
        database.run(copy, target=target, source=source)
        deliverer.deliver_due()
        assert mail.recipients == ["alice@example.com"]
        assert (outbox.outcome(target), outbox.row(target).secret) == ("failed", None)

    def test_housekeeping_erases_expired_secrets_and_old_messages(self, outbox, deliverer, database, parts):
        old, recent = outbox.write(), outbox.write()
        deliverer.deliver_due()
        unsent = outbox.write()
        outbox.let_time_pass(4000)
        waiting = outbox.sms(lifetime=None)
        age = "UPDATE outbox SET finished_at = now() - interval '30 days 1 minute' WHERE id = %(id)s"
        database.run(age, id=old)
        janitor.keep_house(parts.settings, parts.db, parts.sealer)
        assert outbox.outcomes() == {recent: "sent", unsent: "expired", waiting: None}
        assert outbox.row(unsent).secret is None


class TestLeases:
    def test_message_of_a_dead_deliverer_is_sent_after_a_lease(self, outbox, deliverer, make_deliverer, mail):
        id = outbox.write()
        mail.fails = SystemExit()
        with pytest.raises(SystemExit):
            deliverer.deliver_due()
        other = Recorder()
        outbox.let_time_pass(LEASE - 20)
        make_deliverer(email=other).deliver_due()
        assert other.sent == []
        outbox.let_time_pass(20)
        make_deliverer(email=other).deliver_due()
        assert (other.recipients, outbox.outcome(id)) == (["alice@example.com"], "sent")

    def test_sender_that_outlives_its_lease_defers_nothing(self, outbox, deliverer, make_deliverer, mail):
        id = outbox.write()
        other = Recorder()

        def lose_the_lease():
            outbox.let_time_pass(LEASE)
            make_deliverer(email=other).deliver_due()

        mail.meanwhile = lose_the_lease
        mail.fails = TryLater("too slow")
        deliverer.deliver_due()
        assert (outbox.outcome(id), outbox.row(id).response) == ("sent", "250 taken")

    def test_concurrent_deliverers_send_each_message_once(self, outbox, make_deliverer):
        recipients = sorted(f"user{number}@example.com" for number in range(100))
        ids = [outbox.write(recipient=recipient) for recipient in recipients]
        recorder = Recorder()
        at_once(8, lambda _: make_deliverer(email=recorder).deliver_due())
        assert sorted(recorder.recipients) == recipients
        assert outbox.outcomes() == dict.fromkeys(ids, "sent")


def test_message_is_left_to_processes_that_have_the_key_of_its_secret(make_app, database, mail):
    old, new = secret("old"), secret("new")
    make_app(AUTH_SECRET_KEY=old).test_client().post("/signup", json=DAVE)
    error = "the secret can't be opened: its key is not among AUTH_SECRET_KEY"
    for key_setting, outcome in ((new, None), (f"{new},{old}", "sent")):
        parts = make_app(AUTH_SECRET_KEY=key_setting).extensions["latchkey"]
        database.run("UPDATE outbox SET next_attempt_at = now() - interval '1 second'")
        Deliverer(parts.settings, parts.db, parts.sealer, {"email": mail}).deliver_due()
        assert database.one("SELECT outcome, last_error FROM outbox") == (outcome, error)
    assert mail.recipients == [DAVE["email"]]


def test_notices_that_wait_for_others_are_not_measured_as_late(outbox, parts, database):
    outbox.write()
    outbox.sms()
    database.run("UPDATE outbox SET is_notice = true, next_attempt_at = now() + interval '1 minute'")
    assert queries.measure_outbox(parts.db, most=10) == []
    database.run("UPDATE outbox SET next_attempt_at = now() - interval '1 minute' WHERE channel = 'email'")
    (mail,) = queries.measure_outbox(parts.db, most=10)
    assert (mail.channel, mail.waiting) == ("email", 1)
    assert mail.overdue_seconds >= 60
