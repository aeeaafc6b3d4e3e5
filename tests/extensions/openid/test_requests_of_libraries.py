"""What libraries of relying parties send and read, from their sources: ASP.NET, Ruby and PHP."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import pytest

from tests.support.cases import cases
from tests.support.links import SITE
from tests.support.openid import REDIRECT_URI, Client, bearer, claims_of, make_client
from tests.support.openid_flow import Application, allow
from tests.support.pages import Visitor

GOODBYE = "https://app.example.com/signout-callback-oidc"
DOTNET = {"x-client-SKU": "ID_NET8_0", "x-client-ver": "8.0.1.0"}


@dataclass
class Library:
    """One library. `adds` is what it adds to a request, `verifier` its code verifier if it sends a challenge."""

    scope: str = "openid profile email"
    adds: dict[str, str] = field(default_factory=dict)
    state: str = "0123456789abcdef0123456789abcdef"
    verifier: str | None = None
    # Whether it sends the secret in the header, and then the id in the body, too.
    is_basic: bool = True
    repeats_id: bool = False
    in_exchange: dict[str, str] = field(default_factory=dict)
    in_refresh: dict[str, str] = field(default_factory=dict)
    of_userinfo: dict[str, str] = field(default_factory=dict)
    in_logout: dict[str, str] = field(default_factory=dict)

    def challenge(self) -> dict[str, str | None]:
        if self.verifier is None:
            return {"code_challenge": None, "code_challenge_method": None}
        digest = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode()
        return {"code_challenge": digest.rstrip("="), "code_challenge_method": "S256"}

    def post(self, http: Any, client: Client, path: str, **form: str) -> Any:
        headers = {}
        if self.is_basic:
            # RFC 6749, section 2.3.1: both parts are encoded first.
            pair = f"{quote_plus(client.id)}:{quote_plus(client.secret or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        own = {} if self.is_basic else {"client_secret": client.secret or ""}
        if self.repeats_id or not self.is_basic:
            own["client_id"] = client.id
        return http.post(path, data=own | form, headers=headers | self.of_userinfo)


LIBRARIES = {
    # Microsoft.AspNetCore.Authentication.OpenIdConnect, with ResponseType code, ResponseMode query and SaveTokens: its
    # state is the protected properties of the request, its nonce has the time.
    "ASP.NET": Library(
        adds=DOTNET | {"nonce": f"638{'0' * 15}.{'bm9uY2U' * 12}"},
        state="CfDJ8" + "aA1_-" * 600,
        verifier="v" * 43,
        is_basic=False,
        in_logout=DOTNET | {"state": "CfDJ8" + "aA1_-" * 300},
    ),
    # omniauth_openid_connect f9779f0 with openid_connect 7705c2e: `send_scope_to_token_endpoint`, `pkce`.
    "omniauth": Library(verifier="0" * 128, in_exchange={"scope": "openid profile email"}),
    # jumbojett/openid-connect-php d18f81f with setCodeChallengeMethod('S256'); it refreshes with an empty scope
    # unless scopes were added.
    "openid-connect-php": Library(
        scope="openid",
        verifier="a" * 128,
        repeats_id=True,
        in_refresh={"scope": ""},
        of_userinfo={"Accept": "application/json"},
    ),
    # league/oauth2-client, GenericProvider with scopeSeparator ' ' and pkceMethod S256.
    "league/oauth2-client": Library(
        adds={"approval_prompt": "auto"},
        verifier="A-_9" * 16,
        is_basic=False,
        in_refresh={"redirect_uri": REDIRECT_URI},
    ),
    # The same libraries as they come, for a client without PKCE.
    "omniauth, as it comes": Library(in_exchange={"scope": "openid profile email"}),
    "openid-connect-php, as it comes": Library(scope="openid", in_refresh={"scope": ""}),
}


@pytest.fixture
def visitor(app, alice) -> Visitor:
    return Visitor(app).with_session_of(alice)


@cases("name", list(LIBRARIES))
def test_user_signs_in_and_out_and_the_application_refreshes(app, client, database, alice, name):
    library, visitor = LIBRARIES[name], Visitor(app).with_session_of(alice)
    database.run("DELETE FROM oauth_clients")
    columns: dict[str, Any] = {
        "require_pkce": library.verifier is not None,
        "post_logout_redirect_uris": [GOODBYE],
    }
    party = make_client(database, accepts_either_method=True, **columns)
    application = Application(client, party, REDIRECT_URI)
    asked = {"scope": library.scope, "state": library.state} | library.adds | library.challenge()
    visited = application.begin(visitor, **asked)
    answer = application.returned(
        allow(visitor) if urlsplit(visited.url).path == "/oauth/consent" else visited
    )
    assert answer["state"] == library.state
    form = {"grant_type": "authorization_code", "code": answer["code"], "redirect_uri": REDIRECT_URI}
    verifier = {"code_verifier": library.verifier} if library.verifier else {}
    response = library.post(client, party, "/oauth/token", **form, **verifier, **library.in_exchange)
    assert response.status_code == 200, response.text
    tokens = response.json
    assert (tokens["token_type"].lower(), type(tokens["expires_in"])) == ("bearer", int)
    claims = claims_of(tokens["id_token"])
    assert (claims["aud"], claims["nonce"]) == (party.id, asked.get("nonce", "a-nonce"))
    userinfo = client.get("/oauth/userinfo", headers=bearer(tokens["access_token"]) | library.of_userinfo)
    assert (userinfo.mimetype, userinfo.json["sub"]) == ("application/json", claims["sub"])
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    refreshed = library.post(client, party, "/oauth/token", **refresh, **library.in_refresh)
    assert refreshed.status_code == 200, refreshed.text
    assert {*refreshed.json["scope"].split()} == {*library.scope.split()}
    revoked = library.post(client, party, "/oauth/revoke", token=refreshed.json["refresh_token"])
    assert revoked.status_code == 200
    logout = {"id_token_hint": refreshed.json["id_token"], "post_logout_redirect_uri": GOODBYE}
    visitor.be_at(GOODBYE)
    page = visitor.click(f"{SITE}/oauth/logout?{urlencode(logout | library.in_logout)}")
    page = page if page.url.startswith(GOODBYE) else visitor.submit()
    state = library.in_logout.get("state")
    assert page.url == GOODBYE + (f"?state={state}" if state else "")


def test_discovery_has_what_the_libraries_demand_of_it(client):
    """openid_connect (Ruby) and Nimbus (Java) refuse a document without these, and compare the issuer exactly."""
    document = client.get("/.well-known/openid-configuration").json
    assert document["issuer"] == SITE
    for name in (
        "authorization_endpoint",
        "token_endpoint",
        "userinfo_endpoint",
        "end_session_endpoint",
        "jwks_uri",
    ):
        assert document[name].startswith(f"{SITE}/")
    for name in (
        "response_types",
        "subject_types",
        "id_token_signing_alg_values",
        "token_endpoint_auth_methods",
    ):
        values = document[f"{name}_supported"]
        assert values
        assert all(type(value) is str for value in values)
    assert None not in document.values()


def test_scopes_that_are_separated_by_commas_are_refused_with_what_separates_them(client, visitor, database):
    """league/oauth2-client joins them so unless it is told otherwise."""
    application = Application(client, make_client(database), REDIRECT_URI)
    answer = application.returned(application.begin(visitor, scope="openid,profile,email"))
    assert answer["error"] == "invalid_scope"
    assert re.fullmatch(
        r"scope must include one of openid .*, separated by spaces", answer["error_description"]
    )
    assert database.count("oauth_requests") == 0


def test_default_of_aspnet_is_refused_with_what_to_set(client, visitor, database):
    application = Application(client, make_client(database), REDIRECT_URI)
    answer = application.returned(application.begin(visitor, response_mode="form_post"))
    assert (answer["error"], answer["error_description"]) == (
        "invalid_request",
        "response_mode must be query",
    )
