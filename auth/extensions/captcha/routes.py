from flask import Blueprint, Response, jsonify

from auth.extensions.captcha import proofs_of_work
from auth.web.limits import limited

blueprint = Blueprint("captcha", __name__)


@blueprint.get("/captcha/challenge")
@limited("make_challenge")
def make_challenge() -> Response:
    """Return a challenge for the widget of ALTCHA, our pages and ALTCHA's solvers."""
    return jsonify(proofs_of_work.make_challenge())
