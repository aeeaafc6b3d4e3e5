"""Pages of links, the first page, and what all pages have: languages, headers, escaping, relative URLs."""

import html
import itertools
import re
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest

from auth import __version__
from auth.core.text.catalogues import built_in
from tests.support.answers import Like
from tests.support.cases import cases
from tests.support.links import BROWSER, SITE, path, send
from tests.support.pages import words
from tests.support.user_agent import Page
from tests.support.users import DAVE, PASSWORD

DEAD = path("signup", "x" * 43)
SIGN_UP = {"email": DAVE, "password": PASSWORD}
APP = {
    "AUTH_SITE_URL": "https://app.example.com/start",
    "AUTH_REDIRECT_ALLOW_LIST": "https://*.preview.example.com/**,myapp://callback",
}
PREVIEW = "https://pr-7.preview.example.com/a"
CSP = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'{}; frame-ancestors 'none'; base-uri 'none'"
TEXTS = built_in("pages")
# The purposes of links, and the address and heading of their pages.
PURPOSES = {
    "signup": (DAVE, "Confirm your email address"),
    "magiclink": ("erin@example.com", "Sign in to localhost:8000"),
    "recovery": ("erin@example.com", "Choose a new password"),
    "invite": (DAVE, "Accept your invitation to localhost:8000"),
    "email_change": ("new@example.com", "Confirm your new email address"),
}
A_FORM_TOKEN = Like("the token of a form", "[0-9a-f]{64}")


@pytest.fixture
def link(client, outbox):
    client.post("/signup", json=SIGN_UP)
    return path("signup", outbox.last().token)


def heading(page: Page) -> str:
    return html.unescape(page.text.partition("<h1>")[2].partition("</h1>")[0])


def buttons(page: Page) -> list[str]:
    """Return the texts of buttons, and of links that look like them, before the footer."""
    return re.findall(r'<(?:button|a class="button)[^>]*>([^<]+)</', page.text.partition("<footer>")[0])


def urls(page: Page) -> list[str]:
    return [html.unescape(url) for url in re.findall(r' (?:href|src|action)="([^"]*)"', page.text)]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_page_shows_the_address_and_has_the_links_fields(visitor, client, service_role, outbox, purpose):
    address, title = PURPOSES[purpose]
    token = send(purpose, client, service_role, outbox).token
    page = visitor.visit(path(purpose, token))
    assert (page.status, heading(page), f"<title>{title}</title>" in page.text) == (200, title, True)
    assert f'<bdi translate="no">{address}</bdi>' in page.text
    assert buttons(page) == ["Continue", *(["This wasn’t me"] if purpose == "signup" else [])]
    assert (page.forms[0].action, page.forms[0].method) == ("verify", "POST")
    # Without an application, no other page asks for a new password.
    target = f"{SITE}/new-password" if purpose in ("recovery", "invite") else SITE
    expected = {"form_token": A_FORM_TOKEN, "token": token, "type": purpose, "redirect_to": target}
    assert page.forms[0].fields == expected
    assert page.text.count(token) == 1


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1", "Safari on iOS"),
        ("", None),
        ("<b>Call +1 555 0100</b> https://evil.example", None),
    ],
)
def test_page_shows_only_browser_and_system_of_the_user_agent(visitor, client, outbox, user_agent, device):
    client.post("/signup", json=SIGN_UP, headers={"User-Agent": user_agent})
    page = visitor.visit(path("signup", outbox.last().token))
    assert f"Signed up just now {f'with {device} ' if device else ''}from 127.0.0.1." in words(page)
    assert not re.search(r"evil|\+1 555|Mozilla", page.text)


def test_page_of_an_address_change_shows_the_new_one_and_masks_the_old_one(
    visitor, client, service_role, outbox, database
):
    link = path("email_change", send("email_change", client, service_role, outbox).token)
    sentence = "new@example.com will become the email address of"
    page = visitor.visit(link)
    assert f"{sentence} the account e…@example.com at localhost:8000. This won’t sign you in." in words(page)
    assert "erin@" not in page.text
    database.run("UPDATE users SET email = NULL, phone = NULL")
    assert f"{sentence} an account that doesn’t have one yet at localhost:8000." in words(visitor.visit(link))


class TestDeadLinkPage:
    def test_used_or_expired_link_shows_reasons_and_advice(self, visitor, link, database):
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        assert heading(visitor.visit(link)) == "This link no longer works"
        database.run("UPDATE one_time_tokens SET expires_at = now() + interval '1 hour'")
        visitor.visit(link)
        visitor.press("verify")
        page = visitor.visit(link)
        assert (page.status, heading(page)) == (403, "This link no longer works")
        assert "It was already used. Links work only once." in words(page)
        assert "your email address may already be confirmed" in words(page)
        assert "verify" not in [form.action for form in page.forms]

    @cases(
        ("type", "href", "button"),
        [
            ("signup", "sign-in", "Sign in"),
            ("recovery", "forgot-password", "Choose a new password"),
            ("email_change", "account", "Your account"),
        ],
    )
    def test_button_leads_to_what_the_advice_says(self, visitor, type, href, button):
        page = visitor.visit(path(type, "x" * 43))
        assert (buttons(page), f'class="button" href="{href}"' in page.text) == ([button], True)

    @cases("type", ["sms", "email", "phone_change"])
    def test_advice_for_other_types_is_general(self, visitor, type):
        page = visitor.visit(path(type, "x" * 43))
        assert "Request a new link where you requested this one." in words(page)

    @cases("type", ["heading", "used", "<script>alert(1)</script>", "Signup", "__class__"])
    def test_link_of_no_known_type_is_incomplete_and_shows_nothing_of_it(self, visitor, type):
        page = visitor.visit(path(type, "x" * 43))
        assert (page.status, heading(page)) == (400, "This link is incomplete")
        assert "<script" not in page.text


def test_page_of_a_service_on_this_machine_shows_its_version_and_announces_outcomes(visitor):
    page = visitor.visit("/")
    assert (page.status, heading(page)) == (200, "Latchkey is running")
    assert f"Version {__version__}" in page.text
    assert '<p id="outcome" role="status">' in page.text


@cases(
    ("language", "headers"),
    [
        ("de", ["de-AT,de;q=0.9,en;q=0.8", "DE-ch"]),
        ("fr", ["en;q=0.5, fr;q=0.9", "de;q=0, fr;q=0.1"]),
        ("zh", ["zh-TW,zh;q=0.9"]),
        ("en", ["en-US,en;q=0.9,de;q=0.8", "ja", "*", "", ";;q=,,-", "../../de", "x" * 4000]),
    ],
)
def test_language_follows_accept_language(client, language, headers):
    for accepted in headers:
        page = client.get("/", headers=BROWSER | {"Accept-Language": accepted})
        assert f'<html lang="{language}"' in page.text
        assert TEXTS[language]["welcome.running"] in html.unescape(page.text)


@pytest.mark.parametrize(
    ("redirect_to", "target"),
    [
        (PREVIEW, ""),
        ("myapp://callback", " myapp:"),
        ("yourapp://callback", ""),
        ("myapp://callback; script-src *", ""),
        ("https://x;script-src.preview.example.com/", ""),
    ],
)
def test_policy_of_a_form_allows_only_the_scheme_of_the_checked_target(make_app, link, redirect_to, target):
    query = urlencode({"redirect_to": redirect_to})
    response = make_app(**APP).test_client().get(f"{link}&{query}", headers=BROWSER)
    assert response.headers.getlist("Content-Security-Policy") == [CSP.format(target)]


@cases("url", ["/", "/sign-in", DEAD])
def test_pages_have_the_headers_of_secrets_and_no_inline_scripts_or_styles(visitor, url):
    page = visitor.visit(url)
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Accept-Language" in page.headers["Vary"]
    assert not re.search(r"<script(?! src=)|<style|\s(on\w+|style)=", page.text)
    assert not [url for url in urls(page) if url.startswith(("http:", "https:", "//"))]


def test_address_is_escaped_and_metadata_are_not_shown(client, outbox):
    planted = {"email": "o'hara&amp=1@example.com", "data": {"name": "<script>alert(1)</script>"}}
    client.post("/signup", json=SIGN_UP | planted)
    page = client.get(path("signup", outbox.last().token), headers=BROWSER)
    assert "o&#39;hara&amp;amp=1@<wbr>example.<wbr>com" in page.text
    assert "alert" not in page.text


@cases("name", ["redirect_to", "type", "token", "x"])
def test_query_is_escaped(visitor, link, name):
    query = parse_qs(urlsplit(link).query) | {name: "\"'><script>alert(1)</script>"}
    assert "alert" not in visitor.visit("/verify?" + urlencode(query, doseq=True)).text


@cases(("inside", "outside"), [("/", "/id"), ("/", "/id/"), ("/verify", "/id/verify")])
def test_urls_work_behind_a_proxy_that_removes_a_path(make_app, link, inside, outside):
    client = make_app(AUTH_BASE_URL="https://example.com/id", AUTH_SMTP_URL="console").test_client()
    text = client.get(inside + link.removeprefix("/verify"), headers=BROWSER).text
    links = re.findall(r' (?:href|src|action)="([^"]*)"', text.partition("<footer>")[0])
    assert links
    for url in (urljoin(f"https://example.com{outside}", each) for each in links):
        assert url.startswith("https://example.com/id/")
        inner_path = url.removeprefix("https://example.com/id")
        assert client.get(inner_path, headers=BROWSER).status_code in (200, 303, 400)


def test_file_has_its_type_and_the_headers_of_every_response_and_is_not_limited(make_app):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LINKS="1 per hour").test_client()
    files = (("page.css", "text/css"), ("welcome.js", "text/javascript"))
    for prefix, (name, mimetype) in itertools.product(("", "/auth/v1"), files):
        response = client.get(f"{prefix}/static/{name}")
        assert (response.status_code, response.mimetype) == (200, mimetype)
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Request-Id"]
        headers = {"If-None-Match": response.headers["ETag"]}
        not_modified = client.get(f"{prefix}/static/{name}", headers=headers)
        assert (not_modified.status_code, not_modified.data) == (304, b"")
        assert not_modified.headers["X-Content-Type-Options"] == "nosniff"
        assert "X-RateLimit-Limit" not in not_modified.headers
