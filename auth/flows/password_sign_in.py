from typing import Any

from auth.context import latchkey
from auth.flows import outgoing
from auth.flows.password_attempts import begin_attempt, check_attempt
from auth.web import g
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
        "address": email or phone,
        "provider": "email" if email else "phone",
        "is_stranger": attempt.is_stranger,
        "admin_only": admin_only,
    }
    password_hash = attempt.password_hash
    while True:
        checked["checked_password_hash"] = password_hash
        renewed_hash = latchkey.passwords.renewed_hash(password, password_hash)
        row = latchkey.db.one("sign_in", new_password_hash=renewed_hash, **checked, **g.client)
        if row is not None:
            return row
        refusal = latchkey.db.one("select_sign_in_refusal", network=g.client["network"], **checked)
        if refusal is None or refusal.password_hash == password_hash:
            error_code = (refusal and refusal.error_code) or "invalid_credentials"
            raise ApiError("sign_in.not_admin" if error_code == "not_admin" else error_code)
        # A simultaneous log-in has renewed the hash, or the password was changed.
        password_hash = refusal.password_hash
        if password_hash is None or not latchkey.passwords.check(password, password_hash):
            raise ApiError("invalid_credentials")
