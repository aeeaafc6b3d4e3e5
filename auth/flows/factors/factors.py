"""Second factors of the caller, authenticator apps and security keys: enrol, challenge, verify and remove."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from auth.core import constants
from auth.core.factors import totp
from auth.core.factors.webauthn import WRONG_SIGNATURE, NewCredential
from auth.core.json_bodies import JsonObject
from auth.flows import ends
from auth.flows.admin import targets
from auth.flows.factors import factor_codes
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.passkeys import assertions, unused
from auth.flows.sessions.issuing import Issue, IssuedSession, about_own
from auth.flows.sessions.token_response import raise_session
from auth.flows.sign_in.reauthentication import WantedChange, add, admit_caller, give_proof, proof_needed
from auth.flows.sign_in.reauthentication import remove as removing
from auth.registry import TokenHook
from auth.rules.factors import begins_asking, may_verify
from auth.rules.policy import RECENT_AGE
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Database, Transaction, acts, queries

FactorRow: TypeAlias = "queries.SelectFactor | queries.ListTotpFactors"
Named: TypeAlias = "FactorRow | queries.RenameFactor | queries.ListFactorsById"
_DISABLED = {
    "totp": "mfa_totp_enroll_not_enabled",
    "webauthn": "mfa_webauthn_enroll_not_enabled",
    "phone": "mfa_phone_enroll_not_enabled",
}
NO_CREDENTIAL = dict.fromkeys(
    (
        "credential_id", "public_key", "sign_count", "transports",
        "aaguid", "backup_eligible", "backed_up",
    )
)  # fmt: skip


def enrol(asked: Asked, body: JsonObject) -> JsonObject:
    """Begin to enrol a factor. The caller needs a proof."""
    factor_type = body["factor_type"]
    # The clients offer phones too. SMS codes are no second factor here: attackers can take over a number.
    if not asked.settings.mfa_enabled or factor_type == "phone":
        raise ApiError(_DISABLED[factor_type])
    proof = give_proof(asked, body, add("factor"))
    factor_id, name = str(uuid.uuid4()), body["friendly_name"]
    secret = totp.new_secret() if factor_type == "totp" else None
    sealed = asked.parts.sealer.seal(secret, factor_id) if secret else None
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, add("factor"), proof=proof)
        check_room(asked, act, caller.id, name)
        columns = {"id": factor_id, "user_id": caller.id, "factor_type": factor_type, "friendly_name": name}
        queries.insert_factor(act, secret=sealed, **columns, by_key=caller.is_session_by_key)
        # `select_factor` finds the session by this row, whose id stays in the database.
        assertions.write_challenge(act, factor_type, None, **_owner(asked, factor_id))
    members = {"id": factor_id, "type": factor_type, "friendly_name": name}
    if secret is None:
        return members
    account = caller.email or caller.phone or caller.id
    uri = totp.uri(secret, account, body.get("issuer") or asked.settings.brand_name)
    return members | {"totp": {"qr_code": totp.qr_code(uri), "secret": secret, "uri": uri}}


def require_begun(asked: Asked, factor_id: str) -> None:
    """Refuse unless the caller's session has begun to enrol this app, and still waits for its first code."""
    factor = _own_factor(asked, asked.db, factor_id)
    if factor.is_verified or factor.secret is None:
        raise ApiError("mfa_factor_not_found")


def is_verified(asked: Asked, factor_id: str) -> bool:
    """Return whether a factor of the caller has been verified before."""
    return _own_factor(asked, asked.db, factor_id).is_verified


def challenge(asked: Asked, factor_id: str, site: JsonObject | None = None) -> JsonObject:
    """Write a challenge for one of the caller's factors. It is valid for five minutes and five tries."""
    _check_site(asked, site or {})
    secret: bytes | None = None
    members: dict[str, Any] = {}
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act)
        factor = _own_factor(asked, act, factor_id)
        if factor.factor_type == "webauthn":
            secret, members = _key_options(asked, act, caller, factor)
        row = assertions.write_challenge(act, factor.factor_type, secret, **_owner(asked, factor.id))
    return {"id": row.id, "type": factor.factor_type, "expires_at": row.expires_at} | members


def _key_options(
    asked: Asked, act: acts.Act, caller: PersonFacts, factor: FactorRow
) -> tuple[bytes, JsonObject]:
    """Return a challenge for a security key, and the member of the response that has its options."""
    site, credentials = asked.parts.relying_party, queries.list_credentials(act, user_id=caller.id)
    if factor.is_verified:
        own = [row for row in credentials if row.id == factor.id]
        challenge, public_key = site.request_options(own, is_passkey=False)
    else:
        name = assertions.name_of(caller)
        challenge, public_key = site.creation_options(caller.id, name, credentials, is_passkey=False)
    options = {"type": _ceremony(factor), "credential_options": {"publicKey": public_key}}
    return challenge, {"webauthn": options}


def _ceremony(factor: FactorRow) -> str:
    return "request" if factor.is_verified else "create"


def _check_site(asked: Asked, body: JsonObject) -> None:
    site = asked.parts.relying_party
    if body.get("rpId", site.id) != site.id:
        raise ApiError("validation_failed", f"webauthn.rpId: must be {site.id}")
    if not set(body.get("rpOrigins", [])).issubset(site.origins):
        raise ApiError("validation_failed", f"webauthn.rpOrigins: must be among {', '.join(site.origins)}")


def _owner(asked: Asked, factor_id: str) -> dict[str, str | None]:
    return assertions.own_session(asked) | {"factor_id": factor_id}


def verify_totp(
    asked: Asked, factor_id: str, challenge_id: str, code: str, hook: TokenHook | None
) -> IssuedSession:
    """Raise the caller's session to `aal2` by a code."""
    factor = _own_factor(asked, asked.db, factor_id)
    # Other refusals come before the code is compared, and again under the lock.
    proof_needed(asked, *_changes(factor))
    if not queries.select_challenge(asked.db, id=challenge_id, **_owner(asked, factor.id)).is_open:
        raise ApiError("mfa_challenge_expired")
    match = factor_codes.check_app_code(asked, asked.caller.user_id, [factor], code)
    issue = about_own(asked, hook, "totp") if hook and match else None
    with acts.on(asked.db, asked.caller.user_id) as act:
        if issue:
            issue.confirm(act)
        caller = admit_caller(asked, act, *_changes(factor), proof="begun")
        if _own_factor(asked, act, factor_id).is_verified != factor.is_verified:
            raise ApiError("mfa_factor_not_found")
        if not queries.try_challenge(act, id=challenge_id, **_owner(asked, factor.id)):
            raise ApiError("mfa_challenge_expired")
        if match and factor_codes.spend_totp(act, match):
            queries.delete_challenge(act, id=challenge_id)
            return _complete(asked, act, caller, factor, "totp", issue)
    raise ApiError("mfa_verification_failed")


def verify_code(asked: Asked, code: str) -> IssuedSession:
    """Raise the caller's session to `aal2` by a code of any of their apps."""
    apps = queries.list_totp_factors(asked.db, user_id=asked.caller.user_id, verified_before=None)
    match = factor_codes.check_app_code(asked, asked.caller.user_id, apps, code)
    if match is None:
        raise ApiError("mfa_verification_failed")
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act)
        if not factor_codes.spend_totp(act, match):
            raise ApiError("mfa_verification_failed")
        app = next(app for app in apps if app.id == match.factor_id)
        return _complete(asked, act, caller, app, "totp", None)


def verify_webauthn(
    asked: Asked,
    factor_id: str,
    challenge_id: str,
    body: JsonObject,
    hook: TokenHook | None = None,
    *,
    added_before: datetime | None = None,
) -> IssuedSession:
    """Raise the caller's session to `aal2` by a security key."""
    _check_site(asked, body)
    factor = _own_factor(asked, asked.db, factor_id)
    # Other refusals come before the challenge is spent.
    proof_needed(asked, *_changes(factor))
    if body["type"] != _ceremony(factor):
        raise ApiError("validation_failed", f"webauthn.type: must be {_ceremony(factor)}")
    challenge = assertions.spend_challenge(
        asked, challenge_id, assertions.SECURITY_KEY, **_owner(asked, factor.id)
    )
    response = body["credential_response"]
    created = credential = assertion = None
    if factor.is_verified:
        credential, assertion = assertions.verify(asked, response, challenge, assertions.SECURITY_KEY)
        if credential.id != factor.id:
            raise assertions.failed(WRONG_SIGNATURE)
        assertions.require_older(credential, added_before)
    else:
        created = assertions.verify_creation(asked, response, challenge, assertions.SECURITY_KEY)
    issue = about_own(asked, hook, "webauthn") if hook else None
    refusal = None
    with acts.on(asked.db, asked.caller.user_id) as act:
        if issue:
            issue.confirm(act)
        caller = admit_caller(asked, act, *_changes(factor), proof="begun")
        # Another request may have verified or removed it.
        if _own_factor(asked, act, factor.id).is_verified != factor.is_verified:
            raise ApiError("mfa_factor_not_found")
        if credential and assertion:
            refusal = assertions.use(act, credential, assertion, caller.email)
        if refusal is None:
            return _complete(asked, act, caller, factor, "webauthn", issue, created)
    raise refusal


def _changes(factor: FactorRow) -> list[WantedChange]:
    """Return the changes that verifying a factor makes. `enrol` has asked for the proof."""
    return [] if factor.is_verified else [add("factor")]


def _complete(
    asked: Asked,
    tx: acts.Act,
    caller: PersonFacts,
    factor: FactorRow,
    method: str,
    issue: Issue | None,
    created: NewCredential | None = None,
) -> IssuedSession:
    """Raise the caller's session by a verified factor. `created` is a new key."""
    if not factor.is_verified:
        check_room(asked, tx, caller.id)
        notify(asked, tx, caller, "factor_added")
        end_older_access(asked, tx, caller)
        unused.remove_made_without_factor(tx, caller, "before_first_factor")
        credential: Mapping[str, Any] = created or NO_CREDENTIAL
        by_key = caller.is_session_by_key
        queries.activate_factor(tx, id=factor.id, user_id=caller.id, by_key=by_key, **credential)
    act, event = ("factor_verified", None) if factor.is_verified else ("factor_added", "user.updated")
    _record(tx, caller, act, factor, event)
    return raise_session(asked, tx, caller.id, asked.caller.session_id, method, factor.id, issue)


def end_older_access(asked: Asked, act: acts.Act, caller: PersonFacts) -> None:
    """End what began before a user has the first factor that sign-ins ask for (rule 18).

    Pending changes of an address end too: a thief could confirm them later without the factor.
    """
    if begins_asking(caller):
        ends.end_and_void(act, caller.id, asked.caller.session_id, "factor_added")


def check_room(asked: Asked, act: acts.Act, user_id: str, name: str = "") -> None:
    """Refuse if a locked user may not have another factor, or none of this name."""
    own = queries.count_verified_factors(act, user_id=user_id)
    if own.enrolled >= asked.settings.mfa_max_enrolled_factors:
        raise ApiError("too_many_enrolled_mfa_factors")
    if name in (own.names or ()):
        raise ApiError("mfa_factor_name_conflict")


def rename(asked: Asked, factor_id: str, name: str) -> None:
    with acts.on(asked.db, asked.caller.user_id) as act:
        _rename(act, admit_caller(asked, act), factor_id, name)


def rename_any(asked: Asked, user_id: str, factor_id: str, name: str) -> str:
    """Give a verified factor of any user another name, and return it as JSON."""
    with targets.on(asked, user_id) as (act, user):
        return _rename(act, user, factor_id, name)


def _rename(act: acts.Act, user: PersonFacts, factor_id: str, name: str) -> str:
    renamed = queries.rename_factor(act, id=factor_id, user_id=user.id, friendly_name=name)
    row = found(renamed, "mfa_factor_not_found")
    _record(act, user, "factor_renamed", row, "user.updated", old_factor=row.old_name)
    return row.object


def remove(asked: Asked, factor_id: str, body: JsonObject) -> None:
    """Remove one of the caller's factors."""
    wanted = removing("factor", factor_id)
    proof = give_proof(asked, body, wanted)
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, wanted, proof=proof)
        factor = _find(act, caller.id, factor_id)
        if factor.is_verified:
            notify(asked, act, caller, "factor_removed")
            _record(act, caller, "factor_removed", factor, "user.updated")
        delete(act, caller.id, [factor.id])


def remove_recent(asked: Asked, act: acts.Act, caller: PersonFacts, ids: list[str]) -> None:
    """Remove factors and passkeys that were added to a caller whose row is locked."""
    for factor in queries.list_factors_by_id(act, user_id=caller.id, ids=ids):
        notify(asked, act, caller, "passkey_removed" if factor.factor_type == "passkey" else "factor_removed")
        _record(act, caller, "factor_removed", factor, None)
    delete(act, caller.id, ids)


def delete(act: acts.Act, user_id: str, ids: Sequence[str]) -> None:
    """Delete factors and passkeys. The links of notices ask for those that are not recent for seven days."""
    moments = {"verified_before": act.acted_at - RECENT_AGE, "kept_until": act.acted_at + RECENT_AGE}
    queries.remove_factors(act, user_id=user_id, ids=ids, **moments)


def remove_any(asked: Asked, user_id: str, factor_id: str) -> None:
    """Remove a factor of any user, and notify the user."""
    with targets.on(asked, user_id) as (act, user):
        remove_of(asked, act, user, factor_id)


def remove_of(asked: Asked, act: acts.Act, user: PersonFacts, factor_id: str) -> None:
    """Remove a factor of a user whose row an administrator has locked."""
    factor = _find(act, user.id, factor_id)
    if factor.is_verified:
        notify(asked, act, user, "factor_removed")
    _record(act, user, "factor_removed", factor, "user.updated")
    delete(act, user.id, [factor.id])
    queries.forget_factors(act, user_id=user.id)


def _own_factor(asked: Asked, db: Database | Transaction, factor_id: str) -> "queries.SelectFactor":
    return _find(db, asked.caller.user_id, factor_id, asked.caller.session_id)


def _find(
    db: Database | Transaction, user_id: str, factor_id: str, verified_in: str | None = None
) -> "queries.SelectFactor":
    """Return a factor's row; with `verified_in`, only one that this session may verify."""
    row = queries.select_factor(db, id=factor_id, user_id=user_id, session_id=verified_in)
    factor = found(row, "mfa_factor_not_found")
    begun = {"is_verified": factor.is_verified, "is_begun_here": factor.is_begun_here}
    lifetime = timedelta(seconds=constants.ENROLMENT_LIFETIME)
    if verified_in and not may_verify(
        **begun, created_at=factor.created_at, lifetime=lifetime, now=factor.now
    ):
        raise ApiError("mfa_factor_not_found")
    return factor


def _record(
    tx: acts.Act,
    user: PersonFacts,
    act: str,
    factor: Named,
    event: str | None,
    **others: object,
) -> None:
    details = {"factor": factor.friendly_name or None, "factor_type": factor.factor_type, **others}
    audit.record(tx, user.id, user.email, [act], [event], **details)
