"""All keys are rotated under load: what the old keys signed stays valid for as long as it is needed."""

import json
import re
import time

import jwt
from standardwebhooks.webhooks import Webhook

from auth.core import files
from auth.core.keys import key_ring
from auth.core.tokens import derived_keys
from tests.support.commands import run_process
from tests.support.environment import ENVIRONMENT
from tests.support.factors import raised, set_up
from tests.support.http_target import HttpTarget
from tests.support.processes import PATIENT_GUNICORN, free_port, wait_until
from tests.support.user_agent import UserAgent
from tests.support.users import PASSWORD, refresh, register, session_of, sign_in
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import serves_again

A_DAY = 86_400
# Seconds after which all processes have read the files again, even on a busy machine.
KNOWN = key_ring.INTERVAL + 4
CODE = r"\b(\d{6})\b"
LINK = r"[?&]token=([\w-]{43})"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Operator:
    """Runs `latchkey` in separate processes, and moves the time of the keys."""

    def __init__(self, deployment, url):
        self._directory = deployment.state_dir
        own = {"AUTH_STATE_DIR": str(deployment.state_dir), "AUTH_SMTP_URL": deployment.post.url}
        own["DATABASE_URL"] = deployment.postgres.url
        self._environment = ENVIRONMENT | own | {"AUTH_BASE_URL": url, "AUTH_SITE_URL": url}

    def run(self, *arguments, status=0):
        done = run_process(self._environment, *arguments)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

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
        time.sleep(KNOWN)


class Holders:
    """People who hold tokens, codes and messages of the first keys."""

    def __init__(self, deployment, client, base_url):
        self.deployment, self.client, self.base_url = deployment, client, base_url
        for name in ("alice", "bob", "erin", "dave", "frank"):
            register(client, ADMIN, address(name))
        self.cached_keys = self.published()
        self.alice = self.signed_in("alice")
        self.app, frank = set_up(self.signed_in("frank"))
        self.recovery_codes = frank.post("/recovery_codes").json["codes"]
        self.browser = UserAgent()
        self.browser.visit(f"{base_url}/sign-in")
        fill_in(self.browser, email=address("alice"), password=PASSWORD)
        for name in ("bob", "erin"):
            client.post("/magiclink", json={"email": address(name)})
        self.code, self.link = self.mailed("bob", CODE), self.mailed("erin", LINK)
        deployment.post.way.lead_to(("127.0.0.1", free_port()))
        client.post("/magiclink", json={"email": address("dave")})

    def published(self):
        return self.client.get("/.well-known/jwks.json").json

    def signed_in(self, name):
        return session_of(self.client, sign_in(self.client, address(name)))

    def mailed(self, name, pattern):
        (found, *_) = re.findall(pattern, self.deployment.post.wait_for(address(name), 30))
        return found

    def use_everything(self, rows):
        """Check that each of them is valid, which spends those for a single use."""
        assert self.alice.get("/user").status_code == 200
        assert verified(self.alice, self.cached_keys)
        self.alice = session_of(self.client, refresh(self.client, self.alice.refresh_token))
        self.verify(email=address("bob"), token=self.code)
        self.verify(token_hash=self.link)
        self.deployment.post.restore()
        rows.run("UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL")
        self.verify(token_hash=self.mailed("dave", LINK))
        assert raised(self.signed_in("frank"), self.app).claims["aal"] == "aal2"
        body = {"code": self.recovery_codes[0]}
        assert self.signed_in("frank").post("/recovery_codes/verify", json=body).status_code == 200
        self.look_at_the_account()

    def verify(self, **proof):
        response = self.client.post("/verify", json={"type": "magiclink", **proof})
        assert response.status_code == 200, response.text

    def look_at_the_account(self):
        page = self.browser.visit(f"{self.base_url}/account")
        assert (page.status, page.url) == (200, f"{self.base_url}/account")
        assert address("alice") in page.text


def address(name):
    return f"{name}@example.org"


def fill_in(browser, **fields):
    forms = browser.page.forms
    browser.submit(
        number=next(n for n, form in enumerate(forms) if fields.keys() <= form.fields.keys()), **fields
    )


def kid_of(session):
    return jwt.get_unverified_header(session.access_token)["kid"]


def verified(session, published):
    """Verify an access token as a service does that has cached the JWK Set."""
    key = jwt.PyJWKSet.from_dict(published)[kid_of(session)]
    return jwt.decode(session.access_token, key, algorithms=["ES256"], audience="authenticated")


def test_keys_are_rotated_under_load(deployment):
    port = free_port()
    base_url = f"http://127.0.0.1:{port}"
    public = {"PORT": str(port), "AUTH_BASE_URL": base_url, "AUTH_SITE_URL": base_url}
    with HttpTarget() as target, deployment.service(PATIENT_GUNICORN, **public) as service:
        client, rows = deployment.client(service), deployment.rows()
        operator = Operator(deployment, base_url)
        hook = client.post("/admin/webhooks", json={"url": f"{target.url}/events"}, headers=ADMIN).json
        with deployment.load(service, clients_count=3) as history:
            holders = Holders(deployment, client, base_url)
            for kind in ("secret", "signing"):
                operator.run("keys", "rotate", kind)
            time.sleep(KNOWN)
            new, old = [row["id"] for row in operator.keys("signing")]
            assert [key["kid"] for key in holders.published()["keys"]] == [new, old]
            # From now on for a day, services that verify tokens fetch the new key, before it signs.
            cached_keys = holders.published()
            assert kid_of(holders.signed_in("alice")) == old
            wait_until(serves_again(history))

            operator.let_time_pass(A_DAY + 60)
            rows.run(
                "UPDATE sessions SET refreshed_at = refreshed_at - interval '10 minutes' WHERE id = %(id)s",
                id=holders.alice.id,
            )
            holders.use_everything(rows)
            assert kid_of(holders.alice) == new
            assert verified(holders.alice, cached_keys)["sub"] == holders.alice.user["id"]
            wait_until(serves_again(history))

            used = operator.keys("secret")[1]
            operator.run("keys", "remove", used["id"], status=3)
            operator.run("keys", "remove", old, status=3)
        deployment.check(history)

        operator.let_time_pass(2 * 3600)
        bob = holders.signed_in("bob")
        rows.run(
            "UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE id <> %(id)s"
            " AND id NOT IN (SELECT session_id FROM browser_sessions)",
            id=bob.id,
        )
        rows.run("UPDATE one_time_tokens SET code_expires_at = now() WHERE code_mac IS NOT NULL")
        rows.run("DELETE FROM recovery_codes")
        for id in (used["id"], old):
            operator.run("keys", "remove", id)
        time.sleep(KNOWN)
        assert holders.alice.get("/user").status_code == 401
        service.__exit__()
        service.start_again()
        assert session_of(client, refresh(client, bob.refresh_token)).get("/user").status_code == 200
        assert raised(holders.signed_in("frank"), holders.app, 1).claims["aal"] == "aal2"
        holders.look_at_the_account()
        wait_until(lambda: rows.count("outbox", "outcome IS NULL") == 0, 30)
        for posted in target.requests:
            Webhook(hook["secret"]).verify(posted.body, posted.headers)
        events = len(target.requests)
        assert events > 50
