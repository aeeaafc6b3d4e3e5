"""Messages of requests: sent if and only if the change was committed, and printed on localhost."""

import re

import pytest

from auth.delivery.deliverer import Deliverer
from auth.senders.sender import ConsoleSender
from tests.conftest import secret
from tests.support.deliverers import deliver_due
from tests.support.inbox import Mailbox
from tests.support.users import PASSWORD

DAVE = {"email": "dave@example.com", "password": PASSWORD}


class TestSecrets:
    def test_secret_is_encrypted_and_erased_when_the_message_is_sent_once(self, client, database, mailbox):
        client.post("/signup", json=DAVE)
        waiting = str(database.everything())
        (token,) = re.findall(r"token=([\w-]{43})", mailbox.link_for("dave@example.com"))
        assert token not in waiting
        assert token.encode().hex() not in waiting
        database.run("UPDATE outbox SET next_attempt_at = now() - interval '1 second'")
        assert len(mailbox.messages()) == 1
        assert database.one("SELECT outcome, secret FROM outbox") == ("sent", None)

    def test_message_is_left_to_processes_that_have_the_key_of_its_secret(self, make_app, database):
        old, new = secret("old"), secret("new")
        make_app(AUTH_SECRET_KEY=old).test_client().post("/signup", json=DAVE)
        without, rotated = (
            Mailbox(make_app(AUTH_SECRET_KEY=keys).extensions["latchkey"]) for keys in (new, f"{new},{old}")
        )
        assert without.messages() == []
        error = "the secret can't be opened: its key is not among AUTH_SECRET_KEY"
        assert database.one("SELECT outcome, last_error FROM outbox") == (None, error)
        database.run("UPDATE outbox SET next_attempt_at = now() - interval '1 second'")
        assert rotated.link_for("dave@example.com")

    def test_failed_request_writes_no_message(self, client, database):
        client.post("/signup", json=DAVE | {"data": {"x": "y" * 9000}})
        assert database.count("outbox") == 0


@pytest.mark.parametrize(
    ("change", "outcome"),
    [("UPDATE outbox SET expires_at = now()", "expired"), ("DELETE FROM users", "void")],
)
def test_expired_and_void_messages_are_not_sent_and_do_not_delay_valid_ones(
    client, database, mailbox, change, outcome
):
    for number in range(30):
        client.post("/signup", json=DAVE | {"email": f"user{number}@example.com"})
    database.run(change)
    client.post("/signup", json=DAVE)
    assert [letter.to for letter in mailbox.messages()] == ["dave@example.com"]
    gone = database.all("SELECT DISTINCT outcome, secret FROM outbox WHERE recipient <> 'dave@example.com'")
    assert gone == [(outcome, None)]


class TestConsole:
    def test_console_sender_prints_and_does_not_log(self, client, parts, capsys):
        client.post("/signup", json=DAVE)
        Deliverer(parts.settings, parts.db, parts.sealer, {"email": ConsoleSender()}).deliver_due()
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
