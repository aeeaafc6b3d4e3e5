"""Authentication of clients, at the token endpoint and others (RFC 6749, section 2.3)."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote_plus

from flask import request
from marshmallow import pre_load

from auth.core.logs import ThrottledLog
from auth.extensions.openid import client_object
from auth.extensions.openid.oauth_errors import OAuthError, invalid_client
from auth.rules.clients import problem_of_credentials
from auth.web import facts, fields, guard, schemas
from auth.web.context import latchkey
from sql import queries

_refused = ThrottledLog("client_not_authenticated")
BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"
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
        return (
            {name: value for name, value in data.items() if value != ""} if isinstance(data, dict) else data
        )


@dataclass(frozen=True)
class Credentials:
    """The credentials in a request, not yet checked. `auth_method` is as in `oauth_clients`."""

    client_id: str | None
    auth_method: str
    secret_hash: bytes | None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a statement that looks a client up."""
        return vars(self)


def read_credentials(body: Mapping[str, Any]) -> Credentials:
    """Return the credentials in the header or the body. Raises `OAuthError`."""
    client_id, secret, method = body.get("client_id"), body.get("client_secret"), NONE
    if (sent := _basic()) is not None:
        if secret is not None:
            problem = "client_secret: must not be given with Authorization"
            remedy = "let the application send its secret one way, by HTTP Basic or in the form"
            _refused.count(client_id=_known(sent[0]), reason=problem, remedy=remedy)
            raise OAuthError("invalid_request", problem)
        if client_id not in (None, sent[0]):
            raise invalid_client("client_id: must be that of Authorization", by_basic=True)
        client_id, secret = sent
        method = BASIC
    elif secret is not None:
        method = POST
    if client_id is None:
        raise invalid_client("client_id: is required")
    return Credentials(_known(client_id), method, secret and hashlib.sha256(secret.encode()).digest())


def authenticate(credentials: Credentials) -> "queries.SelectClientCredentials":
    """Return the row of the client. Raises `OAuthError` unless its credentials are right."""
    return check(credentials, queries.select_client_credentials(latchkey.db, client_id=credentials.client_id))


class _Checked(facts.CredentialFacts, Protocol):
    """A row with the credentials of a client, and their `now`."""

    @property
    def now(self) -> datetime: ...


R = TypeVar("R", bound=_Checked)


def check(credentials: Credentials, row: R | None) -> R:
    """Return the row. Raises `OAuthError` unless it has these credentials."""
    if row is None:
        raise _refusal(credentials, "unknown")
    sent, known = credentials.secret_hash, facts.credentials_of(row)
    if problem := problem_of_credentials(known, credentials.auth_method, sent, row.now):
        raise _refusal(credentials, problem)
    return row


def _refusal(credentials: Credentials, problem: str) -> OAuthError:
    used, id = credentials.auth_method, credentials.client_id
    wrong_method = (
        f"client is registered for '{problem}' but '{used}' was used",
        f"choose {problem} in the application, or: latchkey clients update {{}} --method {used}",
    )
    cause, remedy = _CAUSES.get(problem, wrong_method)
    _refused.count(client_id=id, reason=cause, remedy=remedy.format(id or "CLIENT_ID"))
    return invalid_client(cause, by_basic=used == BASIC)


def _known(client_id: str) -> str | None:
    return client_object.row_id(client_id)


def _basic() -> tuple[str, str] | None:
    """Return the percent-decoded id and secret of HTTP Basic; None without it."""
    if not guard.sends_basic():
        return None
    try:
        encoded = request.headers["Authorization"].partition(" ")[2].strip()
        client_id, colon, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
        if not colon:
            raise ValueError
        return unquote_plus(client_id, errors="strict"), unquote_plus(secret, errors="strict")
    except (binascii.Error, ValueError):
        problem = "Authorization: must be Basic, with client_id:client_secret in base64"
        raise invalid_client(problem, by_basic=True) from None
