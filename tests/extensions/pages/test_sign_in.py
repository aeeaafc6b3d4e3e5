"""The pages for signing in, without a browser: every form, and every way in which it fails."""

import re
from urllib.parse import parse_qs, urlencode

import pytest

from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.links import CHALLENGE, SITE, VERIFIER
from tests.support.pages import Visitor
from tests.support.users import PASSWORD

APPLICATION = "https://app.example.com/signed-in"
WITH_APPLICATION = urlencode({"redirect_to": APPLICATION, "code_challenge": CHALLENGE})


def test_error_of_a_field_stands_below_it_and_that_of_a_page_above(visitor, alice):
    visitor.visit("/sign-in")
    page = visitor.press("sign-in", email=alice.email, password="wrong")
    above, _, below = page.text.partition('name="password"')
    assert ('id="problem" role' in above, below.count('<p class="wrong" id="problem" role="alert">')) == (
        False,
        1,
    )
    assert 'class="lead"></div>' in page.text
    page = visitor.press("sign-in", form_token="0" * 64, email=alice.email, password="x")
    assert 'id="problem"' in page.text.partition("<form")[0]


@pytest.fixture
def app(make_app):
    return make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**")


@pytest.fixture
def browser(visitor, alice) -> Visitor:
    return visitor.signed_in_as(alice)


def sign_in(visitor: Visitor, email: str = "alice@example.com", password: str = PASSWORD, query: str = ""):
    visitor.visit(f"/sign-in?{query}")
    return visitor.submit(email=email, password=password)


def trade(client, url: str):
    """Trade the code of a redirect to the application for tokens."""
    target, _, query = url.partition("?")
    assert target == APPLICATION
    code = parse_qs(query, strict_parsing=True)["code"][0]
    return client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER})


class TestPassword:
    def test_application_gets_a_code_for_its_own_session_or_tokens(self, visitor, alice, client, database):
        url = sign_in(visitor, query=urlencode({"redirect_to": APPLICATION})).url
        assert url.startswith(f"{APPLICATION}#access_token=")
        visitor.cookies.clear()
        database.run("DELETE FROM sessions")
        tokens = trade(client, sign_in(visitor, query=WITH_APPLICATION).url).json
        assert tokens["user"]["email"] == alice.email
        assert (database.count("sessions"), database.count("sessions", "opened_by IS NOT NULL")) == (2, 1)

    def test_sign_in_in_a_known_browser_runs_eight_statements(self, visitor, alice):
        sign_in(visitor)
        visitor.cookies.remove(visitor.session_cookie)
        form = next(form for form in visitor.visit("/sign-in").forms if "password" in form.fields)
        fields = form.fields | {"email": alice.email, "password": PASSWORD}
        before = statements_run()
        visitor.post(f"{SITE}/sign-in", fields, stop=f"{SITE}/account".__eq__)
        assert visitor.session_cookie
        assert statements_run() - before == 8

    @cases(
        ("email", "password", "sentence"),
        [
            ("alice", PASSWORD, "Enter an email address"),
            ("0170 1234567", PASSWORD, "with its country code"),
            ("alice@example.com", "a\0b", 'role="alert"'),
            ("", "", 'role="alert"'),
        ],
    )
    def test_malformed_fields_are_refused_with_a_sentence(self, visitor, email, password, sentence):
        page = sign_in(visitor, email, password)
        assert (page.status, sentence in page.text) == (400, True)

    @cases(("path", "autocomplete"), [("/sign-in", "current-password"), ("/sign-up", "new-password")])
    def test_password_field_is_masked_and_open_to_password_managers(self, visitor, path, autocomplete):
        page = visitor.visit(path)
        assert f'name="password" type="password" autocomplete="{autocomplete}"' in page.text
        assert "paste" not in page.text + visitor.visit("/static/page.js").text


class TestSession:
    def test_cookie_is_stored_as_a_hash_and_kept_from_scripts_and_other_sites(self, browser, database):
        cookie = browser.session_cookie
        assert cookie
        assert re.fullmatch(r"[\w-]{43}", cookie.value)
        assert (cookie.http_only, cookie.same_site, cookie.path) == (True, "lax", "/")
        assert cookie.value not in str(database.everything())

    def test_planted_cookie_is_replaced_at_the_sign_in(self, visitor, alice):
        visitor.visit("/sign-in")
        visitor.plant("latchkey", "a" * 43)
        sign_in(visitor)
        assert visitor.session_cookie
        assert visitor.session_cookie.value != "a" * 43

    def test_signed_in_browser_is_asked_and_continues_with_no_newer_proof(self, browser, client, database):
        database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
        assert "Continue as" in browser.visit(f"/sign-in?{WITH_APPLICATION}").text
        tokens = trade(client, browser.submit().url).json
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        for body in ({"email": "mallory@example.com"}, {"password": "New-Horse-22"}):
            response = client.put("/user", json=body, headers=headers)
            assert response.json["error_code"] == "reauthentication_needed"
        assert client.delete("/user", headers=headers).json["error_code"] == "reauthentication_needed"
        proof = {"current_password": PASSWORD}
        assert client.post("/reauthenticate", json=proof, headers=headers).status_code == 200
        assert client.delete("/user", headers=headers).status_code == 200


class TestOtherSites:
    def test_pages_of_ours_get_no_tokens(self, visitor, alice):
        target = urlencode({"redirect_to": f"{SITE}/sign-in?redirect_to=x"})
        assert sign_in(visitor, query=target).url == f"{SITE}/account"

    @cases("path", ["/sign-in", "/sign-up", "/forgot-password"])
    def test_no_script_of_another_site_may_post_to_a_page(self, client, path):
        preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        assert "Access-Control-Allow-Origin" not in client.options(path, headers=preflight).headers
