"""Signing in the user that a provider identified, after a redirect or by an id_token."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog
from psycopg2.errors import UniqueViolation

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.oauth_flows import provider_named
from auth.providers.client import ExternalIdentity, ProviderError, ProviderUnavailable
from auth.tokens import one_time
from auth.web import audit
from auth.web.edge import client
from auth.web.errors import ApiError, unavailable
from sql import Transaction

log = structlog.get_logger()

_TRIES = 4


@dataclass(frozen=True)
class SignIn:
    """A session (a row of `select_new_session`), an authorization code, or a refusal."""

    user_id: str | None
    session: Any = None
    authorization_code: str | None = None
    refusal: ApiError | None = None


@dataclass(frozen=True)
class IdToken:
    """What is kept of an id_token, so that it serves once."""

    hash: bytes
    expires_at: int


class _IdentityUnlinked(Exception):
    """The identity was unlinked while the transaction waited for its user."""


def sign_in_with_id_token(body: dict[str, Any]) -> Any:
    """Return the session that an id_token opens, once. Raises `ApiError`."""
    provider = provider_named(body["provider"])
    try:
        identity, expires_at = provider.identify_by_id_token(body["id_token"], body.get("nonce"))
    except ProviderError as error:
        log.warning("provider_failed", provider=provider.name, reason=str(error))
        is_outage = isinstance(error, ProviderUnavailable)
        raise unavailable("provider.service_unavailable") if is_outage else _invalid_id_token() from None
    # Without the signature, which can be written in several ways.
    signed = body["id_token"].rpartition(".")[0]
    return sign_in(identity, id_token=IdToken(hashlib.sha256(signed.encode()).digest(), expires_at)).session


def sign_in(
    identity: ExternalIdentity, *, code_challenge: str | None = None, id_token: IdToken | None = None
) -> SignIn:
    """Sign in the user of an identity.

    That is the user who has the identity, else the user whose email a trusted provider verified, else a new
    user. With a code challenge the user gets an authorization code instead of a session. Raises `ApiError`.
    """
    for _ in range(_TRIES):
        # A concurrent request added or removed the identity or the user: the next try sees what it committed.
        with suppress(UniqueViolation, _IdentityUnlinked):
            done = _try_sign_in(identity, code_challenge, id_token)
            audit.about(user_id=done.user_id, provider=identity.provider)
            if done.refusal:
                raise done.refusal
            return done
    raise unavailable()


def _try_sign_in(identity: ExternalIdentity, code_challenge: str | None, id_token: IdToken | None) -> SignIn:
    with latchkey.db.transaction() as tx:
        if id_token and not tx.run(
            "spend_id_token", token_hash=id_token.hash, expires_at=id_token.expires_at
        ):
            return SignIn(None, refusal=_invalid_id_token())
        user = tx.one("lock_user_by_identity", provider=identity.provider, subject=identity.subject)
        by_email = user is None and identity.is_trusted and identity.email_verified
        user = tx.one("lock_user_by_email", email=identity.email) if by_email else user
        if user is None and latchkey.settings.disable_signup:
            return SignIn(None, refusal=ApiError("signup_disabled"))
        if user and user.is_banned:
            return SignIn(user.id, refusal=ApiError("user_banned"))
        if user is None:
            user = _create_user(tx, identity)
        elif not by_email and not _use_identity(tx, user, identity):
            raise _IdentityUnlinked
        elif by_email and not _link_identity(tx, user, identity):
            return SignIn(user.id, refusal=ApiError("identity_already_exists"))
        if code_challenge:
            return SignIn(user.id, authorization_code=_write_code(tx, user, code_challenge))
        return SignIn(user.id, session=_open_session(tx, user, identity))


def _use_identity(tx: Transaction, user: Any, identity: ExternalIdentity) -> bool:
    known_by = {"provider": identity.provider, "subject": identity.subject}
    return tx.run("use_identity", user_id=user.id, identity_data=identity.data, **known_by) > 0


def _link_identity(tx: Transaction, user: Any, identity: ExternalIdentity) -> bool:
    """Link the identity to the user who has its email, unless that user has another one of the provider."""
    if not user.email_proved:
        tx.run("drop_unproved", user_id=user.id, provider="email", drops_email=False, keeps_password=False)
        tx.run("end_user_sessions", user_id=user.id, kept_session_id=None, reason="address_proved")
        tx.run("void_tokens", user_id=user.id)
    if not _insert_identity(tx, user, identity):
        # A concurrent request may have linked this very identity.
        return _use_identity(tx, user, identity)
    tx.run("prove_email", user_id=user.id)
    notice = outgoing.Message(user.email, link=False, code=False)
    tx.run("write_message", **notice.message_row(user.id, "identity_linked", provider=identity.provider))
    is_confirmed = user.email_proved and user.is_confirmed
    acts = ["identity_linked", None if is_confirmed else "email_confirmed"]
    _record(tx, user, identity, acts, "user.updated")
    return True


def _create_user(tx: Transaction, identity: ExternalIdentity) -> Any:
    metadata = {name: identity.data[name] for name in ("name", "avatar_url") if name in identity.data}
    email = identity.email if identity.email_verified else None
    user = tx.one(
        "create_user_by_identity", email=email, is_trusted=identity.is_trusted, user_metadata=metadata
    )
    _insert_identity(tx, user, identity)
    if user.email:
        tx.run("add_email_of_identity", user_id=user.id, email=user.email)
    _record(tx, user, identity, acts=["user_created"], event="user.created", by="oauth")
    return user


def _insert_identity(tx: Transaction, user: Any, identity: ExternalIdentity) -> bool:
    known_by = {"provider": identity.provider, "subject": identity.subject}
    return (
        tx.run("insert_identity", user_id=user.id, identity_data=identity.data, signs_in=True, **known_by) > 0
    )


def _write_code(tx: Transaction, user: Any, code_challenge: str) -> str:
    code = one_time.new_token()
    tx.run(
        "write_authorization_code",
        user_id=user.id,
        code_hash=one_time.hash_token(code),
        code_challenge=code_challenge,
        method="oauth",
        network=client()["network"],
        authorization_code_lifetime=one_time.AUTHORIZATION_CODE_LIFETIME,
    )
    return code


def _open_session(tx: Transaction, user: Any, identity: ExternalIdentity) -> Any:
    session_id = tx.one("open_session", user_id=user.id, method="oauth", **client()).id
    _record(tx, user, identity, acts=["signed_in"], event="auth.login", session_id=session_id)
    return tx.one("select_new_session", session_id=session_id)


def _record(
    tx: Transaction, user: Any, identity: ExternalIdentity, acts: list[str | None], event: str, **details: str
) -> None:
    details |= {"method": "oauth", "provider": identity.provider}
    tx.run("record_acts", user_id=user.id, email=user.email, acts=acts, events=[event], details=details)


def _invalid_id_token() -> ApiError:
    details = "id_token: must be a fresh one of this provider for this client, with its nonce"
    return ApiError("id_token.bad_oauth_callback", details)
