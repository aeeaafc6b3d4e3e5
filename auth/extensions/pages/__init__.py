"""The pages for users, with one file of views per subject."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auth.extensions import Extension

if TYPE_CHECKING:
    from flask import Flask


class Pages(Extension):
    def init_app(self, app: "Flask") -> None:
        """Register the pages, also those of other extensions."""
        from flask import Blueprint

        from auth.extensions.pages import (
            account,
            confirm,
            factors,
            passkeys,
            passwords,
            profile,
            removing,
            sign_in,
            sign_out,
            waiting,
        )
        from auth.web.context import EXTENSION as PARTS
        from auth.web.edge import for_no_other_origin
        from auth.web.html import problems

        own = (sign_in, sign_out, waiting, passwords, account, removing, profile, confirm, passkeys, factors)
        added = [page for each in app.extensions[PARTS].extensions for page in each.pages()]
        pages = Blueprint("pages", __name__)
        for page in (*(module.blueprint for module in own), *added):
            pages.register_blueprint(page)
        pages.register_error_handler(Exception, problems.show_on_page)
        pages.after_request(for_no_other_origin)
        app.register_blueprint(pages)

    def next_pages(self) -> Sequence[tuple[str, str]]:
        return (
            ("email|phone|changes|two-step|recovery-codes|delete|passkeys/new", "account/{}"),
            ("new-password|join", "{}"),
            ("here", "sign-in/{}"),
            (r"account/connect\?provider=[a-z0-9_]+", "{}"),
            (r"account/remove\?kind=[a-z_]+(&id=[0-9a-f-]{36})?|account/rename\?id=[0-9a-f-]{36}", "{}"),
        )


EXTENSION = Pages
