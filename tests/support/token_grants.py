"""An application that asks POST /oauth/token for tokens by each grant of the endpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.devices import Device, begin
from tests.support.openid import Client, claims_of
from tests.support.openid_flow import Application
from tests.support.pages import Visitor
from tests.support.users import Person

CODE, REFRESH, OWN = "authorization_code", "refresh_token", "client_credentials"
ORDER = (CODE, REFRESH, DEVICE_CODE, OWN)
CALLBACK = "https://wiki.example/callback"


def answer_of(response: Any) -> str:
    """Return the error of a response, or what its access token is for."""
    if response.status_code != 200:
        assert response.status_code == (401 if response.json["error"] == "invalid_client" else 400)
        return response.json["error"]
    claims, scope = claims_of(response.json["access_token"]), response.json["scope"]
    assert claims["scope"] == scope
    assert ("id_token" in response.json) == (
        "openid" in scope.split() and claims["sub"] != claims["client_id"]
    )
    return f"{scope} @ {claims['aud']}"


@dataclass
class Situation:
    """An application with each grant, which a user has allowed by a page and for a device."""

    http: Any
    application: Application
    visitor: Visitor
    person: Person
    key: dict[str, str]
    others: Client

    def change(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        """Let the operator act."""
        path = path.format(client=self.application.client.id, user=self.person.id)
        response = self.http.open(path, method=method, json=body or {}, headers=self.key)
        assert response.status_code < 300, response.text

    def prepared(self, grant: str, **request: str) -> Callable[..., Any]:
        """Ask as the application or its device does, up to the request for a token, and return that."""
        client, usual = self.application.client, {"scope": "openid email"} | request
        if grant == CODE:
            code = self.application.code(self.visitor, **usual)
            return lambda by=client, **form: by.redeem(self.http, code, redirect_uri=CALLBACK, **form)
        if grant == REFRESH:
            token = self.application.tokens(self.visitor, **usual)["refresh_token"]
            return lambda by=client, **form: by.refresh(self.http, token, **form)
        if grant == DEVICE_CODE:
            device = begin(self.http, client, **usual)
            device.decide(self.visitor)
            return lambda by=client, **form: Device(self.http, by, device.codes).poll(**form)
        return lambda by=client, **form: by.post(self.http, "/oauth/token", grant_type=OWN, **form)
