from flask import Blueprint, Response

from auth import __version__
from auth.console.access import administrator
from auth.console.page import console_page
from auth.context import latchkey

blueprint = Blueprint("overview", __name__)


@blueprint.get("/console")
@administrator
def show_overview() -> Response:
    health = latchkey.db.one("select_health")
    return console_page("overview.html", section="overview", health=health, version=__version__)
