"""Tokens of OAuth clients: access tokens (RFC 9068), ID tokens (OpenID Connect Core, section 2) and logout
tokens (OpenID Connect Back-Channel Logout 1.0).

An access token contains its client, so it is refused where a session's token is expected. The statement that
serves a request checks expiry, session and grant.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auth.core import constants
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.settings import Settings
from auth.core.tokens import client_ids, jws
from auth.core.tokens.access_tokens import CACHED_PAYLOADS, AccessTokens
from auth.core.tokens.jws import InvalidAccessToken
from auth.core.tokens.signing_keys import Key, signing_key
from auth.core.tokens.token_cache import TokenCache

TYPE = "at+jwt"
CACHED_CALLERS = 2048  # by their tokens, mostly 900 bytes each
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


@dataclass(frozen=True, slots=True)
class ClientCaller:
    """The client of a verified access token, with the session that a user granted it.

    `session_id` is None for grant_type=client_credentials, whose `subject` is the client. `expires_at` is in
    Unix seconds.
    """

    client_id: str
    subject: str
    session_id: str | None
    audience: str
    scopes: tuple[str, ...]
    expires_at: int

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the statement that reads what decides about the token."""
        return {"user_id": self.subject, "session_id": self.session_id, "client_id": self.client_id}


class ClientTokens:
    """Signs with the keys of session tokens; with `rsa_keys` if those are secrets, or for RS256."""

    def __init__(self, settings: Settings, access_tokens: AccessTokens, rsa_keys: OpenIdKeys) -> None:
        self._access_tokens = access_tokens
        self._rsa_keys = rsa_keys
        self._issuer = settings.jwt_issuer
        self._document_hosts = settings.oauth_client_documents
        # With the key: a cached token must not outlive it.
        self._callers = TokenCache(self._verified_caller, CACHED_CALLERS)
        self._payloads = TokenCache(self._verified_payload, CACHED_PAYLOADS)

    def issue(self, claims: Mapping[str, object], *, issued_at: int, lifetime: int) -> str:
        """Return an access token. `claims` has at least `sub`, `aud`, `client_id` and `scope`."""
        times = {"iat": issued_at, "exp": issued_at + lifetime, "jti": str(uuid.uuid4())}
        return jws.sign({"iss": self._issuer, **claims, **times}, self._key_of(None), TYPE)

    def id_token(
        self, claims: Mapping[str, object], *, issued_at: int, algorithm: str, lifetime: int | None = None
    ) -> str:
        """Return an ID token. `claims` has `sub`, `aud`, `auth_time` and those of the scopes. A `lifetime` of
        the client's tokens can only shorten it.
        """
        longest = constants.ID_TOKEN_LIFETIME
        times = {"iat": issued_at, "exp": issued_at + min(lifetime or longest, longest)}
        return jws.sign({"iss": self._issuer, **claims, **times}, self._key_of(algorithm), "JWT")

    def logout_token(self, claims: Mapping[str, object], *, issued_at: int, algorithm: str) -> str:
        """Return a token that ends a session at its client. `claims` has `sub`, `aud` and `sid`."""
        times = {
            "iat": issued_at,
            "exp": issued_at + constants.LOGOUT_TOKEN_LIFETIME,
            "jti": str(uuid.uuid4()),
        }
        all_claims = {"iss": self._issuer, **claims, **times, "events": {LOGOUT_EVENT: {}}}
        return jws.sign(all_claims, self._key_of(algorithm), "logout+jwt")

    def id_token_algorithms(self) -> list[str]:
        """Return the algorithms that can sign ID tokens."""
        algorithms = {key.algorithm for key in self._access_tokens.keys if key.public_jwk and key.signing_key}
        return ["RS256", *({"ES256"} & algorithms)]

    def read_hint(self, token: str) -> dict[str, Any]:
        """Return the claims of an ID token, even if it has expired. Raises `InvalidAccessToken`."""
        claims, _ = self._verify(token, "JWT")
        # The tokens of sessions and API keys have the same type.
        if not {"session_id", "api_key_id"}.isdisjoint(claims):
            raise InvalidAccessToken("not an ID token")
        return claims

    def verify(self, token: str) -> ClientCaller:
        """Return the caller of an access token, even if it has expired. Raises `InvalidAccessToken`."""
        caller, key = self._callers(token)
        self._require(key)
        return caller

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of an access token, even if it has expired. Raises `InvalidAccessToken`."""
        payload, key = self._payloads(token)
        self._require(key)
        return jws.object_in(payload)

    def caller_of(self, claims: Mapping[str, Any]) -> ClientCaller:
        """Return the caller of a verified access token. Raises `InvalidAccessToken`."""
        if not isinstance(claims.get("client_id"), str):
            raise InvalidAccessToken("not of a client")
        client_id = client_ids.admitted_row_id(claims["client_id"], self._document_hosts)
        if client_id is None:
            raise InvalidAccessToken(
                "not of a client, or of one whose host AUTH_OAUTH_CLIENT_DOCUMENTS lacks"
            )
        try:
            if not jws.is_time(claims["exp"]):
                raise ValueError
            session_id = claims.get("session_id")
            return ClientCaller(
                client_id,
                str(uuid.UUID(claims["sub"])),
                str(uuid.UUID(session_id)) if session_id is not None else None,
                str(claims["aud"]),
                tuple(claims["scope"].split()),
                claims["exp"],
            )
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InvalidAccessToken("a claim is missing or malformed") from error

    def _verified_caller(self, token: str) -> tuple[ClientCaller, Key]:
        claims, key = self._verify(token, TYPE)
        return self.caller_of(claims), key

    def _verified_payload(self, token: str) -> tuple[str, Key]:
        _, key = self._verify(token, TYPE)
        return token.split(".")[1], key

    def _verify(self, token: str, type: str) -> tuple[dict[str, Any], Key]:
        header = jws.header_of(token)
        if header.type != type:
            raise InvalidAccessToken("of another type")
        key = self._key(header.kid)
        return jws.verify(token, header, key, self._issuer), key

    def _require(self, key: Key) -> None:
        if self._key(key.kid).public_jwk != key.public_jwk:
            raise InvalidAccessToken("of another key")

    def _key_of(self, algorithm: str | None) -> Key:
        public_keys = [key for key in self._access_tokens.keys if key.public_jwk and key.signing_key]
        keys = [key for key in public_keys if algorithm in (None, key.algorithm)]
        return signing_key(keys if algorithm != "RS256" and keys else self._rsa_keys.make_first())

    def _key(self, kid: str | None) -> Key:
        # The RSA keys may have to be read from the database.
        key = _public_key(self._access_tokens.keys, kid) or _public_key(self._rsa_keys.all(), kid)
        if key is None:
            raise InvalidAccessToken("unknown kid")
        return key


def _public_key(keys: Sequence[Key], kid: str | None) -> Key | None:
    return next((key for key in keys if kid and key.kid == kid and key.public_jwk), None)


def sid_of(session_id: str) -> str:
    """Return the claim `sid` of a client's session. It does not reveal the session's id."""
    return hashlib.sha256(f"sid {session_id}".encode()).hexdigest()[:32]
