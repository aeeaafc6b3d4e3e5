"""Authorization requests of applications, and their answers (OpenID Connect Core 1.0, section 3.1.2)."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from auth.core import constants
from auth.core.logs import ThrottledLog
from auth.core.net.redirects import with_query
from auth.core.settings import Settings
from auth.core.tokens import one_time
from auth.core.tokens.jws import InvalidAccessToken
from auth.extensions.openid import bounds, client_object, uris
from auth.extensions.openid.oauth_errors import OAuthError
from auth.web import fields, schemas
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.input import canonical_id
from sql import queries

# The cookie that a request is bound to.
COOKIE = "latchkey_authorize"
PROMPTS = ("none", "login", "consent", "select_account")

# Without these two, no redirect is allowed.
Origin = schemas.Input.of(client_id=fields.Text(required=True), redirect_uri=fields.Text(required=True))
_NAMES = (
    "response_type", "response_mode", "scope", "nonce", "code_challenge", "code_challenge_method",
    "resource", "prompt", "max_age", "login_hint", "ui_locales", "request_uri",
)  # fmt: skip
_LONG_NAMES = ("state", "request", "id_token_hint")
Parameters = schemas.Input.of(
    **{name: fields.Text() for name in _NAMES}, **{name: fields.LongText() for name in _LONG_NAMES}
)
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_SECONDS = re.compile(r"[0-9]{1,9}")

_refused = ThrottledLog("authorization_request_refused")
_MOST_LOGGED = 255  # characters of text from strangers


class AuthorizationRequest(NamedTuple):
    """A checked request of a client, which may redirect to its URI: columns of `oauth_requests`."""

    client_id: str
    redirect_uri: str
    state: str | None
    nonce: str | None
    code_challenge: str | None
    scopes: list[str]
    resource: str | None
    prompts: list[str]
    max_age: int | None
    login_hint: str | None
    hinted_id: str | None


class RequestRefused(ApiError):
    """The refusal of a request that must not redirect. A user's history shows `client` and `problem`."""

    def __init__(self, client_id: str, problem: str, key: str, details: str | None = None) -> None:
        super().__init__(key, details)
        self.client, self.problem = client_id[:_MOST_LOGGED], problem[:_MOST_LOGGED]


def find_client(asked: Asked, client_id: str, redirect_uri: str) -> "queries.SelectClient":
    """Return the row of a client with this registered URI. Raises `RequestRefused`."""
    client = client_object.select_client(asked, client_id)
    if client is None:
        raise refusal(client_id, "unknown client_id", "compare it with latchkey clients list")
    if client.is_blocked:
        remedy = f"latchkey clients update {client.id} --unblock"
        raise refusal(client_id, "an administrator has blocked it", remedy)
    if not any(uris.matches(registered, redirect_uri) for registered in client.redirect_uris):
        problem = log_unregistered(client, "redirect_uri", "--redirect-uri", redirect_uri)
    elif client.is_dynamic and not uris.is_open_scheme(asked.settings, redirect_uri):
        problem = log_closed_scheme(client, "redirect_uri")
    else:
        return client
    raise RequestRefused(client_object.sent_id(client), problem, "validation_failed", problem)


def log_unregistered(client: "queries.SelectClient", name: str, option: str, uri: str) -> str:
    """Log that a client sent a URI that it has not registered, and return what is wrong."""
    problem = f"{name}: must be one that the client has registered"
    # The query may contain a secret.
    path = re.split("[?#]", uri, maxsplit=1)[0][:_MOST_LOGGED]
    remedy = bounds.Bounds.of(client).update(f"{option} URI, {bounds.REPLACES_ALL}")
    log_refusal(client.id, problem, remedy, **{name: path})
    return problem


def log_closed_scheme(client: "queries.SelectClient", name: str) -> str:
    """Log that the scheme of a registered URI is no longer allowed, and return what is wrong."""
    problem = f"{name}: its scheme must have a dot or be in AUTH_OAUTH_REDIRECT_SCHEMES"
    log_refusal(client.id, problem, "add the scheme, if you trust the programs that it opens")
    return problem


def refusal(client_id: str, problem: str, remedy: str | None = None) -> RequestRefused:
    """Log why a request is refused that must not redirect, and return the error."""
    log_refusal(client_id, problem, remedy)
    return RequestRefused(client_id, problem, "authorize.oauth_client_not_found")


def log_error(client_id: str | None, error: OAuthError) -> None:
    """Log why an endpoint refuses a client, with what it has sent."""
    sent = {name: value[:_MOST_LOGGED] for name, value in error.sent.items()}
    log_refusal(client_id or "unknown", error.description, error.remedy, **sent)


def log_refusal(client_id: str, reason: str, remedy: str | None, **fields: str) -> None:
    """Log why users of an application cannot sign in. The users only see that it failed."""
    if remedy:
        fields["remedy"] = remedy
    _refused.count(client_id=client_id[:_MOST_LOGGED], reason=reason[:_MOST_LOGGED], **fields)


def check(
    asked: Asked, client: "queries.SelectClient", redirect_uri: str, parameters: Mapping[str, str]
) -> AuthorizationRequest:
    """Return the request with these parameters. Raises `OAuthError`."""
    for name in ("request", "request_uri"):
        if name in parameters:
            raise OAuthError(f"{name}_not_supported", f"{name} is not supported: send the parameters")
    if "response_type" not in parameters:
        raise OAuthError("invalid_request", "response_type is required")
    if parameters["response_type"] != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    if parameters.get("response_mode", "query") != "query":
        remedy = "set the response mode to query in the application"
        raise OAuthError("invalid_request", "response_mode must be query", remedy=remedy)
    of_client = bounds.Bounds.of(client)
    bounds.require(of_client, "authorization_code")
    code_challenge = _challenge(client, parameters)
    scopes, resource = bounds.of_request(asked.parts, of_client, parameters)
    prompts, max_age = parameters.get("prompt", "").split(), parameters.get("max_age")
    if "none" in prompts and len(prompts) > 1:
        raise OAuthError("invalid_request", "prompt=none excludes other values")
    if max_age is not None and not _SECONDS.fullmatch(max_age):
        raise OAuthError("invalid_request", "max_age must be a number of seconds")
    return AuthorizationRequest(
        client_id=client.id,
        redirect_uri=redirect_uri,
        state=parameters.get("state"),
        nonce=parameters.get("nonce"),
        code_challenge=code_challenge,
        scopes=scopes,
        resource=resource,
        prompts=[prompt for prompt in PROMPTS if prompt in prompts],
        max_age=None if max_age is None else int(max_age),
        login_hint=parameters.get("login_hint"),
        hinted_id=_hinted(asked, client, parameters.get("id_token_hint")),
    )


def write(asked: Asked, request: AuthorizationRequest, browser: str | None) -> str:
    """Write a request, for the browser with a cookie's value or else for `take`, and return its id."""
    authorization_id = one_time.new_token()
    is_written = queries.insert_oauth_request(
        asked.db,
        id_hash=one_time.hash_token(authorization_id),
        browser_hash=one_time.hash_token(authorization_id if browser is None else browser),
        lifetime=constants.REQUEST_LIFETIME,
        **request._asdict(),
    )
    if not is_written:
        raise ApiError("authorize.oauth_client_not_found")
    return authorization_id


def take(asked: Asked, authorization_id: str) -> "tuple[queries.SelectClient, AuthorizationRequest]":
    """Return a request that a form began, with its client, and delete it."""
    row = queries.take_oauth_request(asked.db, id_hash=one_time.hash_token(authorization_id))
    if row is None:
        raise ApiError("oauth_authorization_not_found")
    return find_client(asked, row.client_id, row.redirect_uri), AuthorizationRequest(**row._asdict())


def answer(settings: Settings, redirect_uri: str, state: str | None, **members: str) -> str:
    """Return the URL of an answer. It contains our issuer, against mix-ups (RFC 9207)."""
    echo = {} if state is None else {"state": state}
    return with_query(redirect_uri, members | echo | {"iss": settings.jwt_issuer})


def _challenge(client: "queries.SelectClient", parameters: Mapping[str, str]) -> str | None:
    challenge, method = parameters.get("code_challenge"), parameters.get("code_challenge_method")
    if challenge is None and method is None and not client.require_pkce:
        # Only these detect a code from another browser (RFC 9700, section 2.1.1).
        if not parameters.keys() & {"state", "nonce"}:
            raise OAuthError("invalid_request", "state, nonce or code_challenge is required")
        return None
    if challenge is None:
        remedy = "turn on PKCE with S256 in the application"
        if client.secret_hash and not client.is_dynamic:
            remedy += f", or: {bounds.Bounds.of(client).update('--no-pkce')}"
        raise OAuthError("invalid_request", "code_challenge is required (RFC 7636)", remedy=remedy)
    if (method or "plain").upper() != "S256":
        remedy = "set code_challenge_method to S256 in the application"
        raise OAuthError("invalid_request", "code_challenge_method must be S256", remedy=remedy)
    if not _CHALLENGE.fullmatch(challenge):
        raise OAuthError("invalid_request", "code_challenge must have 43 characters of base64url")
    return challenge


def _hinted(asked: Asked, client: "queries.SelectClient", id_token: str | None) -> str | None:
    if id_token is None:
        return None
    try:
        claims = asked.parts.client_tokens.read_hint(id_token)
        if claims["aud"] != client_object.sent_id(client):
            raise InvalidAccessToken("of another client")
        return canonical_id(claims["sub"], "user_not_found")
    except (InvalidAccessToken, ApiError):
        raise OAuthError("invalid_request", "id_token_hint must be an ID token of this client") from None
