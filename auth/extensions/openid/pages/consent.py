"""Asks users whether an application may sign them in (AUTH_OAUTH_CONSENT_URL replaces this page)."""

from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from auth.core.text import names
from auth.core.text.moments import wait
from auth.extensions.openid import consent, memberships, uris
from auth.extensions.openid.pages import choice
from auth.html import browser_sessions, form_schemas
from auth.html.page import chosen_language, page, redirect_to_own
from auth.html.problems import Problem, form
from auth.html.redirects import Destination
from auth.web import Level
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import read_form
from sql import queries

blueprint = Blueprint("consent", __name__)


@blueprint.get("/oauth/consent")
def show_consent() -> Response:
    return Response() if request.method == "HEAD" else _page()


def _page(problem: Problem | None = None) -> Response:
    """Ask for consent, unless the user has given it, or redirect to the missing sign-in or step."""
    authorization_id = request.values.get("authorization_id", "")
    session = browser_sessions.resume(Level.AAL2)
    asked = current_asked()
    here = f"oauth/consent?{urlencode({'authorization_id': authorization_id})}"
    way_back = urlencode({"next": here})
    if session and session.lacks_level:
        return redirect_to_own(f"second-step?{way_back}")
    try:
        authorization = consent.find_own(asked, asked.db, authorization_id)
    except ApiError:
        website = consent.website_of(asked, authorization_id) if session else None
        if session is None or website is None:
            raise
        # The request is over, or another browser's.
        name, url = website
        return page(
            "signed_in.html",
            here=f"/{here}",
            to=Destination(),
            problem=problem,
            account=account_name(session),
            application_name=name,
            application_url=url,
        )
    if session is None:
        return redirect_to_own(f"sign-in?{way_back}")
    missing = consent.obstacle(asked, authorization)
    if missing is None and problem is None:
        url, missing = consent.approve_in_browser(asked, authorization_id)
        if url:
            return redirect(url)
    if missing == "login_required":
        return redirect_to_own(f"account/confirm?{way_back}")
    lack = consent.lack_of(*authorization)
    return page(
        "consent.html",
        script=True,
        status=403 if lack else 200,
        form_target=authorization.request.redirect_uri,
        here=f"/{here}",
        to=Destination(next=here),
        problem=problem,
        decides="oauth/consent",
        fields={"authorization_id": authorization_id},
        account=account_name(session),
        **_variables(authorization),
        **choice.variables(asked, *authorization, lack, here),
    )


def account_name(session: browser_sessions.BrowserSession | None) -> str:
    """Return the displayed name of the user of the browser's session."""
    return (session and (session.email or session.phone or session.name)) or "…"


@blueprint.post("/oauth/consent")
@form("decide_authorization", shown=_page, key=browser_sessions.user_or_network)
def submit_consent() -> Response:
    """Send the browser back to the application, with a code or a refusal."""
    decision = read_form(form_schemas.ConsentForm)
    authorization_id = decision["authorization_id"]
    session = browser_sessions.resume(Level.AAL2)
    asked = current_asked()
    if decision["action"] == "deny":
        with consent.locked(asked, authorization_id) as act:
            authorization = consent.find_own(asked, act, authorization_id)
            return redirect(consent.deny(asked, act, authorization))
    if session and not session.lacks_level:
        url, missing = consent.approve_in_browser(
            asked, authorization_id, consent.AGREED, organization=decision["organization"]
        )
        if url:
            return redirect(url)
        if missing == "interaction_required":
            raise ApiError("validation_failed", "organization: must be one that counts")
    # The page redirects to the missing step.
    return redirect_to_own(f"oauth/consent?{urlencode({'authorization_id': authorization_id})}")


def _variables(authorization: consent.Authorization) -> dict[str, Any]:
    row, client, _ = authorization
    # A logo from a stranger could show another brand, and reveal who opens the page.
    shows_logo = client.logo_uri.startswith("https://") and not client.is_dynamic
    links = {"policy_uri": client.policy_uri, "tos_uri": client.tos_uri}
    return {
        "application": consent.display_name(authorization),
        "host": uris.host(row.redirect_uri),
        "is_native": uris.is_native(row.redirect_uri),
        "is_dynamic": client.is_dynamic and not client.metadata_url,
        "document": client.metadata_url,
        "calls_itself": names.in_one_line(client.name),
        "links": [(name, uri, uris.host(uri)) for name, uri in links.items() if uri],
        "scopes": memberships.kinds(row.scopes) or ["openid"],
        "scopes_of_api": memberships.of_apis(row.scopes),
        "resource": row.resource,
        **lasts(client),
        "client_logo": client.logo_uri if shows_logo else None,
    }


def lasts(client: "queries.SelectClient") -> dict[str, Any]:
    """Return how long the client keeps its access: from its last use if it `renews`, or from now."""
    settings = latchkey.settings
    unused, longest = settings.refresh_token_lifetime, settings.session_timebox
    seconds = client.token_lifetime or settings.access_token_lifetime
    if stays := "refresh_token" in client.grant_types:
        seconds = min(unused, longest or unused)
    return {"renews": stays and seconds == unused, "lasts": wait(seconds, chosen_language())}
