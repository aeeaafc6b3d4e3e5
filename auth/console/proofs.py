"""The factor or passkey that an act requires, in addition to that of the session.

One that was added in the last seven days does not count, unless it came in the hour after the very first
one: see docs/decisions.md.
"""

from typing import Any

from flask import request

from auth.account import recovery_codes
from auth.context import latchkey
from auth.pages.factors import own_factors, verify_key
from auth.pages.passkeys import sent_credential
from auth.sign_in import passkeys
from auth.sign_in.factor_codes import check_totp
from auth.web import fields, guard
from auth.web.errors import ApiError
from auth.web.input import read_form
from auth.web.schemas import Input

_CodeForm = Input.from_dict({"factor_code": fields.Text(required=True)})
_TOTP_LENGTH = 6


def asked_factors() -> dict[str, Any]:
    """Return what the form of an act asks the administrator for, with new challenges."""
    ways = latchkey.db.one("select_second_steps", user_id=guard.caller_id(), added_before=_trusted_before())
    return own_factors(ways) | {"has_passkey": ways.has_passkey}


def give_factor() -> None:
    """Spend the code, or the response of a passkey or security key, in a form. Raises `ApiError`."""
    before = _trusted_before()
    if "factor_id" in request.form:
        verify_key(added_before=before)
        return
    if "credential" in request.form:
        passkeys.prove(sent_credential(), added_before=before)
        return
    code = read_form(_CodeForm())["factor_code"]
    if len(code.replace(" ", "")) != _TOTP_LENGTH:
        recovery_codes.verify(code, made_before=before)
    elif not check_totp(guard.caller_id(), code, added_before=before):
        details = "factor_code: must be a new code of an authenticator app, not of one that was added lately"
        raise ApiError("mfa_verification_failed", details)


def _trusted_before() -> Any:
    return latchkey.db.one("select_trusted_before", user_id=guard.caller_id()).moment
