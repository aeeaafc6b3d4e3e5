from urllib.parse import urlencode

from flask import Blueprint, Response

from auth.context import latchkey
from auth.openid.switch import provider
from auth.sign_in.token_response import see_other
from auth.web import accepts_forms, form_schemas, refuses_by_page
from auth.web.input import read_form
from auth.web.limits import limited

blueprint = Blueprint("logout", __name__)


@blueprint.post("/oauth/logout")
@provider
@accepts_forms
@limited("logout")
@refuses_by_page
def logout_by_form() -> Response:
    """Lead a form of an application to the page, because browsers send no cookie with it."""
    sent = read_form(form_schemas.LogoutQuery())
    return see_other(f"{latchkey.settings.base_url}/oauth/logout?{urlencode(sent)}")
