"""Messages of requests: sent if and only if the change was committed, and printed on localhost."""

import re

import pytest

from auth.delivery.deliverer import Deliverer
from auth.senders.sender import ConsoleSender
from tests.conftest import secret
from tests.support.cast import PASSWORD
from tests.support.deliverers import deliver_due
from tests.support.inbox import Mailbox

DAVE = {"email": "dave@example.com", "password": PASSWORD}


@pytest.fixture
def deliverer(parts):
    """Make a deliverer that sends mail with a sender."""
    return lambda sender: Deliverer(parts.settings, parts.db, parts.sealer, {"email": sender})


def due_again(database):
    database.run("UPDATE outbox SET next_attempt_at = now() - interval '1 second'")


class TestSecrets:
    def test_secret_is_encrypted_and_erased(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        waiting = str(database.everything())
        (token,) = re.findall(r"token=([\w-]{43})", mailbox.link_for("dave@example.com"))
        assert token not in waiting
        assert token.encode().hex() not in waiting

    def test_secret_copied_to_another_message_cannot_be_opened(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        client.post("/signup", json=DAVE | {"email": "mallory@example.com"})
        # Mallory can write to the database, but has no key.
        database.run(
            "UPDATE outbox SET secret = (SELECT secret FROM outbox WHERE recipient = 'dave@example.com') WHERE recipient = 'mallory@example.com'"
        )
        assert len(mailbox.messages_to("dave@example.com")) == 1
        assert mailbox.messages_to("mallory@example.com") == []

    def test_secret_encrypted_with_the_old_root_secret_opens(self, make_app, mailbox):
        old, new = secret("o"), secret("n")
        make_app(AUTH_SECRET_KEY=old).test_client().post("/signup", json=DAVE)
        rotated = make_app(AUTH_SECRET_KEY=f"{new},{old}").extensions["latchkey"]
        assert Mailbox(rotated).link_for("dave@example.com")

    def test_message_that_a_process_has_no_key_for_is_left_to_others(
        self, client, make_app, mailbox, database
    ):
        client.post("/signup", json=DAVE)
        without = Mailbox(make_app(AUTH_SECRET_KEY=secret("x")).extensions["latchkey"])
        assert without.messages() == []
        assert database.one("SELECT outcome, last_error FROM outbox") == (
            None,
            "the secret can't be opened: its key is not among AUTH_SECRET_KEY",
        )
        due_again(database)
        assert mailbox.link_for("dave@example.com")

    def test_failed_request_writes_no_message(self, client, database):
        client.post("/signup", json=DAVE | {"data": {"x": "y" * 9000}})
        assert database.count("outbox") == 0


class TestSending:
    def test_message_is_sent_once_and_its_secret_erased(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        assert len(mailbox.messages()) == len(mailbox.messages()) == 1
        due_again(database)
        assert len(mailbox.messages()) == 1
        assert database.one("SELECT outcome, secret FROM outbox") == ("sent", None)

    def test_expired_message_is_not_sent(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        database.run("UPDATE outbox SET expires_at = now()")
        assert mailbox.messages() == []
        assert database.one("SELECT outcome, secret FROM outbox") == ("expired", None)

    def test_void_message_is_not_sent(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        database.run("DELETE FROM users")
        assert mailbox.messages() == []
        assert database.one("SELECT outcome, secret FROM outbox") == ("void", None)

    def test_void_messages_do_not_delay_valid_ones(self, client, database, mailbox):
        for number in range(30):
            client.post("/signup", json=DAVE | {"email": f"user{number}@example.com"})
        database.run("DELETE FROM users")
        client.post("/signup", json=DAVE)
        assert len(mailbox.messages()) == 1


class TestConsole:
    def test_console_sender_prints_and_does_not_log(self, client, deliverer, capsys):
        client.post("/signup", json=DAVE)
        deliverer(ConsoleSender()).deliver_due()
        printed = capsys.readouterr()
        assert "To: dave@example.com\nSubject: Confirm your email address\n" in printed.out
        (link,) = re.findall(r"^http://localhost:8000/verify\S+$", printed.out, re.MULTILINE)
        assert link not in printed.err
        assert "access_token=" in client.get(link).location

    def test_messages_wait_when_the_base_url_is_another_machine(self, make_app, database):
        app = make_app(AUTH_BASE_URL="https://auth.example.com")
        app.test_client().post("/signup", json=DAVE)
        deliver_due(app.extensions["latchkey"])
        assert database.value("SELECT outcome FROM outbox") is None
