"""Applications next to the service, for stories in Chromium: on another site, with pages for signed-in users."""

import base64
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlencode

import requests
from authlib.integrations.flask_client import OAuth
from flask import Flask, redirect, request, session
from flask.typing import ResponseReturnValue

from tests.support.openid import Client
from tests.support.processes import free_port
from tests.support.server import served


class Application:
    """A website that knows its users by a cookie, and remembers the page for which a browser signs in.

    It signs users in on our pages by the steps of docs/pages.md, or as a client of the provider by Authlib.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = free_port()
        # By its name localhost, it is another site than the service at 127.0.0.1.
        self.url = f"http://localhost:{self.port}"
        self.callback = f"{self.url}/callback"
        self._app = Flask(name)
        self._app.secret_key = secrets.token_hex()
        self._app.config["SESSION_COOKIE_NAME"] = name
        self._app.add_url_rule("/", view_func=self._show, defaults={"page": "Home"})
        self._app.add_url_rule("/boards/7", "board", self._show, defaults={"page": "Board 7"})
        self._app.add_url_rule("/login", view_func=self._log_in)
        self._app.add_url_rule("/callback", view_func=self._arrive)

    @contextmanager
    def running(self) -> Iterator[Self]:
        with served(self._app, self.port):
            yield self

    def sign_in_at(self, service_url: str, client: Client | None) -> None:
        """Sign users in at the service: on its pages, or as a client of its provider."""
        self._service_url, self.client = service_url, client
        self._provider: Any = client and OAuth(self._app).register(
            "latchkey",
            client_id=client.id,
            client_secret=client.secret,
            server_metadata_url=f"{service_url}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid email", "code_challenge_method": "S256"},
        )

    def _show(self, page: str) -> ResponseReturnValue:
        if "email" not in session:
            return self._leave(request.path)
        text = f"{page} of {session['email']}"
        return f"<!doctype html><link rel=icon href=data:,><title>{self.name}</title>{text}"

    def _log_in(self) -> ResponseReturnValue:
        return self._leave("/")

    def _leave(self, page: str) -> ResponseReturnValue:
        """Send the browser away, to come back for a page."""
        if self.client:
            session["page"] = page
            return self._provider.authorize_redirect(self.callback)
        session["verifier"] = verifier = secrets.token_urlsafe(32)
        digest = hashlib.sha256(verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        back = f"{self.callback}?{urlencode({'page': page})}"
        query = urlencode({"redirect_to": back, "code_challenge": challenge})
        return redirect(f"{self._service_url}/sign-in?{query}")

    def _arrive(self) -> ResponseReturnValue:
        if self.client:
            # Verifies the state, which is in this browser's cookie, and the ID token.
            session["email"] = self._provider.authorize_access_token()["userinfo"]["email"]
            return redirect(session.pop("page"))
        body = {"auth_code": request.args["code"], "code_verifier": session.pop("verifier")}
        response = requests.post(f"{self._service_url}/token?grant_type=pkce", json=body, timeout=60)
        assert response.ok, response.text
        session["email"] = response.json()["user"]["email"]
        return redirect(request.args["page"])
