"""Authorization requests of applications: from their beginning to the code (RFC 6749, section 4.1).

Both routes that take a form check it, and redirect to a GET with a short reference, because browsers send no
cookies with a form of another site.
"""

import functools
from collections.abc import Collection
from urllib.parse import urlencode, urlsplit

from flask import Blueprint, Response, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from auth.core.net.redirects import origin, with_query
from auth.core.text import languages
from auth.core.tokens import client_ids, one_time
from auth.extensions.openid import authorization_requests, client_object, consent, logout_hints, memberships
from auth.extensions.openid.authorization_requests import AuthorizationRequest, RequestRefused
from auth.extensions.openid.oauth_errors import OAuthError, described
from auth.flows.facts import PersonFacts
from auth.flows.messages.outgoing import own_url
from auth.flows.sign_in.reauthentication import admit_caller
from auth.html import browser_sessions, form_schemas
from auth.html.page import LANGUAGE, LANGUAGES, page, text
from auth.html.problems import Problem, asks_for_page
from auth.rules.consent import Obstacle
from auth.web import (
    Level,
    answers_frames,
    audited,
    cookies,
    dialect,
    fields,
    g,
    guard,
    limits,
    refuses_by_page,
    schemas,
    takes_foreign_forms,
)
from auth.web.application import redirect
from auth.web.asked import Asked, current_asked
from auth.web.declarations import View
from auth.web.errors import ApiError
from auth.web.input import read_body, read_form, read_query
from auth.web.limits import limited
from sql import queries
from sql.acts import Act

blueprint = Blueprint("authorization", __name__)

_ContinueQuery = schemas.Input.of(
    authorization_id=fields.Text(required=True), approval=fields.Text(required=True)
)
_DecisionBody = form_schemas.Decision.of(organization=fields.Uuid())


def _notes_refusals(view: View) -> View:
    """Record in the history of a signed-in user why a request is refused that must not redirect."""

    @functools.wraps(view)
    def noting(*args: object, **kwargs: object) -> ResponseReturnValue:
        try:
            return view(*args, **kwargs)
        except RequestRefused as refusal:
            if session := browser_sessions.resume(Level.SESSION):
                g.note(user_id=session.user_id, client=refusal.client, problem=refusal.problem)
            raise

    return noting


# Any frame may ask for no page: without a session, nothing is written.
@blueprint.get("/oauth/authorize")
@answers_frames
@limited(
    "request_authorization",
    key=browser_sessions.user_or_network,
    unless=lambda: request.args.getlist("prompt") == ["none"],
)
@audited("application_refused")
@refuses_by_page
@_notes_refusals
def begin_authorization() -> Response:
    """Check an application's request, and ask the user for consent."""
    if request.method == "HEAD":
        return Response()
    asked = current_asked()
    if authorization_id := request.args.get("authorization_id"):
        return _ask(asked, *authorization_requests.take(asked, authorization_id))
    query = read_query(authorization_requests.Origin)
    client_id = query["client_id"]
    if _has_document(asked, client_id) and (to_sign_in := _make_document_current(asked, client_id)):
        return to_sign_in
    client = authorization_requests.find_client(asked, **query)
    try:
        oauth_request = _read(asked, client, query["redirect_uri"])
    except OAuthError as error:
        return _refused(asked, client, query["redirect_uri"], error)
    return _ask(asked, client, oauth_request)


def _has_document(asked: Asked, client_id: str) -> bool:
    return bool(asked.settings.oauth_client_documents) and client_ids.is_url(client_id)


def _make_document_current(asked: Asked, url: str) -> Response | None:
    """Fetch a client's document unless it is current, or redirect to the sign-in first."""
    from auth.extensions.openid import documents

    id = documents.id_of(asked, url)
    if documents.is_current(asked, id):
        return None
    if browser_sessions.resume(Level.SESSION) is None:
        if not asked.settings.pages or "none" in request.args.get("prompt", "").split(" "):
            problem = "its document is fetched for users who have signed in on our pages"
            raise authorization_requests.refusal(url, problem)
        here = f"oauth/authorize?{urlencode([*request.args.items(multi=True)])}"
        return redirect(own_url(asked.settings, "sign-in", {"next": here}), 302)
    limits.count("fetch_client_document", g.client["network"])
    documents.fetch(asked, url, id)
    return None


def _read(asked: Asked, client: "queries.SelectClient", redirect_uri: str) -> AuthorizationRequest:
    """Return a client's request. Raises `OAuthError`."""
    if len(resources := _values().getlist("resource")) > 1:
        raise OAuthError(
            "invalid_target", "resource must be given once", sent={"resource": " ".join(resources)}
        )
    try:
        read = read_form if request.method == "POST" else read_query
        parameters = {name: value for name, value in read(authorization_requests.Parameters).items() if value}
    except ApiError as error:
        raise OAuthError("invalid_request", error.details or error.msg) from None
    oauth_request = authorization_requests.check(asked, client, redirect_uri, parameters)
    if not asked.settings.oauth_consent_url and not asked.settings.pages:
        raise OAuthError("server_error", "the service has no consent page: see AUTH_OAUTH_CONSENT_URL")
    return oauth_request


def _ask(asked: Asked, client: "queries.SelectClient", oauth_request: AuthorizationRequest) -> Response:
    """Redirect the browser to the consent page, or with prompt=none back to the application."""
    if "none" in oauth_request.prompts:
        return _without_page(client, oauth_request)
    browser = cookies.browser_secret(authorization_requests.COOKIE)
    reference = {"authorization_id": authorization_requests.write(asked, oauth_request, browser)}
    consent_url = asked.settings.oauth_consent_url
    url = own_url(asked.settings, "oauth/consent", reference)
    if consent_url:
        url = with_query(consent_url, reference)
    response = redirect(url, 302)
    cookies.set_cookie(response, authorization_requests.COOKIE, browser)
    ui_locales = request.args.get("ui_locales")
    if ui_locales and not cookies.read(LANGUAGE):
        wished = f"{ui_locales.replace(' ', ',')},{request.headers.get('Accept-Language', '')}"
        cookies.set_cookie(response, LANGUAGE, languages.choose(LANGUAGES, None, wished))
    return response


@blueprint.post("/oauth/authorize")
@takes_foreign_forms
@limited("request_authorization", key=browser_sessions.user_or_network)
@refuses_by_page
@_notes_refusals
def begin_authorization_by_form() -> Response:
    """Check a request that was sent as a form, and redirect to the GET."""
    asked, form = current_asked(), read_form(authorization_requests.Origin)
    if _has_document(asked, form["client_id"]):
        # The document is fetched only for users who are signed in, and only the GET has their cookie.
        query = urlencode([*request.form.items(multi=True)])
        return redirect(f"{asked.settings.base_url}/oauth/authorize?{query}")
    client = authorization_requests.find_client(asked, **form)
    try:
        oauth_request = _read(asked, client, form["redirect_uri"])
    except OAuthError as error:
        return _refused(asked, client, form["redirect_uri"], error)
    reference = {"authorization_id": authorization_requests.write(asked, oauth_request, None)}
    if ui_locales := request.form.get("ui_locales"):
        reference["ui_locales"] = ui_locales
    return redirect(own_url(asked.settings, "oauth/authorize", reference))


@blueprint.post("/oauth/logout")
@takes_foreign_forms
@refuses_by_page
def logout_by_form() -> Response:
    """Redirect an application's form to the page, with the claims of its ID token instead of the token.

    It needs no session, and counts nothing.
    """
    asked, form = current_asked(), read_form(form_schemas.LogoutQuery)
    form |= {"id_token_hint": logout_hints.shortened(asked.parts, form.get("id_token_hint", ""))}
    query = {name: value for name, value in form.items() if value}
    return redirect(own_url(asked.settings, "oauth/logout", query))


@blueprint.get("/oauth/continue")
@limited("continue_authorization", key=browser_sessions.user_or_network)
@refuses_by_page
def continue_authorization() -> Response:
    """Give the code of an approved request to the application, in the browser that began it."""
    if request.method == "HEAD":
        return Response()
    asked = current_asked()
    return redirect(consent.give_code(asked, asked.db, **read_query(_ContinueQuery)), 302)


@blueprint.get("/oauth/authorizations/<authorization_id>")
@guard.access_token(Level.AAL2)
@limited("read_authorization", key=guard.caller_on_network)
@dialect.translated(writes=dialect.authorization)
def get_authorization(authorization_id: str) -> Response:
    """Return what an application asks for, or the next URL if the user has allowed it already."""
    asked = current_asked()
    _check_origin(asked)
    asked.live_caller()
    if request.method == "HEAD":
        return Response()
    with consent.locked(asked, authorization_id) as act:
        person = admit_caller(asked, act)
        authorization = consent.find(asked, act, authorization_id, person)
        if authorization.request.user_id is None:
            queries.bind_oauth_request(act, id=authorization.request.id, user_id=person.id, session_id=None)
        else:
            _check_own(authorization)
        url = _next_url(asked, act, person, authorization, authorization_id)
    if url:
        return jsonify(redirect_url=url)
    row, client, _ = authorization
    offered = memberships.offered(row, client, person)
    return jsonify(
        **({"organizations": offered} if offered else {}),
        authorization_id=authorization_id,
        redirect_uri=row.redirect_uri,
        client={
            "id": client_object.sent_id(client),
            "name": client.name,
            "uri": client.uri,
            "logo_uri": client.logo_uri,
        },
        user={"id": person.id, "email": person.email or ""},
        scope=" ".join(row.scopes),
        resource=row.resource,
    )


@blueprint.post("/oauth/authorizations/<authorization_id>/consent")
@guard.access_token(Level.AAL2)
@limited("decide_authorization", key=guard.caller_on_network)
def decide_authorization(authorization_id: str) -> Response:
    asked = current_asked()
    _check_origin(asked)
    asked.live_caller()
    body = read_body(_DecisionBody)
    with consent.locked(asked, authorization_id) as act:
        person = admit_caller(asked, act)
        authorization = consent.find(asked, act, authorization_id, person)
        _check_own(authorization)
        if body["action"] == "deny":
            return jsonify(redirect_url=consent.deny(asked, act, authorization))
        organization = body.get("organization")
        if consent.obstacle(asked, authorization, organization) == "interaction_required":
            raise ApiError("validation_failed", "organization: must be one of the request that has a role")
        url = _next_url(asked, act, person, authorization, authorization_id, consent.AGREED, organization)
    if url is None:
        details = "sign in again, or use POST /reauthenticate: the application asks for it"
        raise ApiError("reauthentication_needed", details)
    return jsonify(redirect_url=url)


def _next_url(
    asked: Asked,
    act: Act,
    person: PersonFacts,
    authorization: consent.Authorization,
    authorization_id: str,
    removed: Collection[Obstacle] = (),
    organization: str | None = None,
) -> str | None:
    """Return the next URL of the browser, or None if an obstacle is left that the user has not `removed`."""
    missing = consent.obstacle(asked, authorization, organization)
    if missing == "access_denied":
        return consent.deny(asked, act, authorization)
    if missing and missing not in removed:
        return None
    is_agreed = missing is not None
    approval = consent.approve(asked, act, person, authorization, organization, is_agreed=is_agreed)
    query = {"authorization_id": authorization_id, "approval": approval}
    return own_url(asked.settings, "oauth/continue", query)


def _check_own(authorization: consent.Authorization) -> None:
    if authorization.request.user_id != guard.caller_id():
        raise ApiError("oauth_authorization_not_found")
    if not authorization.request.is_pending:
        raise ApiError("validation_failed", "authorization_id: the request is no longer pending")


def _check_origin(asked: Asked) -> None:
    """Refuse a page that may not receive tokens, unless it is that of AUTH_OAUTH_CONSENT_URL."""
    page_origin, consent_url = request.headers.get("Origin"), asked.settings.oauth_consent_url
    if not page_origin or (consent_url and page_origin == origin(consent_url)):
        return
    if not asked.parts.redirects.allowed(page_origin):
        raise ApiError("validation_failed", "Origin: must be allowed by AUTH_REDIRECT_ALLOW_LIST")


def _values() -> MultiDict[str, str]:
    return request.form if request.method == "POST" else request.args


def _without_page(client: "queries.SelectClient", oauth_request: AuthorizationRequest) -> Response:
    """Answer prompt=none with a code, or with the step that the user lacks."""
    session, missing = browser_sessions.resume(Level.AAL2), "login_required"
    asked = current_asked()
    if session and session.lacks_level:
        missing = "interaction_required"
    elif session:
        limits.count("request_authorization_silently", guard.caller_on_network())
        browser = one_time.new_token()
        authorization_id = authorization_requests.write(asked, oauth_request, browser)
        url, obstacle = consent.approve_in_browser(asked, authorization_id, browser=browser)
        if url:
            return redirect(url, 302)
        with consent.locked(asked, authorization_id) as act:
            authorization = consent.find_own(asked, act, authorization_id, browser)
            obstacle = consent.disclosed(authorization, obstacle)
            consent.deny(asked, act, authorization)
        # The session belongs to another account than the id_token_hint.
        missing = obstacle if obstacle and obstacle != "account_selection_required" else missing
    members = {"error": missing, "error_description": "The user has to be asked"}
    url = authorization_requests.answer(
        asked.settings, oauth_request.redirect_uri, oauth_request.state, **members
    )
    return _sent_back(client, oauth_request.redirect_uri, url, missing)


def _refused(asked: Asked, client: "queries.SelectClient", redirect_uri: str, error: OAuthError) -> Response:
    g.refused_because = error.error
    authorization_requests.log_error(client.id, error)
    states = _values().getlist("state")
    state = states[0] if len(states) == 1 and "\0" not in states[0] else None
    members = {"error": error.error, "error_description": described(error.description)}
    url = authorization_requests.answer(asked.settings, redirect_uri, state or None, **members)
    return _sent_back(client, redirect_uri, url, error.error)


def _sent_back(client: "queries.SelectClient", redirect_uri: str, url: str, error: str) -> Response:
    if not client.is_dynamic or not asks_for_page():
        return redirect(url, 302)
    # Anyone may have registered it, to redirect people who trust our host (RFC 9700, section 4.11.2).
    problem = Problem(text("errors", "parameter_client_id_invalid"), None, 400, {}, error)
    host = urlsplit(redirect_uri).netloc or redirect_uri
    return page("error.html", status=400, problem=problem, here=None, back_url=url, host=host)
