"""Claims about users, by the scopes that the user allowed (OpenID Connect Core, section 5.4)."""

import base64
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import structlog

from auth.core.settings import Settings
from auth.core.text import names
from auth.core.tokens.claim_rules import MAX_BYTES, Paths, evaluate, root
from auth.extensions.openid import memberships
from sql import queries

ClientSession: TypeAlias = "queries.OpenClientSession | queries.LockClientSession"
_Owner: TypeAlias = "ClientSession | queries.SelectClientCaller"
log = structlog.get_logger()
# RFC 8176. It has no value for a sign-in with a provider.
_AMR = {
    "password": "pwd",
    "otp": "otp",
    "recovery": "otp",
    "totp": "otp",
    "mfa/recovery_code": "otp",
    "recovery_code": "otp",  # sessions from before 0.4.0
    "webauthn": "pop",
}


def of_user(settings: Settings, row: _Owner, scopes: Collection[str]) -> dict[str, Any]:
    """Return the claims of scopes. Only a proved address is verified: applications find their user by it."""
    user = json.loads(row.user_object)
    claims: dict[str, Any] = {"sub": user["id"]}
    if "profile" in scopes:
        claims |= _profile(user["user_metadata"])
        claims["updated_at"] = int(datetime.fromisoformat(user["updated_at"]).timestamp())
    if "email" in scopes and user["email"]:
        claims |= {"email": user["email"], "email_verified": row.email_proved}
    if "phone" in scopes and user["phone"]:
        claims |= {"phone_number": user["phone"], "phone_number_verified": row.phone_proved}
    for name in ("groups", "roles"):
        if name in scopes:
            listed = user["app_metadata"].get(name)
            items = listed if isinstance(listed, list) else []
            claims[name] = [item for item in items if isinstance(item, str)]
    paths = settings.id_claims
    # A path without a value also replaces a claim: users write the claims of `_profile` themselves. No claim
    # is null (OpenID Connect Core, section 5.3.2).
    kept = {name: value for name, value in claims.items() if value is not None and name not in paths}
    return kept | _added(paths, user, row, scopes) | memberships.claims_of(row, scopes)


def _added(paths: Paths, user: Mapping[str, object], row: _Owner, scopes: Collection[str]) -> dict[str, Any]:
    """Return the claims of `AUTH_ID_CLAIMS`, with proved addresses only."""
    scope_of = {"email": "email", "phone": "phone"}
    allowed = {name: path for name, path in paths.items() if scope_of.get(root(path), "profile") in scopes}
    proved = {"email": row.email_proved, "phone": row.phone_proved}
    hidden = {name: None for name, is_proved in proved.items() if not is_proved}
    added = evaluate(allowed, {**user, **hidden}, {})
    if added is None:
        log.warning("id_claims_too_large", user_id=user["id"], most=MAX_BYTES)
    return {name: value for name, value in (added or {}).items() if value != ""}


def of_authentication(row: ClientSession) -> dict[str, Any]:
    """Return how and when the user of a session signed in."""
    amr = {_AMR[each["method"]] for each in row.amr if each["method"] in _AMR}
    if row.aal == "aal2":
        amr.add("mfa")
    return {"auth_time": row.auth_time, "acr": row.aal, "amr": sorted(amr)}


def hash_of(access_token: str) -> str:
    """Return the claim `at_hash` of an ID token signed with RS256 or ES256."""
    half = hashlib.sha256(access_token.encode()).digest()[:16]
    return base64.urlsafe_b64encode(half).rstrip(b"=").decode()


def _profile(metadata: Mapping[str, object]) -> dict[str, str | None]:
    return {
        "name": names.of_user(metadata),
        **{name: _first_text(metadata, (name,)) for name in ("given_name", "family_name", "nickname")},
        "preferred_username": _first_text(metadata, ("preferred_username", "username", "user_name")),
        "picture": _first_text(metadata, ("picture", "avatar_url")),
        "locale": _first_text(metadata, ("locale",)),
    }


def _first_text(metadata: Mapping[str, object], members: Iterable[str]) -> str | None:
    texts = (metadata.get(name) for name in members)
    return next((text for text in texts if isinstance(text, str) and text), None)
