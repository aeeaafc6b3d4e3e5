"""The cast: people with users, and their sessions."""

import base64
import json
from dataclasses import dataclass
from typing import Any

PASSWORD = "Correct-Horse-1"


@dataclass(frozen=True)
class Session:
    """One session, such as that of a laptop, with its tokens."""

    client: Any
    access_token: str
    refresh_token: str
    user: dict[str, Any]

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.access_token}"}

    @property
    def claims(self) -> dict[str, Any]:
        """The claims of the access token, unverified."""
        payload = self.access_token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=="))

    @property
    def id(self) -> str:
        return self.claims["session_id"]

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(path, headers=self.authorization, **options)

    def post(self, path: str, **options: Any) -> Any:
        return self.client.post(path, headers=self.authorization, **options)

    def put(self, path: str, **options: Any) -> Any:
        return self.client.put(path, headers=self.authorization, **options)

    def patch(self, path: str, **options: Any) -> Any:
        return self.client.patch(path, headers=self.authorization, **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.client.delete(path, headers=self.authorization, **options)

    def refresh(self) -> Any:
        """Send the refresh token; may be repeated."""
        return refresh(self.client, self.refresh_token)

    def refreshed(self) -> "Session":
        """Refresh, and return the session with its new tokens."""
        return session_of(self.client, self.refresh())

    def on(self, client: Any) -> "Session":
        """Return the same session for requests to another application."""
        return Session(client, self.access_token, self.refresh_token, self.user)


@dataclass(frozen=True)
class Person:
    """A person with a user."""

    client: Any
    id: str
    email: str

    def try_to_sign_in(self, password: str = PASSWORD, client: Any = None) -> Any:
        return sign_in(client or self.client, self.email, password)

    def sign_in(self, password: str = PASSWORD, client: Any = None) -> Session:
        """Sign in and return the session."""
        return session_of(client or self.client, self.try_to_sign_in(password, client))


def register(client: Any, service_role: dict[str, str], email: str, role: str | None = None) -> Person:
    """Create a confirmed user as an administrator, and return the person."""
    body = {"email": email, "password": PASSWORD, "email_confirm": True, "role": role}
    response = client.post("/admin/users", json=body, headers=service_role)
    assert response.status_code == 200, response.text
    return Person(client, response.json["id"], email)


def sign_in(client: Any, email: str, password: str = PASSWORD) -> Any:
    return client.post("/token?grant_type=password", json={"email": email, "password": password})


def sign_up_anonymously(client: Any) -> Session:
    return session_of(client, client.post("/signup", json={}), status=201)


def refresh(client: Any, refresh_token: str) -> Any:
    return client.post("/token?grant_type=refresh_token", json={"refresh_token": refresh_token})


def session_of(client: Any, response: Any, status: int = 200) -> Session:
    """Return the session of a token response."""
    assert response.status_code == status, response.get_data(as_text=True)
    body = response.get_json()
    return Session(client, body["access_token"], body["refresh_token"], body["user"])
