"""The two codes of a device: it polls for tokens with one, while its user types the other on our page."""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from auth.core import constants
from auth.core.text import names
from auth.core.tokens import one_time
from auth.core.tokens.one_time import USER_CODE_LENGTH, USER_CODE_LETTERS
from auth.extensions.openid import bounds
from auth.extensions.openid.authentication import SentCredentials, authenticate
from auth.extensions.openid.clients import DEVICE_CODE
from auth.extensions.openid.exchange import member, spend
from auth.extensions.openid.oauth_errors import OAuthError
from auth.flows.messages.outgoing import own_url
from auth.rules import devices
from auth.web.asked import Asked
from sql import acts, queries

_UNKNOWN = "Invalid device code"
# Errors by the state of a poll. A device continues after the first two (RFC 8628, section 3.5).
_ANSWERS = {
    "authorization_pending": "The user has not decided yet",
    "slow_down": f"Wait {constants.DEVICE_INTERVAL} seconds longer from now on",
    "access_denied": "The user denied the request",
    "expired_token": "The code expired before the user allowed it",
}
# The names of these errors in the audit log.
_REASONS = {"access_denied": "oauth_consent_not_found", "expired_token": "otp_expired"}


def begin(asked: Asked, body: dict[str, str], credentials: SentCredentials) -> dict[str, Any]:
    """Make the codes of a device (RFC 8628, section 3.2). Raises `OAuthError`."""
    client = authenticate(asked.parts, credentials)
    of_client = bounds.Bounds.of(client)
    bounds.require(of_client, DEVICE_CODE)
    if not asked.settings.pages:
        description = "the service has no page for the code: see AUTH_PAGES"
        raise OAuthError("server_error", description, remedy="set AUTH_PAGES to true")
    scopes, resource = bounds.of_request(asked.parts, of_client, body)
    device_code = one_time.new_token()
    user_code = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH))
    queries.insert_device_request(
        asked.db,
        client_id=client.id,
        code_hash=one_time.hash_token(device_code),
        user_code_mac=asked.parts.user_codes.macs("", user_code)[0],
        **asked.device,
        poll_interval=constants.DEVICE_INTERVAL,
        code_lifetime=constants.DEVICE_CODE_LIFETIME,
        scopes=scopes,
        resource=resource,
    )
    typed_code = shown_code(user_code)
    return {
        "device_code": device_code,
        "user_code": typed_code,
        "verification_uri": own_url(asked.settings, "device", {}),
        "verification_uri_complete": own_url(asked.settings, "device", {"user_code": typed_code}),
        "expires_in": constants.DEVICE_CODE_LIFETIME,
        "interval": constants.DEVICE_INTERVAL,
    }


def shown_code(user_code: str) -> str:
    """Return a user's code as devices show it (RFC 8628, section 6.1)."""
    return f"{user_code[:4]}-{user_code[4:]}"


def redeem(asked: Asked, body: Mapping[str, str], credentials: SentCredentials) -> dict[str, Any]:
    """Open a session for a device once its user has agreed. A second use of its code ends that session.

    A refusal is recorded in the history of the user who has entered the code.
    """
    client = authenticate(asked.parts, credentials)
    bounds.require(bounds.Bounds.of(client), DEVICE_CODE)
    device_code = member(body, "device_code")
    code_hash = one_time.hash_token(device_code)
    request = queries.find_device_code(asked.db, code_hash=code_hash, client_id=client.id)
    state = request and _poll(asked, request.id)
    if request is None or state is None:
        raise OAuthError("invalid_grant", _UNKNOWN)
    try:
        if state != "approved":
            raise OAuthError(state, _ANSWERS[state])
        return spend(asked, device_code, client, body)
    except OAuthError as error:
        if request.user_id:
            name = names.in_one_line(client.name) or client.id
            error.reason = _REASONS.get(error.error)
            asked.noted.note(user_id=request.user_id, client=name, problem=error.description)
        raise


def _poll(asked: Asked, id: str) -> devices.PollState | None:
    """Record that a device has asked about its request, and return what it learns, or None without one."""
    with acts.begin(asked.db) as act:
        act.lock_request(id)
        row = act.read(queries.select_poll, id=id)
        if row is None:
            return None
        is_early = devices.is_early(row.polled_at, timedelta(seconds=row.poll_interval), row.now)
        slowing = constants.DEVICE_INTERVAL if is_early else 0
        queries.record_poll(act, id=id, poll_interval=row.poll_interval + slowing)
        return devices.state_of_poll(
            row.decision,
            is_early=is_early,
            has_session=row.has_session,
            expires_at=row.code_expires_at,
            now=row.now,
        )
