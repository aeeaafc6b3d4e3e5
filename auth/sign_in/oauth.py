import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from psycopg2.errors import UniqueViolation

from auth.context import latchkey
from auth.messages.notices import tell_of_identity
from auth.messages.outgoing import notify
from auth.providers import ProviderError, ProviderUnavailable
from auth.providers.client import ExternalIdentity
from auth.providers.id_tokens import unverified_issuer
from auth.sign_in.token_response import Outcome, open_session, write_code
from auth.web import audit
from auth.web.errors import ApiError, unavailable
from sql import Transaction

_TRIES = 4


class _IdentityUnlinked(Exception):
    pass


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
    for _ in range(_TRIES):
        # Try again after a concurrent request has added or removed the identity or the user.
        with suppress(UniqueViolation, _IdentityUnlinked):
            outcome = _try_sign_in(identity, code_challenge, id_token)
            if outcome.refusal:
                raise outcome.refusal
            return outcome
    raise unavailable()


def _try_sign_in(
    identity: ExternalIdentity, code_challenge: str | None, id_token: dict[str, Any] | None
) -> Outcome:
    # A refusal is returned, not raised: the transaction commits, and the id_token stays spent.
    audit.about(provider=identity.provider)
    with latchkey.db.transaction() as tx:
        if id_token and not tx.run("spend_id_token", **id_token):
            return Outcome(refusal=invalid_id_token())
        user = tx.one("lock_user_by_identity", provider=identity.provider, subject=identity.subject)
        by_email = user is None and identity.is_trusted and identity.email_verified
        user = tx.one("lock_user_by_email", email=identity.email) if by_email else user
        if user is None and latchkey.settings.disable_signup:
            return Outcome(refusal=ApiError("signup_disabled"))
        audit.about(user_id=user and user.id, provider=identity.provider)
        if user and user.is_banned:
            return Outcome(refusal=ApiError("user_banned"))
        if user is None:
            user = _create_user(tx, identity)
        elif not by_email and not tx.run("use_identity", user_id=user.id, **identity.row):
            raise _IdentityUnlinked
        elif by_email and not _link_identity(tx, user, identity):
            return Outcome(refusal=ApiError("identity_already_exists"))
        if code_challenge:
            return Outcome(authorization_code=write_code(tx, user.id, code_challenge, "oauth"))
        session = open_session(tx, user.id, "oauth")
        tx.run(
            "record_identity",
            session_id=session.session_id,
            provider=identity.provider,
            subject=identity.subject,
        )
        _record(tx, user, identity, ["signed_in"], "auth.login", session_id=session.session_id)
        return Outcome(session)


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


def _create_user(tx: Transaction, identity: ExternalIdentity) -> Any:
    metadata = {name: identity.data[name] for name in ("name", "avatar_url") if name in identity.data}
    email = identity.email if identity.email_verified else None
    columns = {"email": email, "is_trusted": identity.is_trusted, "user_metadata": metadata}
    user = tx.one("create_user_by_identity", **columns)
    tx.run("insert_identity", user_id=user.id, signs_in=True, **identity.row)
    if user.email:
        tx.run("add_email_of_identity", user_id=user.id, email=user.email)
    _record(tx, user, identity, ["user_created"], "user.created", by="oauth")
    return user


def _record(
    tx: Transaction,
    user: Any,
    identity: ExternalIdentity,
    acts: Sequence[str | None],
    event: str,
    **details: str,
) -> None:
    known = {"method": "oauth", "provider": identity.provider}
    audit.record(tx, user.id, user.email, acts, [event], **details, **known)


def invalid_id_token() -> ApiError:
    details = "id_token: must be a fresh one of this provider for this client, with its nonce"
    return ApiError("id_token.bad_oauth_callback", details)
