"""The console for administrators, in a browser."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auth.extensions import Extension

if TYPE_CHECKING:
    from flask import Flask


class Console(Extension):
    def init_app(self, app: "Flask") -> None:
        """Register the sections, also those of other extensions."""
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
        from auth.web.context import EXTENSION as PARTS
        from auth.web.edge import for_no_other_origin
        from auth.web.html.admin import access

        own = (
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
        added = [section for each in app.extensions[PARTS].extensions for section in each.sections()]
        console = Blueprint("console", __name__)
        for section in (*(module.blueprint for module in own), *added):
            console.register_blueprint(section)
        console.register_error_handler(Exception, access.show_error)
        console.after_request(for_no_other_origin)
        app.register_blueprint(console)

    def navigation(self) -> Sequence[tuple[int, str, str]]:
        return (
            (10, "console", "Overview"),
            (20, "console/users", "Users"),
            (40, "console/audit", "Audit log"),
            (50, "console/webhooks", "Webhooks"),
            (60, "console/messages", "Messages"),
            (70, "console/settings", "Settings"),
        )

    def next_pages(self) -> Sequence[tuple[str, str]]:
        return ((r"console(/[A-Za-z0-9-]+)*(\?[!-~]*)?", "{}"),)


EXTENSION = Console
