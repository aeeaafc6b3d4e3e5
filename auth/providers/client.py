"""A provider as configured: the URL for the browser, and the identity that the browser brings back."""

import base64
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote_plus

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwk, jwt

from auth.addresses import InvalidAddress, canonical_email
from auth.net.bounded_http import BoundedSession
from auth.net.redirects import origin
from auth.net.sockets import Deadline
from auth.providers.id_tokens import IdTokens, InvalidIdToken, IssuerUnavailable, is_subject
from auth.settings.presets import GENERIC, PRESETS, Preset
from auth.settings.providers import ProviderSettings

_APPLE_SECRET_LIFETIME = 300
_LONGEST_NAME = 200
_LONGEST_URL = 1000
# Requests to one provider at a time, in each worker, and the seconds that another one waits before it is
# refused: a slow provider must not occupy all workers.
_CONCURRENCY = 4
_PATIENCE = 1.0
# Seconds for all requests of one step together.
_DEADLINE = 8.0
_ADDRESSES = ("issuer", "authorize_url", "token_url", "userinfo_url", "emails_url")


class ProviderError(Exception):
    """The provider failed, or its answer is not valid; the text is for the log."""


class ProviderUnavailable(ProviderError):
    """The provider can't be reached now, but perhaps later."""


@dataclass(frozen=True)
class ExternalIdentity:
    """An identity that a provider confirmed.

    `email` is canonical. `is_trusted` says that a verified email links to the user who has it.
    """

    provider: str
    subject: str
    email: str | None
    email_verified: bool
    is_trusted: bool
    data: dict[str, Any]


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
    """A provider that users sign in with."""

    def __init__(self, name: str, settings: ProviderSettings, base_url: str) -> None:
        preset = PRESETS.get(name, GENERIC)
        overridden = {key: value for key in (*_ADDRESSES, "scopes") if (value := getattr(settings, key))}
        self.name = name
        self._preset: Preset = replace(preset, **overridden)
        # Endpoints without an issuer make it plain OAuth 2.
        if settings.authorize_url and not settings.issuer:
            self._preset = replace(self._preset, issuer="")
        self._settings = settings
        self._semaphore = threading.BoundedSemaphore(_CONCURRENCY)
        # With another host a preset is as unknown as any other issuer.
        is_preset = _has_hosts_of(preset, settings)
        # A hostile provider can redirect a browser to another provider, and receive that provider's code
        # (mix-up, RFC 9700, section 4.4.2.2). So each provider that may be hostile has its own redirect URI.
        # It is not below /callback: GitHub sends codes to every path below the registered one.
        self.callback_name = None if is_preset else name
        self.redirect_uri = f"{base_url}/callback" if is_preset else f"{base_url}/providers/{name}/callback"
        self._is_trusted = (
            (preset.link_by_email and is_preset) if settings.link_by_email is None else settings.link_by_email
        )
        self._id_tokens = (
            IdTokens(self._preset.issuer, settings.client_ids, preset.other_issuers)
            if self._preset.issuer
            else None
        )

    @property
    def posts_form(self) -> bool:
        """Whether the provider answers with a form that its own site posts."""
        return self._preset.form_post

    def authorization_url(self, *, state: str, nonce: str, code_verifier: str, scopes: str | None) -> str:
        """Return the URL to send the browser to. Raises `ProviderError`.

        RFC 6749, section 4.1.1; RFC 7636; OpenID Connect Core, section 3.1.2.1.
        """
        parameters: dict[str, str] = {}
        if self._preset.has_pkce:
            parameters = {
                "code_challenge": create_s256_code_challenge(code_verifier),
                "code_challenge_method": "S256",
            }
        if self._id_tokens:
            parameters["nonce"] = nonce
        if self._preset.form_post:
            parameters["response_mode"] = "form_post"
        with self._permit():
            endpoint = self._endpoint("authorize_url", "authorization_endpoint")
        url, _ = self._session(scope=scopes or self._preset.scopes).create_authorization_url(
            endpoint, state=state, **parameters
        )
        return url

    def identify(
        self, *, code: str, code_verifier: str, nonce: str, issuer: str | None, user: Mapping[str, Any] | None
    ) -> ExternalIdentity:
        """Exchange an authorization code for an identity. Raises `ProviderError`."""
        with self._permit():
            return self._identify(code, code_verifier if self._preset.has_pkce else None, nonce, issuer, user)

    def _identify(
        self,
        code: str,
        code_verifier: str | None,
        nonce: str,
        issuer: str | None,
        user: Mapping[str, Any] | None,
    ) -> ExternalIdentity:
        if self._id_tokens:
            self._guarded(lambda id_tokens: id_tokens.check_issuer(issuer))
        session = self._session()
        verifier = {"code_verifier": code_verifier} if code_verifier else {}
        try:
            token = session.fetch_token(
                self._endpoint("token_url", "token_endpoint"),
                grant_type="authorization_code",
                code=code,
                **verifier,
            )
            if not token.get("access_token"):
                raise ProviderError("the token endpoint answered no access token")
            if self._id_tokens:
                return self._by_claims(self._claims(session, token, nonce), user)
            return self._by_userinfo(session)
        except (
            requests.RequestException,
            AuthlibBaseError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            # The last ones are raised for answers that are not JSON, or have another shape.
            raise ProviderError(f"{type(error).__name__} at the token or userinfo endpoint") from error

    def identify_by_id_token(self, id_token: str, nonce: str | None) -> tuple[ExternalIdentity, int]:
        """Return the identity of an id_token, and its `exp` in Unix seconds. Raises `ProviderError`."""
        with self._permit():
            claims = self._guarded(lambda id_tokens: id_tokens.verify(id_token, nonce, may_be_hashed=True))
        return self._by_claims(claims, None), int(claims["exp"])

    @contextmanager
    def _permit(self) -> Iterator[None]:
        if not self._semaphore.acquire(timeout=_PATIENCE):
            raise ProviderUnavailable("too many sign-ins wait for it")
        try:
            with Deadline(_DEADLINE):
                yield
        finally:
            self._semaphore.release()

    def _session(self, **kwargs: Any) -> _Session:
        return _Session(
            client_id=self._settings.client_ids[0],
            client_secret=self._client_secret(),
            token_endpoint_auth_method=self._preset.auth_method if self._client_secret() else "none",
            redirect_uri=self.redirect_uri,
            **kwargs,
        )

    def _client_secret(self) -> str:
        """Return the client secret. Apple's is a token that we sign."""
        settings = self._settings
        if not settings.private_key:
            return settings.client_secret
        now = int(time.time())
        claims = {
            "iss": settings.team_id,
            "iat": now,
            "exp": now + _APPLE_SECRET_LIFETIME,
            "aud": self._preset.issuer,
            "sub": settings.client_ids[0],
        }
        return jwt.encode(
            {"alg": "ES256", "kid": settings.key_id}, claims, jwk.import_key(settings.private_key, "EC")
        )

    def _endpoint(self, name: str, metadata_name: str) -> str:
        url = getattr(self._preset, name)
        if url:
            return url
        return self._guarded(lambda id_tokens: id_tokens.endpoint(metadata_name))

    def _guarded(self, ask: Any) -> Any:
        if self._id_tokens is None:
            raise ProviderError("it is not set up for OpenID Connect")
        try:
            return ask(self._id_tokens)
        except IssuerUnavailable as error:
            raise ProviderUnavailable(str(error)) from error
        except InvalidIdToken as error:
            raise ProviderError(str(error)) from error

    def _claims(self, session: _Session, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        claims = self._guarded(lambda id_tokens: id_tokens.verify(str(token.get("id_token", "")), nonce))
        if claims.get("email"):
            return claims
        # Some providers give the email at the userinfo endpoint only.
        userinfo_url = self._preset.userinfo_url or self._guarded(
            lambda id_tokens: id_tokens.optional_endpoint("userinfo_endpoint")
        )
        userinfo = self._get(session, userinfo_url) if userinfo_url else {}
        if userinfo.get("sub") != claims["sub"]:
            return claims
        # The id_token's `email_verified` is not about the userinfo's email.
        claims.pop(self._preset.email_verified, None)
        return userinfo | claims

    def _by_claims(self, claims: Mapping[str, Any], user: Mapping[str, Any] | None) -> ExternalIdentity:
        names = (user or {}).get("name") if isinstance(user, dict) else None
        if isinstance(names, dict) and not claims.get("name"):
            parts = [str(names[key]) for key in ("firstName", "lastName") if names.get(key)]
            claims = {**claims, "name": " ".join(parts)[:_LONGEST_NAME]}
        return self._identity(
            claims, str(claims["sub"]), claims.get("email"), claims.get(self._preset.email_verified)
        )

    def _by_userinfo(self, session: _Session) -> ExternalIdentity:
        preset = self._preset
        userinfo = self._get(session, preset.userinfo_url)
        subject = _find(userinfo, preset.subject)
        if isinstance(subject, bool) or not isinstance(subject, str | int) or not is_subject(str(subject)):
            raise ProviderError("the userinfo has no valid subject")
        email = _find(userinfo, preset.email)
        verified = preset.gives_verified_only or _find(userinfo, preset.email_verified)
        if preset.emails_url:
            email, verified = self._chosen_email(self._get(session, preset.emails_url))
        return self._identity(userinfo, str(subject), email, verified)

    def _chosen_email(self, answer: Any) -> tuple[Any, Any]:
        entries = _find(answer, self._preset.emails) if self._preset.emails else answer
        address, is_verified, is_chosen = self._preset.emails_entry
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and entry.get(is_chosen) is True:
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

    def _identity(self, told: Mapping[str, Any], subject: str, email: Any, verified: Any) -> ExternalIdentity:
        try:
            canonical = canonical_email(email) if isinstance(email, str) else None
        except InvalidAddress:
            canonical = None
        # Apple sends the string "true". Nothing else that is merely truthy counts.
        is_verified = canonical is not None and (verified is True or verified == "true")
        data = {"sub": subject, "email": canonical, "email_verified": is_verified}
        # Metadata has a limit: drop a name or URL that is too long, because a URL that was cut leads nowhere.
        for key, path, limit in (
            ("name", self._preset.name, _LONGEST_NAME),
            ("avatar_url", self._preset.avatar, _LONGEST_URL),
        ):
            value = _find(told, path) if path else None
            if isinstance(value, str) and value.isprintable() and len(value) <= limit:
                data[key] = value
        return ExternalIdentity(self.name, subject, canonical, is_verified, self._is_trusted, data)


def _has_hosts_of(preset: Preset, settings: ProviderSettings) -> bool:
    """Whether all configured URLs are at the preset's own hosts; paths and versions may differ."""
    hosts = {origin(url) for key in _ADDRESSES if (url := getattr(preset, key))}
    return bool(hosts) and hosts.issuperset(
        origin(url) for key in _ADDRESSES if (url := getattr(settings, key))
    )


def _find(value: Any, path: str) -> Any:
    """Return the value at a dotted path, or None."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value if path else None
