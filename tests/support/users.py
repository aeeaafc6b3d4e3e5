"""Users of the tests, and their sessions."""

import base64
import json
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_letters
from typing import Any

from flask.testing import FlaskClient

from auth.flows.sessions import token_response
from auth.web.asked import Asked
from auth.web.context import EXTENSION, Latchkey
from sql import acts, queries
from tests.support.server import Methods

PASSWORD, NEW_PASSWORD, WRONG_PASSWORD = "Correct-Horse-1", "Another-Horse-1", "Wrong-Horse-1"
# Alice has signed up, Dave has not, and Mallory attacks.
ALICE, DAVE, MALLORY = "alice@example.com", "dave@example.com", "mallory@evil.example"
NEW_EMAIL, MALLORYS_PASSWORD = "new@example.com", "Mallorys-Horse-1"
# 8 KiB as JSON, the most that a user may have of each kind. Random, or a cookie would be compressed.
LARGEST_METADATA = {"x": "".join(random.Random(0).choices(ascii_letters, k=8192 - len('{"x": ""}')))}
# Hashes of `PASSWORD` by their cost.
_hashes: dict[int, str] = {}


def issue_token(
    app: Any,
    user: Mapping[str, Any],
    session_id: str,
    issued_at: int,
    aal: str = "aal1",
    *,
    lacks_step: bool = False,
) -> str:
    """Return an access token that an application signs."""
    tokens = app.extensions[EXTENSION].access_tokens
    claims = tokens.compose(user, issued_at, {"session_id": session_id, "aal": aal, "amr": []})
    return str(tokens.sign(tokens.restricted(claims) if lacks_step else claims))


@dataclass(frozen=True)
class Session(Methods):
    """One session, such as that of a laptop, with its tokens."""

    client: Any
    access_token: str
    refresh_token: str
    user: dict[str, Any]

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.access_token}"}

    @property
    def claims(self) -> dict[str, Any]:
        """The claims of the access token, unverified."""
        payload = self.access_token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=="))

    @property
    def id(self) -> str:
        return self.claims["session_id"]

    def open(self, path: str, method: str = "GET", **options: Any) -> Any:
        return self.client.open(path, method=method, headers=self.authorization, **options)

    def prepared(self) -> "Session":
        """Return the session; in an administrator's, record a code of the mailbox, which the first factor needs."""
        if self.user.get("role") == "admin" and isinstance(self.client, FlaskClient):
            parts: Latchkey = self.client.application.extensions[EXTENSION]
            with acts.on(parts.db, self.user["id"]) as act:
                act.read(queries.select_person, user_id=self.user["id"], session_id=self.id)
                by_code = {"is_by_code": True, "is_by_factor": False}
                queries.record_reauthentication(act, session_id=self.id, **by_code)
        return self

    def remove_identity(self, provider: str, **proof: str) -> Any:
        """Ask to remove the identity of a provider, `email` or `phone`. Sends a random id if the user has none."""
        identities = self.get("/user").json.get("identities", [])
        ids = {each["provider"]: each["id"] for each in identities}
        return self.delete(f"/user/identities/{ids.get(provider, uuid.uuid4())}", json=proof)

    def refresh(self) -> Any:
        """Send the refresh token; may be repeated."""
        return refresh(self.client, self.refresh_token)

    def refreshed(self) -> "Session":
        """Refresh, and return the session with its new tokens."""
        return session_of(self.client, self.refresh())

    def on(self, client: Any) -> "Session":
        """Return the same session for requests to another application."""
        return Session(client, self.access_token, self.refresh_token, self.user)


@dataclass(frozen=True)
class Person:
    """A person with a user."""

    client: Any
    id: str
    email: str

    def try_to_sign_in(self, password: str = PASSWORD, client: Any = None) -> Any:
        return sign_in(client or self.client, self.email, password)

    def sign_in(self, password: str = PASSWORD, client: Any = None) -> Session:
        """Sign in and return the session."""
        return session_of(client or self.client, self.try_to_sign_in(password, client))

    def open_session(self, client: Any = None) -> Session:
        """Open a session in the application's database, a quarter of the cost of a sign-in, and return it."""
        client = client or self.client
        parts: Latchkey = client.application.extensions[EXTENSION]
        ip, user_agent = _origin(client)
        asked = Asked(parts, {"ip": ip, "network": ip, "user_agent": user_agent}, "anonymous")
        proof = token_response.SignInProof(method="password", without_notice=frozenset({self.email}))
        with acts.on(parts.db, self.id) as act:
            person = act.read(queries.select_person, user_id=self.id, session_id=None)
            assert person is not None
            session = token_response.open_session(asked, act, person, proof)
        user = json.loads(session.user_object)
        issued = token_response.tokens(parts, session)
        return Session(client, issued["access_token"], issued["refresh_token"], user)


def register(client: Any, service_role: dict[str, str], email: str, role: str | None = None) -> Person:
    """Create a confirmed user as an administrator, and return the person.

    An application in this process is spared the request: half of all requests of the tests would be these.
    """
    if isinstance(client, FlaskClient):
        return Person(client, _insert(client, email, role or "authenticated"), email)
    body = {"email": email, "password": PASSWORD, "email_confirm": True, "role": role}
    response = client.post("/admin/users", json=body, headers=service_role)
    assert response.status_code == 200, response.text
    return Person(client, response.json["id"], email)


# Inserts a user as POST /admin/users does.
_INSERT = """PREPARE insert_person (text, text, text, text, text) AS
WITH made AS (
  INSERT INTO users (email, email_confirmed_at, email_proved, password_hash, role, admin_since, made_by,
                     password_vouched)
  VALUES ($1, now(), true, $2, $3, CASE WHEN $3 = 'admin' THEN now() END, 'administrator', true)
  RETURNING id, email, role
), identity AS (
  INSERT INTO identities (user_id, provider, subject, identity_data)
  SELECT id, 'email', id, jsonb_build_object('sub', id, 'email', email) FROM made
)
SELECT id,
       record_acts_at(now(), jsonb_build_object('actor', 'service_role', 'ip', $4, 'network', $4, 'user_agent', $5,
                                      'request_id', gen_random_uuid()),
                   id, email, '{user_created}', '{user.created}',
                   jsonb_build_object('by', 'administrator', 'role', role))
  FROM made"""


def _insert(client: FlaskClient, email: str, role: str) -> str:
    parts: Latchkey = client.application.extensions[EXTENSION]
    with parts.db.pool.connection() as connection, connection.cursor() as cursor:
        if "insert_person" not in connection.prepared:
            cursor.execute(_INSERT)
            connection.prepared.add("insert_person")
        values = (email, _password_hash(parts), role, *_origin(client))
        cursor.execute("EXECUTE insert_person (%s, %s, %s, %s, %s)", values)
        ((user_id, _),) = cursor.fetchall()
        return str(user_id)


def _origin(client: FlaskClient) -> tuple[str, str]:
    """Return the address and the user agent of a client."""
    return client.environ_base["REMOTE_ADDR"], client.environ_base["HTTP_USER_AGENT"]


def _password_hash(parts: Latchkey) -> str:
    cost = parts.settings.bcrypt_cost
    if cost not in _hashes:
        _hashes[cost] = parts.passwords.hash(PASSWORD)
    return _hashes[cost]


def sign_in(client: Any, email: str, password: str = PASSWORD) -> Any:
    return client.post("/token?grant_type=password", json={"email": email, "password": password})


def sign_up_anonymously(client: Any) -> Session:
    return session_of(client, client.post("/signup", json={}), status=201)


def refresh(client: Any, refresh_token: str) -> Any:
    return client.post("/token?grant_type=refresh_token", json={"refresh_token": refresh_token})


def session_of(client: Any, response: Any, status: int = 200) -> Session:
    """Return the session of a token response."""
    assert response.status_code == status, response.get_data(as_text=True)
    body = response.get_json()
    return Session(client, body["access_token"], body["refresh_token"], body["user"])
