from flask import Blueprint, Response

from auth.console.access import administrator
from auth.console.page import console_page
from auth.context import latchkey
from auth.settings.listing import DEFAULT, listed

blueprint = Blueprint("settings", __name__)


@blueprint.get("/console/settings")
@administrator
def show_settings() -> Response:
    """Show the settings of this node: those that are set, then the defaults."""
    found = list(listed(latchkey.key_ring.settings))
    return console_page(
        "settings.html",
        chosen=[each for each in found if each.origin != DEFAULT],
        defaults=[each for each in found if each.origin == DEFAULT],
    )
