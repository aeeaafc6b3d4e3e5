"""Everything that a customer's provider opens for a user, and what becomes of it once the provider is turned off."""

from types import SimpleNamespace
from typing import Any

from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.api_keys import make_key, use
from tests.support.links import CHALLENGE, SITE, VERIFIER
from tests.support.oauth import query
from tests.support.openid import make_client
from tests.support.openid_flow import make_application
from tests.support.pages import Visitor

REFUSED = {
    "refresh": 400,
    "key": 401,
    "code": 404,
    "application": 400,
    "userinfo": 401,
    "code of an application": 400,
    "device": 400,
    "page": 200,
    "user": 401,
}


class Opened:
    """Everything that Acme's provider has opened for Alice, directly and by what it had opened."""

    def __init__(self, sso: Any, acme: Any, database: Any) -> None:
        self.client, self._acme, self._sso = sso.client, acme, sso
        self.session = sso.signed_in(acme.identifier)
        self.user_id = self.session.get("/user").json["id"]
        self.key = make_key(self.session)[1]
        self.code = self.new_code()
        person = SimpleNamespace(open_session=lambda: self.session)
        self.visitor = Visitor(sso.app).with_session_of(person)
        database.run("UPDATE sessions SET reauthenticated_at = now()")
        self.application = make_application(sso.client, database)
        self.tokens = self.application.tokens(self.visitor, scope="openid offline_access")
        self.client_code = self.application.code(self.visitor, scope="openid")
        self._television = make_client(database, grant_types=[DEVICE_CODE])
        codes = self._television.post(sso.client, "/oauth/device_authorization", scope="openid").json
        self.visitor.visit(f"/device?user_code={codes['user_code']}")
        self.visitor.submit(user_code=codes["user_code"])
        self.visitor.submit(action="approve")
        self._device = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"]}

    def new_code(self) -> str:
        """Return a code for which the provider signs in."""
        page = self._sso.sign_in(
            self._acme.identifier, code_challenge=CHALLENGE, code_challenge_method="s256"
        )
        return query(page)["code"]

    def exchange(self, code: str) -> Any:
        body = {"auth_code": code, "code_verifier": VERIFIER}
        return self.client.post("/token?grant_type=pkce", json=body)

    def on(self, node: Any) -> "Opened":
        """Use it at another node from now on."""
        self.client = self.application.http = node.client
        self.session = self.session.on(node.client)
        self.visitor.go_on_at(node.app)
        return self

    def statuses(self, *names: str) -> dict[str, int]:
        """Use all of it, or what is named, and return the statuses."""
        uses = {
            "refresh": lambda: self.session.refresh().status_code,
            "key": lambda: use(self.client, self.key).status_code,
            "code": lambda: self.exchange(self.code).status_code,
            "application": lambda: self.application.refresh(self.tokens["refresh_token"]).status_code,
            "userinfo": lambda: self.application.userinfo(self.tokens["access_token"]).status_code,
            "code of an application": lambda: self.application.redeem(self.client_code).status_code,
            "device": lambda: self._television.post(self.client, "/oauth/token", **self._device).status_code,
            "page": lambda: self.visitor.visit("/account").url.startswith(f"{SITE}/account") + 200,
            "user": lambda: self.session.get("/user").status_code,
        }
        return {name: uses[name]() for name in names or uses}
