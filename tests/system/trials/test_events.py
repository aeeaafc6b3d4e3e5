"""Webhooks are down, slow, drip or refuse, and workers and delivery processes are killed: each committed
event arrives with one id, and no other event does.
"""

import os
import random
import signal
from collections import defaultdict

from tests.support.http_target import HttpTarget
from tests.support.processes import wait_until
from tests.support.tables import Rows
from tests.system.faults import invariants
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import serves_again
from tests.system.trials.test_under_load import serving

CHANCE = random.Random(5)
# For each user: the numbers of creations, deletions and sign-ins, and of sessions while the user exists.
_EVENTS = """
SELECT event.user_id, u.id IS NOT NULL AS is_there,
       count(*) FILTER (WHERE event.kind = 'user.created') AS created,
       count(*) FILTER (WHERE event.kind = 'user.deleted') AS deleted,
       count(*) FILTER (WHERE event.kind = 'auth.login') AS logins,
       (SELECT count(*) FROM sessions WHERE sessions.user_id = event.user_id) AS sessions
  FROM outbox AS event
  LEFT JOIN users AS u ON u.id = event.user_id
 WHERE event.channel = 'webhook'
 GROUP BY event.user_id, u.id
"""


def wrong_events(rows: Rows, target: HttpTarget) -> list[str]:
    """Return differences between committed changes, events written for the webhook, and events that arrived."""
    problems = []
    bodies_by_id = defaultdict(set)
    for posted in target.requests:
        bodies_by_id[posted.headers["webhook-id"]].add(posted.body)
    rows_by_id = {
        f"msg_{row.event}": row
        for row in rows.all(
            "SELECT variables ->> 'event_id' AS event, kind, outcome FROM outbox WHERE channel = 'webhook'"
        )
    }
    problems += [
        f"an event came that was never written: {bodies}"
        for id, bodies in bodies_by_id.items()
        if id not in rows_by_id
    ]
    problems += [
        f"one id, and different events: {bodies}" for bodies in bodies_by_id.values() if len(bodies) > 1
    ]
    problems += [
        f"an event never came: {row}"
        for id, row in rows_by_id.items()
        if row.outcome != "sent" or id not in bodies_by_id
    ]
    for user in rows.all(_EVENTS):
        if (user.created, user.deleted) != (1, 0 if user.is_there else 1) or (
            user.is_there and user.logins != user.sessions
        ):
            problems.append(f"events of a user that do not add up: {user}")
    user_ids = {user.user_id for user in rows.all(_EVENTS)}
    problems += [
        f"no event of {row.email}"
        for row in rows.all("SELECT id, email FROM users")
        if row.id not in user_ids
    ]
    return problems


def test_faulty_webhook_and_killed_processes_lose_no_event(deployment):
    faults: list[tuple[str, int]] = [("hang", 200), ("close", 200), ("", 500)]
    with HttpTarget() as target, deployment.service() as service:
        client, rows = deployment.client(service), deployment.rows()
        response = client.post("/admin/webhooks", json={"url": f"{target.url}/events"}, headers=ADMIN)
        assert response.status_code == 200

        def wait_until_reached(seconds: float) -> None:
            target.reached.clear()
            rows.run("UPDATE webhooks SET retry_at = NULL")
            target.reached.wait(seconds)

        with deployment.load(service) as history:
            for target.behaviour, target.status in faults:
                wait_until_reached(2)
                wait_until(serves_again(history))
            target.behaviour, target.status = "", 200
            target.over.set()
            for _ in range(2):
                wait_until_reached(10)
                (delivery,) = wait_until(service.delivery_processes)
                worker = CHANCE.choice(serving(service))
                os.kill(delivery, signal.SIGKILL)
                os.kill(worker, signal.SIGKILL)
                wait_until(serves_again(history), 30)
        deployment.check(history)
        # The check itself has signed in some users.
        invariants.deliver_all(rows)
        problems = wrong_events(rows, target)
    assert not problems, "\n".join(problems[:20])
