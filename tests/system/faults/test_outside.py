"""Mail servers and SMS endpoints are down, slow, drip or lie: clients notice nothing, and every message arrives."""

import random
import time

from auth.core.settings.values.urls import smtp_server
from auth.delivery.deliverer import Deliverer
from auth.delivery.senders.sender import Message
from auth.delivery.senders.smtp import SmtpSender
from tests.support.deliverers import RunningDeliverer
from tests.support.http_target import HttpTarget
from tests.support.outbox import Outbox
from tests.support.processes import PATIENT_GUNICORN, free_port, wait_until
from tests.support.smtp_server import MAIL_FROM, BadMailServer
from tests.system.faults.deployment import serves_again
from tests.system.faults.invariants import deliver_all
from tests.system.faults.mail import Post

# The promised seconds for each response, and the slack for a busy machine.
PROMISED = 5
SLACK = 3
CHANCE = random.Random(11)


def test_faulty_mail_server_neither_loses_mail_nor_delays_requests(deployment):
    faults = [("GREETING", "hang"), ("RCPT", "close"), ("END", "hang")]
    with deployment.service(PATIENT_GUNICORN) as service:
        with deployment.load(service) as history:
            deployment.post.way.lead_to(("127.0.0.1", free_port()))
            for stage, behaviour in faults:
                with BadMailServer(stage, behaviour) as bad:
                    deployment.post.way.lead_to(("127.0.0.1", bad.port))
                    bad.reached.wait(2)
                    wait_until(serves_again(history))
            deployment.post.restore()
            wait_until(serves_again(history))
        deployment.check(history)
    assert history.failed() == 0
    assert history.slowest[0] < PROMISED + SLACK, history.slowest


def test_faulty_hook_for_sms_neither_loses_messages_nor_delays_requests(deployment):
    faults = [(behaviour, 200) for behaviour in ("hang", "drip", "drip body", "close")]
    faults += [("", status) for status in (500, 302, 429)]
    with HttpTarget() as target:
        target.headers, target.body = {"Content-Type": "application/json"}, b"{}"
        changes = {"AUTH_HOOK_SEND_SMS": target.url, "AUTH_HOOK_SEND_SMS_SECRETS": "whsec_" + "A" * 44}
        with deployment.service(**changes) as service:
            client, rows = deployment.client(service), deployment.rows()
            slowest = 0.0
            for number, (behaviour, status) in enumerate(faults):
                target.behaviour, target.status = behaviour, status
                for last in range(3):
                    began = time.monotonic()
                    response = client.post("/otp", json={"phone": f"+4917012345{number}{last}"})
                    assert response.status_code == 200
                    slowest = max(slowest, time.monotonic() - began)
                target.reached.wait(5)
                target.reached.clear()
            target.behaviour, target.status = "", 200
            target.over.set()

            deliver_all(rows)
            assert rows.count("outbox", "outcome = 'sent'") == 3 * len(faults)
            known = {f"msg_{row.id}" for row in rows.all("SELECT id FROM outbox")}
            came = {posted.headers["webhook-id"] for posted in target.requests}
    assert came == known
    assert slowest < PROMISED + SLACK


class Breaking(SmtpSender):
    """Sends mail, and sometimes raises before or after sending."""

    broken = 0

    def send(self, recipient: str, message: Message) -> str:
        self._perhaps_break()
        reply = super().send(recipient, message)
        self._perhaps_break()
        return reply

    def _perhaps_break(self) -> None:
        if CHANCE.random() < 0.3:
            self.broken += 1
            raise CHANCE.choice([SystemExit, KeyboardInterrupt, MemoryError, RecursionError])


def test_exceptions_while_sending_lose_no_mail(database, parts):
    outbox, times = Outbox(database, parts), 60
    with Post() as post:
        sender = Breaking(smtp_server(post.url), MAIL_FROM, "localhost")
        deliverer = RunningDeliverer(Deliverer(parts.settings, parts.db, parts.sealer, {"email": sender}))
        written = {outbox.write() for _ in range(times)}

        def all_sent() -> bool:
            # When all other messages are sent, expire the leases of those whose thread broke.
            database.run(
                "UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL"
                " AND NOT EXISTS (SELECT FROM outbox WHERE outcome IS NULL AND next_attempt_at <= now())"
            )
            return set(outbox.outcomes().values()) == {"sent"}

        wait_until(all_sent, 120)
        deliverer.stop()
        assert set(post.by_id()) == written
