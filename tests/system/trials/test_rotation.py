"""All keys are rotated under load: what the old keys signed stays valid for as long as it is needed."""

import json
import re
import time

import jwt

from auth.core import files
from auth.core.keys import key_ring
from auth.core.tokens import derived_keys
from tests.support.commands import run_process
from tests.support.environment import ENVIRONMENT
from tests.support.processes import PATIENT_GUNICORN, free_port, wait_until
from tests.support.users import register
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import serves_again

A_DAY = 86_400
# Seconds after which all processes have read the files again, even on a busy machine.
UNTIL_REREAD = key_ring.INTERVAL + 4
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Operator:
    """Runs `latchkey` in separate processes, and moves the time of the keys."""

    def __init__(self, deployment, public):
        self._directory = deployment.state_dir
        settings = {"AUTH_STATE_DIR": str(deployment.state_dir), "AUTH_SMTP_URL": deployment.post.url}
        self._environment = ENVIRONMENT | settings | public | {"DATABASE_URL": deployment.postgres.url}

    def run(self, *arguments, status=0):
        result = run_process(self._environment, *arguments)
        assert result.returncode == status, result.stdout + result.stderr
        return result.stdout + result.stderr

    def keys(self, kind):
        rows = [json.loads(line) for line in self.run("keys", "list", "--json").splitlines()]
        return [row for row in rows if row["kind"] == kind]

    def let_time_pass(self, seconds):
        """Make the keys older, and wait until the processes have reread them."""
        for name in ("secret_key", "jwt_keys.json"):
            path = self._directory / name
            text = re.sub(
                TIME,
                lambda at: derived_keys.format_time(derived_keys.parse_time(at[0]) - seconds),
                path.read_text(),
            )
            files.write(path, text)
        time.sleep(UNTIL_REREAD)


def kid_of(session):
    return jwt.get_unverified_header(session.access_token)["kid"]


def verified(session, published):
    """Verify an access token as a service does that has cached the JWK Set."""
    key = jwt.PyJWKSet.from_dict(published)[kid_of(session)]
    return jwt.decode(session.access_token, key, algorithms=["ES256"], audience="authenticated")


def test_keys_are_rotated_under_load(deployment):
    port = free_port()
    public = dict.fromkeys(("AUTH_BASE_URL", "AUTH_SITE_URL"), f"http://127.0.0.1:{port}")
    with deployment.service(PATIENT_GUNICORN, PORT=str(port), **public) as service:
        client, operator = deployment.client(service), Operator(deployment, public)
        alice = register(client, ADMIN, "alice@example.org")
        with deployment.load(service, clients_count=3) as history:
            session = alice.sign_in()
            for kind in ("secret", "signing"):
                operator.run("keys", "rotate", kind)
            time.sleep(UNTIL_REREAD)
            new_id, old_id = [row["id"] for row in operator.keys("signing")]
            # The new key is published for a day before it signs, so that services that verify tokens fetch it.
            published = client.get("/.well-known/jwks.json").json
            assert [key["kid"] for key in published["keys"]] == [new_id, old_id]
            assert kid_of(alice.sign_in()) == old_id
            wait_until(serves_again(history))

            operator.let_time_pass(A_DAY + 60)
            session = session.refreshed()
            assert kid_of(session) == new_id
            assert verified(session, published)["sub"] == alice.id
            wait_until(serves_again(history))

            used_key = operator.keys("secret")[1]
            for id in (used_key["id"], old_id):
                operator.run("keys", "remove", id, status=3)
        deployment.check(history)

        operator.let_time_pass(2 * 3600)
        session, rows = alice.sign_in(), deployment.rows()
        rows.run(
            "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE id <> %(id)s", id=session.id
        )
        rows.run("UPDATE one_time_tokens SET code_expires_at = now() WHERE code_mac IS NOT NULL")
        for id in (used_key["id"], old_id):
            operator.run("keys", "remove", id)
        service.__exit__()
        service.start_again()
        assert session.refreshed().get("/user").status_code == 200
