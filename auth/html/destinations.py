"""The destination in a page's query or form, which its forms pass on."""

from typing import Any

from flask import Response, request

from auth.html import form_schemas
from auth.html.page import page
from auth.html.redirects import Destination
from auth.web.input import read_form, read_query


def destination() -> Destination:
    """Return the destination in the page's query or the submitted form."""
    read = read_form if request.method == "POST" else read_query
    return Destination.read(read(form_schemas.Destination))


def form_page(template: str, own_path: str, *, to: Destination | None = None, **values: Any) -> Response:
    """Show a form that continues to `to`, by default the destination. GET of `own_path` shows it too."""
    to = destination() if to is None else to
    return page(template, script=True, form_target=to.url, to=to, here=f"/{to.path(own_path)}", **values)
