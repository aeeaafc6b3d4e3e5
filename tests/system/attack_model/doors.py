"""The doors of the service, the doors that each kind of token opens, and the credentials that give such tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.links import VERIFIER
from tests.support.openid import bearer, claims_of
from tests.support.users import Session

Door = Callable[[Any, str], bool]


def _by_bearer(method: str, path: str, **options: Any) -> Door:
    return lambda device, token: (
        device.open(path, method, headers=bearer(token), **options).status_code == 200
    )


class Doors:
    """The routes that take a token. `client_id` is that of a public client."""

    def __init__(self, service_role: dict[str, str], client_id: str) -> None:
        refresh = {"grant_type": "refresh_token", "client_id": client_id}
        self._all: dict[str, Door] = {
            "GET /user": _by_bearer("GET", "/user"),
            "PUT /user": _by_bearer("PUT", "/user", json={"data": {}}),
            "GET /sessions": _by_bearer("GET", "/sessions"),
            "GET /user/api_keys": _by_bearer("GET", "/user/api_keys"),
            "GET /oauth/userinfo": _by_bearer("GET", "/oauth/userinfo"),
            "GET /admin/users": _by_bearer("GET", "/admin/users"),
            "POST /introspect": lambda device, token: device.post(
                "/introspect", json={"token": token}, headers=service_role
            ).json["active"],
            "POST /token": lambda device, token: (
                device.post("/token?grant_type=refresh_token", json={"refresh_token": token}).status_code
                == 200
            ),
            "POST /oauth/token": lambda device, token: (
                device.post("/oauth/token", json=refresh | {"refresh_token": token}).status_code == 200
            ),
        }

    def opened(self, device: Any, token: str, but: str | None = None) -> set[str]:
        """Return the doors that a token opens. It is not tried at the door `but`."""
        return {name for name, opens in self._all.items() if name != but and opens(device, token)}


_SESSION = {"GET /user", "PUT /user", "GET /sessions", "GET /user/api_keys", "POST /introspect"}
# The doors that an access token opens, by its kind.
OPENS = {
    "session": _SESSION,
    "administrator's session": _SESSION | {"GET /admin/users"},
    # This token is for the second step, and shows whose it is.
    "second step": {"GET /user"},
    "client's session": {"GET /oauth/userinfo", "POST /introspect"},
    "API key": {"GET /user", "POST /introspect"},
    "client credentials": {"POST /introspect"},
}
# By the kind of a credential: the door at which its secret gives access tokens, and the others that the secret opens.
OWN_DOOR = {"session": "POST /token", "client's session": "POST /oauth/token"}
SECRET_OPENS = {"API key": {"POST /introspect"}}


@dataclass(eq=False)
class Credential:
    """Something that gives access tokens: a session, an authorization code, a client's session or an API key."""

    kind: str
    holder: str
    # The level of the session that it is, or that made it.
    level: str
    # The refresh token, code or key.
    secret: str
    id: str = ""
    client_id: str = ""
    user: dict[str, Any] = field(default_factory=dict)
    # The access tokens that have not expired, the newest last, and how many of these were tried at the doors.
    access_tokens: list[str] = field(default_factory=list)
    tried: int = 0
    # The reasons why it must be dead, and whether it was tried since.
    ended_by: set[str] = field(default_factory=set)
    is_tried: bool = False

    @classmethod
    def of(cls, session: Session, holder: str) -> "Credential":
        credential = cls("session", holder, session.claims["aal"], session.refresh_token, session.id)
        credential.keep(session)
        return credential

    def keep(self, session: Session) -> None:
        """Keep the newest tokens and the level of a session."""
        self.level, self.secret, self.user = session.claims["aal"], session.refresh_token, session.user
        if session.access_token not in self.access_tokens:
            self.access_tokens.append(session.access_token)

    def session(self, device: Any) -> Session:
        return Session(device, self.access_tokens[-1], self.secret, self.user)

    def ask(self, device: Any) -> Any:
        """Ask for an access token, keep it, and return the response."""
        path, body = self._request
        response = device.post(path, json=body)
        if response.status_code == 200:
            self.access_tokens.append(response.json["access_token"])
            if self.kind in OWN_DOOR:
                self.secret = response.json["refresh_token"]
        return response

    @property
    def _request(self) -> tuple[str, dict[str, str]]:
        if self.kind == "session":
            return "/token?grant_type=refresh_token", {"refresh_token": self.secret}
        if self.kind == "API key":
            return "/token?grant_type=api_key", {"api_key": self.secret}
        body = {"client_id": self.client_id}
        if self.kind == "code":
            body |= {"grant_type": "authorization_code", "code": self.secret, "code_verifier": VERIFIER}
        else:
            body |= {"grant_type": "refresh_token", "refresh_token": self.secret}
        return "/oauth/token", body

    def gives_full_token(self, device: Any) -> bool:
        """Whether it gives a token that is good for more than the second step."""
        return self.ask(device).status_code == 200 and kind_of(self, self.access_tokens[-1]) != "second step"


def kind_of(credential: Credential, access_token: str, role: str = "authenticated") -> str:
    """Return the kind of an access token, by what gave it, its audience and its user's role at this moment."""
    if credential.kind != "session":
        return credential.kind
    if claims_of(access_token)["aud"] == "second_step":
        return "second step"
    return "administrator's session" if role == "admin" else "session"
