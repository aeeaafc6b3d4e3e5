"""An application that signs users in here from its own page, and may send anything."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.links import SITE
from tests.support.openid import REDIRECT_URI, Client, answer, authorize_path, bearer, make_client
from tests.support.pages import Visitor
from tests.support.tables import Rows
from tests.support.user_agent import Page


@dataclass
class Application:
    """A client, whose requests begin on another site. Parameters that are None are not sent."""

    http: Any
    client: Client
    redirect_uri: str

    def begin(self, visitor: Visitor, **changes: Any) -> Page:
        """Send a browser here with an authorization request."""
        usual = {"redirect_uri": self.redirect_uri, "state": "a-state", "nonce": "a-nonce"}
        visitor.be_at(self.redirect_uri)
        return visitor.click(SITE + authorize_path(self.client.id, **usual | changes))

    def returned(self, page: Page) -> dict[str, str]:
        """Return the parameters that the browser has brought back."""
        return answer(page.url, self.redirect_uri)

    def authorized(self, visitor: Visitor, **changes: Any) -> dict[str, str]:
        """Let a signed-in user approve a request, and return the answer."""
        page = self.begin(visitor, **changes)
        return self.returned(allow(visitor) if urlsplit(page.url).path == "/oauth/consent" else page)

    def code(self, visitor: Visitor, **changes: Any) -> str:
        return self.authorized(visitor, **changes)["code"]

    def redeem(self, code: str, **form: Any) -> Any:
        return self.client.redeem(self.http, code, **{"redirect_uri": self.redirect_uri, **form})

    def refresh(self, token: str, **form: Any) -> Any:
        return self.client.refresh(self.http, token, **form)

    def tokens(self, visitor: Visitor, **changes: Any) -> Any:
        """Sign a user in, and return the token response."""
        response = self.redeem(self.code(visitor, **changes))
        assert response.status_code == 200, response.text
        return response.json

    def userinfo(self, access_token: str) -> Any:
        return self.http.get("/oauth/userinfo", headers=bearer(access_token))


def make_application(http: Any, database: Rows, **columns: Any) -> Application:
    uris = columns.setdefault("redirect_uris", [REDIRECT_URI])
    return Application(http, make_client(database, **columns), uris[0])


def allow(visitor: Visitor) -> Page:
    """Allow what the page of consent shows."""
    return visitor.submit(action="approve")
