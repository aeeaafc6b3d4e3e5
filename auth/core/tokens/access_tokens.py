"""Access tokens of sessions (RFC 7519, RFC 8725).

The statement that serves a request reads what decides about the session (SQL function `caller_facts`), and an
act reads it after its locks.

Tokens of a session that lacks a second step are for this service only. They have their own audience and
secret key, so an application that verifies the signature or the audience refuses them.
"""

import json
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import structlog

from auth.core.settings import Settings
from auth.core.tokens import jws
from auth.core.tokens.claim_rules import MAX_BYTES, evaluate
from auth.core.tokens.derived_keys import derive
from auth.core.tokens.jws import InvalidAccessToken
from auth.core.tokens.signing_keys import SECOND_STEP, Key, all_keys, second_step_key, signing_key
from auth.core.tokens.token_cache import TokenCache

TYPE = "JWT"
# Claims of the tokens of OAuth clients (RFC 9068), and of ID tokens.
_CLIENT_CLAIMS = {"client_id", "nonce"}
_TOKEN_CLAIMS = {"iss", "sub", "aud", "exp", "iat", "jti"}
# Claims of the token and its sign-in, not of the user.
_SIGN_IN_CLAIMS = _TOKEN_CLAIMS | {
    "session_id", "aal", "next_aal", "amr", "api_key_id", "scope", "organizations"
}  # fmt: skip
LACKS_STEP = "aal0"  # the level of tokens of the audience `second_step`, also used by `lacks_level`
# Roles that no user can have.
SERVICE_ROLES = ("service_role", "supabase_admin")
# Callers that a worker caches by their tokens, 450 bytes each; and payloads, which only introspections read
# again, mostly 900 bytes each, and 24 KiB with the largest metadata.
CACHED_CALLERS, CACHED_PAYLOADS = 6144, 2048
_TIME_CLAIMS = ("iat", "exp")

# One for all callers of a cache: most sessions have no provider, and an empty dictionary takes 64 bytes.
_NO_PROVIDERS: Mapping[str, int] = MappingProxyType({})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Caller:
    """The user, session and level of a verified access token, or of a browser with a session on our pages.

    `expires_at` is in Unix seconds, and None for a browser, which has a cookie instead. `aal` is `aal0` for a
    token of the audience `second_step`.
    """

    user_id: str
    session_id: str
    expires_at: int | None
    aal: str
    cookie_hash: bytes | None = None
    # The providers that opened the session, each with the Unix time of its sign-in.
    providers: Mapping[str, int] = field(default_factory=lambda: _NO_PROVIDERS)


@dataclass(frozen=True, slots=True)
class KeyCaller:
    """The user and the API key of a verified access token. `expires_at` is in Unix seconds."""

    user_id: str
    api_key_id: str
    expires_at: int


@dataclass(frozen=True)
class ServiceRole:
    """The role of a verified token, and the key that signed it. Times are in Unix seconds."""

    role: str
    kid: str | None
    not_before: int | None
    expires_at: int | None


class AccessTokens:
    """`lifetime` is in seconds. Keys derived from `AUTH_SECRET_KEY` are for the audience `second_step`."""

    def __init__(self, settings: Settings) -> None:
        self._issuer, self._audience = settings.jwt_issuer, settings.jwt_audience
        self._claim_paths = settings.token_claims
        self._is_hooked = bool(settings.hook_custom_access_token)
        self.lifetime = settings.access_token_lifetime
        self._source: Any = None
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Replace the keys, if they have changed, and sign with the one whose time has come."""
        step_keys = derive(settings.secret_key, "second step")
        source = (settings.jwt_keys, settings.jwt_secret, step_keys)
        if source != self._source:
            # The keys of the JWK Set, and the shared secret.
            self.keys = all_keys(settings.jwt_keys, settings.jwt_secret)
            self._step_key, *older = map(second_step_key, step_keys)
            self._step_keys = {key.kid: key for key in (self._step_key, *older)}
            self._keys = {key.kid: key for key in self.keys}
            # New caches: a cached token must not outlive its key.
            self._callers = TokenCache(lambda token: self.caller_of(self._verify(token)), CACHED_CALLERS)
            self._payloads = TokenCache(self._verified_payload, CACHED_PAYLOADS)
            # At the end, so that keys that cannot be read are tried again, and no thread keeps the old ones.
            self._source = source
        self._signing_key = signing_key(self.keys)

    def compose(
        self, user: Mapping[str, object], issued_at: int, sign_in: Mapping[str, object]
    ) -> dict[str, Any]:
        """Return a token's claims. `issued_at` is in Unix seconds, `sign_in` the part about the sign-in."""
        extra = evaluate(self._claim_paths, user, sign_in) if self._claim_paths else {}
        if extra is None:
            log.warning("token_claims_too_large", user_id=user["id"], most=MAX_BYTES)
        return {
            **(extra or {}),
            "iss": self._issuer,
            "sub": user["id"],
            "aud": self._audience,
            "exp": issued_at + self.lifetime,
            "iat": issued_at,
            "jti": str(uuid.uuid4()),
            "email": user["email"] or "",
            "phone": user["phone"] or "",
            "app_metadata": user["app_metadata"],
            "user_metadata": user["user_metadata"],
            "role": user["role"],
            "is_anonymous": user["is_anonymous"],
            **sign_in,
        }

    def sign(self, claims: Mapping[str, object]) -> str:
        """Return a token. The audience chooses the key."""
        key = self._step_key if claims.get("aud") == SECOND_STEP else self._signing_key
        return jws.sign(claims, key, TYPE)

    @staticmethod
    def restricted(claims: Mapping[str, object]) -> dict[str, object]:
        """Return the claims of a token whose session lacks a second step."""
        return {**claims, "aud": SECOND_STEP, "next_aal": "aal2"}

    def verify(self, token: str) -> Caller:
        """Return the caller of a session's token, even if it has expired. Raises `InvalidAccessToken`."""
        caller = self._callers(token)
        if isinstance(caller, KeyCaller):
            raise InvalidAccessToken("of an API key")
        return caller

    def verify_of_api_key(self, token: str) -> KeyCaller:
        """Return the caller of an API key's token, even if it has expired. Raises `InvalidAccessToken`."""
        caller = self._callers(token)
        if isinstance(caller, Caller):
            raise InvalidAccessToken("not of an API key")
        return caller

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token, even if it has expired. Raises `InvalidAccessToken`."""
        return jws.object_in(self._payloads(token))

    @staticmethod
    def caller_of(claims: Mapping[str, Any]) -> Caller | KeyCaller:
        """Return the caller of a verified token. Raises `InvalidAccessToken`."""
        if "session_id" not in claims:
            return KeyCaller(*_ids(claims, "api_key_id"), claims["exp"])
        aal = LACKS_STEP if claims["aud"] == SECOND_STEP else claims.get("aal")
        if not isinstance(aal, str):
            raise InvalidAccessToken("a claim is missing or malformed")
        # One string for all callers of a level.
        aal, providers = sys.intern(aal), providers_in(claims.get("amr"))
        return Caller(*_ids(claims, "session_id"), claims["exp"], aal, providers=providers)

    def _verified_payload(self, token: str) -> str:
        self._verify(token)
        return token.split(".")[1]

    def _verify(self, token: str) -> dict[str, Any]:
        header = jws.header_of(token)
        if header.type != TYPE:
            raise InvalidAccessToken("not an access token")
        key, audience = self._key(header.kid)
        claims = jws.verify(token, header, key, self._issuer, audience)
        if not _CLIENT_CLAIMS.isdisjoint(claims):
            raise InvalidAccessToken("not of a session")
        return claims

    def present_claims(self, claims: dict[str, Any], user_object: str) -> dict[str, Any]:
        """Return the claims of a verified token with the user's present values."""
        # Does not call the token hook, which may have changed any of them.
        if self._is_hooked:
            return claims
        sign_in = {name: claims[name] for name in _SIGN_IN_CLAIMS & claims.keys()}
        return self.compose(json.loads(user_object), claims["iat"], sign_in)

    def _key(self, kid: str | None) -> tuple[Key, str]:
        """Return a key and its only audience. Raises `InvalidAccessToken`."""
        if key := self._step_keys.get(kid):
            return key, SECOND_STEP
        if key := self._keys.get(kid):
            return key, self._audience
        raise InvalidAccessToken("unknown kid")

    def service_role(self, token: str) -> ServiceRole:
        """Return the service role of a token, even if it has expired. Raises `InvalidAccessToken`."""
        header = jws.header_of(token)
        key = self._keys.get(header.kid)
        # Other services may hold a secret to verify tokens; that does not make them administrators.
        if key is None or not key.signing_key:
            raise InvalidAccessToken("not of a key that signs here")
        claims = jws.signed_claims(token, header, key)
        times = [claims.get(name) for name in ("nbf", "exp")]
        if not all(time is None or jws.is_time(time) for time in times):
            raise InvalidAccessToken("a time is not an integer")
        if claims.get("role") not in SERVICE_ROLES:
            raise InvalidAccessToken("not of a service role")
        return ServiceRole(claims["role"], header.kid, *times)


def providers_in(amr: object) -> Mapping[str, int]:
    """Return the providers among the methods of a session, each with the Unix time of its sign-in. A hook may
    leave the claim out.
    """
    methods = amr if isinstance(amr, list) else []
    times = {
        sys.intern(str(each["provider"])): each["timestamp"] if jws.is_time(each.get("timestamp")) else 0
        for each in methods
        if isinstance(each, dict) and "provider" in each
    }
    return times or _NO_PROVIDERS


def _ids(claims: Mapping[str, object], name: str) -> tuple[str, str]:
    """Return the user, and the session or API key, of a token. Raises `InvalidAccessToken`."""
    try:
        if not all(jws.is_time(claims[time]) for time in _TIME_CLAIMS):
            raise ValueError
        return str(uuid.UUID(str(claims["sub"]))), str(uuid.UUID(str(claims[name])))
    except (KeyError, ValueError) as error:
        raise InvalidAccessToken("a claim is missing or malformed") from error
