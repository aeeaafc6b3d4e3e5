"""Mail servers, SMS endpoints, providers and Redis are down, slow, drip or lie: clients notice nothing, and
every message arrives.
"""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from auth.delivery.deliverer import Deliverer
from auth.senders.sender import Message
from auth.senders.smtp import SmtpSender
from auth.settings.values.targets import smtp_server
from tests.faults.conversations import back_from
from tests.faults.invariants import doubled
from tests.faults.mail import Post
from tests.faults.world import serves_again
from tests.support.deliverers import RunningDeliverer
from tests.support.fake_provider import Answer, FakeProvider
from tests.support.http_target import HttpTarget
from tests.support.outbox import Outbox
from tests.support.processes import PATIENT_GUNICORN, free_port, wait_until
from tests.support.rows import Rows
from tests.support.server import ServerClient
from tests.support.smtp_server import MAIL_FROM, BadMailServer

pytestmark = pytest.mark.selection
# The promised seconds for each response, and the slack for a busy machine.
PROMISED = 5
SLACK = 3
CHANCE = random.Random(11)
LIMITS = {
    f"AUTH_RATE_LIMIT_{name}": "1000000 per hour"
    for name in ("SIGNUP", "LOGIN", "VERIFY", "REFRESH", "LOGOUT", "USER_CHANGES")
}
LIMITS |= {
    "AUTH_RATE_LIMIT_LOGIN_FAILURES": "1000000 per hour",
    "AUTH_RATE_LIMIT_ACCOUNT_FAILURES": "1000000 per hour",
}


def test_faulty_mail_server_neither_loses_mail_nor_delays_requests(world, note, scale):
    faults = [
        ("GREETING", "hang"),
        ("GREETING", "drip"),
        ("RCPT", "close"),
        ("END", "close"),
        ("END", "hang"),
        ("DATA", "drip"),
    ]
    seconds = scale(15, 2)
    with world.service(PATIENT_GUNICORN) as service:
        with world.load(service) as history:
            world.post.way.lead_to(("127.0.0.1", free_port()))
            for stage, behaviour in faults:
                with BadMailServer(stage, behaviour) as bad:
                    world.post.way.lead_to(("127.0.0.1", bad.port))
                    bad.reached.wait(seconds)
                    wait_until(serves_again(history))
            world.post.restore()
            wait_until(serves_again(history))
        world.check(history)
    assert history.failed() == 0
    assert history.slowest[0] < PROMISED + SLACK, history.slowest
    note(
        "SMTP down, slow, dripping, lying",
        len(faults) + 1,
        f"{len(world.post.by_id())} mails came, {doubled(world.post)} of them twice; {history.summary()}",
    )


def test_faulty_sms_endpoint_neither_loses_messages_nor_delays_requests(world, note):
    faults: list[tuple[str, int]] = [
        ("hang", 200),
        ("drip", 200),
        ("drip body", 200),
        ("close", 200),
        ("", 500),
        ("", 302),
        ("", 429),
    ]
    secret = "whsec_" + "A" * 44
    with HttpTarget() as target:
        changes = {
            "AUTH_SMS_PROVIDER": "webhook",
            "AUTH_SMS_WEBHOOK_URL": target.url,
            "AUTH_SMS_WEBHOOK_SECRET": secret,
        }
        with world.service(**changes) as service:
            client, rows = ServerClient(service.port), Rows(world.postgres.url)
            slowest = 0.0
            for number, (behaviour, status) in enumerate(faults):
                target.behaviour, target.status = behaviour, status
                for last in range(3):
                    began = time.monotonic()
                    assert (
                        client.post("/otp", json={"phone": f"+4917012345{number}{last}"}).status_code == 200
                    )
                    slowest = max(slowest, time.monotonic() - began)
                target.reached.wait(5)
                target.reached.clear()
            target.behaviour, target.status = "", 200
            target.over.set()

            def all_sent() -> bool:
                rows.run(
                    "UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL AND last_error IS NOT NULL"
                )
                return rows.count("outbox", "outcome = 'sent'") == 3 * len(faults)

            wait_until(all_sent, 60)
            known = {row.id for row in rows.all("SELECT id FROM outbox")}
            came = {posted.headers["webhook-id"] for posted in target.requests}
            client.close()
            rows.close()
    assert came == known
    assert slowest < PROMISED + SLACK
    note(
        "SMS down, slow, dripping, lying",
        len(faults),
        f"{len(known)} SMS, tried {len(target.requests)} times under {len(came)} ids; slowest answer {slowest:.1f} s",
    )


def test_faulty_provider_ends_its_own_sign_ins_and_delays_no_other_request(world, note, scale):
    faults: list[Answer] = [
        Answer(behaviour=how) for how in ("hang", "drip head", "drip body", "endless", "close")
    ]
    faults += [
        Answer(500, b"oops"),
        Answer(200, b"[]"),
        Answer(200, b'{"access_token": "x", "id_token": "a.b.c", "token_type": "bearer"}'),
    ]
    faults = faults[:: scale(1, 4)]
    with FakeProvider("google") as google, world.service(PATIENT_GUNICORN, **google.settings()) as service:
        with world.load(service) as history:
            client = ServerClient(service.port)
            took = []
            for fault in faults:
                google.reset()
                google.person = {"sub": "alice-there", "email": "alice@example.com", "email_verified": True}
                tries = [back_from(client, google) for _ in range(4)]
                google.instead[google.TOKEN] = fault
                with ThreadPoolExecutor(4) as threads:
                    took += list(threads.map(lambda back: _come_back(client, *back), tries))
            google.reset()
            google.person = {"sub": "alice-there", "email": "alice@example.com", "email_verified": True}
            path, back, cookie = back_from(client, google)
            assert "access_token=" in client.get(path, params=back, headers=cookie).location
            client.close()
        rows = Rows(world.postgres.url)
        assert rows.count("users", "email = 'alice@example.com'") == 1
        rows.run(
            "DELETE FROM users WHERE email = 'alice@example.com'; DELETE FROM outbox WHERE recipient = 'alice@example.com'"
        )
        rows.close()
        world.check(history)
    assert history.failed() == 0
    assert history.slowest[0] < PROMISED + SLACK, history.slowest
    note(
        "a provider down, slow, dripping, lying",
        len(faults) * 4,
        f"sent on with an error after {max(took):.1f} s at most; {history.summary()}",
    )


def _come_back(client: Any, path: str, back: dict[str, str], cookie: dict[str, str]) -> float:
    """Open the callback for a faulty provider, and return the seconds until the redirect with an error."""
    began = time.monotonic()
    answer = client.get(path, params=back, headers=cookie)
    assert (answer.status_code, "error=" in answer.location, "token" in answer.location) == (303, True, False)
    return time.monotonic() - began


def test_faulty_redis_does_not_fail_requests(world, redis_server, note, scale):
    times = scale(10, 2)
    with world.service(
        AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_STORAGE=redis_server.url, **LIMITS
    ) as service:
        with world.load(service) as history:
            for _ in range(times):
                for begin, end in (
                    (redis_server.stop, redis_server.start),
                    (redis_server.freeze, redis_server.thaw),
                ):
                    begin()
                    wait_until(serves_again(history))
                    wait_until(serves_again(history))
                    end()
                    wait_until(serves_again(history))
        world.check(history)
    assert history.failed() == 0
    assert history.slowest[0] < PROMISED + SLACK, history.slowest
    note("Redis stopped, and frozen", 2 * times, history.summary())


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


def test_exceptions_while_sending_lose_no_mail(database, parts, note, scale):
    outbox, times = Outbox(database, parts), scale(500, 60)
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
    note(
        "an exception while a message is sent",
        sender.broken,
        f"{len(written)} mails came, {doubled(post)} of them more than once",
    )
