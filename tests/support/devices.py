"""Devices without a browser, which sign their users in by a code. Tests load the fixtures as a plugin."""

from dataclasses import dataclass
from typing import Any

import pytest

from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.openid import Client, make_client
from tests.support.pages import Visitor
from tests.support.tables import Rows
from tests.support.user_agent import Page

AGE_POLLS = "UPDATE oauth_requests SET polled_at = polled_at - interval '1 minute'"


@dataclass
class Device:
    """A device at the service, which has asked for its codes."""

    http: Any
    client: Client
    codes: dict[str, Any]

    def poll(self, **form: str) -> Any:
        fields = {"grant_type": DEVICE_CODE, "device_code": self.codes["device_code"]} | form
        return self.client.post(self.http, "/oauth/token", **fields)

    def enter(self, visitor: Visitor) -> Page:
        """Type the device's code on our page."""
        visitor.visit("/device")
        return visitor.press("device", user_code=self.codes["user_code"])

    def decide(self, visitor: Visitor, action: str = "approve") -> Page:
        self.enter(visitor)
        return visitor.press("device/consent", action=action)


def make_television(database: Rows, **columns: Any) -> Client:
    """Insert a public client with only the device grant."""
    defaults = {"name": "Television", "redirect_uris": [], "grant_types": [DEVICE_CODE, "refresh_token"]}
    return make_client(database, **{"token_endpoint_auth_method": "none"} | defaults | columns)


def begin(http: Any, client: Client, scope: str = "openid email", **form: str) -> Device:
    response = client.post(http, "/oauth/device_authorization", scope=scope, **form)
    assert response.status_code == 200, response.text
    return Device(http, client, response.json)


@pytest.fixture
def television(database: Rows) -> Client:
    return make_television(database)


@pytest.fixture
def device(client: Any, television: Client) -> Device:
    """A television that waits for its user."""
    return begin(client, television)
