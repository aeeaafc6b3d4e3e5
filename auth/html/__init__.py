"""Common code of all pages: the layout, forms, problems and links."""

from collections.abc import Callable, Sequence

from flask import Blueprint, Flask, Response

from auth.core.settings import Settings
from auth.core.settings.brand import logo_file
from auth.registry import Extension
from auth.web.context import EXTENSION as PARTS
from auth.web.edge import hide_from_other_origins


def init_app(app: Flask, settings: Settings) -> None:
    from auth.html import brand, leaving, page, problems

    logo_file.cache_clear()  # a reload reads the files again
    for setting, logo in settings.logos.items():
        logo_file(setting, logo)
    app.register_blueprint(brand.blueprint)
    page.register(app, settings)
    app.register_error_handler(Exception, problems.show)
    if settings.pages:
        for status in (404, 405):
            app.register_error_handler(status, problems.show_no_page)
    app.after_request(leaving.by_page)


def register_pages(
    app: Flask,
    name: str,
    files_of: Callable[[Extension], Sequence[str]],
    show_error: Callable[[Exception], Response],
) -> None:
    """Register the pages in these files of every extension that is on."""
    pages = Blueprint(name, __name__)
    for extension in app.extensions[PARTS].extensions:
        for blueprint in extension.blueprints(files_of(extension)):
            pages.register_blueprint(blueprint)
    pages.register_error_handler(Exception, show_error)
    pages.after_request(hide_from_other_origins)
    app.register_blueprint(pages)
