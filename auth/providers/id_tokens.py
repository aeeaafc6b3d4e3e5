"""OpenID Connect: discovery, the provider's keys, and the checks of an id_token."""

import hashlib
import hmac
import re
import threading
import time
from collections.abc import Sequence
from typing import Any

import requests
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from auth.net.bounded_http import BoundedSession

# Neither `none` nor HMAC: a public key must not serve as a shared secret (RFC 8725, section 2.1).
ALGORITHMS = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
]
# Seconds.
_CACHED_FOR = 3600
_ROTATION_PAUSE = 30
_LEEWAY = 60
_TENANT = "{tenantid}"


class InvalidIdToken(Exception):
    """The provider's metadata, keys or token are not valid; the text is for the log."""


class IssuerUnavailable(InvalidIdToken):
    """The issuer's metadata or keys can't be fetched now."""


class IdTokens:
    """The id_tokens of one issuer for one client.

    Metadata and keys are cached for an hour, and longer while the issuer is down.
    """

    def __init__(self, issuer: str, client_ids: Sequence[str], other_issuers: Sequence[str] = ()) -> None:
        self._issuer = issuer.rstrip("/")
        self._other_issuers = other_issuers
        self._client_ids = client_ids
        self._lock = threading.Lock()
        self._metadata: dict[str, Any] = {}
        self._metadata_until = 0.0
        self._keys: KeySet | None = None
        self._keys_until = 0.0
        self._keys_asked_at = float("-inf")

    def endpoint(self, name: str) -> str:
        """Return an endpoint's URL. Raises `InvalidIdToken`."""
        url = self.optional_endpoint(name)
        if not url:
            raise IssuerUnavailable(f"the discovery document has no {name}")
        return url

    def optional_endpoint(self, name: str) -> str | None:
        """Return an endpoint's URL, or None. Raises `InvalidIdToken`."""
        url = self._discovered().get(name)
        # An https issuer must not lead to http endpoints.
        schemes = ("https://",) if self._issuer.startswith("https://") else ("https://", "http://")
        return url if isinstance(url, str) and url.startswith(schemes) else None

    def check_issuer(self, issuer: str | None) -> None:
        """Check the `iss` of an authorization response (RFC 9207). Raises `InvalidIdToken`."""
        metadata = self._discovered()
        if issuer is None:
            if metadata.get("authorization_response_iss_parameter_supported") is True:
                raise InvalidIdToken("the response names no issuer")
        elif issuer != metadata["issuer"]:
            raise InvalidIdToken("the response comes from another issuer")

    def verify(self, id_token: str, nonce: str | None, *, may_be_hashed: bool = False) -> dict[str, Any]:
        """Return the claims (OpenID Connect Core, section 3.1.3.7). Raises `InvalidIdToken`.

        With `may_be_hashed` the token may hold the nonce's SHA-256 in hex, as native applications send it.
        """
        metadata = self._discovered()
        claims = self._decode(id_token)
        expected = metadata["issuer"].replace(_TENANT, str(claims.get("tid", "")))
        is_of_tenant = _TENANT not in metadata["issuer"] or re.fullmatch(
            r"[0-9a-f-]{36}", str(claims.get("tid"))
        )
        if claims.get("iss") not in (expected, *self._other_issuers) or not is_of_tenant:
            raise InvalidIdToken("it is from another issuer")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if not any(client_id in audiences for client_id in self._client_ids):
            raise InvalidIdToken("it is for another client")
        if len(audiences) > 1 and claims.get("azp") not in self._client_ids:
            raise InvalidIdToken("it was issued to another client")
        now = time.time()
        if _number(claims, "exp") <= now - _LEEWAY:
            raise InvalidIdToken("it has expired")
        if _number(claims, "iat") > now + _LEEWAY:
            raise InvalidIdToken("it was issued in the future")
        if not is_subject(claims.get("sub")):
            raise InvalidIdToken("it has no valid subject")
        _check_nonce(claims.get("nonce"), nonce, may_be_hashed)
        return claims

    def _decode(self, id_token: str) -> dict[str, Any]:
        try:
            return jwt.decode(id_token, self._key_set(), algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            # The issuer may have rotated its keys.
            if not self._may_refetch():
                raise InvalidIdToken("no key of the issuer verifies its signature") from None
        try:
            return jwt.decode(id_token, self._key_set(), algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidIdToken("no key of the issuer verifies its signature") from error

    def _may_refetch(self) -> bool:
        """Expire the cached keys, unless they are fresh: forged tokens must not flood the issuer."""
        with self._lock:
            if time.monotonic() - self._keys_asked_at < _ROTATION_PAUSE:
                return False
            self._keys_until = 0.0
            return True

    def _discovered(self) -> dict[str, Any]:
        with self._lock:
            if time.monotonic() < self._metadata_until:
                return self._metadata
            try:
                metadata = _get(f"{self._issuer}/.well-known/openid-configuration")
                issuer = metadata.get("issuer")
                # Azure's document for all tenants has a placeholder instead of the tenant.
                if not isinstance(issuer, str) or (
                    issuer.rstrip("/") != self._issuer and _TENANT not in issuer
                ):
                    raise IssuerUnavailable("the discovery document is another issuer's")
                self._metadata = metadata
            except IssuerUnavailable:
                if not self._metadata:
                    raise
            self._metadata_until = time.monotonic() + _CACHED_FOR
            return self._metadata

    def _key_set(self) -> KeySet:
        url = self.endpoint("jwks_uri")
        with self._lock:
            if self._keys is not None and time.monotonic() < self._keys_until:
                return self._keys
            self._keys_asked_at = time.monotonic()
            try:
                self._keys = _parse_keys(_get(url))
            except IssuerUnavailable:
                if self._keys is None:
                    raise
            self._keys_until = time.monotonic() + _CACHED_FOR
            return self._keys


def is_subject(value: Any) -> bool:
    """Whether this is a valid `sub` (OpenID Connect Core, section 2) that Postgres can store."""
    return isinstance(value, str) and 0 < len(value) <= 255 and "\0" not in value and value.isprintable()


def _parse_keys(document: dict[str, Any]) -> KeySet:
    """Return the usable keys. An unknown kind of key must not hide the others."""
    keys = []
    for key in document.get("keys", []) if isinstance(document.get("keys"), list) else []:
        try:
            if (
                isinstance(key, dict)
                and key.get("kty") in ("RSA", "EC", "OKP")
                and key.get("use", "sig") == "sig"
            ):
                keys += KeySet.import_key_set({"keys": [key]}).keys
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            continue
    if not keys:
        raise IssuerUnavailable("the issuer publishes no usable key")
    return KeySet(keys)


def _get(url: str) -> dict[str, Any]:
    try:
        with BoundedSession() as session:
            response = session.get(url, headers={"Accept": "application/json"})
        document = response.json() if response.status_code == 200 else None
    # Python's decoder raises RecursionError for deep nesting.
    except (requests.RequestException, ValueError, RecursionError) as error:
        raise IssuerUnavailable(f"{type(error).__name__} at {url}") from error
    if not isinstance(document, dict):
        raise IssuerUnavailable(f"no document at {url}")
    return document


def _check_nonce(claimed: Any, nonce: str | None, may_be_hashed: bool) -> None:
    if claimed is None and nonce is None and may_be_hashed:
        return
    accepted = [nonce, hashlib.sha256(nonce.encode()).hexdigest()] if nonce and may_be_hashed else [nonce]
    if not isinstance(claimed, str) or not any(
        value and hmac.compare_digest(claimed.encode(), value.encode()) for value in accepted
    ):
        raise InvalidIdToken("its nonce is not the one that was sent")


def _number(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    # 253402300800 is the year 10000, the end of Python's calendar.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 253_402_300_800:
        raise InvalidIdToken(f"its {name} is not a date")
    return value
