"""A provider as configured: the URL for the browser, and the identity that the browser brings back."""

import base64
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote_plus

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwk, jwt

from auth.addresses import InvalidAddress, canonical_email
from auth.logs import ThrottledLog
from auth.net.bounded_http import BoundedSession
from auth.net.redirects import origin
from auth.net.sockets import Deadline
from auth.providers import ProviderError, ProviderUnavailable
from auth.providers.id_tokens import IdTokens, auth_time, is_subject
from auth.settings.presets import GENERIC, PRESETS, Preset
from auth.settings.providers import ProviderSettings

_APPLE_SECRET_LIFETIME = 300
_LONGEST_NAME = 200
_LONG_WORD = re.compile(r"[^\s\"',;:()]{33,}")
_LONGEST_URL = 1000
# Per provider and worker: a slow provider must not occupy all workers.
_CONCURRENCY = 4
_PATIENCE = 1.0
_DEADLINE = 8.0  # seconds for all requests of one step
# The built-in exceptions are raised for responses that are not JSON or have another shape.
_FAILURES = (
    *(requests.RequestException, AuthlibBaseError),
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
)
_ADDRESSES = ("issuer", "authorize_url", "token_url", "userinfo_url", "emails_url")


@dataclass(frozen=True)
class ExternalIdentity:
    """An identity that a provider confirmed. If `is_trusted`, a verified email links it to its user."""

    provider: str
    subject: str
    email: str | None
    email_verified: bool
    is_trusted: bool
    data: dict[str, Any]
    # When the provider authenticated the user, in Unix seconds, if it says so.
    auth_time: float | None = None

    @property
    def is_proved(self) -> bool:
        """Whether the identity proves its email."""
        return self.is_trusted and self.email_verified

    @property
    def row(self) -> dict[str, Any]:
        return {"provider": self.provider, "subject": self.subject, "identity_data": self.data}


class _Session(BoundedSession, OAuth2Session):  # type: ignore[misc]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.register_client_auth_method(("client_secret_basic", _encoded_basic))


def _encoded_basic(
    client: Any, _method: str, uri: str, headers: dict[str, str], body: str
) -> tuple[str, dict[str, str], str]:
    """Form-encode id and secret before joining them (RFC 6749, section 2.3.1). Authlib does not."""
    joined = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(joined.encode()).decode()}"
    return uri, headers, body


class Provider:
    def __init__(self, name: str, settings: ProviderSettings, base_url: str) -> None:
        preset = PRESETS.get(name, GENERIC)
        overridden = {key: value for key in (*_ADDRESSES, "scopes") if (value := getattr(settings, key))}
        # Endpoints without an issuer make it plain OAuth 2.
        if settings.authorize_url and not settings.issuer:
            overridden["issuer"] = ""
        self.name = name
        self._preset: Preset = replace(preset, **overridden)
        self._settings = settings
        self._failures = ThrottledLog("provider_failed")
        self._semaphore = threading.BoundedSemaphore(_CONCURRENCY)
        is_preset = _has_hosts_of(preset, settings)
        # A provider that may be hostile has its own redirect URI (mix-up, RFC 9700, section 4.4.2.2). It is
        # not below /callback, because GitHub sends codes to every path below the registered one.
        self.callback_name = None if is_preset else name
        self.redirect_uri = f"{base_url}/callback" if is_preset else f"{base_url}/providers/{name}/callback"
        self.posts_form = preset.form_post
        links = settings.link_by_email
        self._is_trusted = (preset.link_by_email and is_preset) if links is None else links
        issuer = self._preset.issuer
        self._id_tokens = IdTokens(issuer, settings.client_ids, preset.other_issuers) if issuer else None

    def authorization_url(
        self, *, state: str, nonce: str, code_verifier: str, scopes: str | None, asks_again: bool = False
    ) -> str:
        """Return the URL to send the browser to (RFC 6749, section 4.1.1). Raises `ProviderError`.

        With `asks_again`, the user authenticates there once more, if the provider can be asked for that.
        """
        parameters = {"nonce": nonce} if self._id_tokens else {}
        if asks_again:
            parameters |= dict(self._preset.asks_again)
        if self._preset.has_pkce:
            parameters["code_verifier"] = code_verifier
        if self.posts_form:
            parameters["response_mode"] = "form_post"
        with self._asking():
            endpoint = self._endpoint("authorize_url", "authorization_endpoint")
        session = self._session(scope=scopes or self._preset.scopes, code_challenge_method="S256")
        return session.create_authorization_url(endpoint, state=state, **parameters)[0]

    def identify(
        self, *, code: str, code_verifier: str, nonce: str, issuer: str | None, user: Mapping[str, Any] | None
    ) -> ExternalIdentity:
        """Exchange an authorization code for an identity. Raises `ProviderError`."""
        verifier = {"code_verifier": code_verifier} if self._preset.has_pkce else {}
        with self._asking():
            if self._id_tokens:
                self._id_tokens.check_issuer(issuer)
            session = self._session()
            url = self._endpoint("token_url", "token_endpoint")
            token = session.fetch_token(url, grant_type="authorization_code", code=code, **verifier)
            if not token.get("access_token"):
                raise ProviderError("the token endpoint returned no access token")
            if self._id_tokens:
                return self._by_claims(self._claims(self._id_tokens, session, token, nonce), user)
            return self._by_userinfo(session)

    def identify_by_id_token(self, id_token: str, nonce: str | None) -> tuple[ExternalIdentity, int]:
        """Return the identity of an id_token, and its `exp` in Unix seconds. Raises `ProviderError`."""
        with self._asking():
            if self._id_tokens is None:
                raise ProviderError("it is not set up for OpenID Connect")
            claims = self._id_tokens.verify(id_token, nonce, may_be_hashed=True)
            return self._by_claims(claims, None), int(claims["exp"])

    def log_failure(self, reason: str) -> None:
        self._failures.count(provider=self.name, reason=reason)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Give the requests of a block one deadline and log failures. Raises `ProviderError`."""
        try:
            if not self._semaphore.acquire(timeout=_PATIENCE):
                raise ProviderUnavailable("too many sign-ins are waiting for it")
            try:
                with Deadline(_DEADLINE):
                    yield
            finally:
                self._semaphore.release()
        except ProviderError as error:
            self.log_failure(str(error))
            raise
        except _FAILURES as error:
            reason = f"{self._said(error)} at the token or userinfo endpoint"
            self.log_failure(reason)
            raise ProviderError(reason) from error

    def _said(self, error: Exception) -> str:
        """Return the provider's own error code and description, bounded, else the kind of exception."""
        if not isinstance(error, OAuthError):
            return type(error).__name__
        return said(error.error, error.description, self._settings.client_secret)

    def _session(self, **kwargs: Any) -> _Session:
        secret = self._client_secret()
        return _Session(
            client_id=self._settings.client_ids[0],
            client_secret=secret,
            token_endpoint_auth_method=self._preset.auth_method if secret else "none",
            redirect_uri=self.redirect_uri,
            **kwargs,
        )

    def _client_secret(self) -> str:
        """Return the client secret; Apple's is a token that we sign."""
        settings = self._settings
        if not settings.private_key:
            return settings.client_secret
        now, key = int(time.time()), jwk.import_key(settings.private_key, "EC")
        claims = {"iss": settings.team_id, "sub": settings.client_ids[0], "aud": self._preset.issuer}
        times = {"iat": now, "exp": now + _APPLE_SECRET_LIFETIME}
        return jwt.encode({"alg": "ES256", "kid": settings.key_id}, claims | times, key)

    def _endpoint(self, name: str, metadata_name: str) -> str:
        url: str = getattr(self._preset, name)
        if url or self._id_tokens is None:
            return url
        return self._id_tokens.endpoint(metadata_name)

    def _claims(
        self, id_tokens: IdTokens, session: _Session, token: Mapping[str, Any], nonce: str
    ) -> dict[str, Any]:
        claims = id_tokens.verify(str(token.get("id_token", "")), nonce)
        if claims.get("email"):
            return claims
        # Some providers return the email only at the userinfo endpoint.
        url = self._preset.userinfo_url or id_tokens.optional_endpoint("userinfo_endpoint")
        userinfo = self._get(session, url) if url else {}
        if userinfo.get("sub") != claims["sub"]:
            return claims
        # The id_token's `email_verified` is not about the userinfo's email.
        claims.pop(self._preset.email_verified, None)
        return userinfo | claims

    def _by_claims(self, claims: dict[str, Any], user: Mapping[str, Any] | None) -> ExternalIdentity:
        names = user.get("name") if isinstance(user, dict) else None
        if isinstance(names, dict) and not claims.get("name"):
            parts = [str(names[key]) for key in ("firstName", "lastName") if names.get(key)]
            claims |= {"name": " ".join(parts)[:_LONGEST_NAME]}
        verified = claims.get(self._preset.email_verified)
        identity = self._identity(claims, str(claims["sub"]), claims.get("email"), verified)
        return replace(identity, auth_time=auth_time(claims))

    def _by_userinfo(self, session: _Session) -> ExternalIdentity:
        preset = self._preset
        userinfo = self._get(session, preset.userinfo_url)
        subject = _find(userinfo, preset.subject)
        if isinstance(subject, bool) or not isinstance(subject, str | int) or not is_subject(str(subject)):
            raise ProviderError("the userinfo has no valid subject")
        email = _find(userinfo, preset.email)
        verified = preset.gives_verified_only or _find(userinfo, preset.email_verified)
        if preset.emails_url:
            email, verified = self._primary_email(self._get(session, preset.emails_url))
        return self._identity(userinfo, str(subject), email, verified)

    def _primary_email(self, answer: Any) -> tuple[Any, Any]:
        entries = _find(answer, self._preset.emails) if self._preset.emails else answer
        address, is_verified, is_primary = self._preset.emails_entry
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and entry.get(is_primary) is True:
                return entry.get(address), entry.get(is_verified)
        return None, None

    def _get(self, session: _Session, url: str) -> Any:
        headers = {"Accept": "application/json"}
        if self._preset.client_id_header:
            headers[self._preset.client_id_header] = self._settings.client_ids[0]
        response = session.get(url, headers=headers)
        if response.status_code != 200:
            raise ProviderError(f"{response.status_code} from the userinfo endpoint")
        return response.json()

    def _identity(self, info: Mapping[str, Any], subject: str, email: Any, verified: Any) -> ExternalIdentity:
        try:
            canonical = canonical_email(email) if isinstance(email, str) else None
        except InvalidAddress:
            canonical = None
        # Apple sends the string "true". Nothing else that is merely truthy counts.
        is_verified = canonical is not None and (verified is True or verified == "true")
        data = {"sub": subject, "email": canonical, "email_verified": is_verified}
        paths = {
            "name": (self._preset.name, _LONGEST_NAME),
            "avatar_url": (self._preset.avatar, _LONGEST_URL),
        }
        # Metadata is limited. Drop long values instead of truncating them, which would break URLs.
        for key, (path, limit) in paths.items():
            value = _find(info, path)
            if isinstance(value, str) and value.isprintable() and len(value) <= limit:
                data[key] = value
        return ExternalIdentity(self.name, subject, canonical, is_verified, self._is_trusted, data)


def _has_hosts_of(preset: Preset, settings: ProviderSettings) -> bool:
    hosts = {origin(url) for key in _ADDRESSES if (url := getattr(preset, key))}
    own = {origin(url) for key in _ADDRESSES if (url := getattr(settings, key))}
    return bool(hosts) and own <= hosts


def said(error: object, description: object, *secrets: str) -> str:
    """Return what a provider says of an error, without secrets, which it may repeat."""
    text = ": ".join(part for part in (error, description) if part and isinstance(part, str))
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    # Neither control characters, nor what may be a code or token.
    return _LONG_WORD.sub("…", "".join(char if char.isprintable() else " " for char in text))[:_LONGEST_NAME]


def _find(value: Any, path: str) -> Any:
    if not path:
        return None
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
