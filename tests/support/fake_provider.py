"""Fake OAuth providers on loopback: OpenID Connect, GitHub, Apple, Azure and Twitter, with optional faults.

They are as strict as the specifications and the providers' documentation allow: a code works once, for the
client, redirect URI and verifier that it was issued for. Every visitor of the authorization endpoint is
`person`, who is signed in there and agrees at once.
"""

import base64
import functools
import hashlib
import html
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit
from uuid import uuid4

from joserfc import jwk, jws, jwt

from tests.support.local_server import Handler, LocalServer, misbehave

# Keys are generated once: each costs some hundredths of a second.
_KEYS = [jwk.RSAKey.generate_key(2048, private=True) for _ in range(2)]


@functools.cache
def signing_key(kid: str, number: int = 0) -> jwk.RSAKey:
    """Return the signing key of a kid. There are two keys, by `number`."""
    return jwk.RSAKey.import_key(
        _KEYS[number].as_dict(private=True) | {"kid": kid, "use": "sig", "alg": "RS256"}
    )


@dataclass
class Request:
    """A request that the provider received."""

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]


@dataclass
class Answer:
    """A faulty response of a path: a status, headers and a body, or a `behaviour` of `misbehave`."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    behaviour: str = ""


@dataclass
class Grant:
    """An approved authorization request."""

    parameters: dict[str, str]
    person: dict[str, Any]
    token: str = field(default_factory=lambda: f"at-{uuid4()}")
    used: bool = False


class FakeProvider(LocalServer):
    """An OpenID provider. `person` holds the claims of the user who is signed in there; `reset` restores all
    attributes.
    """

    AUTHORIZE, TOKEN, USERINFO, JWKS = "/authorize", "/token", "/userinfo", "/jwks"
    DISCOVERY = "/.well-known/openid-configuration"
    AUTHENTICATES_BY: tuple[str, ...] = ("basic", "post")

    def __init__(self, name: str) -> None:
        self.name = name
        self.client_id, self.client_secret = f"client-at-{name}", f"secret-at-{name}"
        super().__init__(_handler(self))
        self.reset()

    def reset(self) -> None:
        """Restore the initial state."""
        self.over.set()
        self.over = threading.Event()
        self.person: dict[str, Any] = {}
        self.requests: list[Request] = []
        self.grants: dict[str, Grant] = {}
        # Responses that replace the right ones, by path.
        self.instead: dict[str, Answer] = {}
        self.signing_key = signing_key(f"{self.name}-1")
        self.published = [self.signing_key]
        # Changed members of the discovery document, the token response, the id_token and the authorization
        # response; None removes a member.
        self.metadata: dict[str, Any] = {}
        self.token_response: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.response: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        # When the user signed in at the provider, in Unix seconds; None if the provider does not say so.
        self.signed_in_at: float | None = None

    def settings(self, name: str | None = None, **changes: str) -> dict[str, str]:
        """Return the settings of a service that is a client of this provider, under the provider's name."""
        return _settings(
            name or self.name,
            self._endpoints() | {"client_id": self.client_id, "client_secret": self.client_secret} | changes,
        )

    def _endpoints(self) -> dict[str, str]:
        return {"issuer": self.url}

    def paths(self) -> list[str]:
        """Return the requested paths in order."""
        return [request.path for request in self.requests]

    def parameters(self, path: str) -> dict[str, str]:
        """Return the parameters of the last request to a path."""
        return next(request.parameters for request in reversed(self.requests) if request.path == path)

    # Behaviour.

    def routes(self) -> dict[tuple[str, str], Callable[[Request], Answer]]:
        return {
            ("GET", self.DISCOVERY): self.discovery,
            ("GET", self.JWKS): lambda _: _json(
                {"keys": [key.as_dict(private=False) for key in self.published]}
            ),
            ("GET", self.AUTHORIZE): self.authorize,
            ("POST", self.TOKEN): self.token,
            ("GET", self.USERINFO): lambda request: self.for_bearer(request, lambda grant: grant.person),
        }

    def discovery(self, _: Request) -> Answer:
        document = {
            "issuer": self.url,
            "authorization_endpoint": self.url + self.AUTHORIZE,
            "token_endpoint": self.url + self.TOKEN,
            "userinfo_endpoint": self.url + self.USERINFO,
            "jwks_uri": self.url + self.JWKS,
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return _json(_without_none(document | self.metadata))

    def authorize(self, request: Request) -> Answer:
        parameters = request.parameters
        assert (
            parameters["response_type"],
            parameters["client_id"],
            parameters.get("code_challenge_method", "S256"),
        ) == (
            "code",
            self.client_id,
            "S256",
        )
        if self.signed_in_at is not None and parameters.get("max_age") == "0":
            self.signed_in_at = time.time()
        code = f"code-{uuid4()}"
        self.grants[code] = Grant(parameters, dict(self.person))
        return self.respond(
            parameters["redirect_uri"],
            _without_none({"code": code, "state": parameters["state"]} | self.response),
        )

    def respond(self, redirect_uri: str, parameters: dict[str, str]) -> Answer:
        return Answer(302, headers={"Location": f"{redirect_uri}?{urlencode(parameters)}"})

    def token(self, request: Request) -> Answer:
        parameters = request.parameters
        grant = self.grants.get(parameters.get("code", ""))
        if not self.authenticates(request):
            return self.token_error("invalid_client", 401)
        if grant is None or grant.used or grant.parameters["redirect_uri"] != parameters.get("redirect_uri"):
            return self.token_error("invalid_grant", 400)
        # A verifier without a challenge is as wrong as a challenge without a verifier (RFC 9700, section
        # 4.8.2).
        if grant.parameters.get("code_challenge") != _challenge(parameters.get("code_verifier")):
            return self.token_error("invalid_grant", 400)
        grant.used = True
        return _json(_without_none(self.tokens(grant) | self.token_response))

    def token_error(self, error: str, status: int) -> Answer:
        return _json({"error": error}, status)

    def authenticates(self, request: Request) -> bool:
        """Check the client's credentials (RFC 6749, section 2.3.1: id and secret are form-encoded before they
        are joined).
        """
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        if scheme == "Basic" and "basic" in self.AUTHENTICATES_BY:
            client_id, _, secret = base64.b64decode(encoded).decode().partition(":")
            return (unquote_plus(client_id), unquote_plus(secret)) == (self.client_id, self.client_secret)
        posted = (request.parameters.get("client_id"), request.parameters.get("client_secret"))
        return "post" in self.AUTHENTICATES_BY and posted == (self.client_id, self.client_secret)

    def tokens(self, grant: Grant) -> dict[str, Any]:
        return {
            "access_token": grant.token,
            "token_type": "Bearer",
            "expires_in": 3600,
            "id_token": self.id_token(grant),
        }

    def id_token(self, grant: Grant | None = None, **claims: Any) -> str:
        """Return an id_token for a grant, or for `person` as requested by a native application."""
        issued_at = int(time.time())
        standard = {
            "iss": self.url,
            "aud": self.client_id,
            "iat": issued_at,
            "exp": issued_at + 300,
            "nonce": grant.parameters.get("nonce") if grant else None,
            "auth_time": self.signed_in_at,
        }
        return self.sign(
            _without_none(standard | (grant.person if grant else self.person) | self.claims | claims)
        )

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        """Return claims signed with the current key; `header` may claim otherwise."""
        # Do not use a JWT library, which would refuse to sign some of these claims.
        return jws.serialize_compact(
            _without_none({"alg": "RS256", "kid": self.signing_key.kid} | header),
            json.dumps(claims),
            self.signing_key,
        )

    def for_bearer(self, request: Request, answer: Callable[[Grant], Any]) -> Answer:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        grant = next((grant for grant in self.grants.values() if grant.used and grant.token == token), None)
        return (
            _json(answer(grant))
            if scheme == "Bearer" and grant
            else _json({"message": "Bad credentials"}, 401)
        )

    def rotate(self) -> None:
        """Replace the signing key; only the new one is published."""
        self.signing_key = signing_key(f"{self.name}-2", 1)
        self.published = [self.signing_key]


class PlainProvider(FakeProvider):
    """A provider of plain OAuth 2: URLs of its own return the user's profile. `documents` holds their
    responses by path.
    """

    USERINFO, EMAILS = "/user", "/user/emails"

    def reset(self) -> None:
        super().reset()
        self.documents: dict[str, Any] = {}

    def _endpoints(self) -> dict[str, str]:
        return {
            "authorize_url": self.url + self.AUTHORIZE,
            "token_url": self.url + self.TOKEN,
            "userinfo_url": self.url + self.USERINFO,
        }

    def routes(self) -> dict[tuple[str, str], Callable[[Request], Answer]]:
        def document(path: str) -> Callable[[Request], Answer]:
            return lambda request: self.for_bearer(request, lambda _: self.documents[path])

        return super().routes() | {("GET", path): document(path) for path in self.documents}

    def tokens(self, grant: Grant) -> dict[str, Any]:
        return {
            "access_token": grant.token,
            "token_type": "bearer",
            "scope": grant.parameters.get("scope", ""),
        }


class GitHub(PlainProvider):
    """Like GitHub: the token response is a form unless JSON is requested, errors have status 200, and
    addresses come in a separate list.
    """

    AUTHORIZE, TOKEN = "/login/oauth/authorize", "/login/oauth/access_token"
    AUTHENTICATES_BY = ("post",)

    def reset(self) -> None:
        super().reset()
        self.be(583231, "octocat@github.com")
        # The callback URL of the OAuth App, if a test sets one.
        self.registered = ""

    def be(self, number: int, *addresses: str, verified: Any = True, **user: Any) -> None:
        """Sign in a person with these addresses, the primary one first."""
        entries = [
            {"email": address, "primary": not place, "verified": verified, "visibility": None}
            for place, address in enumerate(addresses)
        ]
        profile = {
            "login": "octocat",
            "id": number,
            "node_id": "MDQ6",
            "avatar_url": "https://avatars.example/u/1",
            "name": "The Octocat",
            "email": None,
        }
        self.documents = {self.USERINFO: profile | user, self.EMAILS: entries}

    def _endpoints(self) -> dict[str, str]:
        return super()._endpoints() | {"emails_url": self.url + self.EMAILS}

    def routes(self) -> dict[tuple[str, str], Callable[[Request], Answer]]:
        def emails(request: Request) -> Answer:
            # The list needs the scope user:email.
            may_read = any(
                "user:email" in grant.parameters.get("scope", "").split()
                for grant in self.grants.values()
                if grant.used
            )
            return (
                self.for_bearer(request, lambda _: self.documents[self.EMAILS])
                if may_read
                else _json({"message": "Not Found"}, 404)
            )

        return super().routes() | {("GET", self.EMAILS): emails}

    def authorize(self, request: Request) -> Answer:
        # "The redirect URL's path must reference a subdirectory of the callback URL."
        if self.registered and not f"{request.parameters['redirect_uri']}/".startswith(f"{self.registered}/"):
            return _json({"error": "redirect_uri_mismatch"}, 400)
        return super().authorize(request)

    def token(self, request: Request) -> Answer:
        answer = super().token(request)
        if "application/json" in request.headers.get("accept", ""):
            return answer
        return Answer(
            200,
            urlencode(json.loads(answer.body)).encode(),
            {"Content-Type": "application/x-www-form-urlencoded"},
        )

    def token_error(self, error: str, status: int) -> Answer:
        codes = {"invalid_grant": "bad_verification_code", "invalid_client": "incorrect_client_credentials"}
        return _json({"error": codes[error], "error_description": "The code passed is incorrect or expired."})

    def for_bearer(self, request: Request, answer: Callable[[Grant], Any]) -> Answer:
        # "Requests with no User-Agent header will be rejected."
        return (
            super().for_bearer(request, answer)
            if request.headers.get("user-agent")
            else _json({"message": "Forbidden"}, 403)
        )


class Apple(FakeProvider):
    """Like Apple: responds with a form, sends a name once, sends booleans as strings, and authenticates the
    client by a token signed with ES256.
    """

    AUTHORIZE, TOKEN, JWKS = "/auth/authorize", "/auth/token", "/auth/keys"
    TEAM_ID, KEY_ID = "TEAM123456", "KEY1234567"

    def __init__(self, name: str = "apple") -> None:
        self.client_key = jwk.ECKey.generate_key("P-256", private=True)
        self.secrets: list[dict[str, Any]] = []
        super().__init__(name)

    def reset(self) -> None:
        super().reset()
        self.secrets.clear()
        self.metadata = {"userinfo_endpoint": None}
        # Sent along with the token, only at the first sign-in.
        self.user: str | None = None

    def settings(self, name: str | None = None, **changes: str) -> dict[str, str]:
        # As in a .env file, where a value is on one line.
        private_key = self.client_key.as_pem(private=True).decode().replace("\n", "\\n")
        values = {
            "client_id": self.client_id,
            "team_id": self.TEAM_ID,
            "key_id": self.KEY_ID,
            "private_key": private_key,
        }
        return _settings(name or self.name, self._endpoints() | values | changes)

    def respond(self, redirect_uri: str, parameters: dict[str, str]) -> Answer:
        fields = parameters | ({"user": self.user} if self.user else {})
        inputs = "".join(
            f'<input type="hidden" name="{name}" value="{html.escape(value)}">'
            for name, value in fields.items()
        )
        # Apple's script posts the form at once.
        page = f'<!doctype html><form method="post" action="{html.escape(redirect_uri)}">{inputs}</form>'
        return Answer(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})

    def authorize(self, request: Request) -> Answer:
        # "If you requested any scopes, the value must be form_post."
        assert request.parameters["response_mode"] == "form_post"
        return super().authorize(request)

    def authenticates(self, request: Request) -> bool:
        secret = jwt.decode(
            request.parameters.get("client_secret", ""), self.client_key, algorithms=["ES256"]
        )
        self.secrets.append(secret.claims)
        claims = {name: secret.claims[name] for name in ("iss", "sub", "aud")}
        lives = secret.claims["exp"] - secret.claims["iat"]
        is_right = (
            claims == {"iss": self.TEAM_ID, "sub": self.client_id, "aud": self.url}
            and secret.header["kid"] == self.KEY_ID
        )
        return is_right and 0 < lives <= 15_777_000 and request.parameters.get("client_id") == self.client_id


class Azure(FakeProvider):
    """Like Azure: one discovery document for all tenants, whose issuer has a placeholder for the tenant."""

    TENANT = "9188040d-6c67-4c5b-b112-36a304b66dad"
    DISCOVERY = "/common/v2.0/.well-known/openid-configuration"

    def _endpoints(self) -> dict[str, str]:
        return {"issuer": f"{self.url}/common/v2.0"}

    def reset(self) -> None:
        super().reset()
        self.metadata = {"issuer": self.url + "/{tenantid}/v2.0"}
        self.claims = {"iss": f"{self.url}/{self.TENANT}/v2.0", "tid": self.TENANT}


class Twitter(PlainProvider):
    """Like Twitter: the client authenticates by Basic only, and users have no address."""

    AUTHORIZE, TOKEN, USERINFO = "/i/oauth2/authorize", "/2/oauth2/token", "/2/users/me"
    AUTHENTICATES_BY = ("basic",)

    def reset(self) -> None:
        super().reset()
        self.be("2244994945", "X Dev")

    def be(self, id: str, name: str) -> None:
        self.documents = {
            self.USERINFO: {
                "data": {
                    "id": id,
                    "name": name,
                    "username": "XDevelopers",
                    "profile_image_url": "https://pbs.example/1.jpg",
                }
            }
        }


def _settings(name: str, values: dict[str, str]) -> dict[str, str]:
    return {f"AUTH_PROVIDER_{name.upper()}_{key.upper()}": value for key, value in values.items()}


def _challenge(verifier: str | None) -> str | None:
    return (
        verifier
        and base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    )


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _json(document: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def _not_found(_: Request) -> Answer:
    return _json({"message": "Not Found"}, 404)


def _handler(provider: FakeProvider) -> type[Handler]:
    class Answers(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            values_of = parse_qs(self.body().decode() or parts.query, keep_blank_values=True)
            assert all(len(values) == 1 for values in values_of.values())
            parameters = {name: values[0] for name, values in values_of.items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, parts.path, parameters, headers)
            provider.requests.append(request)
            route = provider.routes().get((self.command, parts.path), _not_found)
            answer = provider.instead.get(parts.path) or route(request)
            if answer.behaviour:
                self.close_connection = True
                misbehave(self.wfile, answer.behaviour, provider.over)
            else:
                self.reply(answer.status, answer.headers, answer.body)

        do_POST = do_GET

    return Answers
