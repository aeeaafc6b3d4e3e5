"""Sends browsers to applications and providers with a page instead of a redirect: see docs/decisions.md.

A page ends the navigation of the form before. Its refresh starts another, and replaces it in the history, so
that no form is sent twice.
"""

from urllib.parse import urlsplit

from flask import Response

from auth.core.net.redirects import is_web
from auth.html.page import page
from auth.html.problems import asks_for_page
from auth.web.context import latchkey


def by_page(response: Response) -> Response:
    """Replace a redirect after a form to another website with a page."""
    if response.status_code != 303 or not is_web(url := response.headers["Location"]):
        return response
    rest = url.removeprefix(latchkey.settings.base_url)
    is_ours = rest != url and rest[:1] in "/?#"
    # A program follows the redirect.
    if is_ours or not asks_for_page():
        return response
    leaving_page = page("leaving.html", here=None, url=url, host=urlsplit(url).netloc)
    for cookie in response.headers.getlist("Set-Cookie"):
        leaving_page.headers.add("Set-Cookie", cookie)
    return leaving_page
