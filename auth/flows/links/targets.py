"""Where a link leads: to an application, or to a page of ours."""

from auth.core.json_bodies import JsonObject
from auth.flows.messages.outgoing import own_url
from auth.web.asked import Asked
from auth.web.input import checked_redirect, sent_redirect
from sql import queries

# Links that lead to our page for a new password.
TO_PASSWORD = {"recovery", "invite", "undo"}


def requested_target(asked: Asked, purpose: str, body: JsonObject) -> str | None:
    """Return where a requested link leads: an allowed `redirect_to`, a page of ours, or the site (None)."""
    sent, checked = sent_redirect(asked, body), checked_redirect(asked, body)
    if (sent and asked.parts.redirects.allowed(sent)) or asked.in_dialect or body.get("code_challenge"):
        return checked
    return _own_target(asked, purpose, has_page=False) or checked


def _own_target(asked: Asked, purpose: str, *, has_page: bool) -> str | None:
    """Return the page of ours that a link without `redirect_to` leads to, or None."""
    # `has_page` if the application asks for the new password itself, as one does that speaks the dialect or
    # sends a code challenge. Its links have no `redirect_to`.
    is_ours = purpose == "undo" or (purpose in TO_PASSWORD and not has_page)
    if not (is_ours and asked.settings.pages):
        return None
    return own_url(asked.settings, "new-password", {"then": "site"} if asked.settings.has_site else {})


def target_of(asked: Asked, link: "queries.SelectLink") -> str | None:
    """Return where a link leads, by its page's button and for a program: None for the site."""
    return link.redirect_to or _own_target(asked, link.purpose, has_page=asked.settings.has_site)
