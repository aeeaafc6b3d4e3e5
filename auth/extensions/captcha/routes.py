"""Challenges, and the captcha that an operation requires, in GoTrue's format."""

from flask import Blueprint, Response, jsonify, request
from marshmallow.fields import Nested

from auth.extensions.captcha import proofs_of_work, siteverify
from auth.web import fields, guard, schemas
from auth.web.application import FORM
from auth.web.asked import current_asked
from auth.web.errors import ApiError
from auth.web.input import read_body
from auth.web.limits import limited

blueprint = Blueprint("captcha", __name__)

_Proof = schemas.Input.of(captcha_token=fields.LongText(load_default=""))
_Body = schemas.Input.of(gotrue_meta_security=Nested(_Proof, load_default=dict))


@blueprint.get("/captcha/challenge")
@limited("make_challenge")
def make_challenge() -> Response:
    """Return a challenge for the widget of ALTCHA, our pages and ALTCHA's solvers."""
    return jsonify(proofs_of_work.challenge(current_asked()))


def ask() -> None:
    """Refuse a request without a proof, unless an administrator sends it. Never inside a transaction."""
    if guard.has_administrator_credentials():
        return
    asked = current_asked()
    captcha = asked.settings.captcha
    if request.mimetype == FORM:
        token = request.form.get(siteverify.FIELDS.get(captcha, "captcha_token"), "")
    else:
        token = read_body(_Body)["gotrue_meta_security"].get("captcha_token", "")
    if not token:
        raise ApiError("captcha_failed", codes="no captcha_token found")
    if codes := (proofs_of_work if captcha == "altcha" else siteverify).problem_of(asked, token):
        raise ApiError("captcha_failed", codes=codes)
