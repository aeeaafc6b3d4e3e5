"""Signs in with passkeys. WebAuthn challenges and assertions of passkeys and security keys."""

import base64
import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import UUID

import structlog

from auth.core import constants
from auth.core.factors import webauthn
from auth.core.factors.webauthn import (
    WRONG_SIGNATURE,
    Assertion,
    AuthenticationCredential,
    InvalidResponse,
    NewCredential,
)
from auth.core.json_bodies import JsonObject
from auth.core.text.moments import iso_8601
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.passkeys import unused
from auth.flows.sessions.issuing import IssuedSession, about_new, about_own
from auth.flows.sessions.token_response import SignInProof, raise_session, sign_in_user
from auth.flows.sign_in.reauthentication import admit_caller
from auth.registry import TokenHook
from auth.rules.factors import counter_rose, may_be_copy
from auth.rules.users import is_banned
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Database, Runner, Transaction, acts, queries
from sql.acts import Act

log = structlog.get_logger()

CredentialRow: TypeAlias = "queries.SelectCredential | queries.ListFactorsOfUndo"
C = TypeVar("C", bound="CredentialRow")
PASSKEY, SECURITY_KEY = "passkey", "webauthn"
# The purposes of challenges for a new passkey: one that its user makes, and one that a browser makes unasked.
REGISTRATION, UPGRADE = "passkey_registration", "passkey_upgrade"
# The owner of a sign-in's challenge. The user is not known yet.
_NOBODY: dict[str, Any] = {"user_id": None, "session_id": None, "factor_id": None}


def write_challenge(
    db: Database | Transaction, purpose: str, challenge: bytes | None, **owner: str | None
) -> "queries.WriteChallenge":
    """Write a challenge, none for an app, and return its id and expiry in Unix seconds.

    A session keeps the five newest; lock its user first. Only rate limits bound challenges without a session:
    with a maximum, strangers could remove each other's.
    """
    return queries.write_challenge(
        db,
        purpose=purpose,
        challenge=challenge,
        lifetime=constants.CHALLENGE_LIFETIME,
        **_NOBODY | owner,
    )


def spend_challenge(asked: Asked, challenge_id: str, purpose: str, **owner: str | None) -> bytes:
    """Delete a challenge and return it, once."""
    return _spend(asked, challenge_id, [purpose], **owner)[0]


def spend_registration(asked: Asked, challenge_id: str, purposes: Sequence[str]) -> tuple[bytes, bool]:
    """Spend a challenge for a passkey of the caller, and return whether its options allowed the browser to
    make one unasked: an authenticator's response doesn't say so.
    """
    challenge, purpose = _spend(asked, challenge_id, purposes, **own_session(asked))
    return challenge, purpose == UPGRADE


def _spend(
    asked: Asked, challenge_id: str, purposes: Sequence[str], **owner: str | None
) -> tuple[bytes, str]:
    row = queries.spend_challenge(asked.db, challenge_id=challenge_id, purposes=purposes, **_NOBODY | owner)
    if row is None:
        raise ApiError("webauthn_challenge_not_found")
    if not row.is_live:
        raise ApiError("webauthn_challenge_expired")
    return bytes(row.challenge), row.purpose


def own_session(asked: Asked) -> dict[str, str | None]:
    """Return the owner of challenges for the caller's session."""
    return {"user_id": asked.caller.user_id, "session_id": asked.caller.session_id}


def begin_sign_in(asked: Asked) -> JsonObject:
    """Return a challenge, and options for any passkey of the site."""
    return _begin(asked, asked.db)


def begin_proof(asked: Asked) -> JsonObject:
    """Like `begin_sign_in`, for the caller's session."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        admit_caller(asked, act)
        return _begin(asked, act, **own_session(asked))


def _begin(asked: Asked, db: Database | Transaction, **owner: str | None) -> JsonObject:
    challenge, options = asked.parts.relying_party.request_options(is_passkey=True)
    row = write_challenge(db, "passkey_authentication", challenge, **owner)
    return {"challenge_id": row.id, "options": options, "expires_at": row.expires_at}


def _verify_passkey(
    asked: Asked, body: JsonObject, **owner: str | None
) -> "tuple[queries.SelectCredential, Assertion]":
    challenge = spend_challenge(asked, body["challenge_id"], "passkey_authentication", **owner)
    return verify(asked, body["credential"], challenge, PASSKEY)


def name_of(user: PersonFacts) -> str:
    """Return the name under which authenticators list a user's credentials."""
    return user.email or user.phone or f"User {user.id[:8]}"


def verify_creation(
    asked: Asked, response: JsonObject, challenge: bytes, factor_type: str, *, is_unasked: bool = False
) -> NewCredential:
    is_passkey = factor_type == PASSKEY
    try:
        return asked.parts.relying_party.verify_creation(
            response, challenge, is_passkey=is_passkey, is_unasked=is_unasked
        )
    except InvalidResponse as error:
        raise failed(str(error)) from None


def verify(
    asked: Asked, response: JsonObject, challenge: bytes, factor_type: str
) -> "tuple[queries.SelectCredential, Assertion]":
    """Return the row of the credential that made an assertion, and the assertion."""
    find = functools.partial(queries.select_credential, asked.db, factor_type=factor_type)
    return check(
        asked, response, challenge, lambda id: find(credential_id=id), is_passkey=factor_type == PASSKEY
    )


def check(
    asked: Asked,
    response: JsonObject,
    challenge: bytes,
    find: Callable[[bytes], C | None],
    *,
    is_passkey: bool,
) -> tuple[C, Assertion]:
    """Return the row that `find` returns for the id of a credential, and its assertion."""
    row = None
    try:
        credential = webauthn.parse_assertion(response)
        if is_passkey and not credential.response.user_handle:
            raise InvalidResponse("it has no userHandle: ask the browser without allowCredentials")
        row = find(credential.raw_id)
        asked.noted.note(user_id=row.user_id if row else None)
        public_key = row.public_key if row else None
        # Refuse an unknown credential after the same time as a wrong signature.
        assertion = asked.parts.relying_party.verify_assertion(
            credential, challenge, bytes(public_key or webauthn.NOBODYS_KEY), is_passkey=is_passkey
        )
    except InvalidResponse as error:
        is_unknown = is_passkey and row is None and str(error) == WRONG_SIGNATURE
        if is_unknown and _is_gone(asked, credential):
            raise failed("no passkey has this id", "unknown") from None
        # Our pages say of both that the passkey no longer works. The API says of this one what it says of a
        # wrong signature.
        raise failed(str(error), "removed" if is_unknown else None) from None
    if row is None or public_key is None:
        raise failed(WRONG_SIGNATURE)
    # A passkey includes its user. A security key may omit it.
    handle = credential.response.user_handle
    if (handle or is_passkey) and handle != webauthn.user_handle(row.user_id):
        raise failed(WRONG_SIGNATURE)
    return row, assertion


def require_older(credential: "queries.SelectCredential", added_before: datetime | None) -> None:
    """Refuse if a credential was added later."""
    if added_before and (credential.verified_at is None or credential.verified_at >= added_before):
        raise failed("it was added in the last seven days")


def use(act: Act, credential: CredentialRow, assertion: Assertion, email: str | None) -> ApiError | None:
    """Store the counter of a locked user's credential, or return the error to raise after the transaction."""
    row, counter = queries.select_counter(act, id=credential.id), assertion.new_sign_count
    if row is None:
        return failed(WRONG_SIGNATURE)
    before = row.sign_count or 0
    is_copy = may_be_copy(before, counter, is_synced=row.backup_eligible)
    if not is_copy:
        # Copies of a synced passkey have counters of their own.
        queries.use_credential(
            act, id=credential.id, sign_count=counter, backed_up=assertion.credential_backed_up
        )
    if counter_rose(before, counter):
        return None
    about = {"passkey": credential.friendly_name} | ({} if is_copy else {"is_synced": True})
    audit.record(act, credential.user_id, email, ["passkey_counter_fell"], [], **about)
    if not is_copy:
        return None
    log.warning("passkey_counter_fell", passkey_id=credential.id, user_id=credential.user_id)
    return counter_fell()


def counter_fell() -> ApiError:
    return failed("its counter went down, so it may be a copy")


def failed(reason: str, context: Literal["unknown", "removed"] | None = None) -> ApiError:
    key = "webauthn_verification_failed"
    return ApiError(f"{context}.{key}" if context else key, f"credential: {reason}")


def accepted_ids(on: Runner, user_id: str, *, except_id: str = "") -> list[str]:
    """Return the ids of the credentials that authenticators must keep for a user, in base64url.

    The link of a notice asks for credentials that were removed in the last seven days: without this, a thief
    who removes one would have its owner's browser delete it. `except_id` is the factor that this browser has
    removed.
    """
    rows = queries.list_accepted_credentials(on, user_id=user_id)
    return [base64url(bytes(row.credential_id)) for row in rows if not row.is_removed or row.id != except_id]


def base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def sign_in(asked: Asked, body: JsonObject, hook: TokenHook | None) -> IssuedSession:
    """Open a session for the user of a passkey, at `aal2`."""
    passkey, assertion = _verify_passkey(asked, body)
    issue = about_new(asked, hook, passkey.user_id, "webauthn") if hook else None
    with acts.on(asked.db, passkey.user_id) as act:
        person = act.read(queries.select_person, user_id=passkey.user_id, session_id=None)
        if person is None:
            raise failed(WRONG_SIGNATURE)
        if is_banned(person):
            raise ApiError("user_banned")
        refusal = _use_passkey(asked, act, person, passkey, assertion)
        if refusal is None:
            proof = SignInProof(method="webauthn", factor_id=passkey.id, by_key=passkey.is_by_key)
            return sign_in_user(asked, act, person, proof, issue, passkey=passkey.friendly_name)
    raise refusal


def prove(
    asked: Asked,
    body: JsonObject,
    hook: TokenHook | None = None,
    *,
    added_before: datetime | None = None,
    owner: dict[str, str | None] | None = None,
) -> tuple[str, IssuedSession]:
    """Record a passkey of the caller as a proof, and raise the session. Return the time and the session.

    `owner` is whom the challenge was written for: a session, or by default nobody.
    """
    asked.live_caller()
    passkey, assertion = _verify_passkey(asked, body, **owner or {})
    if passkey.user_id != asked.caller.user_id:
        raise failed(WRONG_SIGNATURE)
    require_older(passkey, added_before)
    issue = about_own(asked, hook, "webauthn") if hook else None
    with acts.on(asked.db, asked.caller.user_id) as act:
        if issue:
            issue.confirm(act)
        caller = admit_caller(asked, act)
        refusal = _use_passkey(asked, act, caller, passkey, assertion)
        if refusal is None:
            session_id = asked.caller.session_id
            session = raise_session(asked, act, caller.id, session_id, "webauthn", passkey.id, issue)
            details = {"method": "webauthn", "passkey": passkey.friendly_name}
            audit.record(act, caller.id, caller.email, ["reauthenticated"], [], **details)
            return iso_8601(act.acted_at), session
    raise refusal


def _use_passkey(
    asked: Asked, act: Act, user: PersonFacts, passkey: "queries.SelectCredential", assertion: Assertion
) -> ApiError | None:
    """Use a passkey of a locked user, or return the error to raise after the transaction."""
    row = queries.select_passkey(act, user_id=user.id, passkey_id=passkey.id)
    if row is None:
        # It may have been deleted since the lookup.
        return failed(WRONG_SIGNATURE)
    refusal = use(act, passkey, assertion, user.email)
    if refusal is None and not row.is_verified:
        _make_factor(asked, act, user, row)
    return refusal


def _make_factor(asked: Asked, act: Act, user: PersonFacts, passkey: "queries.SelectPasskey") -> None:
    """Make a passkey that a browser made unasked a factor, at its first use, and notify the user of an
    addition (rule 51).
    """
    unused.clear_before_passkey(act, user, kept_id=passkey.id)
    notify(asked, act, user, "passkey_added", how="first_used")
    queries.verify_passkey(act, user_id=user.id, passkey_id=passkey.id)
    details = {"passkey": passkey.friendly_name}
    audit.record(act, user.id, user.email, ["passkey_verified"], ["user.updated"], **details)


def _is_gone(asked: Asked, credential: AuthenticationCredential) -> bool:
    """Whether an unknown credential was ours, and nothing can bring it back. Its authenticator may then
    delete it, but not that of another service on the domain, whose user handles have another length.
    """
    handle = credential.response.user_handle or b""
    if len(handle) != webauthn.HANDLE_BYTES:
        return False
    return base64url(credential.raw_id) not in accepted_ids(asked.db, str(UUID(bytes=handle)))
