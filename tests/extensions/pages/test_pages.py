"""HTML pages: texts, languages, headers and escaping; GET has no effect."""

import itertools
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest

from auth import __version__
from auth.core.text.catalogues import built_in
from tests.support.answers import Like
from tests.support.cases import cases
from tests.support.links import BROWSER, SITE, path, send
from tests.support.users import PASSWORD

DEAD = path("signup", "x" * 43)
DAVE = {"email": "dave@example.com", "password": PASSWORD}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
APP = {
    "AUTH_SITE_URL": "https://app.example.com/start",
    "AUTH_REDIRECT_ALLOW_LIST": "https://*.preview.example.com/**,myapp://callback",
}
PREVIEW = "https://pr-7.preview.example.com/a"
CSP = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'{}; frame-ancestors 'none'; base-uri 'none'"
TEXTS = built_in("pages")
# The purposes of links, and the address and heading of their pages.
PURPOSES = {
    "signup": ("dave@example.com", "Confirm your email address"),
    "magiclink": ("erin@example.com", "Sign in to localhost:8000"),
    "recovery": ("erin@example.com", "Choose a new password"),
    "invite": ("dave@example.com", "Accept your invitation to localhost:8000"),
    "email_change": ("new@example.com", "Confirm your new email address"),
}

A_FORM_TOKEN = Like("the token of a form", "[0-9a-f]{64}")


class Page(HTMLParser):
    """A parsed page: the texts of its main part by tag, and its form and links there."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.status = response.status_code
        self.html = response.get_data(as_text=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "footer" not in self._open:
            self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br", "wbr"):
            self._open.append(tag)
            if tag not in ("bdi", "time") and "footer" not in self._open:
                self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> is misplaced"

    def handle_data(self, data: str) -> None:
        holder = next((tag for tag in reversed(self._open) if tag not in ("bdi", "time")), None)
        if holder and "footer" not in self._open:
            self.texts[holder][-1] += data

    @property
    def heading(self) -> str:
        (heading,) = self.texts["h1"]
        return heading

    @property
    def text(self) -> str:
        return " ".join(text for tag in ("h1", "p", "li", "button", "a") for text in self.texts.get(tag, []))

    @property
    def fields(self) -> dict[str, str | None]:
        return {field["name"]: field["value"] for field in self.all("input")}  # type: ignore[misc]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def loads(self) -> list[str]:
        """Return the URLs in the page, unresolved."""
        found = [attributes.get(name) for name in ("href", "src", "action") for _, attributes in self.tags]
        return [url for url in found if url is not None]


def look(client: Any, where: str, **headers: str) -> Page:
    return Page(client.get(where, headers=BROWSER | headers))


@pytest.fixture
def link(client, outbox):
    client.post("/signup", json=DAVE, headers={"User-Agent": FIREFOX})
    return path("signup", outbox.last().token)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_page_shows_the_address_and_has_the_links_fields(client, service_role, outbox, purpose):
    address, heading = PURPOSES[purpose]
    token = send(purpose, client, service_role, outbox).token
    page = look(client, path(purpose, token))
    assert (page.status, page.heading, page.texts["title"]) == (200, heading, [heading])
    assert f'<bdi translate="no">{address}</bdi>' in page.html
    declines = ["This wasn’t me"] if purpose == "signup" else []
    assert page.texts["button"] == ["Continue", *declines]
    assert page.all("form") == [{"method": "post", "action": "verify"}]
    # Without an application, no other page asks for a new password.
    target = f"{SITE}/new-password" if purpose in ("recovery", "invite") else SITE
    expected = {"form_token": A_FORM_TOKEN, "token": token, "type": purpose, "redirect_to": target}
    assert page.fields == expected
    assert all(field["type"] == "hidden" for field in page.all("input"))
    assert page.html.count(token) == 1


class TestSignUpPage:
    def test_page_shows_time_and_browser_of_the_sign_up(self, client, link, database):
        database.run("UPDATE one_time_tokens SET created_at = now() - interval '3 hours'")
        page = look(client, link)
        assert "Signed up 3 hours ago with Firefox on Linux from 127.0.0.1." in page.text
        (time,) = page.all("time")
        assert time["title"] == f"{str(time['datetime'])[:19].replace('T', ' ')} UTC"

    @pytest.mark.parametrize(
        ("user_agent", "device"),
        [
            ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1", "Safari on iOS"),
            ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge on Windows"),
            ("", None),
            ("<b>Call +1 555 0100</b> https://evil.example", None),
        ],
    )
    def test_page_shows_only_browser_and_system_of_the_user_agent(self, client, outbox, user_agent, device):
        client.post("/signup", json=DAVE, headers={"User-Agent": user_agent})
        page = look(client, path("signup", outbox.last().token))
        assert f"Signed up just now {f'with {device} ' if device else ''}from 127.0.0.1." in page.text
        for planted in ("evil", "+1 555", "Mozilla"):
            assert planted not in page.html


def test_page_of_an_address_change_shows_the_new_one_and_masks_the_old_one(
    client, service_role, outbox, database
):
    change = path("email_change", send("email_change", client, service_role, outbox).token)
    said = "new@example.com will become the email address of"
    text = look(client, change).text
    assert f"{said} the account e…@example.com at localhost:8000. This won’t sign you in." in text
    assert "erin@" not in text
    database.run("UPDATE users SET email = NULL, phone = NULL")
    assert f"{said} an account that doesn’t have one yet at localhost:8000." in look(client, change).text


class TestDeadLinkPage:
    def test_used_or_expired_link_shows_reasons_and_advice(self, client, link, database):
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        assert look(client, link).heading == "This link no longer works"
        database.run("UPDATE one_time_tokens SET expires_at = now() + interval '1 hour'")
        client.post("/verify", data=look(client, link).fields)
        page = look(client, link)
        assert (page.status, page.heading) == (403, "This link no longer works")
        assert "It was already used. Links work only once." in page.texts["li"]
        assert "your email address may already be confirmed" in page.texts["p"][-1]
        assert page.all("form") == []

    @cases(
        ("type", "href", "button"),
        [
            ("signup", "sign-in", "Sign in"),
            ("recovery", "forgot-password", "Choose a new password"),
            ("email_change", "account", "Your account"),
        ],
    )
    def test_button_leads_to_what_the_advice_says(self, client, type, href, button):
        page = look(client, path(type, "x" * 43))
        assert (page.all("a"), page.texts["a"]) == ([{"class": "button", "href": href}], [button])

    @cases("type", ["sms", "email", "heading", "used", "<script>alert(1)</script>", "Signup", "__class__"])
    def test_advice_for_other_types_is_general(self, client, type):
        page = look(client, path(type, "x" * 43))
        assert page.texts["p"][-1] == "Request a new link where you requested this one."
        assert "<script" not in page.html


def test_page_of_a_service_on_this_machine_shows_its_version_and_leads_to_the_documentation(client):
    page = look(client, "/")
    assert (page.status, page.heading) == (200, "Latchkey is running")
    assert f"Version {__version__}" in page.text
    assert client.get(urljoin("/", page.all("a")[0]["href"])).mimetype == "text/html"
    # The outcome is announced to screen readers, and there is a text for browsers without script.
    assert {"id": "outcome", "role": "status"} in page.all("p")
    assert TEXTS["en"]["welcome.no_script"] in page.text


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
        page = look(client, "/", **{"Accept-Language": accepted})
        assert page.all("html")[0]["lang"] == language
        assert TEXTS[language]["welcome.running"] in page.text


class TestHeaders:
    @pytest.mark.parametrize(
        ("redirect_to", "target"),
        [
            (None, ""),
            (PREVIEW, ""),
            ("myapp://callback", " myapp:"),
            ("yourapp://callback", ""),
            ("myapp://callback; script-src *", ""),
            ("https://x;script-src.preview.example.com/", ""),
        ],
    )
    def test_policy_of_a_form_allows_only_the_scheme_of_the_checked_target(
        self, make_app, link, redirect_to, target
    ):
        query = "&" + urlencode({"redirect_to": redirect_to}) if redirect_to else ""
        response = make_app(**APP).test_client().get(link + query, headers=BROWSER)
        assert response.headers.getlist("Content-Security-Policy") == [CSP.format(target)]

    def test_pages_have_the_headers_of_secrets_and_no_inline_scripts_or_styles(self, client, link):
        for where in ("/", link, DEAD):
            response = client.get(where, headers=BROWSER)
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["Referrer-Policy"] == "no-referrer"
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Content-Type"] == "text/html; charset=utf-8"
            assert "Accept-Language" in response.vary
            page = Page(response)
            names = [name for _, attributes in page.tags for name in attributes]
            assert not any(name.startswith(("on", "style")) for name in names)
            assert page.all("style") == []
            assert all("src" in script for script in page.all("script"))
            assert "".join(page.texts.get("script", [])) == ""
            assert not any(url.startswith(("http:", "https:", "//")) for url in page.loads())


class TestEscaping:
    def test_address_is_escaped_and_metadata_are_not_shown(self, client, outbox):
        planted = {"email": "o'hara&amp=1@example.com", "data": {"name": "<script>alert(1)</script>"}}
        client.post("/signup", json=DAVE | planted)
        page = look(client, path("signup", outbox.last().token))
        assert "o&#39;hara&amp;amp=1@<wbr>example.<wbr>com" in page.html
        assert "confirm o'hara&amp=1@example.com and" in page.text
        assert "alert" not in page.html

    @cases("name", ["redirect_to", "type", "token", "x"])
    def test_query_is_escaped(self, client, link, name):
        query = parse_qs(urlsplit(link).query) | {name: "\"'><script>alert(1)</script>"}
        assert "alert" not in look(client, "/verify?" + urlencode(query, doseq=True)).html


class TestPaths:
    """Relative URLs work under the prefix and behind a base URL with a path."""

    @cases(("inside", "outside"), [("/", "/id"), ("/", "/id/"), ("/verify", "/id/verify")])
    def test_urls_work_behind_a_proxy_that_removes_a_path(self, make_app, link, inside, outside):
        client = make_app(AUTH_BASE_URL="https://example.com/id", AUTH_SMTP_URL="console").test_client()
        page = look(client, inside + link.removeprefix("/verify"))
        urls = [urljoin(f"https://example.com{outside}", url) for url in page.loads()]
        assert urls
        for url in urls:
            assert url.startswith("https://example.com/id/")
            own = url.removeprefix("https://example.com/id")
            assert client.get(own, headers=BROWSER).status_code in (200, 400)


class TestStaticFiles:
    def test_file_has_its_type_and_the_headers_of_every_response_and_is_not_limited(self, make_app):
        client = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LINKS="1 per hour").test_client()
        files = (("page.css", "text/css"), ("welcome.js", "text/javascript"))
        for prefix, (name, mimetype) in itertools.product(("", "/auth/v1"), files):
            response = client.get(f"{prefix}/static/{name}")
            assert (response.status_code, response.mimetype) == (200, mimetype)
            assert response.headers["Cache-Control"] == "no-cache"
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "no-referrer"
            assert response.headers["X-Request-Id"]
            known = {"If-None-Match": response.headers["ETag"]}
            again = client.get(f"{prefix}/static/{name}", headers=known)
            assert (again.status_code, again.data) == (304, b"")
            assert again.headers["X-Content-Type-Options"] == "nosniff"
            assert "X-RateLimit-Limit" not in again.headers
