"""Applications that sign users in by OpenID Connect, their requests, and what they are given. Rows are
inserted as the API writes them.
"""

import base64
import hashlib
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt

from tests.support.answers import A_SENTENCE
from tests.support.environment import BASE_URL
from tests.support.links import CHALLENGE, VERIFIER
from tests.support.tables import Rows
from tests.support.users import Person, Session

REDIRECT_URI = "https://grafana.example.com/login/generic_oauth"
RESOURCE = "https://api.example.com/"
USERINFO = f"{BASE_URL}/oauth/userinfo"  # the audience of tokens for no other resource
GRANT_TYPES = ["authorization_code", "refresh_token"]
SCOPES = ["openid", "email"]


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
        credentials = {"client_id": self.id} | ({"client_secret": self.secret} if self.secret else {})
        return http.post(path, data=credentials | form)

    def redeem(self, http: Any, code: str, **form: str) -> Any:
        usual = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return self.post(
            http, "/oauth/token", **{name: value for name, value in (usual | form).items() if value}
        )

    def refresh(self, http: Any, refresh_token: str, **form: str) -> Any:
        usual = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return self.post(http, "/oauth/token", **usual, **form)


def make_client(database: Rows, redirect_uri: str = REDIRECT_URI, **columns: Any) -> Client:
    """Insert a confidential client, or a public one with `token_endpoint_auth_method="none"`."""
    method = columns.setdefault("token_endpoint_auth_method", "client_secret_basic")
    secret = None if method == "none" else secrets.token_urlsafe(32)
    hashed = secret and hashlib.sha256(secret.encode()).digest()
    defaults = {"name": "Grafana", "redirect_uris": [redirect_uri], "grant_types": GRANT_TYPES}
    row = defaults | columns | {"secret_hash": hashed}
    columns_of_row = ", ".join(row)
    values = ", ".join(f"%({name})s" for name in row)
    inserted = f"INSERT INTO oauth_clients ({columns_of_row}) VALUES ({values}) RETURNING id::text"
    return Client(database.value(inserted, **row), secret, method)


def insert_client(database: Rows, redirect_uri: str = REDIRECT_URI, **columns: Any) -> str:
    """Insert a confidential client, and return its id."""
    return make_client(database, redirect_uri, **columns).id


def insert_public_client(database: Rows, redirect_uri: str = REDIRECT_URI, **columns: Any) -> str:
    return insert_client(database, redirect_uri, token_endpoint_auth_method="none", **columns)


def authorize_path(client_id: str, /, **parameters: str | None) -> str:
    """Return the path of a good request, with other parameters, or without those that are None."""
    query = {
        "client_id": client_id,
        "redirect_uri": REDIRECT_URI,
        "response_type": "code",
        "scope": "openid email",
        "state": "a state & more",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    } | parameters
    given = {name: value for name, value in query.items() if value is not None}
    return f"/oauth/authorize?{urlencode(given)}"


def answer(url: str, redirect_uri: str = REDIRECT_URI) -> dict[str, str]:
    """Return what a redirect to the application says."""
    assert url.startswith(f"{redirect_uri}?"), url
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def grant(
    database: Rows, user_id: str, client_id: str, scopes: list[str] = SCOPES, *, age: str = "0 days"
) -> str:
    """Insert a grant of some age, or replace its scopes, and return its id."""
    statement = """
        INSERT INTO oauth_grants (user_id, client_id, scopes, granted_at, redirect_uris)
        SELECT %(user)s, c.id, %(scopes)s, now() - %(age)s::interval, c.redirect_uris
          FROM oauth_clients AS c WHERE c.id = %(client)s
        ON CONFLICT ON CONSTRAINT oauth_grants_user_id_client_id_key DO UPDATE SET scopes = excluded.scopes
        RETURNING id::text
    """
    return database.value(statement, user=user_id, client=client_id, scopes=scopes, age=age)


def allow(
    database: Rows, user_id: str, client_id: str, *, age: str = "0 days", scopes: list[str] = SCOPES
) -> str:
    """Insert a grant with a session, and return the session's id."""
    statement = """
        INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time)
        VALUES (%(user)s, 'oauth_client', %(grant)s, %(scopes)s, now()) RETURNING id::text
    """
    granted = grant(database, user_id, client_id, scopes, age=age)
    return database.value(statement, user=user_id, grant=granted, scopes=scopes)


def granted_code(
    database: Rows, client: Client, session: Session, scopes: str = "openid email", **columns: Any
) -> str:
    """Return a code of an approved request of a session's user, with a challenge unless it is None."""
    code = secrets.token_urlsafe(32)
    consent = {"user_id": session.user["id"], "client_id": client.id, "scopes": scopes.split()}
    grant(database, *consent.values())
    if resource := columns.get("resource"):
        database.run(
            "UPDATE oauth_clients SET resources = resources || %(resource)s::text"
            " WHERE id::text = %(id)s AND %(resource)s <> ALL (resources)",
            resource=resource,
            id=client.id,
        )
    row = {
        "id_hash": secrets.token_bytes(32),
        "browser_hash": secrets.token_bytes(32),
        "redirect_uri": REDIRECT_URI,
        "code_challenge": CHALLENGE,
        "session_id": session.id,
        "code_hash": hashlib.sha256(code.encode()).digest(),
        **consent,
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
    answer_of_error = (response.status_code, response.json["error"], response.json["error_description"])
    assert answer_of_error == (status, error, description)
    assert response.headers["Cache-Control"] == "no-store"
