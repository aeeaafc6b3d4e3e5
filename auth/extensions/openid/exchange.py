"""Tokens for clients, in exchange for an authorization code, a refresh token or the client's credentials."""

import hmac
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Literal

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from auth.core import constants
from auth.core.tokens import one_time
from auth.core.tokens.client_tokens import sid_of
from auth.core.tokens.jws import InvalidAccessToken
from auth.core.tokens.refresh_tokens import InvalidRefreshToken, RefreshToken
from auth.extensions.openid import audience, bounds, claims, memberships
from auth.extensions.openid.authentication import SentCredentials, authenticate, check
from auth.extensions.openid.oauth_errors import OAuthError
from auth.flows import ends, facts, organizations
from auth.flows.sessions import refreshing
from auth.rules import clients, consent, sessions, tokens
from auth.rules.organizations import at_any_age
from auth.rules.policy import Policy
from auth.rules.refreshing import refusal_of_token
from auth.rules.refusals import Refusal
from auth.web import audit
from auth.web.asked import Asked
from sql import acts, queries

_UNKNOWN_CODE = "Invalid authorization code"
_UNKNOWN = "Invalid Refresh Token"
_TOO_OLD = "The sign-in is older than the organization accepts: authorize with prompt=login"
# The `error` and `error_description` of a refused code.
_REFUSED_CODES: dict[consent.CodeRefusal, tuple[str, str]] = {
    "invalid_grant": ("invalid_grant", _UNKNOWN_CODE),
    "user_banned": ("access_denied", "This user is banned"),
    "access_denied": ("access_denied", "This user may not sign in to the application"),
}


def redeem(asked: Asked, body: Mapping[str, str], credentials: SentCredentials) -> dict[str, Any]:
    """Open a session for an authorization code. A second use of the code ends it (RFC 6749, 4.1.2)."""
    client = authenticate(asked.parts, credentials)
    bounds.require(bounds.Bounds.of(client), "authorization_code")
    code = member(body, "code")
    return spend(asked, code, client, body, lambda request: _check_browser(request, client, body))


def spend(
    asked: Asked,
    code: str,
    client: "queries.SelectClient",
    body: Mapping[str, str],
    check_request: "Callable[[queries.SelectOauthCode], None]" = lambda request: None,
) -> dict[str, Any]:
    """Open a session for a code of the client or of its device, and return its tokens."""
    # Load the keys first: if the database fails, the code is still valid.
    asked.parts.openid_keys.make_first()
    code_hash = one_time.hash_token(code)
    with acts.on_found(
        asked.db,
        lambda on: [row.user_id for row in queries.find_owner_of_code(on, code_hash=code_hash)],
        lambda act: act.share_client(client.id),
    ) as (act, _):
        request = act.read(queries.select_oauth_code, code_hash=code_hash, client_id=client.id)
        if request is None:
            raise OAuthError("invalid_grant", _UNKNOWN_CODE)
        check_request(request)
        scopes, resource = request.scopes, request.resource
        # A second use ends the session, whatever it asks for.
        if request.opened_session_id is None:
            of_client = bounds.Bounds.of_grant(request)
            scopes, resource = bounds.of_grant(asked.settings, of_client, request, body)
            # A resource may have become invalid: then the code is not spent.
            audience.of_token(asked.parts, resource)
        row = _open_session(asked, act, request, client.id)
    if row is None:
        raise OAuthError("invalid_grant", _UNKNOWN_CODE)
    return _session_tokens(asked, row, scopes, resource, request.nonce)


def _open_session(
    asked: Asked, act: acts.Act, request: "queries.SelectOauthCode", client_id: str
) -> "queries.OpenClientSession | None":
    """Open a session of a client by a code, and return its row.

    Return None for a second use, which ends the session of the first: commit this. Raises `OAuthError`.
    """
    user_id, session_id = request.user_id, request.opened_session_id
    if session_id is not None:
        ends.end(act, user_id, session_id, "authorization_code_reused")
        details = {"session_id": session_id, "client_id": client_id}
        audit.record(act, user_id, None, ["authorization_code_reused"], [], **details)
        return None
    person = queries.select_person(act, user_id=user_id, session_id=request.session_id)
    client = facts.client_of(request)
    if person is None or client is None:
        raise OAuthError("invalid_grant", _UNKNOWN_CODE)
    opener = facts.own_session_of(person)
    code = consent.Code(
        expires_at=request.code_expires_at,
        resource=request.resource,
        is_of_device=request.is_of_device,
        decision=request.decision,
        has_grant=request.grant_id is not None,
    )
    policy = asked.parts.policy
    counting = organizations.counting(request.memberships, organizations.standing_of(person))
    if refusal := consent.refusal_of_code(code, person, opener, client, policy, counting):
        raise OAuthError(*_REFUSED_CODES[refusal])
    of_grant = queries.list_sessions_of_grant(act, grant_id=request.grant_id)
    created_at = {session.id: session.created_at for session in of_grant}
    for surplus in sessions.surplus(created_at, constants.MOST_CLIENT_SESSIONS):
        ends.end(act, user_id, surplus, "too_many_sessions")
    return queries.open_client_session(
        act,
        request_id=request.id,
        grant_id=request.grant_id,
        auth_time=None if opener is None else sessions.authenticated_at(opener),
        **asked.device,
    )


def refresh(asked: Asked, body: Mapping[str, str], credentials: SentCredentials) -> dict[str, Any]:
    """Rotate the refresh token of the client's own session."""
    try:
        token = _read_refresh_token(asked, member(body, "refresh_token"))
    except InvalidRefreshToken:
        authenticate(asked.parts, credentials)
        raise OAuthError("invalid_grant", _UNKNOWN) from None
    policy = asked.parts.policy
    ids = {"session_id": token.session_id, "client_id": credentials.client_id}
    # Load the keys first: if the database fails, the refresh token is still valid.
    asked.parts.openid_keys.make_first()
    with acts.refresh(asked.db, queries.lock_client_session, **ids, **asked.device) as (act, row):
        if row is not None:
            check(credentials, row)
            of_client = bounds.Bounds.of_grant(row)
            bounds.require(of_client, "refresh_token")
            refusal = _refusal_of_access(row, policy)
            if refusal is None:
                requested = bounds.requested_scopes(body)
                scopes, resource = bounds.of_grant(asked.settings, of_client, row, body, requested)
                refusal = refusal_of_token(row, token.counter, policy.refresh_window)
            if refusal is None:
                # The token of a public client always rotates (RFC 9700, section 4.14.2).
                rotates = asked.settings.refresh_token_rotation or row.secret_hash is None
                window = policy.refresh_window
                counter = refreshing.move(
                    asked, act, row, token.counter, rotates=rotates, window=window, **ids
                )
    if row is None:
        bounds.require(bounds.Bounds.of(authenticate(asked.parts, credentials)), "refresh_token")
        raise OAuthError("invalid_grant", _UNKNOWN)
    if refusal == "access_lost":
        with acts.on(asked.db, row.user_id) as act:
            ends.end(act, row.user_id, row.session_id, "access_lost")
        raise OAuthError("invalid_grant", _UNKNOWN)
    if refusal == "refresh.refresh_token_already_used":
        refreshing.end_reused(asked, row.user_id, **ids)
        raise OAuthError("invalid_grant", f"{_UNKNOWN}: Already Used")
    if refusal is not None:
        asked.noted.note(user_id=row.user_id, client_id=credentials.client_id)
        raise refreshing.refused_by_limit(asked, row)
    return _session_tokens(asked, row._replace(counter=counter), scopes, resource)


def _refusal_of_access(
    row: "queries.LockClientSession", policy: Policy
) -> Refusal | Literal["access_lost"] | None:
    """Return None if a session gives tokens now. Otherwise raises `OAuthError`.

    A session whose user lost the membership that it needs ends: `access_lost`.
    """
    client, standing = facts.client_of(row), memberships.standing_of(row)
    counting = organizations.counting(row.memberships, standing)
    if tokens.refusal_of_client_session(row, row, row.resource, client, None, policy, counting):
        # A session that is only too old does not end: the organization may accept it again.
        counting_at_any_age = organizations.counting(row.memberships, at_any_age(standing))
        if client is not None and clients.lacks_membership(client, counting_at_any_age):
            return "access_lost"
        is_too_old = client is not None and clients.lacks_membership(client, counting)
        raise OAuthError("invalid_grant", _TOO_OLD if is_too_old else _UNKNOWN)
    return None


def _read_refresh_token(asked: Asked, token: str) -> RefreshToken:
    """Return the contents of a client's refresh token. Raises `InvalidRefreshToken`."""
    with suppress(InvalidRefreshToken):
        return asked.parts.client_refresh_tokens.read(token)
    return asked.parts.organization_refresh_tokens.read(token)


def issue_to_client(asked: Asked, body: Mapping[str, str], credentials: SentCredentials) -> dict[str, Any]:
    """Issue an access token to the client itself (RFC 6749, section 4.4)."""
    client = authenticate(asked.parts, credentials)
    of_client = bounds.Bounds.of(client)
    bounds.require(of_client, "client_credentials")
    scopes, resource = bounds.of_client(asked.settings, of_client, body)
    return _tokens(asked, {"sub": client.id}, client.id, resource, scopes, client)


def revoke(asked: Asked, session_id: str, client_id: str) -> None:
    """End a session of a client, with what it opened, as its user would by signing out."""
    ids = {"session_id": session_id, "client_id": client_id}
    with acts.on_found(
        asked.db, lambda on: [row.user_id for row in queries.find_client_session(on, **ids)]
    ) as (act, owners):
        session = act.read(queries.select_client_session, session_id=session_id)
        if not owners or session is None or session.ended_at is not None:
            return
        ends.end(act, session.user_id, session_id, "logout")
        audit.record(act, session.user_id, session.email, ["session_ended"], ["auth.logout"], **ids)


def session_of(asked: Asked, token: str) -> str | None:
    """Return the session of a client's token, or None for other texts. Raises `OAuthError`."""
    with suppress(InvalidRefreshToken):
        return _read_refresh_token(asked, token).session_id
    try:
        session_id = asked.parts.client_tokens.verify(token).session_id
    except InvalidAccessToken:
        return None
    if session_id is None:
        raise OAuthError("unsupported_token_type", "a token of client_credentials ends when it expires")
    return session_id


def _session_tokens(
    asked: Asked,
    row: claims.ClientSession,
    scopes: Collection[str],
    resource: str | None,
    nonce: str | None = None,
) -> dict[str, Any]:
    """Return the tokens of a client's session."""
    authentication = claims.of_authentication(row)
    own = {
        "sub": row.user_id,
        "session_id": row.session_id,
        **authentication,
        **memberships.claims_of(row, scopes),
    }
    answer = _tokens(asked, own, row.client_id, resource, scopes, row)
    if row.refreshes_tokens:
        is_plain = row.for_organization_id is None
        form = asked.parts.client_refresh_tokens if is_plain else asked.parts.organization_refresh_tokens
        answer["refresh_token"] = form.make(row.session_id, row.counter)
    if "openid" in scopes:
        id_claims = {
            **claims.of_user(asked.settings, row, scopes),
            **authentication,
            "aud": row.client_id,
            "sid": sid_of(row.session_id),
            "at_hash": claims.hash_of(answer["access_token"]),
        }
        if nonce is not None:
            id_claims["nonce"] = nonce
        answer["id_token"] = asked.parts.client_tokens.id_token(
            id_claims,
            issued_at=row.issued_at,
            algorithm=row.id_token_signed_response_alg,
            lifetime=row.token_lifetime,
        )
    return answer


def _tokens(
    asked: Asked,
    own: Mapping[str, object],
    client_id: str,
    resource: str | None,
    scopes: Collection[str],
    row: "queries.SelectClient | claims.ClientSession",
) -> dict[str, Any]:
    parts, scope = asked.parts, " ".join(scopes)
    lifetime = row.token_lifetime or parts.access_tokens.lifetime
    shared = {"aud": audience.of_token(parts, resource), "client_id": client_id, "scope": scope}
    access_token = parts.client_tokens.issue({**own, **shared}, issued_at=row.issued_at, lifetime=lifetime)
    return {"access_token": access_token, "token_type": "bearer", "expires_in": lifetime, "scope": scope}


def _check_browser(
    request: "queries.SelectOauthCode",
    client: "queries.SelectClient",
    body: Mapping[str, str],
) -> None:
    """Refuse a code of a device, or if the authorization request of the browser does not match."""
    if request.is_of_device:
        raise OAuthError("invalid_grant", _UNKNOWN_CODE)
    redirect_uri, challenge = body.get("redirect_uri"), request.code_challenge
    if redirect_uri is None and not (client.require_pkce and challenge):
        raise OAuthError("invalid_request", "redirect_uri: is required")
    if redirect_uri not in (None, request.redirect_uri):
        raise OAuthError("invalid_grant", "redirect_uri: must be that of the authorization request")
    verifier = body.get("code_verifier")
    if challenge is None:
        # Otherwise a thief could inject a code requested without a challenge (RFC 9700, 4.8.2).
        if client.require_pkce or verifier is not None:
            raise OAuthError("invalid_grant", "the authorization request has no code_challenge")
    elif verifier is None:
        raise OAuthError("invalid_grant", "code_verifier: is required")
    elif not hmac.compare_digest(create_s256_code_challenge(verifier).encode(), challenge.encode()):
        raise OAuthError("invalid_grant", "code_verifier: does not match the code_challenge")


def member(body: Mapping[str, str], name: str) -> str:
    """Return a member of a body. Raises `OAuthError` if it is missing."""
    if name not in body:
        raise OAuthError("invalid_request", f"{name}: is required")
    return body[name]
