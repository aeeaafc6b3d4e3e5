"""Recovery codes: create them, and use one in place of a lost factor."""

from typing import Any

from auth.context import latchkey
from auth.factors import recovery_codes
from auth.hooks import access_token
from auth.messages.outgoing import notify
from auth.sign_in import factor_codes
from auth.sign_in.reauthentication import add, give_proof, lock_caller
from auth.sign_in.token_response import issued, raise_session
from auth.web import audit, g, guard
from auth.web.errors import ApiError
from sql import Transaction, queries


def create(body: dict[str, Any]) -> tuple[list[str], str]:
    """Replace the caller's recovery codes, and return the new ones and the time. Raises `ApiError`."""
    given = give_proof(guard.live_caller(), body, add("recovery_codes"))
    codes = recovery_codes.new_codes()
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, add("recovery_codes"), given=given)
        made = [latchkey.recovery_codes.mac(caller.id, recovery_codes.canonical(code)) for code in codes]
        queries.replace_recovery_codes(tx, user_id=caller.id, code_macs=made)
        _tell(tx, caller, "recovery_codes_created")
    return codes, caller.moment


def status() -> dict[str, Any]:
    """Return how many unused codes the caller has, and since when."""
    row = guard.admit(queries.select_recovery_codes(latchkey.db, **guard.caller()))
    return {"remaining": row.remaining, "created_at": row.created_at}


@access_token.asked
def verify(code: str, *, made_before: Any = None) -> Any:
    """Raise the caller's session to `aal2` by a recovery code, and return its row. Raises `ApiError`."""
    with access_token.transaction() as tx:
        tried = factor_codes.count(tx, "recovery", guard.caller_id())
        caller = lock_caller(tx)
        spent = factor_codes.spend_recovery_code(tx, tried, caller.id, code, made_before)
        if spent:
            _tell(tx, caller, "recovery_code_used", remaining=spent.remaining)
            return issued(tx, raise_session(tx, g.caller.session_id, "recovery_code", None))
    raise ApiError("recovery.mfa_verification_failed")


def _tell(tx: Transaction, caller: Any, kind: str, **details: Any) -> None:
    audit.record(tx, caller.id, caller.email, [kind], [], **details)
    if caller.email_proved:
        notify(tx, caller.id, caller.email, kind, **details)
