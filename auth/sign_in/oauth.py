"""Signing in with providers: the flows in progress, and the identities that they return.

A cookie binds each flow to its browser, against login CSRF.
"""

from typing import Any

from flask import Response

from auth.context import latchkey
from auth.messages.outgoing import new_id
from auth.providers import ProviderError
from auth.providers.client import ExternalIdentity, Provider, said
from auth.sign_in.arrivals import redirect_with_error
from auth.tokens import one_time
from auth.tokens.keys import CannotOpen
from auth.web import cookies, json_bodies
from auth.web.errors import ApiError
from sql import Database, Transaction

_LIFETIME = 600  # seconds
# RFC 6749, section 4.1.2.1. The others are `access_denied`.
_ERRORS = {
    "bad_oauth_state": "invalid_request",
    "bad_oauth_callback": "server_error",
    "oauth_provider_not_supported": "server_error",
    "hook_failed": "server_error",
}
_PROVIDER_ERRORS = {"access_denied", "temporarily_unavailable", "server_error"}
# Browsers do not send a Lax cookie with a form that a provider posts.
_LAX, _CROSS_SITE = "latchkey_flow", "latchkey_flow_post"


class ProviderRefusal(ApiError):
    def __init__(self, error: str | None, key: str = "bad_oauth_callback") -> None:
        super().__init__(key)
        self.error = error if error in _PROVIDER_ERRORS else "server_error"


def provider_named(name: str) -> Provider:
    if name not in latchkey.providers:
        details = "provider: must be one of external_providers in /settings"
        raise ApiError("oauth_provider_not_supported", details)
    return latchkey.providers[name]


def new_secrets(scopes: str | None) -> dict[str, Any]:
    return {"nonce": one_time.new_token(), "code_verifier": one_time.new_token(), "scopes": scopes}


def write_flow(
    db: Database | Transaction,
    provider: Provider,
    state: str,
    secrets: dict[str, Any],
    browser: str | None = None,
    **columns: str | None,
) -> None:
    """Write a flow of a browser; or of a `user_id` and `session_id`, to link an identity."""
    flow_id = new_id()
    others = {"redirect_to": None, "code_challenge": None, "user_id": None, "session_id": None}
    db.run(
        "insert_oauth_flow",
        id=flow_id,
        state_hash=one_time.hash_token(state),
        browser_hash=browser and one_time.hash_token(browser),
        provider=provider.name,
        secrets=latchkey.sealer.seal_json(secrets, flow_id),
        lifetime=_LIFETIME,
        **others | columns,
    )


def flow_secrets(flow: Any) -> dict[str, Any] | None:
    """Return the secrets of a flow, or None if their key was removed from `AUTH_SECRET_KEY`."""
    try:
        return latchkey.sealer.open_json(flow.secrets, flow.id)
    except CannotOpen:
        return None


def spend_flow(state: str) -> Any:
    """End the flow with this state and the browser's cookie, and return its row or None."""
    state_hash = one_time.hash_token(state)
    browser_hashes = [one_time.hash_token(cookies.sent(name)) for name in (_LAX, _CROSS_SITE)]
    for browser_hash in filter(None, browser_hashes if state_hash else ()):
        if flow := latchkey.db.one("spend_oauth_flow", state_hash=state_hash, browser_hash=browser_hash):
            return flow
    return None


def identify(flow: Any, callback_name: str | None, query: dict[str, Any]) -> ExternalIdentity:
    """Return the identity that a callback is about. Raises `ApiError`."""
    provider = latchkey.providers.get(flow.provider)
    if provider is None:
        raise ApiError("oauth_provider_not_supported")
    if provider.callback_name != callback_name:
        # Do not send another provider's code to this one (mix-up attack).
        provider.log_failure("the browser returned to another provider's redirect URI")
        raise ApiError("bad_oauth_callback")
    if "error" in query or "code" not in query:
        refusal = ProviderRefusal(query.get("error"))
        if refusal.error != "access_denied":
            refusal.details = said(query.get("error"), query.get("error_description")) or "no code"
            provider.log_failure(refusal.details)
        raise refusal
    secrets = flow_secrets(flow)
    if secrets is None:
        raise ApiError("bad_oauth_state")
    try:
        return provider.identify(
            code=query["code"],
            code_verifier=secrets["code_verifier"],
            nonce=secrets["nonce"],
            issuer=query.get("iss"),
            user=_apple_user(query),
        )
    except ProviderError as error:
        raise ApiError("bad_oauth_callback", str(error)) from None


def _apple_user(query: dict[str, Any]) -> dict[str, Any] | None:
    # Apple sends the user's name next to the code, unsigned, and only the first time.
    try:
        return json_bodies.decode(query["user"].encode()) if "user" in query else None
    except (json_bodies.InvalidJson, UnicodeError):
        return None


def refused(redirect_to: str | None, error: ApiError) -> Response:
    known = getattr(error, "error", None) or _ERRORS.get(error.error_code, "access_denied")
    return redirect_with_error(latchkey.redirects.checked(redirect_to), known, error)


def browser_secret(provider: Provider) -> str:
    """Return the browser's cookie, or a new value. Sign-ins in two tabs share it."""
    return cookies.browser_secret(_cookie(provider))


def authorization_url(
    provider: Provider, state: str, secrets: dict[str, Any], *, asks_again: bool = False
) -> str:
    try:
        return provider.authorization_url(state=state, asks_again=asks_again, **secrets)
    except ProviderError:
        raise ProviderRefusal("temporarily_unavailable", "unreachable.bad_oauth_callback") from None


def to_provider(provider: Provider, url: str, browser: str, status: int) -> Response:
    response = Response(status=status, headers={"Location": url})
    crosses_sites = provider.posts_form
    cookies.remember(response, _cookie(provider), browser, max_age=_LIFETIME, crosses_sites=crosses_sites)
    return response


def _cookie(provider: Provider) -> str:
    return _CROSS_SITE if provider.posts_form else _LAX


class _IdentityUnlinked(Exception):
    pass


class _NewUser(Exception):
    """The hook has not been asked about the user who would be created."""


def sign_in_with_id_token(body: dict[str, Any]) -> Any:
    """Open a session for an unused id_token and return its row. Raises `ApiError`."""
    identity, id_token = read_id_token(body)
    return sign_in(identity, id_token=id_token).session


def read_id_token(body: dict[str, Any]) -> tuple[ExternalIdentity, dict[str, Any]]:
    """Return the identity of a valid id_token, and what `spend_id_token` needs. Raises `ApiError`."""
    provider = latchkey.providers.get(body["provider"])
    try:
        if provider is None:
            raise ApiError("provider_disabled", issuer=unverified_issuer(body["id_token"]))
        identity, expires_at = provider.identify_by_id_token(body["id_token"], body.get("nonce"))
    except ProviderUnavailable:
        raise unavailable("provider.service_unavailable") from None
    except ProviderError:
        raise invalid_id_token() from None
    # Without the signature, which can be spelled in several ways: a token is accepted once.
    signed = body["id_token"].rpartition(".")[0]
    return identity, {"token_hash": hashlib.sha256(signed.encode()).digest(), "expires_at": expires_at}


def sign_in(
    identity: ExternalIdentity, *, code_challenge: str | None = None, id_token: dict[str, Any] | None = None
) -> Outcome:
    """Sign in the owner of an identity, else of the email that a trusted provider verified, else a new user.

    With a code challenge, return an authorization code instead of a session. Raises `ApiError`.
    """
    user_id = None if before_user_created.is_set() else new_id()
    for _ in range(_TRIES):
        # Try again after a concurrent request has added or removed the identity or the user.
        with suppress(UniqueViolation, _IdentityUnlinked):
            try:
                outcome = _try_sign_in(identity, code_challenge, id_token, user_id)
            except _NewUser:
                email, metadata = _new_user(identity)
                user_id = before_user_created.ask(email=email, data=metadata, provider=identity.provider)
                continue
            if outcome.refusal:
                raise outcome.refusal
            return outcome
    raise unavailable()


@access_token.asked
def _try_sign_in(
    identity: ExternalIdentity,
    code_challenge: str | None,
    id_token: dict[str, Any] | None,
    new_user_id: str | None,
) -> Outcome:
    """Return the outcome. A refusal is returned, not raised, so that the id_token stays spent."""
    audit.about(provider=identity.provider)
    with access_token.transaction() as tx:
        if id_token and not tx.run("spend_id_token", **id_token):
            return Outcome(refusal=invalid_id_token())
        user = tx.one("lock_user_by_identity", provider=identity.provider, subject=identity.subject)
        by_email = user is None and identity.is_trusted and identity.email_verified
        user = tx.one("lock_user_by_email", email=identity.email) if by_email else user
        if user is None and latchkey.settings.disable_signup:
            return Outcome(refusal=ApiError("signup_disabled"))
        if user is None and not may_sign_up(identity):
            return Outcome(refusal=ApiError("email_address_not_authorized"))
        audit.about(user_id=user and user.id, provider=identity.provider)
        if user and user.is_banned:
            return Outcome(refusal=ApiError("user_banned"))
        if user is None:
            if new_user_id is None:
                raise _NewUser
            user = _create_user(tx, identity, new_user_id)
        elif not by_email and not tx.run("use_identity", user_id=user.id, **identity.row):
            raise _IdentityUnlinked
        elif by_email and not _link_identity(tx, user, identity):
            return Outcome(refusal=ApiError("identity_already_exists"))
        if code_challenge:
            code = write_code(
                tx, user.id, code_challenge, "oauth", provider=identity.provider, auth_time=identity.auth_time
            )
            return Outcome(authorization_code=code)
        session = open_session(tx, user.id, "oauth")
        ids = {"session_id": session.session_id}
        proof = {"subject": identity.subject, "auth_time": identity.auth_time}
        recorded = tx.one("record_identity", provider=identity.provider, **proof, **ids)
        _record(tx, user, identity, ["signed_in"], "auth.login", **ids)
        return Outcome(issued(tx, session._replace(amr=recorded.amr)))


def may_sign_up(identity: ExternalIdentity) -> bool:
    """Whether an identity may become a user, by its email. `AUTH_SIGNUP_DOMAINS` needs a trusted one."""
    is_proved = identity.is_trusted and identity.email_verified
    settings = latchkey.settings
    return settings.may_sign_up(identity.email) and (is_proved or not settings.signup_domains)


def _link_identity(tx: Transaction, user: Any, identity: ExternalIdentity) -> bool:
    if not user.email_proved:
        tx.run("drop_unproved", user_id=user.id, provider="email", drops_email=False, keeps_password=False)
        tx.run("end_user_sessions", user_id=user.id, kept_session_id=None, reason="address_proved")
        tx.run("void_tokens", user_id=user.id)
    if not tx.run("insert_identity", user_id=user.id, signs_in=True, **identity.row):
        # Either a concurrent request linked this identity, or the user has another one of the provider.
        return tx.run("use_identity", user_id=user.id, **identity.row) > 0
    tx.run("prove_email", user_id=user.id)
    if user.email_proved:
        tell_of_identity(tx, user, "identity_linked", identity.provider, None)
    else:
        # What the user had before is dropped, and an undo link must not bring it back.
        notify(tx, user.id, user.email, "identity_linked", provider=identity.provider)
    is_confirmed = user.email_proved and user.is_confirmed
    acts = ["identity_linked", None if is_confirmed else "email_confirmed"]
    _record(tx, user, identity, acts, "user.updated")
    return True


def _create_user(tx: Transaction, identity: ExternalIdentity, user_id: str) -> Any:
    email, metadata = _new_user(identity)
    columns = {"email": email, "is_trusted": identity.is_trusted, "user_metadata": metadata}
    user = tx.one("create_user_by_identity", user_id=user_id, **columns)
    tx.run("insert_identity", user_id=user.id, signs_in=True, **identity.row)
    if user.email:
        tx.run("add_email_of_identity", user_id=user.id, email=user.email)
    _record(tx, user, identity, ["user_created"], "user.created", by="oauth")
    return user


def _new_user(identity: ExternalIdentity) -> tuple[str | None, dict[str, Any]]:
    """Return email and metadata of a user who is created for an identity."""
    names = ("name", "avatar_url")
    metadata: dict[str, Any] = {name: identity.data[name] for name in names if name in identity.data}
    return identity.email if identity.email_verified else None, metadata


def _record(
    tx: Transaction, user: Any, identity: ExternalIdentity, acts: Sequence[str | None], event: str, **ids: str
) -> None:
    audit.record(tx, user.id, user.email, acts, [event], method="oauth", provider=identity.provider, **ids)


def invalid_id_token() -> ApiError:
    details = "id_token: must be a fresh one from this provider for this client, with its nonce"
    return ApiError("id_token.bad_oauth_callback", details)
