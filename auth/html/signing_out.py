"""Signing a browser out: the question, the end of its session, and the page or application after it."""

from collections.abc import Mapping

from flask import Response

from auth.flows.sessions.ending import sign_out
from auth.html import browser_sessions
from auth.html.browser_sessions import BrowserSession
from auth.html.page import page, redirect_to_own
from auth.web.application import redirect
from auth.web.asked import current_asked

# The message of the page for a sign-out that does not return to the application.
STUCK = "stuck"


def ask(
    action: str,
    session: BrowserSession,
    url: str | None,
    application: str | None,
    fields: Mapping[str, str | None],
    language: str | None = None,
    *,
    is_stuck: bool = False,
) -> Response:
    """Ask whether to sign out. The form is sent to `action`, with the hidden `fields`.

    With `is_stuck`, explain that the browser will not return to the application.
    """
    return page(
        "logout.html",
        language=language,
        action=action,
        form_target=url,
        client_name=application,
        is_stuck=is_stuck,
        account=session.email or session.phone or session.name,
        fields={name: value for name, value in fields.items() if value},
    )


def end(url: str | None, scope: str = "local", *, done: str = "") -> Response:
    """Sign out, and redirect to a URL, or to our page, which shows the message `done`."""
    sign_out(current_asked(), scope)
    # Without the message, users would mistake the page of a successful sign-out for the application's.
    return browser_sessions.forget(redirect(url) if url else redirect_to_own("sign-out", done))


def signed_out(url: str | None, *, is_stuck: bool = False) -> Response:
    return redirect(url) if url else page("signed_out.html", here="/sign-in", is_stuck=is_stuck)
