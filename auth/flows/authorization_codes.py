"""Authorization codes, which an application exchanges for tokens with its code verifier (RFC 7636)."""

import hmac
from typing import Any

from auth.context import latchkey
from auth.tokens import one_time
from auth.web import audit
from auth.web.edge import client
from auth.web.errors import ApiError
from sql import Transaction


def exchange(code: str, code_challenge: str) -> Any:
    """Open a session for an authorization code and return its row. A second use ends that session.

    Raises `ApiError`.
    """
    code_hash = one_time.hash_token(code)
    with latchkey.db.transaction() as tx:
        owner = tx.one("lock_owner_of_authorization_code", code_hash=code_hash)
        audit.about(user_id=owner.id if owner else None)
        known = tx.one("select_authorization_code", code_hash=code_hash)
        if owner is None or known is None:
            raise ApiError("flow_state_not_found")
        if not hmac.compare_digest(known.code_challenge, code_challenge):
            raise ApiError("bad_code_verifier")
        if known.session_id is None:
            return _open_session(tx, owner, known.method, code_hash)
        tx.run("end_session_of_code", session_id=known.session_id)
        details = {"session_id": known.session_id}
        tx.run(
            "record_acts",
            user_id=owner.id,
            email=None,
            acts=["authorization_code_reused"],
            events=[],
            details=details,
        )
    raise ApiError("flow_state_not_found")


def _open_session(tx: Transaction, owner: Any, method: str, code_hash: bytes | None) -> Any:
    if owner.is_banned:
        raise ApiError("user_banned")
    session_id = tx.one("open_session", user_id=owner.id, method=method, **client()).id
    tx.run("mark_authorization_code_used", code_hash=code_hash, session_id=session_id)
    details = {"method": method, "session_id": session_id}
    tx.run(
        "record_acts",
        user_id=owner.id,
        email=owner.email,
        acts=["signed_in"],
        events=["auth.login"],
        details=details,
    )
    return tx.one("select_new_session", session_id=session_id)
