"""API keys instead of a sign-in: short-lived access tokens, which only GET /user accepts here."""

import json
import math

from auth.core import constants
from auth.core.json_bodies import JsonObject
from auth.core.tokens import api_keys
from auth.core.tokens.access_tokens import Caller
from auth.core.tokens.api_keys import InvalidApiKey
from auth.flows import organizations
from auth.flows.sessions.issuing import about_key, answered
from auth.rules.counts import Limit
from auth.rules.refreshing import counted
from auth.rules.tokens import end_of_key
from auth.web import audit, callers, limits
from auth.web.asked import Asked
from auth.web.errors import ApiError, unavailable
from auth.web.limits import LimitWindow
from sql import Runner, acts, queries


def exchange(asked: Asked, key: str) -> JsonObject:
    """Return the token response for a key (RFC 6749, section 5.1)."""
    try:
        id = api_keys.read_id(key)
    except InvalidApiKey:
        raise ApiError("validation_failed", "api_key: must be a user's key (lk_…), not mistyped") from None
    row = _use(asked, id, key)
    claims, issue = _compose(asked, row, row), None
    if hook := asked.parts.token_hook:
        issue = about_key(asked, hook, row.user_id, lambda user: _compose(asked, row, user))
        with acts.on(asked.db, row.user_id) as act:
            issue.confirm(act)
            if _live_key(asked, act, id, key) is None:
                raise unavailable()
    return {
        "access_token": asked.parts.access_tokens.sign(answered(issue, claims) if hook else claims),
        "token_type": "bearer",
        "expires_in": claims["exp"] - claims["iat"],
        "expires_at": claims["exp"],
        "scope": claims["scope"],
    }


def _use(asked: Asked, id: str, key: str) -> "queries.SelectApiKeyToUse":
    """Return the row of a live key. Count a wrong secret, and each use: a program could otherwise call the
    token hook without limit.
    """
    macs, network = asked.parts.api_keys.macs(key), asked.client["network"]
    failures = asked.settings.rate_limit_login_failures
    # The limit is one network's: a stranger who has seen the id must not lock the key.
    limit = Limit("api_key", id, network, failures.amount, failures.get_expiry())
    with acts.begin(asked.db) as act:
        # A key that does not exist runs the same statements.
        owner, row = queries.select_owner_of_api_key(act, id=id, key_macs=macs), None
        counted_in = [limit] if asked.settings.rate_limits_enabled else []
        verdict = act.record_verdict(counted_in, is_right=owner is not None and owner.is_right)
        if verdict.refused_for is None:
            act.lock_users([owner and owner.user_id])
            row = act.read(queries.select_api_key_to_use, id=id, key_macs=macs)
        if row and end_of_key(callers.key_of(row), row.now):
            row = None
        if row:
            window = asked.parts.policy.refresh_window
            uses, until = counted(row.refreshes, row.counted_until, window, row.now)
            queries.count_use_of_api_key(act, id=id, key_mac=macs[0], refreshes=uses, counted_until=until)
            refusal = callers.refusal_of_key(row, None, asked.parts.policy)
            if refusal is None and not row.is_used_today:
                queries.record_use_of_api_key(act, id=id)
                details = {"api_key": row.name, "api_key_id": id}
                audit.record(act, row.user_id, None, ["api_key_used"], [], **details)
    if verdict.refused_for is not None:
        raise limits.refusal("over_request_rate_limit", verdict.refused_for)
    asked.noted.note(user_id=owner and owner.user_id, api_key_id=id)
    if row is None:
        raise ApiError("key.invalid_credentials")
    if window.most is not None:
        seconds = (until - row.now).total_seconds()
        asked.noted.add_window(LimitWindow(window.most, max(0, window.most - uses), seconds))
        if uses > window.most:
            raise limits.refusal("over_request_rate_limit", seconds)
    if refusal:
        raise ApiError(refusal)
    return row


def _compose(asked: Asked, row: "queries.SelectApiKeyToUse", user: organizations.UserColumns) -> JsonObject:
    now = int(row.now.timestamp())
    lifetime = min(constants.API_KEY_TOKEN_LIFETIME, asked.parts.access_tokens.lifetime)
    end = math.inf if row.key_expires_at is None else int(row.key_expires_at.timestamp())
    own = {
        "exp": min(now + lifetime, end),
        "aal": "aal1",
        "amr": [{"method": "api_key", "timestamp": now}],
        "api_key_id": row.api_key_id,
        "scope": " ".join(row.scopes),
    }
    standing = organizations.standing_of_key(row.key_aal, row.now)
    own |= organizations.claim(user.memberships, standing)
    return asked.parts.access_tokens.compose(json.loads(user.user_object), now, own)


def introspect(asked: Asked, key: str) -> JsonObject | None:
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


def introspect_token(asked: Asked, token: str) -> JsonObject | None:
    """Return the current claims for an access token of a live key, or None. Raises `InvalidAccessToken`."""
    tokens = asked.parts.access_tokens
    claims = tokens.claims(token)
    caller = tokens.caller_of(claims)
    if isinstance(caller, Caller):
        return None
    ids = {"user_id": caller.user_id, "api_key_id": caller.api_key_id}
    row = queries.select_user_of_api_key(asked.db, **ids)
    if row is None or callers.refusal_of_key(row, caller.expires_at, asked.parts.policy):
        return None
    claims = tokens.present_claims(claims, row.user_object)
    standing = organizations.standing_of_key(row.key_aal, row.now)
    return organizations.present_claims(claims, row.memberships, standing)
