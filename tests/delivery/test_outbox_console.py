"""The outbox, and messages on standard output: sent if and only if the change was committed, and never after they are void."""

import re

import httpx
import pytest

from auth.delivery.deliverer import Deliverer
from auth.delivery.senders import ConsoleSender, Sender, TryLater
from tests.support.cast import PASSWORD
from tests.support.deliverers import deliver_due
from tests.support.inbox import Mailbox
from tests.support.processes import Service, wait_until
from tests.support.server import at_once

DAVE = {"email": "dave@example.com", "password": PASSWORD}


class Broken(Sender):
    """Can't reach anybody."""

    def send(self, recipient, message):
        raise TryLater("nobody answers", is_down=True)


@pytest.fixture
def deliverer(parts):
    """Make one that sends with the given sender."""
    return lambda sender: Deliverer(parts.settings, parts.db, parts.sealer, {"email": sender})


def due_again(database):
    database.run("UPDATE outbox SET next_attempt_at = now() - interval '1 second'")


class TestWaiting:
    def test_what_a_message_carries_is_sealed(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        waiting = str(database.everything())
        (token,) = re.findall(r"token=([\w-]{43})", mailbox.link_for("dave@example.com"))
        assert token not in waiting
        assert token.encode().hex() not in waiting

    def test_what_was_sealed_for_one_message_opens_no_other(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        client.post("/signup", json=DAVE | {"email": "mallory@example.com"})
        # Mallory, who can write to the database but knows no key, gives the message to her the secret of Dave's.
        database.run("UPDATE outbox SET secret = (SELECT secret FROM outbox WHERE recipient = 'dave@example.com') WHERE recipient = 'mallory@example.com'")
        assert len(mailbox.messages_to("dave@example.com")) == 1
        assert mailbox.messages_to("mallory@example.com") == []

    def test_a_secret_that_is_being_changed_still_opens(self, make_app, mailbox):
        old, new = "o" * 32, "n" * 32
        make_app(AUTH_SECRET_KEY=old).test_client().post("/signup", json=DAVE)
        rotated = make_app(AUTH_SECRET_KEY=f"{new},{old}").extensions["latchkey"]
        assert Mailbox(rotated).link_for("dave@example.com")

    def test_a_request_that_failed_leaves_nothing(self, client, database):
        client.post("/signup", json=DAVE | {"data": {"x": "y" * 9000}})
        assert database.count("outbox") == 0


class TestSending:
    def test_it_is_sent_once_and_its_secret_erased(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        assert len(mailbox.messages()) == len(mailbox.messages()) == 1
        due_again(database)
        assert len(mailbox.messages()) == 1
        assert database.one("SELECT outcome, secret FROM outbox") == ("sent", None)

    def test_an_expired_one_is_not(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        database.run("UPDATE outbox SET expires_at = now()")
        assert mailbox.messages() == []
        assert database.one("SELECT outcome, secret FROM outbox") == ("expired", None)

    def test_a_void_one_is_not(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        database.run("DELETE FROM users")
        assert mailbox.messages() == []
        assert database.one("SELECT outcome, secret FROM outbox") == ("void", None)

    def test_many_void_ones_hold_up_no_good_one(self, client, database, mailbox):
        for number in range(30):
            client.post("/signup", json=DAVE | {"email": f"user{number}@example.com"})
        database.run("DELETE FROM users")
        client.post("/signup", json=DAVE)
        assert len(mailbox.messages()) == 1

    def test_many_senders_at_once_send_each_one_once(self, client, deliverer):
        for number in range(20):
            client.post("/signup", json=DAVE | {"email": f"user{number}@example.com"})
        sent = []

        class Counting(Sender):
            def send(self, recipient, message):
                sent.append(recipient)

        at_once(4, lambda _: deliverer(Counting()).deliver_due())
        assert sorted(sent) == sorted(f"user{number}@example.com" for number in range(20))

    def test_one_that_could_not_be_sent_is_tried_again(self, client, database, deliverer, mailbox):
        client.post("/signup", json=DAVE)
        deliverer(Broken()).deliver_due()
        assert database.value("SELECT next_attempt_at > now() FROM outbox WHERE outcome IS NULL")
        assert mailbox.messages() == []
        due_again(database)
        assert len(mailbox.messages()) == 1

    def test_one_whose_sender_died_is_sent_by_another(self, client, database, deliverer, mailbox):
        client.post("/signup", json=DAVE)

        class Dying(Sender):
            def send(self, recipient, message):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            deliverer(Dying()).deliver_due()
        assert mailbox.messages() == []
        due_again(database)
        assert len(mailbox.messages()) == 1


class TestTheConsole:
    def test_it_prints_and_does_not_log(self, client, deliverer, capsys):
        client.post("/signup", json=DAVE)
        deliverer(ConsoleSender()).deliver_due()
        printed = capsys.readouterr()
        assert "To: dave@example.com\nSubject: Confirm your email address\n" in printed.out
        (link,) = re.findall(r"^http://localhost:8000/verify\S+$", printed.out, re.MULTILINE)
        assert link not in printed.err
        assert "access_token=" in client.get(link).location

    def test_the_service_does_by_itself(self, environment, tmp_path, database):
        with Service(tmp_path / "var", DATABASE_URL=environment["DATABASE_URL"], AUTH_BCRYPT_COST="4", AUTH_LOG_FORMAT="json") as service:
            httpx.post(f"http://127.0.0.1:{service.port}/signup", json=DAVE)
            (link,) = wait_until(lambda: re.findall(r"^http://localhost:\d+(/verify\S+)$", service.text(), re.MULTILINE))
            log = [line for line in service.text().splitlines() if line.startswith("{")]
            assert log
            assert not [line for line in log if "dave@example.com" in line or link in line]
            assert service.get(link)[1] == b""

    def test_where_it_is_another_machine_messages_wait(self, make_app, database):
        app = make_app(AUTH_BASE_URL="https://auth.example.com")
        app.test_client().post("/signup", json=DAVE)
        deliver_due(app.extensions["latchkey"])
        assert database.value("SELECT outcome FROM outbox") is None
