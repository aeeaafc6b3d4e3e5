"""Passkeys: registering, renaming and removing them."""

from auth.core.factors import webauthn
from auth.core.factors.webauthn import NewCredential
from auth.core.json_bodies import JsonObject
from auth.flows.account import removal
from auth.flows.admin import targets
from auth.flows.factors import factors
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import notify
from auth.flows.passkeys import assertions, unused
from auth.flows.sessions import credentials
from auth.flows.sessions.token_response import raise_session
from auth.flows.sign_in.reauthentication import add, admit_caller, give_proof
from auth.flows.sign_in.reauthentication import remove as removing
from auth.flows.sign_up import first_address
from auth.rules.proofs import Proof
from auth.rules.users import is_anonymous
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries
from sql.acts import Act


def require_enabled(asked: Asked) -> None:
    if not asked.settings.passkeys_enabled:
        raise ApiError("passkey_disabled")


def begin_registration(asked: Asked, body: JsonObject) -> JsonObject:
    """Return a challenge and the options for a new passkey of the caller, who needs a proof.

    With the `mediation` of the Credential Management API, `conditional`, a browser may make it unasked.
    """
    is_unasked = body.get("mediation") == "conditional"
    proof = give_proof(asked, body, add("passkey"))
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, add("passkey"), proof=proof)
        if is_unasked and is_anonymous(caller):
            raise ApiError(
                "validation_failed", "mediation: an anonymous user has no other way to sign in yet"
            )
        excluded = _credentials(asked, act, caller.id)
        challenge, options = asked.parts.relying_party.creation_options(
            caller.id, assertions.name_of(caller), excluded, is_passkey=True, is_unasked=is_unasked
        )
        purpose = assertions.UPGRADE if is_unasked else assertions.REGISTRATION
        row = assertions.write_challenge(act, purpose, challenge, **assertions.own_session(asked))
    begun: JsonObject = {"challenge_id": row.id, "options": options, "expires_at": row.expires_at}
    # A node of 0.7 ignores the mediation, and its options are for a passkey that the user makes.
    return begun | {"unasked": True} if is_unasked else begun


def finish_registration(
    asked: Asked, before: PersonFacts, body: JsonObject, *, may_be_unasked: bool = True
) -> tuple[str, str | None]:
    """Add the passkey that answers a challenge of this session, and raise the session of a browser. One that
    a browser made unasked is no factor until its first use, and raises nothing (rule 51).

    `before` has the facts about the caller from before the act. Unless it `may_be_unasked`, take only what
    its user made. Return the passkey as JSON, and the new cookie of a browser's session that was raised.
    """
    purposes = [assertions.REGISTRATION, *([assertions.UPGRADE] if may_be_unasked else [])]
    challenge, is_unasked = assertions.spend_registration(asked, body["challenge_id"], purposes)
    created = assertions.verify_creation(
        asked, body["credential"], challenge, assertions.PASSKEY, is_unasked=is_unasked
    )
    name = webauthn.authenticator_name(created["aaguid"])
    with acts.on(asked.db, asked.caller.user_id) as act:
        # `begin_registration` has asked for the proof, unless the user was anonymous then.
        proof: Proof | None = None if is_anonymous(before) else "begun"
        caller = admit_caller(asked, act, add("passkey"), proof=proof)
        was_anonymous, by_key = is_anonymous(caller), caller.is_session_by_key
        _credentials(asked, act, caller.id)
        if is_unasked:
            return _add_unused(asked, act, caller, created), None
        if not was_anonymous:
            unused.clear_before_passkey(act, caller)
        notify(asked, act, caller, "passkey_added")
        row = queries.write_passkey(act, user_id=caller.id, friendly_name=name, by_key=by_key, **created)
        session_id, cookie = asked.caller.session_id, None
        if asked.is_browser:
            # The registration has verified the user, like a use of the passkey.
            cookie = raise_session(asked, act, caller.id, session_id, "webauthn", row.id).cookie
        elif caller.aal == "aal1" and caller.first_factor_at is None:
            queries.record_first_passkey(act, session_id=session_id, passkey_id=row.id)
            credentials.renew(asked, act, caller.id, session_id)
        if was_anonymous:
            first_address.finish_by_passkey(asked, act, caller.id, asked.caller.session_id)
        audit.record(act, caller.id, caller.email, ["passkey_added"], ["user.updated"], passkey=name)
    return row.object, cookie


def _add_unused(asked: Asked, act: Act, caller: PersonFacts, created: NewCredential) -> str:
    """Add a passkey that the caller's browser made unasked, and return it as JSON."""
    notify(asked, act, caller, "passkey_added", how="by_browser")
    name, by_key = webauthn.authenticator_name(created["aaguid"]), caller.is_session_by_key
    row = queries.write_unused_passkey(act, user_id=caller.id, friendly_name=name, by_key=by_key, **created)
    details = {"passkey": name, "is_unused": True}
    audit.record(act, caller.id, caller.email, ["passkey_added"], ["user.updated"], **details)
    return row.object


def rename(asked: Asked, passkey_id: str, name: str) -> str:
    """Give one of the caller's passkeys another name, and return it as JSON."""
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act)
        ids = {"user_id": caller.id, "passkey_id": passkey_id}
        old = found(queries.select_passkey(act, **ids), "webauthn_credential_not_found")
        row = queries.rename_passkey(act, friendly_name=name, **ids)
        names = {"passkey": name, "old_passkey": old.friendly_name}
        audit.record(act, caller.id, caller.email, ["passkey_renamed"], ["user.updated"], **names)
    return row.object


def remove(asked: Asked, passkey_id: str, body: JsonObject) -> None:
    """Remove one of the caller's passkeys, but not the last way to sign in."""
    wanted = removing("passkey", passkey_id)
    proof = give_proof(asked, body, wanted)
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, wanted, proof=proof)
        _remove(asked, act, caller, passkey_id)


def remove_any(asked: Asked, user_id: str, passkey_id: str) -> None:
    """Remove a passkey of any user."""
    with targets.on(asked, user_id) as (act, user):
        remove_of(asked, act, user, passkey_id)


def remove_all(asked: Asked, user_id: str) -> int:
    """Remove all factors and passkeys of any user at once, and return how many there were."""
    with targets.on(asked, user_id) as (act, user):
        rows = queries.list_factors_and_passkeys(act, user_id=user.id)
        for factor in rows:
            (remove_of if factor.factor_type == "passkey" else factors.remove_of)(asked, act, user, factor.id)
        return len(rows)


def remove_of(asked: Asked, act: Act, user: PersonFacts, passkey_id: str) -> None:
    """Remove a passkey of a user whose row an administrator has locked."""
    _remove(asked, act, user, passkey_id)
    queries.forget_factors(act, user_id=user.id)


def _credentials(asked: Asked, act: Act, user_id: str) -> "list[queries.ListCredentials]":
    """Return the rows of a user's credentials. Refuse if the user may not have another passkey."""
    rows = queries.list_credentials(act, user_id=user_id)
    own = [row for row in rows if row.factor_type == assertions.PASSKEY]
    if len(own) >= asked.settings.mfa_max_enrolled_factors:
        raise ApiError("too_many_passkeys")
    return rows


def _remove(asked: Asked, act: Act, user: PersonFacts, passkey_id: str) -> None:
    row = queries.select_passkey(act, user_id=user.id, passkey_id=passkey_id)
    passkey = found(row, "webauthn_credential_not_found")
    notify(asked, act, user, "passkey_removed")
    factors.delete(act, user.id, [passkey_id])
    if asked.actor != "service_role" and passkey.is_verified:
        # The user is as before the passkey. A proved address, however, is not replaced by an unproved one.
        removal.check_remaining(asked, act, user.id, "password")
    details = {"old_passkey": passkey.friendly_name}
    audit.record(act, user.id, user.email, ["passkey_removed"], ["user.updated"], **details)
