"""The pages for people: rendering, texts, and one file of views per subject."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def init_app(app: "Flask") -> None:
    """Add the pages, also those of other wings."""
    from flask import Blueprint

    from auth.pages import (
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
