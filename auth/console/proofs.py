"""The factor or passkey that an act requires, in addition to that of the session."""

from typing import Any

from flask import request

from auth.context import latchkey
from auth.flows import factors, passkeys, recovery_codes
from auth.flows.factor_codes import check_totp
from auth.pages.passkeys import sent_credential
from auth.pages.second_step import own_factors
from auth.web import fields, guard
from auth.web.errors import ApiError
from auth.web.input import known_id, read_form
from auth.web.schemas import Input

_CodeForm = Input.from_dict({"factor_code": fields.Text(required=True)})
_TOTP_LENGTH = 6


def asked_factors() -> dict[str, Any]:
    """Return what the form of an act asks the administrator for, with new challenges."""
    return own_factors(latchkey.db.one("select_second_steps", user_id=guard.caller_id()))


def give_factor() -> None:
    """Spend the code, or the response of a passkey or security key, in a form. Raises `ApiError`."""
    if "credential" in request.form:
        _give_credential()
        return
    code = read_form(_CodeForm())["factor_code"]
    if len(code.replace(" ", "")) != _TOTP_LENGTH:
        recovery_codes.verify(code)
    elif not check_totp(guard.caller_id(), code):
        raise ApiError("mfa_verification_failed", "factor_code: must be a new code of an authenticator app")


def _give_credential() -> None:
    sent = sent_credential()
    if "factor_id" not in request.form:
        passkeys.prove(sent)
        return
    factor_id = known_id(request.form["factor_id"], "mfa_factor_not_found")
    answer = {"type": "request", "credential_response": sent["credential"]}
    factors.verify_webauthn(factor_id, sent["challenge_id"], answer)
