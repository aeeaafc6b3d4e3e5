"""The console for administrators, in a browser."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auth.registry import Extension

if TYPE_CHECKING:
    from flask import Flask


class Console(Extension):
    sections = (
        "overview", "user_page", "user_actions", "users", "bulk", "export", "audit", "webhooks", "messages",
        "message_preview", "admin_keys",
    )  # fmt: skip
    navigation = (
        (10, "console", "Overview"),
        (20, "console/users", "Users"),
        (40, "console/audit", "Audit log"),
        (50, "console/webhooks", "Webhooks"),
        (60, "console/messages", "Messages"),
        (65, "console/keys", "Keys"),
        (70, "console/settings", "Settings"),
    )

    def init_app(self, app: "Flask") -> None:
        """Register the sections, also those of other extensions."""
        from auth.html import register_pages
        from auth.html.admin.access import show_error

        register_pages(app, "console", lambda each: each.sections, show_error)

    def next_pages(self) -> Sequence[tuple[str, str]]:
        return ((r"console(/[A-Za-z0-9-]+)*(\?[!-~]*)?", "{}"),)


EXTENSION = Console
