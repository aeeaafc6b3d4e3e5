import json

from flask import Blueprint, Response

from auth.context import latchkey
from auth.flows.browser_sessions import signed_in
from auth.pages.page import page
from auth.web import guard

blueprint = Blueprint("account", __name__)


@blueprint.get("/account")
@signed_in
def show_account() -> Response:
    """Show the user what the account holds, with one action for each item."""
    row = guard.admit(latchkey.db.one("select_user", **guard.caller()))
    return page("account.html", script=True, user=json.loads(row.user_object), here="/account")
