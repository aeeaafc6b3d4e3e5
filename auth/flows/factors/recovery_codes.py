"""Recovery codes: create and remove them, and use one instead of a lost factor."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from auth.core.factors import recovery_codes
from auth.core.json_bodies import JsonObject
from auth.core.text.moments import iso_8601
from auth.flows.factors import factor_codes
from auth.flows.messages.outgoing import notify
from auth.flows.sessions.issuing import IssuedSession, about_own
from auth.flows.sessions.token_response import raise_session
from auth.flows.sign_in.reauthentication import add, admit_caller, give_proof, remove
from auth.registry import TokenHook
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import acts, queries


class NewCodes(NamedTuple):
    codes: list[str]
    friendly_name: str
    created_at: str


def create(
    asked: Asked,
    body: JsonObject,
    *,
    refusals: Mapping[bool, str] = MappingProxyType({}),
    notice: str | None = "recovery_codes_created",
) -> NewCodes:
    """Give the caller new recovery codes. `refusals` says, by whether there are older ones, what is refused.

    Without a `notice`, that of the factor just added covers both: its link removes the codes too.
    """
    proof = give_proof(asked, body, add("recovery_codes"))
    codes, mac = recovery_codes.new_codes(), asked.parts.recovery_codes.macs
    macs = [mac(asked.caller.user_id, recovery_codes.canonical(code))[0] for code in codes]
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, add("recovery_codes"), proof=proof)
        if caller.oldest_factor_at is None:
            raise ApiError("mfa_recovery_codes_sole_factor")
        has_codes = queries.select_has_recovery_codes(act, user_id=caller.id).has_codes
        if refusal := refusals.get(has_codes):
            raise ApiError(refusal)
        name = body.get("friendly_name")
        by_key = caller.is_session_by_key
        row = queries.replace_recovery_codes(
            act, user_id=caller.id, code_macs=macs, friendly_name=name, by_key=by_key
        )
        audit.record(act, caller.id, caller.email, ["recovery_codes_created"], [])
        if notice:
            notify(asked, act, caller, notice, replaced=row.replaced)
    return NewCodes(codes, row.friendly_name, iso_8601(act.acted_at))


def remove_all(asked: Asked, body: JsonObject) -> None:
    """Remove the caller's recovery codes."""
    wanted = remove("recovery_codes")
    proof = give_proof(asked, body, wanted)
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, wanted, proof=proof)
        if not queries.delete_recovery_codes(act, user_id=caller.id):
            raise ApiError("mfa_factor_not_found")
        audit.record(act, caller.id, caller.email, ["recovery_codes_removed"], [])
        notify(asked, act, caller, "factor_removed")


def status(asked: Asked) -> "queries.SelectRecoveryCodes":
    """Return how many codes the caller has, used or not."""
    return asked.admit_reader(queries.select_recovery_codes(asked.db, **asked.caller_ids))


def verify(
    asked: Asked, code: str, hook: TokenHook | None = None, *, made_before: datetime | None = None
) -> IssuedSession:
    """Raise the caller's session to `aal2` by a recovery code."""
    code_mac = factor_codes.check_recovery_code(asked, asked.caller.user_id, code, made_before)
    if code_mac is None:
        raise ApiError("recovery.mfa_verification_failed")
    issue = about_own(asked, hook, "mfa/recovery_code") if hook else None
    with acts.on(asked.db, asked.caller.user_id) as act:
        if issue:
            issue.confirm(act)
        caller = admit_caller(asked, act)
        spent = queries.use_recovery_code(act, user_id=caller.id, code_mac=code_mac)
        if spent is None:
            raise ApiError("recovery.mfa_verification_failed")
        remaining = spent.remaining
        audit.record(act, caller.id, caller.email, ["recovery_code_used"], [], remaining=remaining)
        notify(asked, act, caller, "recovery_code_used", remaining=remaining)
        return raise_session(asked, act, caller.id, asked.caller.session_id, "mfa/recovery_code", None, issue)
