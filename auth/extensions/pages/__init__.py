"""The pages for people: rendering, texts, and one file of views per subject."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.web.context import Lists


def init_lists(lists: "Lists", _settings: Settings) -> None:
    lists.next_pages.extend(
        (
            ("email|phone|changes|two-step|recovery-codes|delete|passkeys/new", "account/{}"),
            ("new-password|join", "{}"),
            ("here", "sign-in/{}"),
            (r"account/connect\?provider=[a-z0-9_]+", "{}"),
            (r"account/remove\?kind=[a-z_]+(&id=[0-9a-f-]{36})?|account/rename\?id=[0-9a-f-]{36}", "{}"),
        )
    )


def init_app(app: "Flask") -> None:
    """Add the pages, also those of other wings."""
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
    from auth.web.context import EXTENSION
    from auth.web.html import problems

    rooms = (sign_in, sign_out, waiting, passwords, account, removing, profile, confirm, passkeys, factors)
    pages = Blueprint("pages", __name__)
    for each in (*(room.blueprint for room in rooms), *app.extensions[EXTENSION].lists.pages):
        pages.register_blueprint(each)
    problems.register_in(pages)
    app.register_blueprint(pages)
