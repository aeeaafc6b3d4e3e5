"""Mail servers that hang, drip or close slow no request, and mail arrives when they recover."""

from functools import partial

from tests.support.awake import awake
from tests.support.outbox import Outbox
from tests.support.processes import wait_until
from tests.support.server import at_once, until_served
from tests.support.smtp_server import BadMailServer

# Seconds: far less than a mail server may take, and more than a busy machine needs.
PATIENCE = 5
UNKNOWN_EMAIL = "nobody@example.com"


class MoodyMailServer(BadMailServer):
    """A mail server whose behaviour can change."""

    def become(self, stage, behaviour):
        self.reached.clear()
        self._stage, self._behaviour = stage, behaviour


def test_mail_server_that_hangs_drips_or_closes_does_not_slow_requests(serve, database, parts, alice):
    messages = Outbox(database, parts)
    with (
        MoodyMailServer("NEVER", "") as mail,
        serve(AUTH_SMTP_URL=mail.url, AUTH_DELIVER="true", AUTH_WORKERS="1") as (_, server),
    ):
        until_served(lambda: server.get("/health"))  # do not measure its start
        for stage, behaviour in (("GREETING", "hang"), ("RCPT", "drip"), ("END", "close")):
            mail.become(stage, behaviour)
            answers = at_once(10, lambda number: timed(server, alice.email if number % 2 else UNKNOWN_EMAIL))
            assert mail.reached.wait(60), stage
            # The mail server occupies all threads of the delivery process by now.
            answers += [timed(server, email) for email in (alice.email, UNKNOWN_EMAIL) for _ in range(3)]
            assert {body for body, _ in answers} == {"If a user has this address, the message is on its way"}
            assert max(seconds for _, seconds in answers) < PATIENCE
            mail.recover()
            newest = database.value(
                "SELECT id FROM outbox WHERE recipient = %(email)s ORDER BY created_at DESC LIMIT 1",
                email=alice.email,
            )
            wait_until(partial(is_sent, messages, newest))
        assert set(mail.taken) == {alice.email, UNKNOWN_EMAIL}


def is_sent(messages: Outbox, id: str) -> bool:
    """Return whether a message is sent, while messages are retried without their pauses."""
    messages.end_pauses()
    return messages.outcome(id) == "sent"


def timed(server, email):
    """Request a link; return the message of the response and the seconds that it took."""
    started_at = awake()
    response = until_served(lambda: server.post("/magiclink", json={"email": email}))
    assert response.status_code == 200
    return response.json["message"], awake() - started_at
