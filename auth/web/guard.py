"""Authentication of callers. Each view that is not public has one of these decorators outermost."""

import functools
import hmac
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flask import request
from flask.typing import ResponseReturnValue

from auth.core.logs import ThrottledLog
from auth.core.settings import served
from auth.core.tokens import api_keys
from auth.core.tokens.access_tokens import KeyCaller
from auth.core.tokens.jws import InvalidAccessToken
from auth.rules.tokens import refusal_of_admin_key
from auth.web import Level, View, audit, audited, callers, cookies, current_g, current_request, g
from auth.web.application import FORM, AdminKeyCaller
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.declarations import Scope, says
from auth.web.errors import ApiError
from sql import acts, queries

_key_log = ThrottledLog("service_role_key_not_valid")
# RFC 6750, section 2.1, without "=", which would allow several spellings of a token.
_BEARER = re.compile(r"Bearer +[A-Za-z0-9\-._~+/]+", re.IGNORECASE)

# The cookie with the key of the development inbox.
INBOX = "latchkey_inbox"


def guarded(
    name: str, level: Level, admit: Callable[[], None], scope: Scope | None = None
) -> Callable[[View], View]:
    """Return a decorator that calls `admit` before a view: a function that calls `g.admit`, or refuses."""

    def decorate(view: View) -> View:
        says(guard=name, level=level, scope=scope)(view)

        @functools.wraps(view)
        def admitted(*args: object, **kwargs: object) -> ResponseReturnValue:
            current_g().level = level
            admit()
            return view(*args, **kwargs)

        return admitted

    return decorate


def administrative(
    name: str, level: Level, admit: Callable[[], None], scope: Scope | None = None
) -> Callable[[View], View]:
    """Return the decorator of `guarded` for administrative views. Administrative keys need the scope."""

    def decorate(view: View) -> View:
        return guarded(name, level, admit, scope)(audited("admin_refused")(view))

    return decorate


def admin(scope: Scope | None) -> Callable[[View], View]:
    """Accept administrators, the service role key, and administrative keys of the scope, if there is one."""
    return administrative("admin", Level.AAL2, _admit_administrator, scope)


def operator(scope: Scope | None) -> Callable[[View], View]:
    """Accept the service role key, and administrative keys of the scope, if there is one."""
    return administrative("operator", Level.SERVICE_ROLE, _admit_administrator, scope)


def access_token(level: Level) -> Callable[[View], View]:
    """Accept access tokens. The view or its act reads the facts about the caller, and refuses."""
    return guarded("access_token", level, _admit_user)


def access_token_or_api_key(level: Level) -> Callable[[View], View]:
    """Accept access tokens of sessions and of API keys. For these, the view reads `g.key_caller`."""
    return guarded("access_token_or_api_key", level, _admit_user_or_key)


def access_token_or_operator(level: Level, scope: Scope | None) -> Callable[[View], View]:
    """Accept access tokens of sessions, the service role key, and administrative keys of the scope."""
    return guarded("access_token_or_operator", level, _admit_user_or_operator, scope)


def client_token(level: Level) -> Callable[[View], View]:
    """Accept access tokens of OAuth clients. The view passes `g.client_caller` to its statement."""
    return guarded("client_token", level, _admit_client)


def _admit_user() -> None:
    token = _bearer()
    try:
        current_g().admit(latchkey.access_tokens.verify(token))
    except InvalidAccessToken:
        raise _refusal_of_token(token) from None


def _admit_user_or_operator() -> None:
    # A server that hands on what its user sent may send its own key as `apikey`.
    if not _try_service_role(decides=bool(_single_header("Authorization"))) and not _try_admin_key():
        _admit_user()


def _admit_user_or_key() -> None:
    g, token = current_g(), _bearer()
    try:
        g.admit(latchkey.access_tokens.verify(token))
    except InvalidAccessToken:
        g.key_caller = _key_caller(token)
        if g.key_caller is None:
            raise _refusal_of_token(token) from None
        g.user_id = g.key_caller.user_id


def _admit_client() -> None:
    """Accept a token in the header, or in the form of a POST (RFC 6750, section 2.2)."""
    in_form = request.form.getlist("access_token") if request.method == "POST" else []
    if len(in_form) + ("Authorization" in request.headers) > 1:
        raise ApiError("validation_failed", "access_token: must be given once")
    try:
        g.client_caller = latchkey.client_tokens.verify(in_form[0] if in_form else _bearer())
    except InvalidAccessToken:
        raise ApiError("bad_jwt") from None


def _try_service_role(*, decides: bool = False) -> bool:
    """Accept the service role key or its JWT, and return whether the request has one.

    If Authorization `decides`, a key in `apikey` does not count.
    """
    authorization, apikey = _single_header("Authorization"), _single_header("apikey")
    credential = _credential(authorization)
    if latchkey.service_role_keys.match("" if decides else apikey, credential):
        g.actor = "service_role"
        return True
    # Clients with a session also send the JWT of the service role as `apikey`.
    jwt = credential if authorization else apikey
    return latchkey.settings.service_role_jwt and _try_service_role_jwt(jwt)


def _credential(authorization: str) -> str:
    """Return the credential after Bearer. Unlike a token, a configured key may contain any character."""
    scheme, _, credential = authorization.partition(" ")
    return credential.strip() if scheme.lower() == "bearer" else ""


def _admit_administrator() -> None:
    """Accept the service role key, administrative keys of the route's scope and, unless the level requires a
    key, current administrators.
    """
    if _try_service_role() or _try_admin_key():
        return
    authorization, apikey = _single_header("Authorization"), _single_header("apikey")
    try:
        is_opaque = _BEARER.fullmatch(authorization) and authorization.count(".") != 2
        if is_opaque or (apikey and not authorization):
            raise ApiError("service_role.bad_jwt")
        _admit_user()
    except ApiError as error:
        if error.error_code == "bad_jwt":
            # AUTH_SERVICE_ROLE_JWT allows JWTs of other services.
            reason = "neither AUTH_SERVICE_ROLE_KEY, nor a token that AUTH_JWT_KEYS or AUTH_JWT_SECRET verify"
            _key_log.count(reason=reason)
        raise
    is_admin = current_asked().live_caller().role == "admin"
    if g.level == Level.SERVICE_ROLE:
        raise ApiError("insufficient_permissions")
    if not is_admin:
        raise ApiError("not_admin")


def _try_admin_key() -> bool:
    """Accept an administrative key, and return whether the request has one."""
    authorization, apikey = _single_header("Authorization"), _single_header("apikey")
    key = _credential(authorization) if authorization else apikey
    if not key.startswith(api_keys.ADMIN_PREFIX):
        return False
    scope, row = g.route.scope, None
    with suppress(api_keys.InvalidApiKey):
        id = api_keys.read_id(key, api_keys.ADMIN_PREFIX)
        row = queries.use_admin_key(latchkey.db, id=id, key_macs=latchkey.api_keys.macs(key))
    if row:
        g.actor, g.admin_key = "admin_key", AdminKeyCaller(id, row.name, scope)
    refusal = refusal_of_admin_key(row, scope)
    # Routes that also admit members record a refused key under this name too.
    g.refusal = "admin_refused" if refusal else None
    if refusal == "admin_key.insufficient_scope":
        raise ApiError(refusal, f"scope: must have {scope}" if scope else "no scope opens this")
    if refusal:
        raise ApiError(refusal)
    return True


def _admit_introspector() -> None:
    """Accept the keys of administrators, and clients, whose credentials the view checks."""
    if introspection_by_client() is None:
        _admit_administrator()


def _admit_developer() -> None:
    """Accept the service role key, and the key printed at the start, in the query or the inbox's cookie.

    The routes exist with `AUTH_DEV_INBOX` only.
    """
    if not latchkey.settings.dev_inbox:
        raise ApiError("not_found")
    if _has_inbox_key(request.args.get("key", "")) or _has_inbox_key(cookies.read(INBOX)):
        g.actor = "service_role"
    else:
        _admit_administrator()


introspector = administrative("introspector", Level.SERVICE_ROLE, _admit_introspector, "introspect")
developer = administrative("developer", Level.SERVICE_ROLE, _admit_developer)
# The statement of the view authenticates the client.
client = says(guard="client")


def has_administrator_credentials() -> bool:
    """Whether a request to a public route has the credentials of an administrator."""
    actor = g.actor
    try:
        if _try_service_role():
            return True
        caller = latchkey.access_tokens.verify(_credential(_single_header("Authorization")))
    except InvalidAccessToken:
        return False
    finally:
        g.actor = actor
    person = callers.select(latchkey.db, caller)
    if person is None or person.role != "admin":
        return False
    return callers.refusal_of(person, caller, Level.AAL2, latchkey.policy) is None


def has_basic_credentials() -> bool:
    authorization = current_request().environ.get("HTTP_AUTHORIZATION", "")
    return authorization.partition(" ")[0].lower() == "basic"


def introspection_by_client() -> Callable[[], tuple[str, Any]] | None:
    """Return the reader of an introspection with only a client's credentials: HTTP Basic or a form."""
    request = current_request()
    in_form = request.mimetype == FORM and not {"HTTP_AUTHORIZATION", "HTTP_APIKEY"} & request.environ.keys()
    if not (has_basic_credentials() or in_form):
        return None
    return next((read for each in latchkey.extensions if (read := each.introspection_by_client())), None)


def caller_id() -> str:
    return g.caller.user_id


def caller_on_network() -> str:
    """Return the key of limits that a thief of the password must not use up from another network."""
    g = current_g()
    return f"{g.caller.user_id} {g.client['network']}"


def is_of_operator() -> bool:
    """Whether the service role key or an administrative key was admitted."""
    return g.actor != "user"


def _refusal_of_token(token: str) -> ApiError:
    with suppress(InvalidAccessToken):
        latchkey.client_tokens.verify(token)
        return ApiError("insufficient_scope")
    if _key_caller(token):
        return ApiError("insufficient_scope")
    # Check the form last: the regular expression takes longer than a token in the cache of `verify`.
    if _BEARER.fullmatch(_single_header("Authorization")):
        return ApiError("api_key.bad_jwt" if token.startswith("lk_") else "bad_jwt")
    return ApiError("malformed.bad_jwt", "Authorization: must be Bearer <token>")


def _bearer() -> str:
    authorization = _single_header("Authorization")
    if not authorization:
        raise ApiError("no_authorization", "Authorization: must be Bearer <token>")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise ApiError("malformed.bad_jwt", "Authorization: must be Bearer <token>")
    return token.lstrip(" ")


def _key_caller(token: str) -> KeyCaller | None:
    try:
        return latchkey.access_tokens.verify_of_api_key(token) if latchkey.settings.api_keys else None
    except InvalidAccessToken:
        return None


def _single_header(name: str) -> str:
    value = current_request().environ.get(f"HTTP_{name.upper()}", "").strip()
    # Servers join repeated headers with commas, which no credential contains.
    if "," in value:
        raise ApiError("validation_failed", f"{name}: must be given once")
    return value


def _try_service_role_jwt(token: str) -> bool:
    """Accept a JWT of the service role, and return whether it is one."""
    try:
        jwt = latchkey.access_tokens.service_role(token)
    except InvalidAccessToken:
        return False
    times = {"not_before": jwt.not_before, "expires_at": jwt.expires_at}
    if not queries.select_is_current(latchkey.db, **times).is_current:
        return False
    g.actor = "service_role"
    with acts.on(latchkey.db) as act:
        audit.record(act, None, None, ["service_role_jwt_used"], [], role=jwt.role, kid=jwt.kid)
    return True


def _has_inbox_key(key: str) -> bool:
    return bool(served.inbox_key) and hmac.compare_digest(key.encode(), served.inbox_key.encode())
