"""The pages for users, with one file of views per subject."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auth.registry import Extension

if TYPE_CHECKING:
    from flask import Flask


class Pages(Extension):
    pages = (
        "sign_in", "sign_out", "waiting", "passwords", "account", "removing", "profile", "confirm",
        "passkeys", "factors",
    )  # fmt: skip

    def init_app(self, app: "Flask") -> None:
        """Register the pages, also those of other extensions."""
        from auth.html import register_pages
        from auth.html.problems import show_on_page

        register_pages(app, "pages", lambda each: each.pages, show_on_page)

    def next_pages(self) -> Sequence[tuple[str, str]]:
        return (
            ("email|phone|changes|two-step|recovery-codes|delete|passkeys/new", "account/{}"),
            ("new-password|join", "{}"),
            ("here", "sign-in/{}"),
            (r"account/connect\?provider=[a-z0-9_]+", "{}"),
            (r"account/remove\?kind=[a-z_]+(&id=[0-9a-f-]{36})?|account/rename\?id=[0-9a-f-]{36}", "{}"),
        )


EXTENSION = Pages
