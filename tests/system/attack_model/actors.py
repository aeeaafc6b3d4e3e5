"""An owner and a thief of one user, who act through HTTP with what each of them has."""

import html
import json
import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from auth.core.tokens.one_time import hash_token
from tests.support import factors, passkeys, security_keys
from tests.support.authenticator import Authenticator, decode
from tests.support.factors import App
from tests.support.links import BROWSER, SITE, VERIFIER, Outbox, hand_in, press, type_in
from tests.support.oauth import Fakes
from tests.support.openid import answer, authorize_path, insert_public_client
from tests.support.server import Methods
from tests.support.tables import Rows
from tests.support.user_agent import UserAgent
from tests.support.users import Session, session_of, sign_in

# The user's sessions began as an administrator's: becoming one ends those from before.
LONG_AN_ADMINISTRATOR = "UPDATE users SET role = 'admin', admin_since = created_at"
# The columns that hold the times of a user, by table. Their rows move when time passes.
_TIMES = {
    "users": (
        "created_at",
        "first_factor_at",
        "converted_at",
        "email_change_sent_at",
        "phone_change_sent_at",
    ),
    "identities": ("created_at", "updated_at"),
    "sessions": (
        *("created_at", "refreshed_at", "counted_until", "ended_at", "reauthenticated_at"),
        *("factor_proved_at", "auth_time"),
    ),
    "oauth_grants": ("granted_at",),
    "api_keys": ("created_at", "expires_at"),
    "oauth_requests": ("created_at", "expires_at", "code_expires_at"),
    "factors": ("created_at", "verified_at", "last_used_at"),
    "factor_challenges": ("created_at", "expires_at"),
    "recovery_codes": ("created_at", "used_at"),
    "one_time_tokens": ("created_at", "expires_at", "code_expires_at", "spent_at"),
    "failure_counts": ("expires_at",),
    "known_networks": ("seen_at",),
    "outbox": ("created_at", "expires_at", "next_attempt_at"),
}
_ECHOES = """
UPDATE sessions
   SET echoes = (SELECT jsonb_object_agg(counter, (SELECT jsonb_object_agg(used, until::timestamptz - %(by)s::interval)
                                                     FROM jsonb_each_text(tokens) AS each (used, until)))
                   FROM jsonb_each(echoes) AS newest (counter, tokens))
 WHERE echoes IS NOT NULL
"""
_IS_RECENT = """
SELECT EXISTS (SELECT
                 FROM identities AS i
                 JOIN users AS u ON u.id = i.user_id
                WHERE u.id = %(id)s AND i.provider IN ('email', 'phone')
                  AND i.identity_data ->> i.provider = %(address)s
                  AND i.updated_at >= now() - interval '7 days'
                  AND i.updated_at > u.created_at + interval '1 microsecond')
"""
_STATE = """
SELECT u.email, u.phone, u.password_hash,
       ARRAY(SELECT provider || ' ' || subject FROM identities WHERE user_id = u.id ORDER BY 1) AS identities,
       ARRAY(SELECT id::text FROM factors WHERE user_id = u.id AND verified_at IS NOT NULL ORDER BY created_at) AS factors,
       ARRAY(SELECT id::text FROM factors WHERE user_id = u.id AND verified_at IS NULL AND factor_type = 'passkey'
              ORDER BY created_at) AS unused_passkeys,
       ARRAY(SELECT encode(code_mac, 'hex') FROM recovery_codes
              WHERE user_id = u.id AND used_at IS NULL ORDER BY 1) AS recovery_codes,
       ARRAY(SELECT client_id::text FROM oauth_grants WHERE user_id = u.id ORDER BY 1) AS grants,
       ARRAY(SELECT id::text FROM api_keys WHERE user_id = u.id ORDER BY 1) AS api_keys
  FROM users AS u
 WHERE u.id = %(id)s
"""
# Ways to sign in, except addresses, that are younger than seven days.
_ADDED = """
SELECT (SELECT count(*) FROM factors
         WHERE user_id = %(id)s AND verified_at > now() - interval '7 days')
     + (SELECT count(*) FROM identities
         WHERE user_id = %(id)s AND created_at > now() - interval '7 days' AND provider NOT IN ('email', 'phone'))
"""
_LINKS = """
SELECT target, token_hash, created_at
  FROM one_time_tokens AS t
 WHERE user_id = %(id)s AND purpose = 'undo' AND token_hash IS NOT NULL AND is_good_link(t)
"""


class Environment:
    """The service, its messages and its clock, and the user that the owner and the thief want."""

    def __init__(
        self, app: Any, rows: Rows, outbox: Outbox, fakes: Fakes, service_role: dict[str, str]
    ) -> None:
        self.app = app
        self.rows = rows
        self.outbox = outbox
        self.fakes = fakes
        self.service_role = service_role
        self.user_id = ""
        # An honest application and one of the thief's, by their ids.
        self.wiki = self.evil = ""

    def begin(self) -> None:
        self.rows.empty()
        self.wiki, self.evil = (insert_public_client(self.rows, name=name) for name in ("Wiki", "Evil"))

    def state(self) -> Any:
        """Return what signs the user in, and to which applications."""
        return self.rows.one(_STATE, id=self.user_id)

    def old_factors(self) -> set[str]:
        """Return the ids of the factors that are older than seven days."""
        condition = "user_id = %(id)s AND verified_at <= now() - interval '7 days'"
        return {
            row.id
            for row in self.rows.all(f"SELECT id::text FROM factors WHERE {condition}", id=self.user_id)
        }

    def old_grants(self) -> set[str]:
        """Return the ids of the applications that were allowed before the last seven days."""
        condition = "user_id = %(id)s AND granted_at <= now() - interval '7 days'"
        statement = f"SELECT client_id::text FROM oauth_grants WHERE {condition}"
        return {row.client_id for row in self.rows.all(statement, id=self.user_id)}

    def is_recent(self, address: str) -> bool:
        """Whether an address was added in the last seven days, so that a recovery to it removes nothing."""
        return self.rows.value(_IS_RECENT, id=self.user_id, address=address)

    def links(self) -> list[Any]:
        """Return the links of notices that work."""
        return self.rows.all(_LINKS, id=self.user_id)

    def assert_taken_back(self, address: str, earlier: list[Any]) -> None:
        """Assert that the user has an address and nothing else that opens the account at once, that the link has
        signed in nobody, and that the earlier links of notices still work, but no later one.
        """
        state = self.state()
        assert address in (state.email, state.phone), "the address has not come back"
        assert state.password_hash is None, "the password still works"
        assert not state.grants, "an application survives"
        assert not state.api_keys, "an API key survives"
        alive = "SELECT count(*) FROM sessions WHERE user_id = %(id)s AND ended_at IS NULL"
        assert self.rows.value(alive, id=self.user_id) == 0, "a session survives, or the link has opened one"
        pending = "user_id = %(id)s AND purpose <> 'undo' AND spent_at IS NULL AND expires_at > now()"
        pending = f"SELECT count(*) FROM one_time_tokens WHERE {pending}"
        assert self.rows.value(pending, id=self.user_id) == 0, "a link or code that was sent before works"
        assert self.rows.value(_ADDED, id=self.user_id) == 0, "what was added in seven days survives"
        working, working_before = (
            {bytes(each.token_hash) for each in links} for links in (self.links(), earlier)
        )
        assert working == working_before, "a later link still works, or an earlier one does not"

    def pass_time(self, **interval: float) -> None:
        moved = {
            table: ", ".join(f"{column} = {column} - %(by)s::interval" for column in columns)
            for table, columns in _TIMES.items()
        }
        by = " ".join(f"{amount} {unit}" for unit, amount in interval.items())
        self.rows.run("; ".join(f"UPDATE {table} SET {moves}" for table, moves in moved.items()), by=by)
        self.rows.run(_ECHOES, by=by)

    def pass_time_step(self) -> None:
        """Let 30 seconds pass for authenticator apps, whose codes work once."""
        self.rows.run("UPDATE factors SET last_step = NULL")


class Device(Methods):
    """A client in a network."""

    def __init__(self, client: Any, network: str) -> None:
        self.client = client
        self.network = network

    def open(self, path: str, method: str = "GET", headers: Any = None, **options: Any) -> Any:
        headers = {"X-Forwarded-For": self.network, **(headers or {})}
        response = self.client.open(path, method=method, headers=headers, **options)
        assert response.status_code < 500, response.text
        return response

    def set_cookie(self, name: str, value: str) -> None:
        self.client.set_cookie(name, value)


def _form(browser: UserAgent, **fields: str) -> dict[str, str]:
    form = next(form for form in browser.page.forms if fields.keys() <= form.fields.keys())
    return form.fields | fields


@dataclass
class Actor:
    """What the owner or the thief has. Each method does what it says as far as the service permits."""

    environment: Environment
    device: Device
    password: str | None = None
    # The addresses whose mail the person reads, and the numbers whose SMS.
    emails: list[str] = field(default_factory=list)
    phones: list[str] = field(default_factory=list)
    # The subjects of the person's accounts at providers, by provider.
    subjects: dict[str, str] = field(default_factory=dict)
    apps: list[App] = field(default_factory=list)
    keys: list[tuple[str, Authenticator]] = field(default_factory=list)
    passkeys: list[tuple[str, Authenticator]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    # Changes of an address that wait for a code: purpose, address and code.
    pending: list[tuple[str, str, str]] = field(default_factory=list)
    # What applications have: codes with their clients, and sessions with their access and refresh tokens.
    client_codes: list[tuple[str, str]] = field(default_factory=list)
    client_sessions: list[tuple[str, str, str]] = field(default_factory=list)
    # API keys by their ids, and their access tokens.
    api_keys: dict[str, str] = field(default_factory=dict)
    key_tokens: list[str] = field(default_factory=list)

    @property
    def factor_ids(self) -> list[str]:
        return [*(app.id for app in self.apps), *(id for id, _ in [*self.keys, *self.passkeys])]

    # Signing in.

    def ways(self) -> list[str]:
        """Return the ways by which the person could sign in."""
        state = self.environment.state()
        linked = [name for name, subject in self.subjects.items() if f"{name} {subject}" in state.identities]
        ways = {
            "password": self.password and (state.email or state.phone),
            "magiclink": state.email in self.emails,
            "recovery": state.email in self.emails,
            "sms": state.phone in self.phones,
            "provider": linked,
            "passkey": self.passkeys,
        }
        return [way for way, is_there in ways.items() if is_there]

    def enter(self, way: str) -> Session | None:
        """Sign in: at `aal2` with a passkey, else at `aal1`."""
        response = getattr(self, f"_by_{way}")()
        if response is None or response.status_code != 200 or "access_token" not in response.json:
            return None
        session = session_of(self.device, response)
        if session.user["id"] != self.environment.user_id:
            return None
        self.sessions.append(session)
        return session

    def _by_password(self) -> Any:
        user = self.environment.state()
        if not self.password or not (user.email or user.phone):
            return None
        if user.email:
            return sign_in(self.device, user.email, self.password)
        body = {"phone": user.phone, "password": self.password}
        return self.device.post("/token?grant_type=password", json=body)

    def _by_magiclink(self, path: str = "/magiclink", kind: str = "magiclink") -> Any:
        email = self.environment.state().email
        if email not in self.emails:
            return None
        self.device.post(
            path, json={"email": email, "create_user": False} if kind == "magiclink" else {"email": email}
        )
        messages = self.environment.outbox.sent(email, kind)
        return hand_in(self.device, kind, messages[-1].token) if messages else None

    def _by_recovery(self) -> Any:
        return self._by_magiclink("/recover", "recovery")

    def _by_sms(self) -> Any:
        phone = self.environment.state().phone
        if phone not in self.phones:
            return None
        self.device.post("/otp", json={"phone": phone, "create_user": False})
        messages = self.environment.outbox.sent(phone, "sms")
        return type_in(self.device, "sms", phone, messages[-1].code) if messages else None

    def _by_provider(self) -> Any:
        for provider in self.subjects:
            if f"{provider} {self.subjects[provider]}" in self.environment.state().identities:
                return self.hand_in_id_token(self.device, provider)
        return None

    def hand_in_id_token(self, client: Any, provider: str, **members: Any) -> Any:
        # Each id_token works once.
        token = getattr(self.environment.fakes, provider).id_token(
            sub=self.subjects[provider], jti=self.unique()
        )
        return client.post(
            "/token?grant_type=id_token", json={"provider": provider, "id_token": token, **members}
        )

    def unique(self) -> str:
        return str(self.environment.rows.value("SELECT gen_random_uuid()"))

    def _by_passkey(self) -> Any:
        for _, authenticator in self.passkeys:
            response = passkeys.sign_in_response(self.device, authenticator)
            if response.status_code == 200:
                return response
        return None

    def refresh(self, session: Session) -> Session | None:
        response = session.on(self.device).refresh()
        return session_of(self.device, response) if response.status_code == 200 else None

    def step_up(self, session: Session, *, with_codes: bool = True) -> Session | None:
        """Raise a session to `aal2`."""
        return session if session.claims["aal"] == "aal2" else self._verify(session, with_codes=with_codes)

    def _verify(self, session: Session, *, with_codes: bool = True) -> Session | None:
        self.environment.pass_time_step()
        responses = [self._verify_app, self._verify_key, self._verify_passkey]
        for verify in [*responses, self._verify_recovery_code] if with_codes else responses:
            response = verify(session)
            if response is not None and response.status_code == 200:
                raised = session_of(session.client, response)
                self.sessions = [raised if each is session else each for each in self.sessions]
                return raised
        return None

    def _verify_app(self, session: Session) -> Any:
        return self._first(self._challenged(session, app) for app in self.apps)

    def _challenged(self, session: Session, app: App) -> Any:
        challenge = session.post(f"/factors/{app.id}/challenge")
        if challenge.status_code != 200:
            return challenge
        return factors.verify(session, app, challenge_id=challenge.json["id"])

    def _verify_key(self, session: Session) -> Any:
        factors = self.environment.state().factors
        return self._first(security_keys.verify(session, id, key) for id, key in self.keys if id in factors)

    def _verify_passkey(self, session: Session) -> Any:
        return self._first(
            session.post("/reauthenticate", json=passkeys.assertion(session.client, authenticator))
            for _, authenticator in self.passkeys
        )

    def _verify_recovery_code(self, session: Session) -> Any:
        def use(code: str) -> Any:
            response = session.post("/factors/recovery-codes/verify", json={"code": code})
            if response.status_code == 200:
                self.codes.remove(code)
            return response

        return self._first(use(code) for code in list(self.codes[:2]))

    @staticmethod
    def _first(responses: Any) -> Any:
        """Return the first response that is 200, or None."""
        return next((response for response in responses if response.status_code == 200), None)

    def prove(self, session: Session) -> bool:
        """Give a proof in a session: a factor after the second step, else one that does not raise it."""
        if session.get("/user").status_code != 200:
            return False
        if session.claims["aal"] == "aal2" and self._verify(session):
            return True
        self.environment.pass_time_step()
        bodies: list[dict[str, str]] = [{"current_password": self.password}] if self.password else []
        bodies += [{"factor_code": app.code()} for app in self.apps]
        if any(session.post("/reauthenticate", json=body).status_code == 200 for body in bodies):
            return True
        user = self.environment.state()
        address = user.email or user.phone
        if address not in [*self.emails, *self.phones] or session.get("/reauthenticate").status_code != 200:
            return False
        code = self.environment.outbox.last(address, "reauthentication").code
        return session.post("/reauthenticate", json={"nonce": code}).status_code == 200

    def send(self, session: Session, method: str, path: str, **body: Any) -> Any:
        """Send a request, and once more after a proof if it asks for one."""
        response = session.client.open(path, method, headers=session.authorization, json=body)
        is_asked = response.status_code == 400 and response.json["error_code"] == "reauthentication_needed"
        if is_asked and self.prove(session):
            response = session.client.open(path, method, headers=session.authorization, json=body)
        return response

    # Changes.

    def change_password(self, session: Session) -> Any:
        password = f"Horse-{self.unique()}"
        response = self.send(session, "PUT", "/user", password=password)
        if response.status_code == 200:
            self.password = password
        return response

    def change_address(self, session: Session, kind: str, address: str, *, confirms: bool = True) -> None:
        self.send(session, "PUT", "/user", **{kind: address})
        if messages := self.environment.outbox.sent(address, f"{kind}_change"):
            self.pending.append((f"{kind}_change", address, messages[-1].code))
        if confirms:
            self.confirm_changes()

    def confirm_changes(self) -> None:
        for change in self.pending:
            if self._keep(type_in(self.device, *change)):
                addresses = self.emails if change[0] == "email_change" else self.phones
                addresses += [change[1]] if change[1] not in addresses else []
        self.pending = []

    def remove_address(self, session: Session, kind: str) -> None:
        session.remove_identity(kind)

    def remove_recent(self, session: Session, kept: set[str]) -> Any:
        """Remove recent additions, except the kept ones: ids of factors, and labels."""
        recent = session.get("/user/recent_changes")
        if recent.status_code != 200:
            return recent
        ids = [each["id"] for each in recent.json["recent_changes"] if not {each["id"], each["label"]} & kept]
        return self.send(session, "PUT", "/user", remove=ids) if ids else recent

    def remove_factor(self, session: Session, id: str) -> None:
        for kind in ("factors", "passkeys"):
            self.send(session, "DELETE", f"/{kind}/{id}")

    def enrol_app(self, session: Session) -> None:
        response = self.send(session, "POST", "/factors", factor_type="totp", friendly_name=self.unique())
        if response.status_code != 200:
            return
        app = App(response.json["id"], response.json["totp"]["secret"])
        if self._keep(self._challenged(session, app), session):
            self.apps.append(app)

    def enrol_key(self, session: Session) -> None:
        response = self.send(session, "POST", "/factors", factor_type="webauthn", friendly_name=self.unique())
        if response.status_code != 200:
            return
        key = Authenticator(is_verified=False)
        if self._keep(security_keys.verify(session, response.json["id"], key), session):
            self.keys.append((response.json["id"], key))

    def _keep(self, response: Any, session: Session | None = None) -> bool:
        """Keep the session of a token response instead of its older tokens."""
        if response.status_code != 200:
            return False
        if "access_token" in response.json:
            self.sessions = [each for each in self.sessions if each is not session]
            self.sessions.append(session_of(self.device, response))
        return True

    def register_passkey(self, session: Session, **options: str) -> None:
        """Register a passkey. One for the mediation `conditional` is no factor until its first use."""
        begun = self.send(session, "POST", "/passkeys/registration/options", **options)
        if begun.status_code != 200:
            return
        authenticator = Authenticator(is_verified=not options)
        credential = authenticator.create(begun.json["options"])
        authenticator.is_verified = True
        body = {"challenge_id": begun.json["challenge_id"], "credential": credential}
        response = session.post("/passkeys/registration/verify", json=body)
        if response.status_code == 200:
            self.passkeys.append((response.json["id"], authenticator))

    def make_codes(self, session: Session) -> None:
        for path in ("/factors/recovery-codes", "/factors/recovery-codes/regenerate"):
            response = self.send(session, "POST", path)
            if response.status_code == 200:
                self.codes = response.json["codes"]
                return

    def link(self, session: Session, provider: str) -> None:
        self.prove(session)
        self._keep(self.hand_in_id_token(session, provider, link_identity=True), session)

    def unlink(self, session: Session, but: Container[str] = ()) -> None:
        """Unlink all providers except those in `but`."""
        identities = session.get("/user").json.get("identities") or []
        for identity in identities:
            if identity["provider"] not in but:
                self.send(session, "DELETE", f"/user/identities/{identity['id']}")

    # Applications.

    def allow(self, session: Session, client_id: str, *, redeems: bool = False) -> None:
        """Allow an application, which gets a code, and perhaps redeems it at once."""
        sign_in_page = self.device.get(authorize_path(client_id))
        request = f"/oauth/authorizations/{sign_in_page.location.partition('authorization_id=')[2]}"
        for response in (
            session.get(request),
            session.post(f"{request}/consent", json={"action": "approve"}),
        ):
            url = response.json.get("redirect_url", "") if response.status_code == 200 else ""
            # Anonymous users are led back without a code.
            if url.startswith(SITE):
                response_with_code = self.device.get(url.removeprefix(SITE))
                self.client_codes.append((client_id, answer(response_with_code.location)["code"]))
        if redeems:
            self.redeem()

    def redeem(self) -> None:
        """Have the applications redeem their codes."""
        for client_id, code in self.client_codes:
            body = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
            response = self.device.post("/oauth/token", json=body | {"client_id": client_id})
            if response.status_code == 200:
                tokens = response.json["access_token"], response.json["refresh_token"]
                self.client_sessions.append((client_id, *tokens))
        self.client_codes = []

    def serves_application(self) -> bool:
        """Whether a token or code of an application is good for anything."""
        self.redeem()
        for client_id, access_token, refresh_token in self.client_sessions:
            body = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": client_id}
            headers = {"Authorization": f"Bearer {access_token}"}
            userinfo = self.device.get("/oauth/userinfo", headers=headers)
            if 200 in (userinfo.status_code, self.device.post("/oauth/token", json=body).status_code):
                return True
        return False

    def make_key(self, session: Session) -> None:
        response = self.send(session, "POST", "/user/api_keys", name=self.unique())
        if response.status_code == 201:
            self.api_keys[response.json["id"]] = response.json["key"]
            self.use_keys()

    def use_keys(self) -> bool:
        """Get access tokens for the API keys, and return whether one of these, or an older one, is accepted."""
        for key in self.api_keys.values():
            response = self.device.post("/token?grant_type=api_key", json={"api_key": key})
            if response.status_code == 200:
                self.key_tokens.append(response.json["access_token"])
        headers = ({"Authorization": f"Bearer {token}"} for token in self.key_tokens)
        return any(self.device.get("/user", headers=each).status_code == 200 for each in headers)

    def remove_keys(self, session: Session) -> None:
        """Remove the API keys that this person did not make."""
        response = session.get("/user/api_keys")
        for key in response.json if response.status_code == 200 else ():
            if key["id"] not in self.api_keys:
                session.delete(f"/user/api_keys/{key['id']}")

    def withdraw(self, session: Session, client_id: str) -> None:
        session.delete(f"/user/oauth/grants?client_id={client_id}")

    # On the pages.

    def browse(self, way: str) -> UserAgent | None:
        """Sign a browser in on our pages, by the password or a mailed recovery."""
        client = self.environment.app.test_client(use_cookies=False)
        client.environ_base["HTTP_X_FORWARDED_FOR"] = self.device.network
        browser, user = UserAgent({SITE: client}), self.environment.state()
        if way == "password":
            browser.visit(f"{SITE}/sign-in")
            address = user.email or user.phone
            browser.post(f"{SITE}/sign-in", _form(browser, email=address or "", password=self.password or ""))
        elif user.email in self.emails:
            self.device.post("/recover", json={"email": user.email, "redirect_to": f"{SITE}/new-password"})
            token = self.environment.outbox.last(user.email, "recovery").token
            browser.visit(f"{SITE}/verify?type=recovery&token={token}")
            browser.submit()
        return browser if browser.cookie("latchkey") else None

    def submit_all(self, browser: UserAgent, path: str) -> None:
        """Fill in and submit each form of a page."""
        browser.visit(f"{SITE}/{path}")
        for form in browser.page.forms:
            for target in (form.action, *form.targets):
                if "sign-out" not in target:
                    fields = {name: self._typed(name, value) for name, value in form.fields.items()}
                    browser.post(urljoin(f"{SITE}/{path}", target), fields)

    def _typed(self, name: str, value: str) -> str:
        values = {"email": self.emails[0], "phone": self.phones[0], "current_password": self.password or ""}
        values["name"] = "Thief"
        return value or values.get(name, "Another-Horse-1" if "password" in name else "")

    # "This wasn't me".

    def undo(self, token: str) -> bool:
        """Press the button of a notice's link, with a factor if it asks for one, and return whether it works."""
        links, messages_before = self.environment.links(), self.environment.outbox.sent()
        if not self._press_with_factors(token):
            return False
        link = next(each for each in links if bytes(each.token_hash) == hash_token(token))
        earlier = [each for each in links if each.created_at <= link.created_at and each is not link]
        self.environment.assert_taken_back(link.target, earlier)
        notices = self.environment.outbox.sent()[len(messages_before) :]
        assert not any(message.token for message in notices), "a notice of taking back has a link"
        return True

    def _press_with_factors(self, token: str) -> bool:
        self.environment.pass_time_step()
        codes = [app.code() for app in self.apps] + self.codes[:1]
        answers = ({}, *({"factor_code": code} for code in codes))
        if any(self._pressed(token, **fields) for fields in answers):
            return True
        return any(self._undo_with(token, key) for _, key in [*self.passkeys, *self.keys])

    def _undo_with(self, token: str, authenticator: Authenticator) -> bool:
        page = self.device.get(f"/verify?type=undo&token={token}", headers=BROWSER).text
        options, challenge = (
            re.search(pattern, page)
            for pattern in ('data-options="([^"]*)"', 'name="challenge_id" value="([^"]*)"')
        )
        if not options or not challenge:
            return False
        request_options = json.loads(html.unescape(options[1]))
        if authenticator.passkeys[0].id not in {
            decode(each["id"]) for each in request_options.get("allowCredentials", [])
        }:
            return False
        credential = json.dumps(authenticator.get(request_options, authenticator.passkeys[0]))
        fields = {"challenge_id": challenge[1], "credential": credential}
        return self._pressed(token, **fields)

    def _pressed(self, token: str, **fields: str) -> bool:
        response = press(self.device, "undo", token, **fields)
        return response.status_code == 303 and "error" not in response.location
