"""Where a browser goes after a sign-in: to an application, or to a page of ours."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

import psycopg2
from flask import Response, request

from auth.core.net.redirects import is_web, origin, with_answer, with_fragment, with_query
from auth.core.text.names import PREFIX
from auth.flows import facts
from auth.flows.messages.outgoing import own_url
from auth.flows.passkeys import assertions
from auth.flows.sessions import token_response
from auth.flows.sessions.ending import sign_out
from auth.flows.sessions.issuing import IssuedSession
from auth.flows.sessions.token_response import Outcome
from auth.flows.sign_in import sites
from auth.html import browser_sessions, form_schemas, forms
from auth.rules.factors import is_offered
from auth.rules.policy import on_pages
from auth.web import Level, callers, cookies, g
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.input import allowed_redirect, check
from sql import queries

# A cookie with the last sign-in method of this browser: `password`, `code`, `passkey` or a provider's name.
LAST_USED = "latchkey_last_used"
# The page that moves a user to the sign-in of a company. A flow that it began returns to it with an error,
# or goes on to its destination.
COMPANY = "account/company"
# The page that offers a passkey after a sign-in.
OFFER = "account/passkeys/offer"
# A message for the page for a new password, and the member of an outcome that it is about.
PASSWORD_REMOVED = "password_removed"  # noqa: S105 (no password)
_YEAR = 365 * 86_400
# Errors whose pages say more than their codes.
_SHOWN_BY_KEY = ("admin.user_sso_conflict", "pressed.user_sso_conflict")


def own_page(name: str | None) -> str | None:
    """Return the path of the page in a parameter `next`, or None."""
    if not name:
        return None
    pages = chain.from_iterable(each.next_pages() for each in latchkey.extensions)
    return next((path.format(name) for pattern, path in pages if re.fullmatch(pattern, name)), None)


@dataclass(frozen=True)
class Destination:
    """The application that the browser came from: its URL, and a code challenge (RFC 7636).

    With `next`, the browser continues to that page of ours, which gets both. `then` is `site` if a sign-up or
    a new password continues at AUTH_SITE_LOGIN_URL, without tokens.
    """

    redirect_to: str | None = None
    code_challenge: str | None = None
    next: str | None = None
    then: str | None = None

    @classmethod
    def read(cls, values: Mapping[str, str]) -> "Destination":
        """Read a query or form. Refuse what `allowed_redirect` refuses."""
        url = values.get("redirect_to")
        target = allowed_redirect(current_asked(), url) if url else None
        redirect_to = None if target and latchkey.redirects.is_own_page(target) else target
        next_page = values.get("next") if own_page(values.get("next")) else None
        then = "site" if values.get("then") == "site" else None
        return cls(redirect_to, values.get("code_challenge"), next_page, then)

    def __bool__(self) -> bool:
        return bool(self.redirect_to or self.code_challenge)

    @property
    def url(self) -> str:
        return self.redirect_to or latchkey.settings.site_url

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc or self.url

    @property
    def parameters(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    def or_site(self) -> "Destination":
        """Return this destination, or the site if it is empty."""
        if self or self.next or not latchkey.settings.has_site:
            return self
        return replace(self, then="site")

    def path(self, page: str) -> str:
        """Return the path of a page of ours with this destination in its query."""
        return with_query(page, self.parameters) if self.parameters else page

    def own_url(self, page: str) -> str:
        return f"{latchkey.settings.base_url}/{self.path(page)}"

    def next_url(self) -> str | None:
        """Return the URL of the page of ours, with the parameters of the application."""
        page = own_page(self.next)
        return replace(self, next=None).own_url(page) if page else None


def redirect_signed_in(
    target: str, outcome: Outcome, link_type: str | None = None, *, way: str | None = None
) -> Response:
    """Redirect with a code in the query or tokens in the fragment. For our page, sign the browser in."""
    if outcome.authorization_code:
        return redirect(with_answer(target, {"code": outcome.authorization_code}))
    session = found(outcome.session, "unexpected_failure")
    if latchkey.redirects.is_own_page(target):
        done = done_of(outcome)
        if done:
            target = destination_of(target).or_site().own_url("new-password")
        elif outcome.purpose == "invite" and is_password_page(target):
            target = destination_of(target).own_url("join")
        way = "code" if outcome.purpose == "magiclink" else way
        return redirect_with_cookie(target, session, way=way, done=done, may_offer=way is not None)
    members = token_response.tokens(latchkey, session) | ({"type": link_type} if link_type else {})
    members |= {name: "true" for name in outcome.members if name == "password_removed"}
    return redirect(with_fragment(target, members))


def done_of(outcome: Outcome) -> str | None:
    """Return the message that the first proof has removed the password of a sign-up, if it has."""
    return PASSWORD_REMOVED if PASSWORD_REMOVED in outcome.members else None


def is_password_page(target: str) -> bool:
    """Whether a page of ours asks for a new password."""
    return urlsplit(target).path.endswith("/new-password")


def url_and_page_of(target: str) -> tuple[str, str | None]:
    """Return the application's URL of a target, and the page of ours, if any."""
    if not latchkey.redirects.is_own_page(target):
        return target, None
    destination = destination_of(target)
    return destination.url, destination.next


def entrance(target: str) -> Destination:
    """Return the start for a browser without the code: the application or our page of a link."""
    is_ours = latchkey.redirects.is_own_page(target)
    to = destination_of(target) if is_ours else Destination(target)
    if to.next:
        return Destination(next=to.next)
    url = to.redirect_to
    is_site = not url or not is_web(url) or origin(url) == origin(latchkey.settings.site_login_url)
    return Destination().or_site() if is_site else Destination(url, next="here")


class Flow(Protocol):
    """A row with a flow or link that leads to an application."""

    @property
    def redirect_to(self) -> str | None: ...
    @property
    def code_challenge(self) -> str | None: ...


@dataclass(frozen=True)
class FlowEnd:
    """Where a flow ends: an allowed URL.

    With a code challenge, the application's server reads the query, which has the code.
    """

    url: str
    has_challenge: bool = False
    # The browser has a session already. It returns to the page that would have followed the sign-in.
    is_signed_in: bool = False

    @classmethod
    def of(cls, flow: Flow | None) -> "FlowEnd":
        """Return the end of a flow; of None, the site."""
        if flow is None:
            return cls(latchkey.settings.site_url)
        url = latchkey.redirects.checked(flow.redirect_to)
        return cls(url, has_challenge=flow.code_challenge is not None)

    def redirect_with(self, members: Mapping[str, str]) -> Response:
        """Redirect with members in the fragment, which old clients read, and perhaps in the query too."""
        url = with_answer(self.url, members) if self.has_challenge else self.url
        return redirect(with_fragment(url, members))


def redirect_with_error(ending: FlowEnd, error: str, refusal: ApiError) -> Response:
    """Redirect with an error (RFC 6749, section 4.1.2.1), or to our page, which shows it."""
    g.refused_because = refusal.error_code
    code = {"error_code": refusal.error_code}
    # Developers look here before they read the log.
    reason = {"reason": refusal.details} if latchkey.settings.is_local and refusal.details else {}
    if latchkey.redirects.is_own_page(ending.url):
        goes_on = ending.is_signed_in and is_page(ending.url, "sign-in")
        next_url = destination_of(ending.url).next_url() if goes_on else None
        shown = {"error_code": refusal.key} if refusal.key in _SHOWN_BY_KEY else code
        cause = refusal.values if "cause" in refusal.values else {}
        return redirect(with_query(next_url or ending.url, forms.signed_query(**shown, **reason, **cause)))
    return ending.redirect_with({"error": error, **code, "error_description": refusal.msg})


def redirect_done(ending: FlowEnd, done: str, message: str) -> Response:
    """Redirect with a message, or to a page of ours that shows the result."""
    if latchkey.redirects.is_own_page(ending.url):
        return redirect(with_query(ending.url, forms.signed_query(done=done)))
    return ending.redirect_with({"message": message, "type": done})


def redirect_onward(destination: Destination, done: str | None = None, level: Level = Level.AAL2) -> Response:
    """Redirect a signed-in browser to its application, with a session for it, or to a page of ours.

    `level` is what the application's session requires: AAL1 if the user skips the passkey.
    """
    if next_url := destination.next_url():
        return redirect(next_url)
    if destination:
        # This refuses if the second step is missing.
        outcome = sites.hand_on(current_asked(), destination.code_challenge, level)
        return redirect_signed_in(destination.url, outcome)
    if destination.then:
        # After a form of ours: another site may have started a GET request.
        if request.method == "POST":
            sites.expect_site(current_asked())
        # Other sign-ins have a fragment. Not every site reads it, and it would stay in the history.
        return redirect(latchkey.settings.site_login_url)
    return redirect(own_url(latchkey.settings, "account", forms.signed_query(done=done) if done else {}))


def is_expected(destination: Destination) -> bool:
    """Whether the caller's browser comes from the application to which we redirected it. True only once."""
    # Another page may also send it here, but only the page that made the challenge can use the code.
    site = origin(latchkey.settings.site_login_url)
    if not destination.code_challenge or origin(destination.url) != site:
        return False
    return sites.meet_site(current_asked())


def redirect_with_cookie(
    target: str,
    session: IssuedSession,
    *,
    way: str | None = None,
    done: str | None = None,
    may_offer: bool = False,
) -> Response:
    """Sign the browser in, and redirect it to a page of ours, which shows the message `done`.

    From /sign-in, and from the page of a company after a move, it goes on to its destination, or first to the
    offer of a passkey after a sign-in that `may_offer` one.
    """
    if browser_sessions.resume():
        with suppress(ApiError):  # it has ended meanwhile
            sign_out(current_asked(), "local")
    browser_sessions.begin(session)
    if done:
        target = with_query(target, forms.signed_query(done=done))
    has_moved = way is not None and way.startswith(PREFIX) and is_page(target, COMPANY)
    if may_offer and is_page(target, "sign-in") and leads_to_offer(destination_of(target)):
        response = redirect(destination_of(target).own_url(OFFER))
    elif is_page(target, "sign-in") or has_moved:
        response = redirect_after_sign_in(destination_of(target), done="company" if has_moved else None)
    else:
        response = redirect(target)
    if way:
        cookies.set_cookie(response, LAST_USED, way, max_age=_YEAR)
    return response


def leads_to_offer(to: Destination) -> bool:
    """Whether to offer the caller, who has just signed in, a passkey: once in a browser, and not on the way
    to another question of ours.

    The page of the offer checks it again: another site may send the browser there.
    """
    settings = latchkey.settings
    if settings.passkey_offer == "off" or not settings.offers_passkeys:
        return False
    if cookies.read(cookies.OFFERED):
        return False
    # The users of a customer's provider sign in there.
    if any(name.startswith(PREFIX) for name in g.caller.providers):
        return False
    with suppress(psycopg2.Error):  # the sign-in has committed
        # The page of an application that the user has allowed before asks nothing.
        if to.next and not any(each.goes_on(to.next) for each in latchkey.extensions):
            return False
        person = callers.select(latchkey.db, g.caller)
        session = person and facts.own_session_of(person)
        if person is None or session is None:
            return False
        rows = queries.list_credentials(latchkey.db, user_id=person.id)
        has_passkey = any(row.factor_type == assertions.PASSKEY for row in rows)
        return is_offered(person, session, on_pages(latchkey.policy), has_passkey=has_passkey)
    return False


def is_page(target: str, path: str) -> bool:
    """Whether a URL is that of our page with this path."""
    return urlsplit(target).path.endswith(f"/{path}")


def destination_of(target: str) -> Destination:
    """Return the destination in the URL of a page of ours."""
    query = dict(parse_qsl(urlsplit(target).query))
    try:
        # The client that requested the link chose this URL, which was not checked then.
        return Destination.read(check(form_schemas.Destination, query))
    except ApiError:
        return Destination()


def redirect_after_sign_in(destination: Destination, done: str | None = None) -> Response:
    """Redirect like `redirect_onward`, or to the page for the missing step."""
    try:
        return redirect_onward(destination, done)
    except ApiError as error:
        if error.error_code == "insufficient_aal":
            return redirect(destination.own_url("second-step"))
        if error.error_code not in ("hook_refused", "hook_failed"):
            raise
        # The user is signed in here, perhaps with a spent code, and may try again.
        return redirect_with_error(FlowEnd(destination.own_url("sign-in")), "access_denied", error)
