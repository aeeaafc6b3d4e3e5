"""Requires a captcha of a request, in GoTrue's format. Never inside a transaction."""

from flask import request
from marshmallow.fields import Nested

from auth.extensions.captcha import proofs_of_work, siteverify
from auth.extensions.captcha.widgets import FIELDS
from auth.web import fields, guard, schemas
from auth.web.application import FORM
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_body

_Proof = schemas.Input.of(captcha_token=fields.LongText(load_default=""))
_Body = schemas.Input.of(gotrue_meta_security=Nested(_Proof, load_default=dict))


def ask() -> None:
    """Refuse a request without a proof, unless an administrator sends it."""
    if guard.sends_administrator():
        return
    captcha = latchkey.settings.captcha
    if request.mimetype == FORM:
        token = request.form.get(FIELDS.get(captcha, "captcha_token"), "")
    else:
        token = read_body(_Body)["gotrue_meta_security"].get("captcha_token", "")
    if not token:
        raise ApiError("captcha_failed", codes="no captcha_token found")
    if codes := (proofs_of_work if captcha == "altcha" else siteverify).problem_of(token):
        raise ApiError("captcha_failed", codes=codes)
