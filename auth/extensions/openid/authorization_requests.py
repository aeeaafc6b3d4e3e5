"""Authorization requests of applications, and their answers (OpenID Connect Core 1.0, section 3.1.2)."""

import re
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from auth.core import constants
from auth.core.logs import ThrottledLog
from auth.core.net.redirects import with_query
from auth.core.tokens import one_time
from auth.core.tokens.jws import InvalidAccessToken
from auth.extensions.openid import audience, client_object, memberships, uris
from auth.extensions.openid.oauth_errors import OAuthError
from auth.html import browser_sessions
from auth.web import Level, fields, g, schemas
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import known_id
from sql import queries

# The cookie that a request is bound to.
COOKIE = "latchkey_authorize"
SCOPES = ("openid", "profile", "email", "phone", "offline_access", "groups", "roles")
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


def find_client(client_id: str, redirect_uri: str) -> "queries.SelectClient":
    """Return the row of a client with this registered URI."""
    client = client_object.select_client(client_id)
    if client is None:
        refuse(client_id, "unknown client_id", "compare it with latchkey clients list")
    if client.is_blocked:
        refuse(client_id, "an administrator has blocked it", f"latchkey clients update {client.id} --unblock")
    if not any(uris.matches(registered, redirect_uri) for registered in client.redirect_uris):
        problem = log_unregistered(client, "redirect_uri", "--redirect-uri", redirect_uri)
    elif client.is_dynamic and not uris.is_open_scheme(latchkey.settings, redirect_uri):
        problem = log_closed_scheme(client, "redirect_uri")
    else:
        return client
    note_refusal(client_object.sent_id(client), problem)
    raise ApiError("validation_failed", problem)


def log_unregistered(client: "queries.SelectClient", name: str, option: str, uri: str) -> str:
    """Log that a client sent a URI that it has not registered, and return what is wrong."""
    problem = f"{name}: must be one that the client has registered"
    # The query may contain a secret.
    sent = re.split("[?#]", uri, maxsplit=1)[0][:_MOST_LOGGED]
    remedy = update_of(client, f"{option} URI, which replaces all: repeat it for each")
    log_refusal(client.id, problem, remedy, **{name: sent})
    return problem


def log_closed_scheme(client: "queries.SelectClient", name: str) -> str:
    """Log that the scheme of a registered URI is no longer allowed, and return what is wrong."""
    problem = f"{name}: its scheme must have a dot or be in AUTH_OAUTH_REDIRECT_SCHEMES"
    log_refusal(client.id, problem, "add the scheme, if you trust the programs that it opens")
    return problem


def refuse(client_id: str, reason: str, remedy: str | None = None) -> NoReturn:
    """Refuse a request that must not redirect, and log why."""
    log_refusal(client_id, reason, remedy)
    note_refusal(client_id, reason)
    raise ApiError("authorize.oauth_client_not_found")


def note_refusal(client_id: str, reason: str) -> None:
    """Record in the history of a signed-in user why a client was refused."""
    if known := browser_sessions.resume(Level.SESSION):
        client, problem = client_id[:_MOST_LOGGED], reason[:_MOST_LOGGED]
        g.note(user_id=known.user_id, client=client, problem=problem)


def log_refusal(client_id: str, reason: str, remedy: str | None, **facts: str) -> None:
    """Log why users of an application cannot sign in. The users only see that it failed."""
    if remedy:
        facts["remedy"] = remedy
    _refused.count(client_id=client_id[:_MOST_LOGGED], reason=reason[:_MOST_LOGGED], **facts)


def check(client: "queries.SelectClient", redirect_uri: str, sent: Mapping[str, str]) -> AuthorizationRequest:
    """Return the request with the parameters `sent`. Raises `OAuthError`."""
    for name in ("request", "request_uri"):
        if name in sent:
            raise OAuthError(f"{name}_not_supported", f"{name} is not supported: send the parameters")
    if "response_type" not in sent:
        raise OAuthError("invalid_request", "response_type is required")
    if sent["response_type"] != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    if sent.get("response_mode", "query") != "query":
        raise OAuthError("invalid_request", "response_mode must be query")
    if "authorization_code" not in client.grant_types:
        remedy = update_of(client, "--grant authorization_code --grant refresh_token")
        description = "the client is not registered for authorization_code"
        raise OAuthError("unauthorized_client", description, remedy=remedy)
    code_challenge, scopes = _challenge(client, sent), scopes_asked(client, sent)
    resource = resource_asked(client, sent.get("resource"))
    prompts, max_age = sent.get("prompt", "").split(), sent.get("max_age")
    if "none" in prompts and len(prompts) > 1:
        raise OAuthError("invalid_request", "prompt=none excludes other values")
    if max_age is not None and not _SECONDS.fullmatch(max_age):
        raise OAuthError("invalid_request", "max_age must be a number of seconds")
    return AuthorizationRequest(
        client_id=client.id,
        redirect_uri=redirect_uri,
        state=sent.get("state"),
        nonce=sent.get("nonce"),
        code_challenge=code_challenge,
        scopes=scopes,
        resource=resource,
        prompts=[prompt for prompt in PROMPTS if prompt in prompts],
        max_age=None if max_age is None else int(max_age),
        login_hint=sent.get("login_hint"),
        hinted_id=_hinted(client, sent.get("id_token_hint")),
    )


def write(checked: AuthorizationRequest, browser: str | None) -> str:
    """Write a request of a browser, by its cookie's value, and return its id.

    Without the browser, the request is for `take`.
    """
    authorization_id = one_time.new_token()
    is_written = queries.insert_oauth_request(
        latchkey.db,
        id_hash=one_time.hash_token(authorization_id),
        browser_hash=one_time.hash_token(authorization_id if browser is None else browser),
        lifetime=constants.REQUEST_LIFETIME,
        **checked._asdict(),
    )
    if not is_written:
        raise ApiError("authorize.oauth_client_not_found")
    return authorization_id


def take(authorization_id: str) -> "tuple[queries.SelectClient, AuthorizationRequest]":
    """Return a request that a form began, with its client, and delete it."""
    row = queries.take_oauth_request(latchkey.db, id_hash=one_time.hash_token(authorization_id))
    if row is None:
        raise ApiError("oauth_authorization_not_found")
    return find_client(row.client_id, row.redirect_uri), AuthorizationRequest(**row._asdict())


def answer(redirect_uri: str, state: str | None, **members: str) -> str:
    """Return the URL of an answer. It contains our issuer, against mix-ups (RFC 9207)."""
    echo = {} if state is None else {"state": state}
    return with_query(redirect_uri, members | echo | {"iss": latchkey.settings.jwt_issuer})


def update_of(client: "queries.SelectClient", options: str) -> str:
    """Return the command that changes a client, for the log."""
    return f"latchkey clients update {client.id} {options}"


def scopes_asked(client: "queries.SelectClient", sent: Mapping[str, str]) -> list[str]:
    """Return the known scopes of a request. Raises `OAuthError` without any."""
    asked, settings = sent.get("scope", "email").split(" "), latchkey.settings
    offered = (*SCOPES, *memberships.scopes(settings))
    allowed = [scope for scope in offered if scope in (client.scopes or offered)]
    named = memberships.named(settings, asked, client.scopes)
    known = [
        scope for scope in allowed if scope in asked and not (named and scope == memberships.ONE)
    ] + named
    if not known:
        remedy = update_of(client, "--scope SCOPE, which replaces all: repeat it for each")
        description = f"scope must include one of {' '.join(allowed)}".rstrip()
        if not allowed:
            description = "none of the client's scopes is about a user"
        raise OAuthError("invalid_scope", description, remedy=remedy if client.scopes else None)
    return known


def _challenge(client: "queries.SelectClient", sent: Mapping[str, str]) -> str | None:
    challenge, method = sent.get("code_challenge"), sent.get("code_challenge_method")
    if challenge is None and method is None and not client.require_pkce:
        # Only these detect a code from another browser (RFC 9700, section 2.1.1).
        if not sent.keys() & {"state", "nonce"}:
            raise OAuthError("invalid_request", "state, nonce or code_challenge is required")
        return None
    if challenge is None:
        remedy = "turn on PKCE with S256 in the application"
        if client.secret_hash and not client.is_dynamic:
            remedy += f", or: {update_of(client, '--no-pkce')}"
        raise OAuthError("invalid_request", "code_challenge is required (RFC 7636)", remedy=remedy)
    if (method or "plain").upper() != "S256":
        remedy = "set code_challenge_method to S256 in the application"
        raise OAuthError("invalid_request", "code_challenge_method must be S256", remedy=remedy)
    if not _CHALLENGE.fullmatch(challenge):
        raise OAuthError("invalid_request", "code_challenge must have 43 characters of base64url")
    return challenge


def resource_asked(client: "queries.SelectClient", resource: str | None) -> str | None:
    """Return the resource of a request. Raises `OAuthError` if the client may not use it."""
    if resource is None:
        return None
    audience.of_token(latchkey, resource)
    # The page shows the resource for a client that registered itself. Other clients may skip consent.
    if resource not in client.resources and not client.is_dynamic:
        remedy = update_of(client, "--resource URI, which replaces all: repeat it for each")
        raise OAuthError("invalid_target", "resource must be one of the client's", remedy=remedy)
    return resource


def _hinted(client: "queries.SelectClient", id_token: str | None) -> str | None:
    if id_token is None:
        return None
    try:
        claims = latchkey.client_tokens.read_hint(id_token)
        if claims["aud"] != client_object.sent_id(client):
            raise InvalidAccessToken("of another client")
        return known_id(claims["sub"], "user_not_found")
    except (InvalidAccessToken, ApiError):
        raise OAuthError("invalid_request", "id_token_hint must be an ID token of this client") from None
