"""GET and POST /oauth/authorize, and GET /oauth/continue, without the pages between them."""

import json
import re
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from tests.support.answers import NO_ID, assert_error
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import BROWSER, CHALLENGE, SITE
from tests.support.openid import (
    REDIRECT_URI,
    answer,
    authorize_path,
    grant,
    insert_client,
    insert_public_client,
)
from tests.support.pages import Visitor
from tests.support.server import at_once


@pytest.fixture
def client_id(database) -> str:
    return insert_client(database)


@pytest.fixture
def visitor(app, alice) -> Visitor:
    return Visitor(app).with_session_of(alice)


@pytest.fixture
def granted(database, alice, client_id) -> str:
    """A client that Alice has allowed what `authorize_path` asks for."""
    grant(database, alice.id, client_id)
    return client_id


def error_of(client, path: str) -> dict[str, str]:
    response = client.get(path)
    assert response.status_code == 302, response.text
    return answer(response.headers["Location"])


class TestNothingIsRedirectedBeforeClientAndUriAreGood:
    """An open redirector (RFC 9700, section 4.11)."""

    @cases(
        ("changes", "error_code"),
        [
            ({"client_id": None}, "validation_failed"),
            ({"client_id": "x"}, "oauth_client_not_found"),
            ({"client_id": NO_ID}, "oauth_client_not_found"),
            ({"redirect_uri": None}, "validation_failed"),
            ({"redirect_uri": "https://evil.example/"}, "validation_failed"),
            ({"redirect_uri": f"{REDIRECT_URI}\0"}, "validation_failed"),
            ({"redirect_uri": "x" * 5000}, "validation_failed"),
        ],
    )
    def test_program_gets_the_envelope_and_browser_a_page(self, client, client_id, changes, error_code):
        path = authorize_path(client_id, **changes, response_type="token")
        response = client.get(path)
        assert (response.status_code, response.json["error_code"]) == (400, error_code)
        page = client.get(path, headers=BROWSER)
        assert (page.status_code, page.mimetype, "Location" in page.headers) == (400, "text/html", False)
        assert "let its owner know" in page.text

    @cases("name", ["client_id", "redirect_uri"])
    def test_repeated_parameter_redirects_nowhere(self, client, client_id, name):
        value = {"client_id": client_id, "redirect_uri": REDIRECT_URI}[name]
        response = client.get(f"{authorize_path(client_id)}&{urlencode({name: value})}")
        assert_error(response, 400, "validation_failed", details=f"{name}: must be given once")

    @cases(
        ("changes", "error"),
        [({"response_type": "token"}, "unsupported_response_type"), ({"prompt": "none"}, "login_required")],
    )
    def test_browser_asks_before_it_follows_an_error_to_a_client_that_anyone_may_have_registered(
        self, client, database, changes, error
    ):
        path = authorize_path(insert_public_client(database, is_dynamic=True), **changes)
        page = client.get(path, headers=BROWSER)
        assert (page.status_code, "Location" in page.headers) == (400, False)
        assert f'href="{REDIRECT_URI}?error={error}' in page.text
        assert error_of(client, path)["error"] == error


class TestErrorsGoToTheApplication:
    @cases(
        ("changes", "error"),
        [
            ({"response_type": None}, "invalid_request"),
            ({"response_type": "token"}, "unsupported_response_type"),
            ({"response_type": "code id_token"}, "unsupported_response_type"),
            ({"response_mode": "fragment"}, "invalid_request"),
            ({"response_mode": "form_post"}, "invalid_request"),
            ({"request": "x.y.z"}, "request_not_supported"),
            ({"request_uri": "https://grafana.example.com/r"}, "request_uri_not_supported"),
            ({"scope": "unknown other"}, "invalid_scope"),
            ({"prompt": "none login"}, "invalid_request"),
            ({"max_age": "-1"}, "invalid_request"),
            ({"max_age": "1" * 10}, "invalid_request"),
            ({"nonce": "\0"}, "invalid_request"),
            ({"nonce": "x" * 2049}, "invalid_request"),
            ({"id_token_hint": "x.y.z"}, "invalid_request"),
            ({"resource": "api.example.com"}, "invalid_target"),
            ({"resource": "https://api.example.com/#x"}, "invalid_target"),
            ({"resource": "https://api.example.com/ x"}, "invalid_target"),
            ({"resource": "authenticated"}, "invalid_target"),
            ({"prompt": "none"}, "login_required"),
        ],
    )
    def test_error_has_its_state_and_our_issuer_against_mix_ups(
        self, client, client_id, database, changes, error
    ):
        """RFC 9207, and RFC 9700, section 4.4."""
        parameters = error_of(client, authorize_path(client_id, **changes))
        assert (parameters["error"], parameters["state"], parameters["iss"]) == (
            error,
            "a state & more",
            SITE,
        )
        assert re.fullmatch(r"[ !#-\[\]-~]+", parameters["error_description"])
        assert database.count("oauth_requests") == 0

    @cases("name", ["scope", "nonce", "response_type", "prompt", "code_challenge", "state", "resource"])
    def test_repeated_parameter_is_refused(self, client, client_id, name):
        parameters = error_of(client, f"{authorize_path(client_id)}&{name}=none&{name}=none")
        error = "invalid_target" if name == "resource" else "invalid_request"
        assert (parameters["error"], "state" in parameters) == (error, name != "state")

    def test_client_without_the_grant_type_is_refused(self, client, database):
        client_id = insert_client(database, grant_types=["client_credentials"])
        assert error_of(client, authorize_path(client_id))["error"] == "unauthorized_client"

    def test_own_query_of_the_uri_is_kept(self, client, database):
        uri = f"{REDIRECT_URI}?tenant=1"
        response = client.get(authorize_path(insert_client(database, uri), redirect_uri=uri, scope="x"))
        assert response.headers["Location"].startswith(f"{uri}&error=invalid_scope&")

    def test_service_without_a_consent_page_answers_with_an_error(self, make_app, database):
        app = make_app(AUTH_PAGES="false")
        parameters = error_of(app.test_client(), authorize_path(insert_client(database)))
        assert parameters["error"] == "server_error"


class TestPkce:
    """Downgrades and injected codes (RFC 9700, sections 4.5 and 4.8)."""

    @cases(
        "changes",
        [
            {"code_challenge": None, "code_challenge_method": None},
            {"code_challenge": None},
            {"code_challenge_method": None},
            {"code_challenge_method": "plain"},
            {"code_challenge": "x" * 42},
            {"code_challenge": "x" * 128},
            {"code_challenge": f"{CHALLENGE}="},
        ],
    )
    def test_challenge_is_required_and_must_be_of_sha_256(self, client, client_id, database, changes):
        for each in (client_id, insert_public_client(database)):
            assert error_of(client, authorize_path(each, **changes))["error"] == "invalid_request"

    def test_client_that_needs_no_challenge_sends_state_or_nonce(self, client, database):
        client_id = insert_client(database, require_pkce=False)
        no_challenge: dict[str, str | None] = {"code_challenge": None, "code_challenge_method": None}
        sufficient: list[dict[str, str]] = [{"nonce": "x"}, {"state": "x"}, {"nonce": "", "state": "x"}]
        for parameters in sufficient:
            path = authorize_path(client_id, **no_challenge | {"state": None} | parameters)
            assert "/oauth/consent?" in client.get(path).headers["Location"]
        for missing in ({}, {"state": "", "nonce": ""}):
            path = authorize_path(client_id, **no_challenge | {"state": None} | missing)
            assert error_of(client, path)["error"] == "invalid_request"
        path = authorize_path(client_id, code_challenge_method="plain")
        assert error_of(client, path)["error"] == "invalid_request"


class TestRequests:
    def test_request_is_kept_for_an_hour_under_hashes(self, client, client_id, database):
        parameters = {
            "nonce": "n",
            "max_age": "60",
            "login_hint": "alice@example.com",
            "prompt": "consent login",
        }
        resource = "https://mcp.example.com/x?y"
        database.run("UPDATE oauth_clients SET resources = %(all)s", all=[resource])
        response = client.get(authorize_path(client_id, **parameters, resource=resource))
        assert (response.status_code, response.data) == (302, b"")
        (authorization_id,) = parse_qs(urlsplit(response.headers["Location"]).query)["authorization_id"]
        (cookie,) = response.headers.getlist("Set-Cookie")
        assert re.fullmatch(r"latchkey_authorize=[\w-]{43}; HttpOnly; Path=/; SameSite=Lax", cookie)
        row = database.one("SELECT *, expires_at - created_at AS life FROM oauth_requests")
        assert (row.nonce, row.max_age, row.login_hint, row.prompts, row.resource, row.state) == (
            *("n", 60, "alice@example.com", ["login", "consent"]),
            *(resource, "a state & more"),
        )
        assert (row.life.total_seconds(), row.user_id, row.code_hash) == (3600, None, None)
        stored = json.dumps(database.everything("oauth_requests"), default=str)
        assert authorization_id not in stored
        assert cookie.partition("=")[2][:43] not in stored

    @cases(
        ("scopes", "scope", "stored"),
        [
            ([], None, ["email"]),
            ([], "", ["email"]),
            ([], "groups openid admin read:org", ["openid", "groups"]),
            (["openid"], "openid email phone groups roles", ["openid"]),
            (["roles", "openid"], "openid email roles", ["openid", "roles"]),
            (["email", "openid"], None, ["email"]),
            (["openid"], None, None),
            (["reports:read"], "openid email", None),
        ],
    )
    def test_scopes_of_a_client_bound_what_it_may_ask_for(self, client, database, scope, scopes, stored):
        database.run("DELETE FROM oauth_requests")
        location = client.get(authorize_path(insert_client(database, scopes=scopes), scope=scope)).location
        assert ("error=invalid_scope" in location) == (stored is None)
        rows = database.all("SELECT scopes FROM oauth_requests")
        assert [row.scopes for row in rows] == ([stored] if stored else [])

    def test_unknown_parameters_and_claims_are_ignored(self, client, client_id):
        others = {"claims": '{"userinfo": {}}', "display": "popup", "foo": "bar", "prompt": "create"}
        assert "/oauth/consent?" in client.get(authorize_path(client_id, **others)).headers["Location"]

    def test_resource_is_one_that_an_administrator_gave_the_client_or_any_if_it_registered_itself(
        self, client, database
    ):
        api = "https://api.example.com"
        named, other = insert_client(database, resources=[api]), insert_client(database)
        for id, resource in ((named, f"{api}/v1"), (named, "https://other.example.com"), (other, api)):
            assert error_of(client, authorize_path(id, resource=resource))["error"] == "invalid_target"
        client.get(authorize_path(named, resource=f"{api}/"))
        for id in (named, insert_client(database, is_dynamic=True)):
            client.get(authorize_path(id, resource=api))
        assert database.all("SELECT resource FROM oauth_requests") == [(api,)] * 3

    def test_head_changes_nothing(self, client, client_id, database):
        before = database.everything()
        assert client.head(authorize_path(client_id)).status_code == 200
        assert client.head(f"/oauth/continue?authorization_id={'x' * 43}&approval=x").status_code == 200
        assert database.everything() == before

    @cases("ui_locales", ["fr", "de-CH fr", "xx fr", "xx"])
    def test_ui_locales_set_the_language_unless_the_user_has_chosen_one(self, app, client_id, ui_locales):
        language = {"de-CH fr": "de", "xx": "en"}.get(ui_locales, "fr")
        visitor = Visitor(app)
        visitor.visit(authorize_path(client_id, ui_locales=ui_locales))
        assert f'<html lang="{language}"' in visitor.page.text
        visitor.send("/preferences", language="es", back="/sign-in")
        visitor.visit(authorize_path(client_id, ui_locales=ui_locales))
        assert '<html lang="es"' in visitor.page.text


def fields_of(client_id: str, **changes: str) -> dict[str, str]:
    """Return what `authorize_path` asks for as the fields of a form."""
    return dict(parse_qsl(authorize_path(client_id, **changes).partition("?")[2]))


class TestForm:
    def test_repeated_field_is_refused_too(self, client, client_id, database):
        fields = fields_of(client_id) | {"scope": ["openid", "openid"]}
        response = client.post("/oauth/authorize", data=fields)
        assert answer(response.headers["Location"])["error"] == "invalid_request"
        assert database.count("oauth_requests") == 0

    @cases("prompt", ["none", "consent"])
    def test_long_state_comes_back_to_the_application(self, visitor, granted, database, prompt):
        state = "s" * 12_000
        visitor.be_at("https://grafana.example.com/")
        fields = fields_of(granted, prompt=prompt) | {"state": state}
        page = visitor.post(f"{SITE}/oauth/authorize", fields)
        if prompt == "consent":
            page = visitor.press("oauth/consent", action="approve")
        parameters = answer(page.url)
        assert (parameters["state"] == state, set(parameters)) == (True, {"code", "state", "iss"})
        assert max(len(url) for _, url, _ in visitor.requests if url.startswith(f"{SITE}/oauth/")) < 300
        # The request that the form began is deleted.
        assert database.value("SELECT count(*) FROM oauth_requests WHERE id_hash = browser_hash") == 0

    def test_reference_is_for_one_browser_once(self, app, client, client_id, database):
        location = client.post("/oauth/authorize", data=fields_of(client_id)).headers["Location"]
        assert re.fullmatch(rf"{SITE}/oauth/authorize\?authorization_id=[\w-]{{43}}", location)
        form_id = location.partition("=")[2]
        consent = client.get(f"/oauth/consent?authorization_id={form_id}", headers=BROWSER)
        assert consent.status_code == 404
        response = client.get(location.removeprefix(SITE))
        assert "/oauth/consent?authorization_id=" in response.headers["Location"]
        assert form_id not in response.headers["Location"]
        for browser in (client, app.test_client()):
            response = browser.get(location.removeprefix(SITE))
            assert_error(response, 404, "oauth_authorization_not_found")
        assert database.count("oauth_requests") == 1


class TestWithoutAsking:
    """prompt=none (OpenID Connect Core 1.0, section 3.1.2.6)."""

    def ask(
        self, visitor: Visitor, client_id: str, uri: str = REDIRECT_URI, **changes: str
    ) -> dict[str, str]:
        path = authorize_path(client_id, redirect_uri=uri, prompt="none", **changes)
        return answer(visitor.visit(path, stop=lambda url: url.startswith(uri)).url, uri)

    def test_user_who_has_agreed_gets_a_code(self, visitor, granted, alice, database):
        assert self.ask(visitor, granted).keys() == {"code", "state", "iss"}
        row = database.one("SELECT user_id, session_id, code_expires_at - now() AS life FROM oauth_requests")
        assert (row.user_id, 299 < row.life.total_seconds() <= 300) == (alice.id, True)
        assert database.count("sessions", "id = %(id)s", id=row.session_id) == 1

    def test_user_who_has_not_agreed_to_the_scopes_is_asked(self, visitor, client_id, database, alice):
        assert self.ask(visitor, client_id)["error"] == "consent_required"
        assert database.count("oauth_grants") == 0
        grant(database, alice.id, client_id)
        assert self.ask(visitor, client_id, scope="openid profile")["error"] == "consent_required"

    @cases("uri", ["http://127.0.0.1/cb", "http://localhost/cb", "com.example.app:/cb", "app://cb"])
    def test_client_that_any_program_may_claim_to_be_needs_consent(self, visitor, granted, database, uri):
        """RFC 8252, section 8.6."""
        client_id = insert_public_client(database, uri)
        database.run("UPDATE oauth_grants SET client_id = %(id)s", id=client_id)
        assert self.ask(visitor, client_id, uri)["error"] == "consent_required"

    def test_client_that_anyone_may_have_registered_requires_consent(self, visitor, granted, database):
        client_id = insert_public_client(database, is_dynamic=True)
        database.run("UPDATE oauth_grants SET client_id = %(id)s", id=client_id)
        page = visitor.visit(authorize_path(client_id, prompt="none"))
        assert f'href="{REDIRECT_URI}?error=consent_required' in page.text

    def test_session_that_lacks_a_step_needs_the_user(self, visitor, granted, alice):
        set_up(alice.open_session())
        visitor.cookies.clear()
        visitor.with_session_of(alice)
        assert self.ask(visitor, granted)["error"] == "interaction_required"

    def test_hint_names_the_user_by_an_id_token(self, visitor, granted, alice, bob, parts, database):
        def hint(client_id: str, person, age: int = 0) -> str:
            claims = {"sub": person.id, "aud": client_id, "auth_time": 0}
            issued_at = database.value("SELECT extract(epoch FROM now())::bigint") - age
            return parts.client_tokens.id_token(claims, issued_at=issued_at, algorithm="RS256")

        # The ID token may have expired.
        assert self.ask(visitor, granted, id_token_hint=hint(granted, alice, 86_400))["code"]
        hint_of_bob, foreign_hints = (
            hint(granted, bob),
            (hint(NO_ID, alice), alice.open_session().access_token),
        )
        assert self.ask(visitor, granted, id_token_hint=hint_of_bob)["error"] == "login_required"
        for each in foreign_hints:
            assert self.ask(visitor, granted, id_token_hint=each)["error"] == "invalid_request"

    @pytest.mark.parametrize("dest", ["iframe", "document", "image"])
    def test_frame_asks_without_a_page(self, make_app, alice, granted, database, dest):
        app = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_AUTHORIZE="2 per hour")
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": dest}
        client, path = app.test_client(), authorize_path(granted, prompt="none")
        answers = [client.get(path, headers=headers) for _ in range(5)]
        if dest == "image":
            headers["Sec-Fetch-Mode"] = "no-cors"
            assert {client.get(path, headers=headers).status_code for _ in range(5)} == {403}
        assert {answer(each.headers["Location"])["error"] for each in answers} == {"login_required"}
        assert (database.count("request_counts"), database.count("oauth_requests")) == (0, 0)
        # It counts for the signed-in user, and not for the network.
        (cookie,) = Visitor(app).with_session_of(alice).cookies
        headers["Sec-Fetch-Mode"] = "navigate"
        headers["Cookie"] = f"{cookie.name}={cookie.value}"
        client = app.test_client(use_cookies=False)
        assert [client.get(path, headers=headers).status_code for _ in range(3)] == [302, 302, 429]
        assert client.get(authorize_path(granted)).status_code == 302

    @cases("query", [{}, {"prompt": "login"}, {"prompt": "none login"}])
    def test_frame_asks_for_nothing_else(self, client, granted, query):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
        assert client.get(authorize_path(granted, **query), headers=headers).status_code == 403

    def test_fifty_at_once_get_a_code_each(self, app, alice, granted, database):
        (cookie,) = Visitor(app).with_session_of(alice).cookies
        headers = {"Cookie": f"{cookie.name}={cookie.value}"}
        client, path = app.test_client(use_cookies=False), authorize_path(granted, prompt="none")
        urls = at_once(50, lambda _: client.get(path, headers=headers).headers["Location"])
        assert len({answer(url)["code"] for url in urls}) == 50
        assert database.count("oauth_requests", "code_hash IS NOT NULL") == 50


@cases(
    "target", ["oauth/authorize?client_id=x", "oauth/continue", "auth/v1/oauth/authorize", "oauth/consent"]
)
def test_tokens_of_a_link_never_lead_to_a_page_that_redirects_on(parts, target):
    """Browsers would keep them in the fragment, up to any registered redirect URI."""
    assert parts.redirects.checked(f"{SITE}/{target}") == parts.redirects.site_url
