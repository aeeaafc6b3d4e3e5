"""An application of one user that signs in here with OpenID Connect, by Authlib, which is not ours."""

import html
import threading
from contextlib import suppress
from socket import SHUT_RDWR, socket
from socketserver import ThreadingMixIn
from typing import Any, Self
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwk, jwt


class Application:
    """A web application at `url`. Its home page has the button *Sign in*, or says who is signed in, and where.

    /refresh uses the refresh token, /sign-out forgets the user here alone. `answers` has the claims of ID tokens.
    """

    def __init__(self, issuer: str, port: int, name: str = "Nimbus") -> None:
        self.issuer, self.name = issuer, name
        # By its name localhost, it is another site than the service at 127.0.0.1.
        self.url = f"http://localhost:{port}"
        self.scopes = "openid email offline_access organizations"
        self.token: dict[str, Any] = {}
        self.answers: list[dict[str, Any]] = []
        self._server = make_server("127.0.0.1", port, self._answer, _Server, _Silent)

    def registration(self) -> dict[str, Any]:
        """Return what POST /admin/oauth/clients takes."""
        return {"client_name": self.name, "client_uri": self.url, "redirect_uris": [f"{self.url}/callback"]}

    def use(self, client: dict[str, Any]) -> Self:
        """Set the registered client."""
        with requests.Session() as session:
            session.trust_env = False
            self._metadata = session.get(f"{self.issuer}/.well-known/openid-configuration", timeout=60).json()
        ids = {"client_id": client["client_id"], "client_secret": client["client_secret"]}
        self._session = OAuth2Session(
            **ids, redirect_uri=f"{self.url}/callback", code_challenge_method="S256"
        )
        self._session.trust_env = False
        return self

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def refresh(self) -> bool:
        """Use the refresh token, and return whether the application still has access."""
        try:
            self.token = self._session.refresh_token(
                self._metadata["token_endpoint"], self.token["refresh_token"]
            )
        except OAuthError as error:
            if error.error != "invalid_grant":
                raise
            return False
        return True

    def _answer(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        view = {"/": self._home, "/sign-in": self._sign_in, "/callback": self._callback}.get(
            environ["PATH_INFO"]
        )
        if view is None:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"There is no such page."]
        answer = view(environ["QUERY_STRING"])
        if answer.startswith("http"):
            start_response("303 See Other", [("Location", answer)])
            return [b""]
        start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
        return [f"<!doctype html><html lang=en><title>{self.name}</title>{answer}</html>".encode()]

    def _home(self, query: str) -> str:
        if "error=" in query:
            return f"<h1>{self.name}</h1><p>Not signed in: {html.escape(query)}</p>"
        if not self.token:
            return f'<h1>{self.name}</h1><a href="/sign-in">Sign in</a>'
        claims = self.answers[-1]
        roles = "".join(f"<li>{role} at {id}</li>" for id, role in claims.get("organizations", {}).items())
        return f"<h1>{self.name}</h1><p>Welcome, {html.escape(claims['email'])}</p><ul>{roles}</ul>"

    def _sign_in(self, _query: str) -> str:
        self.token, self._verifier, self._nonce = {}, generate_token(48), generate_token(20)
        url, self._state = self._session.create_authorization_url(
            self._metadata["authorization_endpoint"],
            scope=self.scopes,
            nonce=self._nonce,
            code_verifier=self._verifier,
        )
        return str(url)

    def _callback(self, query: str) -> str:
        if "error=" in query:
            return f"{self.url}/?{query}"
        self.token = self._session.fetch_token(
            self._metadata["token_endpoint"],
            authorization_response=f"{self.url}/callback?{query}",
            code_verifier=self._verifier,
            state=self._state,
        )
        with requests.Session() as session:
            session.trust_env = False
            keys = session.get(self._metadata["jwks_uri"], timeout=60).json()
        claims = jwt.decode(
            self.token["id_token"], jwk.KeySet.import_key_set(keys), algorithms=["RS256", "ES256"]
        )
        CodeIDToken(claims.claims, claims.header, params={"nonce": self._nonce}).validate_nonce()
        self.answers.append(claims.claims)
        return self.url

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 80


class _Server(ThreadingMixIn, WSGIServer):
    """It has a thread for each connection, since a browser opens some before it has anything to ask.

    It ends them when it closes, or the next application at this port would miss what the browser asks.
    """

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections: set[socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().close_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass
