"""The console for administrators, in a browser."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


# Place, path and title of the sections. A wing may stand between two.
_NAVIGATION = [
    (10, "console", "Overview"),
    (20, "console/users", "Users"),
    (40, "console/audit", "Audit log"),
    (50, "console/webhooks", "Webhooks"),
    (60, "console/messages", "Messages"),
    (70, "console/settings", "Settings"),
]


def init_lists(lists: "Lists", _settings: Settings) -> None:
    lists.navigation.extend(_NAVIGATION)
    lists.next_pages.append((r"console(/[A-Za-z0-9-]+)*(\?[!-~]*)?", "{}"))


def init_app(app: "Flask") -> None:
    """Add the sections of the console, also those of other wings."""
    from flask import Blueprint

    from auth.extensions.console import (
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
    console = Blueprint("console", __name__)
    for section in (*(each.blueprint for each in sections), *app.extensions[EXTENSION].lists.sections):
        console.register_blueprint(section)
    access.register_in(console)
    app.register_blueprint(console)
