"""Applications that sign users in by OpenID Connect, and what they are given. Rows are inserted as the API
writes them.
"""

import base64
import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import jwt

from tests.support.answers import A_SENTENCE
from tests.support.links import CHALLENGE, VERIFIER
from tests.support.tables import Rows
from tests.support.users import Person, Session

REDIRECT_URI = "https://app.example.com/callback"
RESOURCE = "https://api.example.com/"
GRANT_TYPES = ["authorization_code", "refresh_token"]


@dataclass(frozen=True)
class Client:
    """An application. `secret` is None for a public client."""

    id: str
    secret: str | None
    method: str = "client_secret_basic"

    @property
    def basic(self) -> dict[str, str]:
        encoded = base64.b64encode(f"{self.id}:{self.secret}".encode()).decode()
        return {"Authorization": f"Basic {encoded}"}

    def post(self, http: Any, path: str, **form: str) -> Any:
        """Send a form, authenticated by the registered method."""
        if self.method == "client_secret_basic":
            return http.post(path, data=form, headers=self.basic)
        own = {"client_id": self.id} | ({"client_secret": self.secret} if self.secret else {})
        return http.post(path, data=own | form)

    def redeem(self, http: Any, code: str, **form: str) -> Any:
        sent = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return self.post(
            http, "/oauth/token", **{name: value for name, value in (sent | form).items() if value}
        )

    def refresh(self, http: Any, refresh_token: str, **form: str) -> Any:
        sent = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return self.post(http, "/oauth/token", **sent, **form)


def make_client(database: Rows, **columns: Any) -> Client:
    """Insert a confidential client, or a public one with `token_endpoint_auth_method="none"`."""
    method = columns.setdefault("token_endpoint_auth_method", "client_secret_basic")
    secret = None if method == "none" else secrets.token_urlsafe(32)
    hashed = secret and hashlib.sha256(secret.encode()).digest()
    defaults = {"name": "An application", "redirect_uris": [REDIRECT_URI], "grant_types": GRANT_TYPES}
    row = defaults | columns | {"secret_hash": hashed}
    names = ", ".join(row)
    values = ", ".join(f"%({name})s" for name in row)
    inserted = f"INSERT INTO oauth_clients ({names}) VALUES ({values}) RETURNING id::text"
    return Client(database.value(inserted, **row), secret, method)


_GRANT = """
INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES (%(user_id)s, %(client_id)s, %(scopes)s)
ON CONFLICT ON CONSTRAINT oauth_grants_user_id_client_id_key DO UPDATE SET scopes = excluded.scopes
"""


def granted_code(
    database: Rows, client: Client, session: Session, scopes: str = "openid email", **columns: Any
) -> str:
    """Return a code that the user of a session has allowed, with a challenge unless that is None."""
    code = secrets.token_urlsafe(32)
    given = {"user_id": session.user["id"], "client_id": client.id, "scopes": scopes.split()}
    database.run(_GRANT, **given)
    row = {
        "id_hash": secrets.token_bytes(32),
        "browser_hash": secrets.token_bytes(32),
        "redirect_uri": REDIRECT_URI,
        "code_challenge": CHALLENGE,
        "session_id": session.id,
        "code_hash": hashlib.sha256(code.encode()).digest(),
        **given,
        **columns,
    }
    names, values = ", ".join(row), ", ".join(f"%({name})s" for name in row)
    database.run(
        f"INSERT INTO oauth_requests ({names}, expires_at, code_expires_at)"
        f" VALUES ({values}, now() + interval '10 minutes', now() + interval '5 minutes')",
        **row,
    )
    return code


def tokens_of(
    http: Any, database: Rows, client: Client, person: Person, scopes: str = "openid email", **columns: Any
) -> dict[str, Any]:
    """Return the token response of a client that a person has allowed."""
    code = granted_code(database, client, person.open_session(), scopes, **columns)
    response = client.redeem(http, code, redirect_uri=columns.get("redirect_uri", REDIRECT_URI))
    assert response.status_code == 200, response.text
    return response.json


def bearer(access_token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {access_token}"}


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a token, unverified."""
    return jwt.decode(token, options={"verify_signature": False})


def assert_refused(response: Any, error: str, status: int = 400, description: Any = A_SENTENCE) -> None:
    """Assert that a response is an error of RFC 6749."""
    found = (response.status_code, response.json["error"], response.json["error_description"])
    assert found == (status, error, description)
    assert response.headers["Cache-Control"] == "no-store"
