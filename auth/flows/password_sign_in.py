from typing import Any

from flask import g

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.password_attempts import begin_attempt, check_attempt
from auth.web.errors import ApiError


def sign_in_with_password(body: dict[str, Any], *, admin_only: bool = False) -> Any:
    """Open a session for a `PasswordGrant` body, and return its row. Raises `ApiError`."""
    email, phone, password = body.get("email"), body.get("phone"), body["password"]
    outgoing.check_enabled(email, phone)
    attempt = begin_attempt(email, phone)
    # An unknown address and a user without a password cost the same statement and hash as a wrong password.
    if not check_attempt(attempt, password) or attempt.password_hash is None:
        raise ApiError("invalid_credentials")
    checked = {
        "user_id": attempt.user_id,
        "checked_password_hash": attempt.password_hash,
        "address": email or phone,
        "provider": "email" if email else "phone",
        "is_stranger": attempt.is_stranger,
        "admin_only": admin_only,
    }
    renewed_hash = latchkey.passwords.renewed_hash(password, attempt.password_hash)
    row = latchkey.db.one("sign_in", new_password_hash=renewed_hash, **checked, **g.client)
    if row is None:
        refusal = latchkey.db.one("select_sign_in_refusal", network=g.client["network"], **checked)
        error_code = (refusal and refusal.error_code) or "invalid_credentials"
        raise ApiError("sign_in.not_admin" if error_code == "not_admin" else error_code)
    return row
