import hmac
from typing import Any

from auth.context import latchkey
from auth.flows.token_response import open_session
from auth.tokens import one_time
from auth.web import audit, g
from auth.web.errors import ApiError
from sql import Transaction


def write_code(
    tx: Transaction, user_id: str, code_challenge: str, method: str, opened_by: str | None = None
) -> str:
    """Write a code and return it. `opened_by` is the session on our pages that hands it to an application."""
    code = one_time.new_token()
    tx.run(
        "write_authorization_code",
        user_id=user_id,
        code_hash=one_time.hash_token(code),
        code_challenge=code_challenge,
        method=method,
        opened_by=opened_by,
        network=g.client["network"],
        authorization_code_lifetime=one_time.AUTHORIZATION_CODE_LIFETIME,
    )
    return code


def exchange(code: str, code_challenge: str) -> Any:
    """Open a session for a code and return its row (RFC 7636). Reuse of the code ends the session."""
    code_hash = one_time.hash_token(code)
    with latchkey.db.transaction() as tx:
        owner = tx.one("lock_owner_of_authorization_code", code_hash=code_hash)
        audit.about(user_id=owner and owner.id)
        known = tx.one("select_authorization_code", code_hash=code_hash)
        if owner is None or known is None:
            raise ApiError("flow_state_not_found")
        if not hmac.compare_digest(known.code_challenge, code_challenge):
            raise ApiError("bad_code_verifier")
        if known.session_id is None:
            return _spend(tx, owner, known, code_hash)
        tx.run("end_session_of_code", session_id=known.session_id)
        acts = ["authorization_code_reused"]
        audit.record(tx, owner.id, None, acts, [], session_id=known.session_id)
    raise ApiError("flow_state_not_found")


def open_application_session(tx: Transaction, owner: Any, method: str, opened_by: str | None) -> Any:
    """Open a session, for an application that a session on our pages may have let in, and return its row."""
    row = open_session(tx, owner.id, method)
    if opened_by:
        level = tx.one("mark_opened_by", session_id=row.session_id, opened_by=opened_by)
        row = row._replace(**level._asdict())
    details = {"method": method, "session_id": row.session_id}
    audit.record(tx, owner.id, owner.email, ["signed_in"], ["auth.login"], **details)
    return row


def _spend(tx: Transaction, owner: Any, known: Any, code_hash: bytes | None) -> Any:
    if owner.is_banned:
        raise ApiError("user_banned")
    row = open_application_session(tx, owner, known.method, known.opened_by)
    tx.run("mark_authorization_code_used", code_hash=code_hash, session_id=row.session_id)
    return row
