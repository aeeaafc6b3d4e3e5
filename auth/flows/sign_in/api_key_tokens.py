"""API keys instead of a sign-in: short-lived access tokens, which only GET /user accepts here."""

import json
import math
from typing import Any

from auth.core import promises
from auth.core.tokens import api_keys
from auth.core.tokens.api_keys import InvalidApiKey
from auth.flows.sessions.issuing import about_key, claims_of, is_asked
from auth.web import callers
from auth.web.asked import Asked
from auth.web.errors import ApiError, unavailable
from auth.web.limits import Window, refusal
from sql import Runner, acts, queries


def exchange(asked: Asked, key: str) -> dict[str, Any]:
    """Return the token response for a key (RFC 6749, section 5.1)."""
    try:
        id = api_keys.read_id(key)
    except InvalidApiKey:
        raise ApiError("validation_failed", "api_key: is not complete, or mistyped") from None
    row = _use(asked, id, key)
    if row is None:
        owner = queries.select_owner_of_api_key(asked.db, id=id)
        asked.noted.note(user_id=owner and owner.user_id, api_key_id=id)
        raise ApiError("key.invalid_credentials")
    claims, issue = _compose(asked, row), None
    if is_asked(asked, for_client=True):
        issue = about_key(asked, row.user_id, lambda user: _compose(asked, row._replace(user_object=user)))
        with acts.on(asked.db, row.user_id) as act:
            issue.confirm(act)
            if _live_key(asked, act, id, key) is None:
                raise unavailable()
    return {
        "access_token": asked.parts.access_tokens.sign(claims_of(asked.parts, issue, claims)),
        "token_type": "bearer",
        "expires_in": claims["exp"] - claims["iat"],
        "expires_at": claims["exp"],
        "scope": claims["scope"],
    }


def _use(asked: Asked, id: str, key: str) -> "queries.UseApiKey | None":
    """Return the row of a live key, or None if it is invalid. Count uses and wrong secrets."""
    settings, macs, network = asked.settings, asked.parts.api_keys.macs(key), asked.client["network"]
    with asked.db.transaction() as tx:
        verdict = queries.record_api_key_verdict(tx, id=id, key_macs=macs, network=network)
        row = queries.use_api_key(tx, id=id, key_macs=macs) if verdict.refused_for is None else None
    if verdict.refused_for is not None:
        raise refusal("over_request_rate_limit", verdict.refused_for)
    if row is None:
        return None
    asked.noted.note(user_id=row.user_id, api_key_id=id)
    if settings.rate_limits_enabled:
        most = settings.rate_limit_refresh.amount
        asked.noted.add_window(Window(most, max(0, most - row.refreshes), row.seconds_left))
        if row.refreshes > most:
            raise refusal("over_request_rate_limit", row.seconds_left)
    if row.state != "live":
        raise ApiError(row.state)
    return row


def _compose(asked: Asked, row: Any) -> dict[str, Any]:
    lifetime = min(promises.API_KEY_TOKEN_LIFETIME, asked.parts.access_tokens.lifetime)
    expires_at = min(row.issued_at + lifetime, row.expires_at or math.inf)
    own = {
        "exp": expires_at,
        "aal": "aal1",
        "amr": [{"method": "api_key", "timestamp": row.issued_at}],
        "api_key_id": row.api_key_id,
        "scope": " ".join(row.scopes),
    }
    return asked.parts.access_tokens.compose(json.loads(row.user_object), row.issued_at, own)


def introspect(asked: Asked, key: str) -> dict[str, Any] | None:
    """Return the claims of a live key, or None."""
    try:
        id = api_keys.read_id(key)
    except InvalidApiKey:
        return None
    row = _live_key(asked, asked.db, id, key)
    if row is None:
        return None
    claims = {"sub": row.user_id, "api_key_id": id, "scope": " ".join(row.scopes), "iat": row.created_at}
    return claims | ({"exp": row.expires_at} if row.expires_at else {})


def _live_key(asked: Asked, on: Runner, id: str, key: str) -> "queries.SelectApiKey | None":
    row = queries.select_api_key(on, id=id, key_macs=asked.parts.api_keys.macs(key))
    return None if row is None or callers.refusal_of_key(row, None, asked.parts.policy) else row


def introspect_token(asked: Asked, token: str) -> dict[str, Any] | None:
    """Return the current claims for an access token of a live key, or None. Raises `InvalidAccessToken`."""
    caller = asked.parts.access_tokens.verify_of_api_key(token)
    ids = {"user_id": caller.user_id, "api_key_id": caller.api_key_id}
    row = queries.select_user_of_api_key(asked.db, **ids)
    if row is None or callers.refusal_of_key(row, caller.expires_at, asked.parts.policy):
        return None
    return asked.parts.access_tokens.claims_now(token, row.user_object)
