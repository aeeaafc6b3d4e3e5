"""Users' decisions about authorization requests, on our page or on the application's."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

import psycopg2

from auth.core import constants
from auth.core.net.redirects import origin
from auth.core.text import names
from auth.core.tokens import client_ids, one_time
from auth.extensions.openid import memberships, uris
from auth.extensions.openid.authorization_requests import COOKIE, answer
from auth.extensions.openid.memberships import RequestRow
from auth.flows import facts, organizations
from auth.flows.account import grants
from auth.flows.facts import PersonFacts
from auth.flows.sign_in.reauthentication import admit_caller
from auth.registry import Waiting
from auth.rules import consent
from auth.rules.consent import Lack, Obstacle
from auth.rules.sessions import AuthenticatedSession
from auth.web import Level, callers
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Runner, acts, queries

# The obstacles that a user removes by agreeing.
AGREED: tuple[Obstacle, ...] = ("account_selection_required", "consent_required")
# The `error` and `error_description` of a denied request, by the missing step.
_DENIALS: dict[Obstacle | None, tuple[str, str]] = {
    "access_denied": ("access_denied", "User may not use this application"),
    "login_required": ("login_required", "User did not sign in again"),
}


class Authorization(NamedTuple):
    """The rows of a request, its client and the caller, if any."""

    request: "queries.SelectOauthRequest"
    client: "queries.SelectClient"
    person: "queries.SelectPerson | None"


@contextmanager
def locked(asked: Asked, authorization_id: str) -> Iterator[acts.Act]:
    """Run the block's statements as one act of the caller, if any, on a request."""
    request = queries.find_oauth_request(asked.db, id_hash=one_time.hash_token(authorization_id))
    with acts.begin(asked.db) as act:
        act.share_client(request and request.client_id)
        act.lock_users([_user_id_of(asked)])
        act.lock_request(request and request.id)
        yield act


def find(
    asked: Asked, on: Runner, authorization_id: str, person: "queries.SelectPerson | None"
) -> Authorization:
    """Return a request. `person` is the caller."""
    id_hash = one_time.hash_token(authorization_id)
    request = queries.select_oauth_request(on, id_hash=id_hash, user_id=_user_id_of(asked))
    client = request and queries.select_client(on, id=request.client_id)
    if request is None or client is None or request.expires_at <= request.now:
        raise ApiError("oauth_authorization_not_found")
    # An insert may have passed the removal of its redirect URI.
    if not any(uris.matches(each, request.redirect_uri) for each in client.redirect_uris):
        raise ApiError("oauth_authorization_not_found")
    _check_scheme(asked, client, request.redirect_uri)
    return Authorization(request, client, person)


def find_in_browser(
    asked: Asked,
    on: Runner,
    authorization_id: str,
    person: "queries.SelectPerson | None",
    browser: str | None = None,
) -> Authorization:
    """Return a pending request of this browser."""
    authorization = find(asked, on, authorization_id, person)
    request = authorization.request
    browser_hash = _hash_of_browser(asked, browser)
    if request.is_pending and browser_hash is None:
        raise ApiError("cookie.oauth_authorization_not_found")
    if not request.is_pending or bytes(request.browser_hash) != browser_hash:
        raise ApiError("oauth_authorization_not_found")
    return authorization


def find_own(asked: Asked, on: Runner, authorization_id: str, browser: str | None = None) -> Authorization:
    """Return a pending request of this browser, which may be signed in."""
    return find_in_browser(asked, on, authorization_id, caller(asked, on), browser)


def _user_id_of(asked: Asked) -> str | None:
    return asked.user.user_id if asked.user else None


def caller(asked: Asked, on: Runner) -> "queries.SelectPerson | None":
    return callers.select(on, asked.user) if asked.user else None


def behind(asked: Asked, next_page: str) -> Waiting | None:
    """Return the application that a page returns to, or None. Also None without the database."""
    if authorization_id := _id_in(next_page):
        with suppress(ApiError, psycopg2.Error):
            authorization = find_own(asked, asked.db, authorization_id)
            request, policy = authorization.request, asked.parts.policy
            return Waiting(
                name=display_name(authorization),
                redirect_uri=request.redirect_uri,
                login_hint=request.login_hint,
                is_fresh=consent.is_fresh_for(_request_of(request), *_caller_of(authorization), policy),
                declining="oauth/consent",
                fields={"authorization_id": authorization_id, "action": "deny"},
            )
    return None


def goes_on(asked: Asked, next_page: str) -> bool:
    """Whether a page goes on to its application without asking, since the caller allowed it before."""
    if authorization_id := _id_in(next_page):
        with suppress(ApiError):
            return obstacle(asked, find_own(asked, asked.db, authorization_id)) is None
    return False


def _id_in(next_page: str) -> str:
    return next_page.partition("oauth/consent?authorization_id=")[2]


def display_name(authorization: Authorization) -> str:
    request, client, _ = authorization
    # The name in a document is not verified.
    name = client_ids.host_of(client.metadata_url or "") or names.in_one_line(client.name)
    return name or uris.host(request.redirect_uri)


def website_of(asked: Asked, authorization_id: str) -> tuple[str, str | None] | None:
    """Return the name and the website of a request's application, even if the request is over."""
    request = queries.find_oauth_request(asked.db, id_hash=one_time.hash_token(authorization_id))
    client = request and queries.select_client(asked.db, id=request.client_id)
    if client is None:
        return None
    urls = [client.uri, *(origin(uri) for uri in client.redirect_uris if not uris.is_native(uri))]
    # A stranger can register a dynamic client. Our page must not link to a website that a stranger chose.
    url = None if client.is_dynamic else next(filter(None, urls), None)
    return names.in_one_line(client.name) or uris.host(url or ""), url


def obstacle(asked: Asked, authorization: Authorization, organization: str | None = None) -> Obstacle | None:
    """Return the obstacle to approving the caller's request, for a chosen organization, without asking."""
    row, client, _ = authorization
    return consent.obstacle(
        _request_of(row, memberships.offer_of(*authorization, organization)),
        asking_of(client),
        _grant_of(row),
        _user_id_of(asked),
        *_caller_of(authorization),
        asked.parts.policy,
        _memberships_of(row, authorization.person),
    )


def lack_of(
    row: RequestRow, client: "queries.SelectClient", person: "queries.SelectPerson | None"
) -> Lack | None:
    """Return what the caller lacks to use a client for a request, None if nothing."""
    if person is None:
        return "access"
    offer, own = memberships.offer_of(row, client, person), _memberships_of(row, person)
    return consent.lack_of(offer, asking_of(client), row.resource, person, own)


def _memberships_of(row: RequestRow, person: "queries.SelectPerson | None") -> dict[str, bool]:
    """Return the caller's memberships, by id, with whether each counts in the session."""
    counting = organizations.counting(row.memberships, organizations.standing_of(person))
    return {each["id"]: each["id"] in counting for each in organizations.listed(row.memberships)}


def disclosed(authorization: Authorization, obstacle: Obstacle | None) -> Obstacle | None:
    """Return what the application learns about an obstacle."""
    row, client, _ = authorization
    request = _request_of(row, memberships.offer_of(*authorization))
    return consent.disclosed(obstacle, request, asking_of(client), _grant_of(row))


def asking_of(row: "queries.SelectClient") -> consent.Asking:
    return consent.Asking(
        allowed_roles=frozenset(row.allowed_roles),
        resources=frozenset(row.resources),
        is_dynamic=row.is_dynamic,
        is_blocked=row.is_blocked,
        updated_at=row.updated_at,
        has_document=row.metadata_url is not None,
        is_public=row.secret_hash is None,
        skips_consent=row.skip_consent,
        organizations=frozenset({row.organization_id} if row.organization_id else ()),
    )


def _grant_of(row: RequestRow) -> consent.Grant | None:
    if row.grant_scopes is None or row.granted_at is None:
        return None
    allowed, redirect_uri = row.grant_redirect_uris or (), row.redirect_uri
    return consent.Grant(
        scopes=tuple(row.grant_scopes),
        granted_at=row.granted_at,
        has_redirect_uri=redirect_uri is None or any(uris.matches(each, redirect_uri) for each in allowed),
        opened_scopes=frozenset(row.opened_scopes),
    )


def _request_of(row: "queries.SelectOauthRequest", offer: consent.Offer | None = None) -> consent.Request:
    return consent.Request(
        created_at=row.created_at,
        scopes=tuple(row.scopes),
        api_scopes=frozenset(memberships.of_apis(row.scopes)),
        resource=row.resource,
        prompts=frozenset(row.prompts),
        max_age=None if row.max_age is None else timedelta(seconds=row.max_age),
        user_id=row.user_id,
        is_native=uris.is_native(row.redirect_uri),
        offer=offer,
    )


def _caller_of(authorization: Authorization) -> "tuple[PersonFacts | None, AuthenticatedSession | None]":
    return authorization.person, authorization.person and facts.own_session_of(authorization.person)


def add_grant(
    asked: Asked,
    act: acts.Act,
    person: PersonFacts,
    row: RequestRow,
    client: "queries.SelectClient",
    *,
    is_agreed: bool = True,
) -> None:
    """Let a client have what its request asks for.

    Unless its user agreed, the grant is for no redirect URI: once the client asks, it asks for all.
    """
    grant, asking = _grant_of(row), asking_of(client)
    scopes = consent.scopes_after(grant, row.scopes, asking)
    kept = row.grant_redirect_uris or () if grant and not consent.is_outdated(grant, asking) else ()
    on_page = _uris_of_page(row)
    redirect_uris = [uri for uri in client.redirect_uris if is_agreed and (uri in kept or uri in on_page)]
    grants.add(asked, act, person, client, scopes, redirect_uris, row, is_first=grant is None)


def _uris_of_page(row: RequestRow) -> list[str]:
    """Return the redirect URIs that the page of a request is about: those on the host that it shows.

    The client had them when the request began, so none was added while the page was open. A device has none.
    """
    redirect_uri, had = row.redirect_uri, row.client_redirect_uris
    if redirect_uri is None:
        return []
    return [uri for uri in had or [redirect_uri] if uris.shares_host(uri, redirect_uri)]


def approve(
    asked: Asked,
    act: acts.Act,
    person: PersonFacts,
    authorization: Authorization,
    organization: str | None,
    *,
    is_agreed: bool,
) -> str:
    """Approve a request for the caller, who agreed if a page asked, and return the secret for the code."""
    row, client, _ = authorization
    offer = memberships.offer_of(*authorization, organization)
    grant = _grant_of(row)
    is_new = is_agreed and not set(_uris_of_page(row)) <= set(row.grant_redirect_uris or ())
    if grant and not is_agreed:
        # A client that skips the consent needs none for a redirect URI or an API.
        grant = replace(grant, has_redirect_uri=True, opened_scopes=frozenset(row.scopes))
    if is_new or not consent.covers(grant, _request_of(row), asking_of(client)):
        add_grant(asked, act, person, row, client, is_agreed=is_agreed)
    approval = one_time.new_token()
    queries.approve_oauth_request(
        act,
        id=row.id,
        user_id=person.id,
        session_id=asked.caller.session_id,
        organization_id=consent.organization_of(offer) if offer else None,
        approval_hash=one_time.hash_token(approval),
    )
    return approval


def approve_in_browser(
    asked: Asked,
    authorization_id: str,
    removed: Collection[Obstacle] = (),
    *,
    browser: str | None = None,
    organization: str | None = None,
) -> tuple[str | None, Obstacle | None]:
    """Approve a request, and return the URL with the code, or the obstacle that the user has not removed."""
    with locked(asked, authorization_id) as act:
        person = admit_caller(asked, act, level=Level.AAL2)
        authorization = find_in_browser(asked, act, authorization_id, person, browser)
        missing = obstacle(asked, authorization, organization)
        if missing and missing not in removed:
            return None, missing
        approval = approve(asked, act, person, authorization, organization, is_agreed=missing is not None)
        return give_code(asked, act, authorization_id, approval, browser), None


def give_code(
    asked: Asked, on: Runner, authorization_id: str, approval: str, browser: str | None = None
) -> str:
    """Create the code of an approved request, once, and return the URL for the browser."""
    code = one_time.new_token()
    row = queries.give_oauth_code(
        on,
        id_hash=one_time.hash_token(authorization_id),
        browser_hash=_hash_of_browser(asked, browser),
        approval_hash=one_time.hash_token(approval),
        code_hash=one_time.hash_token(code),
        code_lifetime=constants.AUTHORIZATION_CODE_LIFETIME,
        lifetime=constants.FLOW_LIFETIME,
    )
    if row is None:
        raise ApiError("oauth_authorization_not_found")
    _check_scheme(asked, row, row.redirect_uri)
    return answer(asked.settings, row.redirect_uri, row.state, code=code)


def deny(asked: Asked, on: Runner, authorization: Authorization) -> str:
    """End a request that the user did not or may not approve, and return the URL for the browser."""
    request = authorization.request
    missing = disclosed(authorization, obstacle(asked, authorization)) if asked.user else None
    error, description = _DENIALS.get(missing, ("access_denied", "User denied the request"))
    queries.delete_oauth_request(on, id=request.id)
    members = {"error": error, "error_description": description}
    return answer(asked.settings, request.redirect_uri, request.state, **members)


def _check_scheme(
    asked: Asked, client: "queries.SelectClient | queries.GiveOauthCode", redirect_uri: str
) -> None:
    """Refuse if an operator has taken the scheme away since the request."""
    if client.is_dynamic and not uris.is_open_scheme(asked.settings, redirect_uri):
        raise ApiError("oauth_authorization_not_found")


def _hash_of_browser(asked: Asked, browser: str | None) -> bytes | None:
    return one_time.hash_token(asked.cookie(COOKIE) if browser is None else browser)
