"""The console for administrators, in a browser."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def init_app(app: "Flask") -> None:
    """Add the sections of the console, also those of other wings."""
    from flask import Blueprint

    from auth.console import (
        audit,
        bulk,
        export,
        message_preview,
        messages,
        overview,
        user_acts,
        user_page,
        users,
        webhooks,
    )
    from auth.web.context import EXTENSION
    from auth.web.html.admin import access

    sections = (
        overview,
        user_page,
        user_acts,
        users,
        bulk,
        export,
        audit,
        webhooks,
        messages,
        message_preview,
    )
    console = Blueprint("console", __name__, template_folder="templates")
    for section in (*(each.blueprint for each in sections), *app.extensions[EXTENSION].lists.sections):
        console.register_blueprint(section)
    access.register_in(console)
    app.register_blueprint(console)
