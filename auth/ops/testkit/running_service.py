"""The operations of tests on a test service."""

import itertools
import json
import secrets
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyotp
from psycopg2.extras import Json
from werkzeug.test import TestResponse

from auth.core.factors import totp
from auth.core.net.webhook_urls import EVENTS, new_secret
from auth.core.sender import EVENT_CHANNEL, RenderedMessage, Sender
from auth.core.tokens import one_time
from auth.core.tokens.access_tokens import Caller
from auth.delivery.deliverer import Deliverer
from auth.delivery.senders import channels
from auth.extensions.hooks.message_hooks import HookSender
from auth.extensions.webhooks import events
from auth.flows.factors.factors import NO_CREDENTIAL
from auth.flows.organizations import is_on
from auth.flows.sessions.issuing import IssuedSession, about_new, about_own
from auth.flows.sessions.token_response import SignInProof, open_session, raise_session, tokens
from auth.html.forms import SESSION
from auth.ops.testkit import FAILURES, Refused
from auth.ops.testkit.databases import KitDatabase
from auth.ops.testkit.process import Process
from auth.registry import TokenHook
from auth.web import current_g
from auth.web.asked import Asked
from auth.web.context import EXTENSION, Latchkey
from auth.web.errors import ERRORS
from sql import acts, queries

_numbers = itertools.count(1)


class _Captured(Sender):
    def __init__(self, messages: list[dict[str, object]]) -> None:
        self._messages = messages

    def send(self, recipient: str, message: RenderedMessage) -> str:
        members = ("kind", "subject", "text", "html", "link", "code")
        self._messages.append({"to": recipient} | {name: getattr(message, name) for name in members})
        return "captured"


class Service:
    """Create it in the main thread, like its processes."""

    def __init__(
        self, state_dir: Path, database: KitDatabase, variables: dict[str, str], captures: str
    ) -> None:
        """`captures` is the URL to which webhooks and hooks are sent."""
        self._failures = state_dir / FAILURES
        self._failures.mkdir(parents=True)
        self._hook_secret = new_secret()
        self.process = Process(state_dir, database.url, variables, f"{captures}/hooks", self._hook_secret)
        self._database, self._captures = database, captures
        self._messages: list[dict[str, object]] = []
        self._events: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._answers: dict[str, Any] = {}
        self._delivery_lock = threading.Lock()

    def wait(self) -> dict[str, Any]:
        """Wait until the service answers, and return the data for its client. Raises `Refused`."""
        self._app = self.process.wait()
        self._parts: Latchkey = self._app.extensions[EXTENSION]
        key = self._parts.settings.service_role_key[0]
        self._client, self._authorization = self._app.test_client(), {"Authorization": f"Bearer {key}"}
        db, sealer = self._parts.db, self._parts.sealer
        captured = _Captured(self._messages)
        senders: dict[str, Sender] = {"email": captured, "sms": captured}
        by_channel = channels.senders(self._parts.settings, db, sealer)
        senders |= {name: sender for name, sender in by_channel.items() if isinstance(sender, HookSender)}
        senders[EVENT_CHANNEL] = events.EventSender(db, sealer, private_networks=True)
        self._deliverer = Deliverer(self._parts.settings, db, sealer, senders)
        webhook = self._post("/admin/webhooks", {"url": f"{self._captures}/webhooks", "events": EVENTS})
        self._webhook_id = webhook["id"]
        return {
            "url": self._parts.settings.base_url,
            "service_role_key": key,
            "webhook_secret": webhook["secret"],
            "hook_secret": self._hook_secret,
        }

    def user(
        self,
        factors: list[str] | None = None,
        confirmed: bool = True,
        anonymous: bool = False,
        **body: object,
    ) -> dict[str, Any]:
        """Create a user, as POST /admin/users does."""
        if anonymous:
            metadata = [Json(body.get(name) or {}) for name in ("user_metadata", "app_metadata")]
            return {"id": self._call("anonymous_user", *metadata)[0][0]}
        body = {name: value for name, value in body.items() if value is not None}
        if not body.keys() & {"email", "phone"}:
            body["email"] = f"user-{next(_numbers)}@example.com"
        # This password passes every policy.
        body.setdefault("password", f"Aa1!{secrets.token_urlsafe(12)}")
        user = self._post(
            "/auth/v1/admin/users", body | {"email_confirm": confirmed, "phone_confirm": confirmed}
        )
        for factor in factors or []:
            if factor != "totp":
                raise Refused(f"factors: {factor} is not totp")
            id = str(uuid.uuid4())
            own: dict[str, Any] = {"id": id, "user_id": user["id"], "by_key": False}
            new = own | {"factor_type": factor, "friendly_name": ""}
            with acts.on(self._parts.db, user["id"]) as act:
                queries.insert_factor(act, **new, secret=self._parts.sealer.seal(totp.new_secret(), id))
                queries.activate_factor(act, **own, **NO_CREDENTIAL)
        return {name: body.get(name) for name in ("email", "phone", "password")} | {"id": user["id"]}

    def users(self, count: int) -> list[dict[str, Any]]:
        """Create many users with confirmed emails and one password."""
        password = f"Aa1!{secrets.token_urlsafe(12)}"
        rows = self._call("users", count, self._parts.passwords.hash(password))
        return [{"id": id, "email": email, "password": password} for id, email in rows]

    def organization(
        self, name: str, owner: str | None = None, members: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Create an organization of an owner, with roles of other users by their ids."""
        if not is_on(self._parts.settings):
            raise Refused("AUTH_ORGANIZATIONS is off. Set it to users or admins to have organizations")
        body = {"name": name} | ({"owner": owner} if owner else {})
        organization = self._post("/organizations", body)
        for user_id, role in dict(members or {}).items():
            self.member(organization["id"], user_id, role)
        return {member: organization[member] for member in ("id", "slug", "name")}

    def member(self, organization_id: str, user_id: str, role: str | None) -> None:
        """Give a user a role in an organization, or remove the user if it is None."""
        path = f"/organizations/{quote(organization_id, '')}/members/{quote(user_id, '')}"
        if role is None:
            self._send("DELETE", path)
        else:
            self._send("PUT", path, {"role": role})

    def token(
        self,
        user_id: str,
        aal: str | None = None,
        expires_in: int | None = None,
        claims: dict[str, object] | None = None,
    ) -> dict[str, Any]:
        """Open a session, and return its token response."""
        with self._asking() as asked:
            response = tokens(self._parts, self._open_session(asked, user_id, aal, self._parts.token_hook))
        if expires_in is None and not claims:
            return response
        access_tokens = self._parts.access_tokens
        signed = access_tokens.claims(response["access_token"])
        if expires_in is not None:
            signed["exp"] = int(time.time()) + expires_in
            signed["iat"] = min(signed["iat"], signed["exp"] - 1)
            response |= {"expires_in": expires_in, "expires_at": signed["exp"]}
        signed = {name: value for name, value in (signed | (claims or {})).items() if value is not None}
        return response | {"access_token": access_tokens.sign(signed)}

    def cookies(self, user_id: str, aal: str | None = None) -> list[dict[str, Any]]:
        """Sign a browser in on our pages, and return its cookie as Playwright takes it."""
        with self._asking() as asked:
            session, token = self._open_session(asked, user_id, aal, None), one_time.new_token()
        queries.insert_browser_session(
            self._parts.db, token_hash=one_time.hash_token(token), session_id=session.session_id
        )
        url = self._parts.settings.base_url
        has_tls = url.startswith("https:")
        name = f"__Host-{SESSION}" if has_tls else SESSION
        cookie = {"name": name, "value": token, "url": url, "httpOnly": True, "secure": has_tls}
        return [cookie | {"sameSite": "Lax"}]

    def totp(self, user_id: str) -> str:
        """Return a code that the user's factor accepts."""
        factors = queries.list_totp_factors(self._parts.db, user_id=user_id, verified_before=None)
        if not factors:
            raise Refused("This user has no authenticator app: create it with factors=['totp']")
        self._call("forget_totp_step", user_id)
        return pyotp.TOTP(self._parts.sealer.open(bytes(factors[0].secret), factors[0].id)).now()

    def inbox(self, to: str | None = None, wait: float = 0) -> list[dict[str, object]]:
        """Deliver, and return the messages to an address, oldest first; wait until there is one."""
        deadline = time.monotonic() + wait
        while True:
            self._deliver()
            messages = [message for message in self._messages if to in (None, message["to"])]
            if messages or time.monotonic() > deadline:
                return messages
            time.sleep(0.05)

    def webhooks(self) -> list[dict[str, Any]]:
        """Deliver, and return the events."""
        self._deliver()
        return self._events

    def hooks(self) -> list[dict[str, Any]]:
        return self._calls

    def answer(self, hook: str, body: object, status: int = 200) -> None:
        """Set the answer of a captured hook until the next reset."""
        self._answers[hook] = (status, body)

    def capture(self, path: str, headers: dict[str, str], text: str) -> tuple[int, Any]:
        """Keep a request of the service, and return the response."""
        kind, _, hook = path.partition("/")
        body = json.loads(text)
        request = {"headers": headers, "text": text, "body": body}
        if kind == "webhooks":
            self._events.append(request)
            return 200, {}
        self._calls.append({"hook": hook} | request)
        default = {"claims": body["claims"]} if hook == "customize-access-token" else {}
        return self._answers.get(hook, (200, default))

    def fail(self, request: str, status: int = 503, times: int = 1) -> None:
        """Fail the next requests that match, such as `POST /signup`."""
        # The most general errors have neither a dot nor values.
        keys = (
            key for key, (of, text) in ERRORS.items() if of == status and "." not in key and "{" not in text
        )
        key = "unexpected_failure" if status == 500 else next(keys, None)
        if key is None:
            raise Refused(f"The service has no error with the status {status}")
        pattern = "POST /token[?]grant_type=refresh_token" if request == "refresh" else request
        for _ in range(times):
            draft = self._failures.with_name("failure")
            draft.write_text(json.dumps({"request": pattern, "key": key}))
            draft.rename(self._failures / f"{next(_numbers):09}")

    def age(self, user_id: str, seconds: float) -> None:
        """Let time pass for a user's data."""
        self._deliver()  # in production, messages would have been sent meanwhile
        self._call("age", user_id, seconds)

    def reset(self) -> None:
        """Remove all users, messages and captured requests."""
        with self._delivery_lock:
            self._call("reset", self._webhook_id)
            for captured in (self._messages, self._events, self._calls, self._answers):
                captured.clear()
        for path in self._failures.iterdir():
            path.unlink(missing_ok=True)

    def _deliver(self) -> None:
        with self._delivery_lock:
            self._call("make_due")
            self._deliverer.deliver_due()

    @contextmanager
    def _asking(self) -> Iterator[Asked]:
        with self._app.app_context():
            g = current_g()
            # Hooks read the client there.
            g.client = {"ip": "127.0.0.1", "network": "127.0.0.1", "user_agent": "test"}
            yield Asked(self._parts, g.client, g.actor, noted=g)

    def _open_session(
        self, asked: Asked, user_id: str, aal: str | None, hook: TokenHook | None = None
    ) -> IssuedSession:
        issue = about_new(asked, hook, user_id, "password") if hook else None
        with acts.on(self._parts.db, user_id) as act:
            person = act.read(queries.select_person, user_id=user_id, session_id=None)
            if person is None:
                raise Refused("This user does not exist")
            proof = SignInProof(method="password", without_notice=frozenset({person.email, person.phone}))
            session = open_session(asked, act, person, proof, issue)
        if not (aal == "aal2" or (aal is None and session.lacks_step)):
            return session
        asked = replace(asked, user=Caller(user_id, session.session_id, None, session.aal))
        issue = about_own(asked, hook, "totp") if hook else None
        with acts.on(self._parts.db, user_id) as act:
            factors = queries.list_totp_factors(act, user_id=user_id, verified_before=None)
            factor_id = factors[0].id if factors else None
            return raise_session(asked, act, user_id, session.session_id, "totp", factor_id, issue)

    def _post(self, path: str, body: object) -> dict[str, Any]:
        return self._send("POST", path, body).get_json()

    def _send(self, method: str, path: str, body: object = None) -> TestResponse:
        response = self._client.open(path, method=method, json=body, headers=self._authorization)
        if response.status_code >= 400:
            raise Refused(response.get_data(as_text=True).strip())
        return response

    def _call(self, function: str, *arguments: object) -> list[Any]:
        with self._database.connection.cursor() as cursor:
            cursor.callproc(f"latchkey_test.{function}", arguments)
            return cursor.fetchall()
