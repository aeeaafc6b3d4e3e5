"""Signs in with a provider's identity: finds its user, links it, or creates a user."""

import hashlib
import uuid
from contextlib import suppress
from typing import Any, TypeAlias

from psycopg2.errors import UniqueViolation

from auth.core.providers import ProviderError, ProviderUnavailable
from auth.core.providers.client import ExternalIdentity
from auth.core.providers.id_tokens import unverified_issuer
from auth.flows import admission
from auth.flows.admission import is_listed, may_become
from auth.flows.links.proving import person_of, prove_address
from auth.flows.messages.outgoing import notify
from auth.flows.sessions.issuing import Issue, about_new, is_asked
from auth.flows.sessions.token_response import Outcome, Session, notify_of_sign_in, open_session, write_code
from auth.flows.sign_in.oauth import find_provider
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, unavailable
from sql import Transaction, acts, queries
from sql.acts import Act

_TRIES = 4
ADMINISTRATOR = "admin"
# The parameters of `spend_id_token`, if there is a token.
IdToken = dict[str, Any] | None


class _IdentityUnlinked(Exception):
    pass


_User: TypeAlias = "queries.LockUserByIdentity | queries.LockUserByEmail | queries.CreateUserByIdentity"


class _NewUser(Exception):
    """The hook has not been asked about the new user."""


def sign_in_with_id_token(asked: Asked, body: dict[str, Any]) -> Session:
    """Open a session for an unused id_token."""
    identity, id_token = read_id_token(asked, body)
    return sign_in(asked, identity, for_client=True, id_token=id_token).session


def read_id_token(asked: Asked, body: dict[str, Any]) -> tuple[ExternalIdentity, dict[str, Any]]:
    """Return the identity of a valid id_token, and the parameters of `spend_id_token`."""
    provider = find_provider(asked, body["provider"])
    try:
        issuer = unverified_issuer(body["id_token"])
        if provider is None:
            raise ApiError("provider_disabled", issuer=issuer)
        identity, expires_at = provider.identify_by_id_token(body["id_token"], body.get("nonce"))
    except ProviderUnavailable:
        raise unavailable("provider.service_unavailable") from None
    except ProviderError:
        raise invalid_id_token() from None
    # Without the signature, which has several spellings: a token is accepted once.
    signed = body["id_token"].rpartition(".")[0]
    return identity, {"token_hash": hashlib.sha256(signed.encode()).digest(), "expires_at": expires_at}


def sign_in(
    asked: Asked,
    identity: ExternalIdentity,
    *,
    for_client: bool,
    code_challenge: str | None = None,
    id_token: IdToken = None,
) -> Outcome:
    """Sign in the owner of an identity, else the owner of an email that a trusted provider verified, else a
    new user.

    With a code challenge, return an authorization code instead of a session.
    """
    user_id = None if admission.has_hook(asked) else str(uuid.uuid4())
    is_hooked = is_asked(asked, for_client=for_client and not code_challenge)
    for _ in range(_TRIES):
        # Try again after a concurrent request has added or removed the identity or the user.
        with suppress(UniqueViolation, _IdentityUnlinked):
            try:
                issue = _issue(asked, identity, id_token, user_id) if is_hooked else Issue()
                outcome = _try_sign_in(asked, identity, code_challenge, id_token, user_id, issue)
            except _NewUser:
                data, provider = identity.metadata, identity.provider
                user_id = may_become(asked, identity.email, None, data=data, provider=provider)
                continue
            if outcome.refusal:
                raise outcome.refusal
            return outcome
    raise unavailable()


def _issue(asked: Asked, identity: ExternalIdentity, id_token: IdToken, new_user_id: str | None) -> Issue:
    """Ask the token hook after creating or linking the user, unless the sign-in will be refused."""
    with acts.begin(asked.db) as tx:
        is_spent = id_token and queries.select_spent_id_token(tx, token_hash=id_token["token_hash"])
        user = None if is_spent else _user_of(asked, tx, identity, new_user_id)
    user_id = None if user is None or isinstance(user, ApiError) else user.id
    return about_new(asked, user_id, "oauth", for_client=True, provider=identity.provider)


def _try_sign_in(
    asked: Asked,
    identity: ExternalIdentity,
    code_challenge: str | None,
    id_token: IdToken,
    user_id: str | None,
    issue: Issue,
) -> Outcome:
    """Return the outcome. A refusal is returned, not raised, so that the id_token stays spent."""
    asked.noted.note(provider=identity.provider)
    known: dict[str, Any] = {"provider": identity.provider, "auth_time": identity.auth_time}
    with acts.begin(asked.db) as tx:
        if id_token and not queries.spend_id_token(tx, **id_token):
            return Outcome(refusal=invalid_id_token())
        user = _user_of(asked, tx, identity, user_id)
        if isinstance(user, ApiError):
            return Outcome(refusal=user)
        # A first proof of the address: known networks from before may belong to others.
        is_first = not getattr(user, "email_proved", True)
        if code_challenge:
            code = write_code(asked, tx, user.id, code_challenge, "oauth", tells=not is_first, **known)
            return Outcome(authorization_code=code)
        session = open_session(asked, tx, user.id, "oauth", issue)
        if not is_first:
            notify_of_sign_in(asked, tx, user.id, session)
        recorded = queries.record_sign_in_of_provider(tx, session_id=session.session_id, **known)
        details = {"method": "oauth", "provider": identity.provider, "session_id": session.session_id}
        audit.record(tx, user.id, user.email, ["signed_in"], ["auth.login"], **details)
        return Outcome(Session(session._replace(amr=recorded.amr), issue))


def _user_of(
    asked: Asked, tx: Act, identity: ExternalIdentity, new_user_id: str | None
) -> "_User | ApiError":
    """Return the locked owner of an identity, linked or created before, or the refusal."""
    domains = _hold_customer(tx, identity) if identity.customer else []
    if isinstance(domains, ApiError):
        return domains
    known = {"provider": identity.provider, "subject": identity.row["subject"]}
    user: Any = queries.lock_user_by_identity(tx, **known)
    by_email = user is None and identity.is_proved
    user = queries.lock_user_by_email(tx, email=identity.email) if by_email else user
    asked.noted.note(user_id=user and user.id, provider=identity.provider)
    if user is None:
        return _create_user(asked, tx, identity, new_user_id)
    if user.is_banned:
        return ApiError("user_banned")
    if identity.customer and (
        refusal := _refusal_of_customer(tx, user, identity.customer, domains, by_email)
    ):
        return refusal
    if not by_email and not queries.use_identity(tx, user_id=user.id, **identity.row):
        raise _IdentityUnlinked
    if by_email and not _link_identity(asked, tx, user, identity):
        return ApiError("identity_already_exists")
    return user


def _hold_customer(tx: Transaction, identity: ExternalIdentity) -> "list[str] | ApiError":
    """Hold the customer's provider of an identity until the transaction ends, and return its current
    domains."""
    # Also by the issuer: the provider's may have changed since the request.
    held = queries.hold_identity_provider(tx, id=str(identity.customer), issuer=identity.issuer)
    if held is None or not held.enabled:
        return ApiError("sso_provider_disabled")
    if _domain(identity.email) not in held.domains:
        return ApiError("customer.email_address_not_authorized")
    return held.domains


def _refusal_of_customer(
    tx: Transaction, user: Any, provider_id: str, domains: list[str], by_email: bool
) -> ApiError | None:
    """Return why a customer's provider may not sign in a locked user, or None.

    It signs in users whom it created, whose address is not proved yet, or whom an administrator moved to it.
    """
    if user.role == ADMINISTRATOR:
        return ApiError("admin.user_sso_conflict")
    if not by_email:
        is_its_address = _domain(user.email) in domains
        return None if is_its_address else ApiError("customer.email_address_not_authorized")
    if queries.spend_adoption(tx, user_id=user.id, provider_id=provider_id):
        return None
    # The data of a user with another proved address may be a stranger's.
    return ApiError("user_sso_conflict") if user.email_proved or user.phone_proved else None


def _domain(email: str | None) -> str:
    return (email or "").rpartition("@")[2]


def _link_identity(asked: Asked, tx: Act, user: Any, identity: ExternalIdentity) -> bool:
    """Link an identity to the user of its email. Return False if the user has another one of the provider."""
    if not user.email_proved:
        prove_address(tx, person_of(tx, user.id), "email", user.email, "provider")
    is_new = queries.insert_identity(tx, user_id=user.id, signs_in=True, **identity.row)
    if not queries.use_identity(tx, user_id=user.id, **identity.row):
        return False
    # Otherwise a concurrent request has linked it.
    if is_new and user.email_proved:
        # The first proof removes the user's earlier data, and a link must not restore it.
        notify(asked, tx, user, "identity_linked", provider=identity.provider)
    if is_new:
        done = ["identity_linked", None if user.email_proved else "email_confirmed"]
        details = {"method": "oauth", "provider": identity.provider}
        audit.record(tx, user.id, user.email, done, ["user.updated"], **details)
    return True


def _create_user(
    asked: Asked, tx: Transaction, identity: ExternalIdentity, user_id: str | None
) -> "_User | ApiError":
    """Return the new user of an identity, or the refusal."""
    if asked.settings.disable_signup:
        return ApiError("signup_disabled")
    if not is_listed(asked, identity.told_email, is_proved=identity.is_proved):
        return ApiError("email_address_not_authorized")
    if user_id is None:
        raise _NewUser
    columns: dict[str, Any] = {"email": identity.email, "user_metadata": identity.metadata}
    columns |= {"is_trusted": identity.is_proved, **identity.row}
    user = queries.create_user_by_identity(tx, user_id=user_id, **columns)
    details = {"method": "oauth", "provider": identity.provider, "by": "oauth"}
    audit.record(tx, user.id, user.email, ["user_created"], ["user.created"], **details)
    return user


def invalid_id_token() -> ApiError:
    details = "id_token: must be a fresh one from this provider for this client, with its nonce"
    return ApiError("id_token.bad_oauth_callback", details)
