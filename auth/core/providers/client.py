"""A configured provider: the URL for the browser, and the identity that the browser brings back."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote_plus

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.client import OAuth2Client
from joserfc import jwk, jwt

from auth.core import normalize
from auth.core.addresses import InvalidAddress, canonical_email
from auth.core.logs import ThrottledLog
from auth.core.net.bounded_http import BoundedSession
from auth.core.net.redirects import origin
from auth.core.net.sockets import Deadline
from auth.core.providers import CAUSES_OF_TOKENS, ProviderError, ProviderUnavailable, said
from auth.core.providers.id_tokens import IdTokens, is_date
from auth.core.settings.presets import GENERIC, PRESETS, Preset
from auth.core.settings.providers import ProviderSettings

_APPLE_SECRET_LIFETIME = 300
_LONGEST_NAME = 200
_LONGEST_URL = 1000
_LONGEST_HANDLE = 100
# Per provider and worker: a slow provider must not occupy all workers.
_CONCURRENCY = 4
_PATIENCE = 1.0
_DEADLINE = 8.0  # seconds for the wait and all requests of one step
# Responses that are not JSON, or have another shape, raise the built-in exceptions.
_FAILURES = (
    *(requests.RequestException, AuthlibBaseError),
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError),
)
_ADDRESSES = ("issuer", "authorize_url", "token_url", "userinfo_url", "emails_url")


@dataclass(frozen=True)
class ExternalIdentity:
    """An identity that a provider confirmed, with the columns of its row."""

    provider: str
    row: dict[str, Any]
    told_email: str | None
    # The same email if the provider says that it is verified. From a trusted provider, this is a proof.
    email: str | None
    is_proved: bool
    # The metadata of a user who is created for the identity.
    metadata: dict[str, Any]
    # When the provider authenticated the user, in Unix seconds, if it says so. An invalid date is 0, which
    # proves nothing.
    auth_time: float | None
    # The id and the issuer of the customer's provider, if any, and the version of its row that was used.
    customers_provider_id: str | None = None
    issuer: str = ""
    version: str = ""


class _ProviderSession(BoundedSession, OAuth2Session):  # type: ignore[misc]
    pass


class Provider:
    # Further parameters of authorization requests.
    _parameters: Mapping[str, str] = {}

    def __init__(self, name: str, settings: ProviderSettings, base_url: str) -> None:
        preset = PRESETS.get(name, GENERIC)
        overridden = {key: value for key in (*_ADDRESSES, "scopes") if (value := getattr(settings, key))}
        # Endpoints without an issuer make it plain OAuth 2.
        if settings.authorize_url and not settings.issuer:
            overridden["issuer"] = ""
        self.name, self.title = name, settings.title
        self._preset: Preset = replace(preset, **overridden)
        self._settings = settings
        self._failures = ThrottledLog("provider_failed")
        self._semaphore = threading.BoundedSemaphore(_CONCURRENCY)
        of_preset, own = (
            {origin(url) for key in _ADDRESSES if (url := getattr(each, key))} for each in (preset, settings)
        )
        is_preset = bool(of_preset) and own <= of_preset
        # A provider that may be hostile has its own redirect URI (mix-up, RFC 9700, section 4.4.2.2). It is
        # not below /callback, because GitHub sends codes to every path below the registered one.
        self.callback_name = None if is_preset else name
        self.redirect_uri = f"{base_url}/callback" if is_preset else f"{base_url}/providers/{name}/callback"
        self.posts_form = preset.form_post
        links = settings.link_by_email
        self._is_trusted = (preset.link_by_email and is_preset) if links is None else links
        # Without an issuer, the preset or the settings have all endpoints.
        self._id_tokens = IdTokens(self._preset.issuer, settings.client_ids, preset.other_issuers)

    def authorization_url(
        self, *, state: str, nonce: str, code_verifier: str, scopes: str | None, asks_again: bool = False
    ) -> str:
        """Return the URL to send the browser to (RFC 6749, section 4.1.1). Raises `ProviderError`.

        With `asks_again`, the user authenticates there again, if the provider supports this.
        """
        preset = self._preset
        parameters = {**self._parameters, **({"nonce": nonce} if preset.issuer else {})}
        parameters |= dict(preset.asks_again) if asks_again else {}
        if preset.has_pkce:
            parameters["code_verifier"] = code_verifier
        if self.posts_form:
            parameters["response_mode"] = "form_post"
        with self._asking():
            endpoint = preset.authorize_url or self._id_tokens.endpoint("authorization_endpoint")
        client_id, parameters["scope"] = self._settings.client_ids[0], scopes or preset.scopes
        client = OAuth2Client(None, client_id, redirect_uri=self.redirect_uri, code_challenge_method="S256")
        return str(client.create_authorization_url(endpoint, state=state, **parameters)[0])

    def identify(self, response: Mapping[str, str], *, code_verifier: str, nonce: str) -> ExternalIdentity:
        """Exchange the code of an authorization response for an identity. Raises `ProviderError`."""
        preset = self._preset
        parameters = {"code_verifier": code_verifier} if preset.has_pkce else {}
        with self._asking():
            if preset.issuer:
                self._id_tokens.check_issuer(response.get("iss"))
            session = self._session()
            url = preset.token_url or self._id_tokens.endpoint("token_endpoint")
            code = response["code"]
            token = session.fetch_token(url, grant_type="authorization_code", code=code, **parameters)
            if not token.get("access_token"):
                raise ProviderError("the token endpoint returned no access token")
            if not preset.issuer:
                return self._identity(self._userinfo(session))
            claims = self._claims(session, str(token.get("id_token", "")), nonce)
            return self._identity(_name_of(response["user"]) | claims if "user" in response else claims)

    @property
    def has_id_tokens(self) -> bool:
        return bool(self._preset.issuer)

    def identify_by_id_token(self, id_token: str, nonce: str | None) -> tuple[ExternalIdentity, int]:
        """Return the identity of an id_token, and its `exp` in Unix seconds. Raises `ProviderError`."""
        with self._asking():
            nonces = [] if nonce == "" else [nonce]
            if nonce:
                # Native applications send its SHA-256 in hex to the provider.
                nonces.append(hashlib.sha256(nonce.encode()).hexdigest())
            claims = self._id_tokens.verify(id_token, nonces)
            return self._identity(claims), int(claims["exp"])

    def error_of(self, response: Mapping[str, str]) -> str | None:
        """Return the error of an authorization response: `access_denied` if the user has cancelled."""
        error = response.get("error")
        return "access_denied" if error in self._preset.cancelled_as else error

    def log_failure(self, reason: str) -> None:
        self._failures.count(provider=self.name, reason=reason)

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(seconds)

    @contextmanager
    def _asking(self, *, logs: bool = True) -> Iterator[None]:
        """Give the requests of a block one deadline, and log failures. Raises `ProviderError`."""
        try:
            with self._deadline(_DEADLINE):
                if not self._semaphore.acquire(timeout=_PATIENCE):
                    raise ProviderUnavailable("too many sign-ins are waiting for it")
                try:
                    yield
                finally:
                    self._semaphore.release()
        except ProviderError as error:
            if logs:
                self.log_failure(str(error))
            raise
        except _FAILURES as error:
            reason, cause = type(error).__name__, None
            if isinstance(error, OAuthError):
                reason = said(error.error, error.description, self._settings.client_secret)
                cause = CAUSES_OF_TOKENS.get(str(error.error))
            reason += " at the token or userinfo endpoint"
            self.log_failure(reason)
            raise ProviderError(reason, cause) from error

    def _session(self) -> _ProviderSession:
        settings, method = self._settings, self._preset.auth_method
        client_id = settings.client_ids[0]
        secret = settings.client_secret
        if settings.private_key:
            # Apple's client secret is a token that we sign.
            now, key = int(time.time()), jwk.import_key(settings.private_key, "EC")
            claims = {"iss": settings.team_id, "sub": client_id, "aud": self._preset.issuer}
            times = {"iat": now, "exp": now + _APPLE_SECRET_LIFETIME}
            secret = jwt.encode({"alg": "ES256", "kid": settings.key_id}, claims | times, key)
        if secret and method == "client_secret_basic":
            # RFC 6749, section 2.3.1. Authlib does not encode them.
            client_id, secret = quote_plus(client_id), quote_plus(secret)
        return _ProviderSession(
            client_id=client_id,
            client_secret=secret,
            token_endpoint_auth_method=method if secret else "none",
            redirect_uri=self.redirect_uri,
        )

    def _claims(self, session: _ProviderSession, id_token: str, nonce: str) -> dict[str, Any]:
        claims = self._id_tokens.verify(id_token, [nonce])
        if claims.get("email"):
            return claims
        # Some providers return the email only at the userinfo endpoint.
        url = self._preset.userinfo_url or self._id_tokens.optional_endpoint("userinfo_endpoint")
        userinfo = self._get(session, url) if url else {}
        if userinfo.get("sub") != claims["sub"]:
            return claims
        # The id_token's `email_verified` is not about the userinfo's email.
        claims.pop(self._preset.email_verified, None)
        return userinfo | claims

    def _userinfo(self, session: _ProviderSession) -> dict[str, Any]:
        preset = self._preset
        userinfo = self._get(session, preset.userinfo_url)
        if preset.emails_url:
            answer = self._get(session, preset.emails_url, "the list of emails: let the app read emails")
            emails = _find(answer, preset.emails) if preset.emails else answer
            entries = (
                [entry for entry in emails if isinstance(entry, dict)] if isinstance(emails, list) else []
            )
            address, is_verified, is_primary = preset.emails_entry
            primary = next((entry for entry in entries if entry.get(is_primary) is True), {})
            userinfo |= {preset.email: primary.get(address), preset.email_verified: primary.get(is_verified)}
        return userinfo

    def _get(self, session: _ProviderSession, url: str, where: str = "the userinfo endpoint") -> Any:
        headers = {"Accept": "application/json", **dict(self._preset.headers)}
        if self._preset.client_id_header:
            headers[self._preset.client_id_header] = self._settings.client_ids[0]
        response = session.get(url, headers=headers)
        if response.status_code != 200:
            raise ProviderError(f"{response.status_code} from {where}")
        return json.loads(response.content)

    def _identity(self, info: Any) -> ExternalIdentity:
        preset, email = self._preset, _find(info, self._preset.email)
        # Numbers as GitHub has them; only text that Postgres can store (OpenID Connect Core, section 2).
        value = _find(info, preset.subject)
        subject = str(value) if type(value) in (int, str) else ""
        if not (0 < len(subject) <= 255 and subject.isprintable()):
            raise ProviderError("it has no valid subject")
        try:
            canonical = canonical_email(email) if isinstance(email, str) else None
        except InvalidAddress:
            canonical = None
        verified = _find(info, preset.email_verified)
        # Compare the types, too: 1 is not True.
        says_yes = (type(verified), verified) in [(type(yes), yes) for yes in preset.verified_as]
        is_verified = canonical is not None and (preset.gives_verified_only or says_yes)
        is_verified = is_verified and (not preset.email_valid or _find(info, preset.email_valid) is True)
        # Metadata is limited. Drop long values instead of truncating them, which would break URLs.
        metadata = {
            member: value
            for members, path, limit in (
                (("name", "full_name"), preset.name, _LONGEST_NAME),
                (("avatar_url", "picture"), preset.avatar, _LONGEST_URL),
                (("user_name", "preferred_username"), preset.handle, _LONGEST_HANDLE),
            )
            if (value := normalize.name(_find(info, path), limit)) and size_in_json(value) <= _LONGEST_URL
            for member in members
        }
        data = {"sub": subject, "email": canonical, "email_verified": is_verified, **metadata}
        moment = _find(info, "auth_time")
        return ExternalIdentity(
            provider=self.name,
            row={"provider": self.name, "subject": subject, "identity_data": data},
            told_email=canonical,
            email=canonical if is_verified else None,
            is_proved=is_verified and self._is_trusted,
            metadata=metadata,
            auth_time=moment if moment is None or is_date(moment) else 0,
        )


def size_in_json(text: str) -> int:
    """Return the bytes of printable text in JSON, by which the database limits metadata."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - len('""')


def _name_of(user: str) -> dict[str, str]:
    """Return the name that Apple sends next to the code, unsigned, and only the first time."""
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
        names = json.loads(user)["name"]
        parts = [names[key] for key in ("firstName", "lastName") if names.get(key)]
        return {"name": " ".join(parts)[:_LONGEST_NAME]}
    return {}


def _find(value: Any, path: str) -> Any:
    with suppress(LookupError, TypeError):
        for step in path.split("."):
            value = value[int(step) if step.isdigit() else step]
        return value if path else None
    return None
