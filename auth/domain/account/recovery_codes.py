"""Recovery codes: create them, and use one in place of a lost factor."""

from typing import Any

from auth.core.factors import recovery_codes
from auth.domain.messages.outgoing import notify
from auth.domain.sessions.issuing import about_own, is_asked
from auth.domain.sessions.token_response import Session, raise_session
from auth.domain.sign_in import factor_codes
from auth.domain.sign_in.reauthentication import add, give_proof, lock_caller
from auth.web import audit, g, guard
from auth.web.context import latchkey
from auth.web.errors import ApiError
from sql import queries


def create(body: dict[str, Any], *, with_factor: bool = False) -> tuple[list[str], str]:
    """Replace the caller's recovery codes, and return the new ones and the time. Raises `ApiError`.

    `with_factor` if the notice of a factor, just added, tells of both: its link removes the codes too.
    """
    given = give_proof(guard.live_caller(), body, add("recovery_codes"))
    codes = recovery_codes.new_codes()
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, add("recovery_codes"), given=given)
        made = [latchkey.recovery_codes.macs(caller.id, recovery_codes.canonical(code))[0] for code in codes]
        replaced = queries.replace_recovery_codes(tx, user_id=caller.id, code_macs=made).replaced
        audit.record(tx, caller.id, caller.email, ["recovery_codes_created"], [])
        if not with_factor:
            notify(tx, caller, "recovery_codes_created", replaced=replaced)
    return codes, caller.moment


def status() -> dict[str, Any]:
    """Return how many unused codes the caller has, and since when."""
    row = guard.admit(queries.select_recovery_codes(latchkey.db, **guard.caller()))
    return {"remaining": row.remaining, "created_at": row.created_at}


def verify(code: str, *, for_client: bool = False, made_before: Any = None) -> Session:
    """Raise the caller's session to `aal2` by a recovery code. Raises `ApiError`."""
    if is_asked(for_client=for_client) and not factor_codes.is_recovery_code(
        guard.caller_id(), code, made_before
    ):
        raise ApiError("recovery.mfa_verification_failed")
    issue = about_own("recovery_code", for_client=for_client)
    with latchkey.db.transaction() as tx:
        code_mac = factor_codes.check_recovery_code(tx, guard.caller_id(), code, made_before)
        issue.confirm(tx)
        caller = lock_caller(tx)
        if spent := factor_codes.spend_recovery_code(tx, caller.id, code_mac):
            left = spent.remaining
            audit.record(tx, caller.id, caller.email, ["recovery_code_used"], [], remaining=left)
            notify(tx, caller, "recovery_code_used", remaining=left)
            return Session(raise_session(tx, g.caller.session_id, "recovery_code", None), issue)
    raise ApiError("recovery.mfa_verification_failed")
