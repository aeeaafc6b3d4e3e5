"""All keys are rotated under load: whatever the old keys made stays good, as long as it is needed."""

import json
import os
import re
import subprocess
import sys
import time

import jwt
from standardwebhooks.webhooks import Webhook

from auth.settings import key_ring
from auth.tokens import keys
from tests.faults.clients import ADMIN
from tests.faults.world import serves_again
from tests.support.cast import refresh, register, session_of, sign_in
from tests.support.http_target import HttpTarget
from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.rows import Rows
from tests.support.server import ServerClient

A_DAY = 86_400
# Seconds after which all processes have read the files again.
KNOWN = key_ring.INTERVAL + 3
CODE = r"\b(\d{6})\b"
LINK = r"[?&]token=([\w-]{43})"


class Operator:
    """Runs `latchkey keys` in processes of its own, and moves the time of the keys."""

    def __init__(self, world, **settings):
        self._directory = world.state_dir
        own = {"HOME": "/", "AUTH_STATE_DIR": str(world.state_dir), "DATABASE_URL": world.postgres.url}
        self._environment = {"PATH": os.environ["PATH"], "AUTH_SERVICE_ROLE_KEY": ADMIN["apikey"], **own}

    def run(self, *arguments, status=0):
        command = [sys.executable, "-m", "auth.commands", "keys", *arguments]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def keys(self, kind):
        rows = [json.loads(line) for line in self.run("list", "--json").splitlines()]
        return [row for row in rows if row["kind"] == kind]

    def let_time_pass(self, seconds):
        """Let the keys be so much older, and wait until the processes have read that."""
        for name, kind in (("secret_key", "secret"), ("jwt_keys.json", "signing")):
            path, times = self._directory / name, {row["active_from"] for row in self.keys(kind)} - {None}
            text = path.read_text()
            for at in times:
                text = text.replace(at, keys.format_time(keys.parse_time(at) - seconds))
            draft = path.with_name(f"{name}.draft")
            draft.write_text(text)
            os.replace(draft, path)
        time.sleep(KNOWN)


def kid_of(session):
    return jwt.get_unverified_header(session.access_token)["kid"]


def verified(session, published):
    """Verify an access token as a service does that has cached the JWK Set."""
    key = jwt.PyJWKSet.from_dict(published)[kid_of(session)]
    return jwt.decode(session.access_token, key, algorithms=["ES256"], audience="authenticated")


def mailed(world, recipient, pattern):
    (found, *_) = re.findall(pattern, world.post.wait_for(recipient, 30))
    return found


def test_keys_are_rotated_under_load(world, note):
    people = {name: f"{name}@example.org" for name in ("alice", "bob", "erin", "dave")}
    with HttpTarget() as target, world.service() as service:
        client, rows, operator = ServerClient(service.port), Rows(world.postgres.url), Operator(world)
        hook = client.post("/admin/webhooks", json={"url": f"{target.url}/events"}, headers=ADMIN).json
        for email in people.values():
            register(client, ADMIN, email)
        with world.load(service) as history:
            alice = session_of(client, sign_in(client, people["alice"]))
            for name in ("bob", "erin"):
                client.post("/magiclink", json={"email": people[name]})
            code, link = mailed(world, people["bob"], CODE), mailed(world, people["erin"], LINK)
            world.post.way.lead_to(("127.0.0.1", free_port()))
            client.post("/magiclink", json={"email": people["dave"]})

            for kind in ("secret", "signing"):
                operator.run("rotate", kind)
            time.sleep(KNOWN)
            new, old = [row["id"] for row in operator.keys("signing")]
            published = client.get("/.well-known/jwks.json").json
            assert [key["kid"] for key in published["keys"]] == [new, old]
            assert kid_of(session_of(client, sign_in(client, people["alice"]))) == old
            wait_until(serves_again(history))

            operator.let_time_pass(A_DAY + 60)
            wait_until(serves_again(history))
            # The old tokens, code, link and waiting message.
            assert alice.get("/user").status_code == 200
            alice = session_of(client, refresh(client, alice.refresh_token))
            assert kid_of(alice) == new
            assert verified(alice, published)["sub"] == alice.user["id"]
            given = {"type": "magiclink", "email": people["bob"], "token": code}
            assert client.post("/verify", json=given).status_code == 200
            assert client.post("/verify", json={"type": "magiclink", "token_hash": link}).status_code == 200
            world.post.restore()
            rows.run("UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL")
            late = mailed(world, people["dave"], LINK)
            assert client.post("/verify", json={"type": "magiclink", "token_hash": late}).status_code == 200

            used = operator.keys("secret")
            assert "sessions" in operator.run("remove", used[1]["id"], status=3)
            assert "access tokens" in operator.run("remove", old, status=3)
            wait_until(serves_again(history))
        world.check(history)

        operator.let_time_pass(2 * 3600)
        bob = session_of(client, sign_in(client, people["bob"]))
        rows.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE id <> %(id)s", id=bob.id)
        rows.run("UPDATE one_time_tokens SET code_expires_at = now() WHERE code_mac IS NOT NULL")
        for id in (used[1]["id"], old):
            operator.run("remove", id)
        time.sleep(KNOWN)
        assert alice.get("/user").status_code == 401
        service.__exit__()
        service.start_again()
        assert session_of(client, refresh(client, bob.refresh_token)).get("/user").status_code == 200
        wait_until(lambda: rows.count("outbox", "outcome IS NULL") == 0, 30)
        for posted in target.requests:
            Webhook(hook["secret"]).verify(posted.body, posted.headers)
        events = len(target.requests)
        assert events > 50
        rows.close()
        client.close()
    note("all keys rotated and removed", 1, f"{events} events with good signatures; {history.summary()}")
