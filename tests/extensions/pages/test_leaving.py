"""The page that leads a browser to another website, which tests/system/browser/pages/test_leaving_stories.py opens in Chromium."""

import re

import pytest

from tests.support.cases import cases
from tests.support.links import BROWSER, SITE, location, own_form
from tests.support.openid import authorize_path, insert_client
from tests.support.pages import Visitor
from tests.support.users import PASSWORD

APP = "https://app.example.com"
CSP = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"


@pytest.fixture
def sign_in(make_app, alice):
    """Sign Alice in for an application, as the form does in a new browser, and return the response."""

    def sign_in(redirect_to, headers=(), **settings):
        allow_list = f"{APP}/**,http://127.0.0.1:3000/**,myapp://callback"
        client = make_app(AUTH_REDIRECT_ALLOW_LIST=allow_list, **settings).test_client()
        form = {"email": alice.email, "password": PASSWORD, "redirect_to": redirect_to, **own_form(client)}
        all_headers = BROWSER | {"Sec-Fetch-Site": "same-origin"} | dict(headers)
        return client.post("/sign-in", data=form, headers=all_headers)

    return sign_in


@cases(
    "url",
    [
        f"{APP}/callback",
        f"{APP}/callback?from=a&amp;lt;to=b",
        f"{APP}/;url='javascript:alert(1)'",
        f"{APP}/',0;url=//evil.example",
        "http://127.0.0.1:3000/callback",
    ],
)
def test_page_leads_to_the_url_with_a_refresh_and_a_link(sign_in, url):
    response = sign_in(url)
    assert location(response).startswith(f"{url}#access_token=")
    assert "'" not in response.text.partition("<body")[0].replace("&#39;", "")
    assert response.headers.getlist("Content-Security-Policy") == [CSP]
    assert (response.headers["Cache-Control"], response.headers["Referrer-Policy"]) == (
        "no-store",
        "no-referrer",
    )
    assert response.headers["X-Frame-Options"] == "DENY"
    assert not re.search("<form|<script|<input", response.text)
    assert any(cookie.startswith("latchkey=") for cookie in response.headers.getlist("Set-Cookie"))


@cases(
    ("url", "headers"),
    [
        ("myapp://callback", {}),
        (f"{APP}/callback", {"Accept": "*/*"}),
        (f"{APP}/callback", {"Accept": "application/json, text/html;q=0.9"}),
    ],
)
def test_application_on_the_device_and_program_are_redirected(sign_in, url, headers):
    response = sign_in(url, headers)
    assert (response.status_code, response.data) == (303, b"")
    assert response.location.startswith(f"{url}#access_token=")


@cases(("path", "is_left"), [("/auth/account", False), ("/authors/callback", True), ("/auth.html", True)])
def test_application_beside_us_on_one_origin_is_another_website(sign_in, path, is_left):
    site = "http://localhost:8000"
    response = sign_in(site + path, AUTH_BASE_URL=f"{site}/auth", AUTH_SITE_URL=f"{site}/start")
    assert response.status_code == (200 if is_left else 303)
    assert location(response).startswith(site + path)


def test_page_leads_to_no_target_that_is_not_allowed(sign_in):
    response = sign_in("https://evil.example/", AUTH_SITE_URL=APP, AUTH_BASE_URL="http://auth.example.com")
    assert location(response).startswith(f"{APP}#access_token=")
    assert "evil" not in response.text


def test_sign_in_for_an_application_that_has_been_allowed_ends_with_the_page(app, alice, database):
    visitor = Visitor(app)
    client_id = insert_client(database, skip_consent=True)
    visitor.visit(authorize_path(client_id))
    page = visitor.submit(email=alice.email, password=PASSWORD)
    last_url = [url for _, url, _ in visitor.requests][-1]
    assert last_url.startswith(f"{SITE}/oauth/consent?")
    assert page.trail[-2] == last_url
