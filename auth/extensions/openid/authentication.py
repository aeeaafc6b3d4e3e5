"""Authentication of clients, at the token endpoint and others (RFC 6749, section 2.3)."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus

from marshmallow import pre_load

from auth.core.logs import ThrottledLog
from auth.core.settings import Settings
from auth.extensions.openid.client_object import row_id
from auth.extensions.openid.oauth_errors import OAuthError, invalid_client
from auth.rules.clients import problem_of_credentials
from auth.web import fields, schemas
from auth.web.context import Latchkey
from auth.web.errors import REALM
from sql import queries

# The challenge for a client that used HTTP Basic.
_CHALLENGE = {"WWW-Authenticate": f"Basic {REALM}"}
_refused = ThrottledLog("client_not_authenticated")
_REMEDY = "give the application the client's secret: latchkey clients rotate {} makes a new one"
# By the results of `problem_of_credentials`: the cause and, for the log, the remedy. An unknown client looks
# like a wrong secret.
_CAUSES = {
    "unknown": ("Unknown client, or wrong client_secret", _REMEDY),
    "public": (
        "public clients must not provide client_secret",
        "remove the secret from the application, or create a confidential client for it",
    ),
    "blocked": ("An administrator has blocked this client", "latchkey clients update {} --unblock"),
    "secret_missing": ("confidential clients must provide client_secret", _REMEDY),
}


class ClientInput(schemas.Input):
    """A body with the credentials of a client. An empty parameter is absent (RFC 6749, 3.2)."""

    client_id = fields.Text()
    client_secret = fields.Text()

    @pre_load
    def leave_out_empty(self, data: object, **_kwargs: object) -> object:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value != ""}


@dataclass(frozen=True)
class SentCredentials:
    """The credentials in a request, not yet checked. `auth_method` is as in `oauth_clients`."""

    client_id: str | None
    auth_method: str
    secret_hash: bytes | None


def read_credentials(settings: Settings, body: Mapping[str, str], authorization: str) -> SentCredentials:
    """Return the credentials in the header Authorization, or "", or in the body. Raises `OAuthError`."""
    client_id, secret, method = body.get("client_id"), body.get("client_secret"), "none"
    if (basic := _basic(authorization)) is not None:
        if secret is not None:
            problem = "client_secret: must not be given with Authorization"
            remedy = "let the application send its secret one way, by HTTP Basic or in the form"
            _refused.count(client_id=row_id(settings, basic[0]), reason=problem, remedy=remedy)
            raise OAuthError("invalid_request", problem)
        if client_id not in (None, basic[0]):
            raise invalid_client("client_id: must be that of Authorization", _CHALLENGE)
        client_id, secret = basic
        method = "client_secret_basic"
    elif secret is not None:
        method = "client_secret_post"
    if client_id is None:
        raise invalid_client("client_id: is required")
    secret_hash = None if secret is None else hashlib.sha256(secret.encode()).digest()
    return SentCredentials(row_id(settings, client_id), method, secret_hash)


def authenticate(parts: Latchkey, credentials: SentCredentials) -> "queries.SelectClient":
    """Return the row of the client. Raises `OAuthError` unless its credentials are right."""
    row = queries.select_client(parts.db, id=credentials.client_id)
    if row is None:
        raise _refusal(credentials, "unknown")
    check(credentials, row)
    return row


def check(credentials: SentCredentials, row: "queries.SelectClient | queries.LockClientSession") -> None:
    """Raises `OAuthError` unless a client has these credentials."""
    if problem := problem_of_credentials(row, credentials.auth_method, credentials.secret_hash):
        raise _refusal(credentials, problem)


def _refusal(credentials: SentCredentials, problem: str) -> OAuthError:
    used, id = credentials.auth_method, credentials.client_id
    wrong_method = (
        f"client is registered for '{problem}' but '{used}' was used",
        f"choose {problem} in the application, or: latchkey clients update {{}} --method {used}",
    )
    cause, remedy = _CAUSES.get(problem, wrong_method)
    _refused.count(client_id=id, reason=cause, remedy=remedy.format(id or "CLIENT_ID"))
    return invalid_client(cause, _CHALLENGE if used == "client_secret_basic" else None)


def _basic(authorization: str) -> tuple[str, str] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, secret = base64.b64decode(encoded.strip(), validate=True).decode().split(":", 1)
        return unquote_plus(client_id, errors="strict"), unquote_plus(secret, errors="strict")
    except ValueError:
        problem = "Authorization: must be Basic, with client_id:client_secret in base64"
        raise invalid_client(problem, _CHALLENGE) from None
