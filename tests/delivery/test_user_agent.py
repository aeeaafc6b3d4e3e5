"""The simulated browser of tests/support/user_agent.py behaves like real browsers."""

from typing import Any

import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from tests.support.user_agent import Blocked, UserAgent, site_of

HERE, THERE = "https://here.example", "https://there.example"
FORM = "<form method=post action={}><input type=hidden name=a value=1><button name=b value=2></form>"


class Site:
    """A site that returns configured responses by path, and records its requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Response] = {}
        self.requests: list[Request] = []

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        request.get_data()
        self.requests.append(request)
        return self.answers.get(request.path, Response("", 200))(environ, start_response)

    def sets(self, *cookies: str) -> None:
        self.answers["/set"] = Response(headers=[("Set-Cookie", cookie) for cookie in cookies])


@pytest.fixture
def here() -> Site:
    return Site()


@pytest.fixture
def there() -> Site:
    return Site()


@pytest.fixture
def browser(here, there) -> UserAgent:
    plain = {"http://here.example": Client(here, use_cookies=False)}
    return UserAgent(
        {HERE: Client(here, use_cookies=False), THERE: Client(there, use_cookies=False), **plain}
    )


def sent(site: Site) -> str | None:
    return site.requests[-1].headers.get("Cookie")


@pytest.mark.parametrize(
    ("cookie", "typed_in", "link", "form"),
    [
        ("c=1; SameSite=Strict; Secure", True, False, False),
        ("c=1; SameSite=Lax; Secure", True, True, False),
        ("c=1; Secure", True, True, False),
        ("c=1; SameSite=None; Secure", True, True, True),
    ],
)
def test_same_site_decides_which_cross_site_requests_carry_a_cookie(
    browser, here, cookie, typed_in, link, form
):
    here.sets(cookie)
    browser.visit(f"{HERE}/set")
    browser.visit(f"{HERE}/")
    assert (sent(here) == "c=1") is typed_in
    browser.be_at(THERE)
    browser.click(f"{HERE}/")
    assert (sent(here) == "c=1") is link
    browser.be_at(THERE)
    browser.post(f"{HERE}/", {"a": "1"})
    assert (sent(here) == "c=1") is form


@pytest.mark.parametrize(
    "cookie",
    [
        *("c=1; SameSite=None", "__Host-c=1; Path=/", "__Host-c=1; Secure", "__Secure-c=1", "c=1; Max-Age=0"),
        "__Host-c=1; Secure; Path=/; Domain=here.example",
    ],
)
def test_invalid_cookie_is_not_stored(browser, here, cookie):
    here.sets(cookie)
    browser.visit(f"{HERE}/set")
    assert browser.cookies == []


def test_secure_cookie_is_neither_stored_nor_sent_without_tls(browser, here):
    here.sets("c=1; Secure")
    browser.visit("http://here.example/set")
    assert browser.cookies == []
    browser.visit(f"{HERE}/set")
    browser.visit("http://here.example/")
    assert sent(here) is None


def test_cookie_is_sent_only_to_its_host_and_path(browser, here, there):
    here.sets("c=1; Path=/deep")
    browser.visit(f"{HERE}/set")
    for path, expected in (("/deep", "c=1"), ("/deep/er", "c=1"), ("/deeper", None), ("/", None)):
        browser.visit(f"{HERE}{path}")
        assert sent(here) == expected
    browser.visit(f"{THERE}/deep")
    assert sent(there) is None


@pytest.mark.parametrize(("status", "method"), [(302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_redirect_after_a_form_keeps_the_body_for_307_and_308(browser, here, there, status, method):
    here.answers["/"] = Response(status=status, headers={"Location": f"{THERE}/x"})
    browser.visit(f"{HERE}/page")
    browser.post(f"{HERE}/", {"a": "1"})
    form = {"a": "1"} if method == "POST" else {}
    assert (there.requests[-1].method, dict(there.requests[-1].form)) == (method, form)


def test_request_names_its_origin(browser, here, there):
    def told():
        headers = here.requests[-1].headers
        return headers["Sec-Fetch-Site"], headers.get("Origin")

    browser.visit(f"{HERE}/")
    assert told() == ("none", None)
    browser.post(f"{HERE}/", {})
    assert told() == ("same-origin", HERE)
    browser.be_at(THERE)
    browser.post(f"{HERE}/", {})
    assert told() == ("cross-site", THERE)
    there.answers["/"] = Response(status=302, headers={"Location": f"{HERE}/back"})
    browser.be_at(HERE)
    browser.click(f"{THERE}/")
    assert told() == ("cross-site", None)


def test_page_without_referrer_sends_a_null_origin(browser, here):
    here.answers["/"] = Response(FORM.format("/x"), headers={"Referrer-Policy": "no-referrer"})
    browser.visit(f"{HERE}/")
    browser.submit()
    assert (here.requests[-1].headers["Origin"], dict(here.requests[-1].form)) == ("null", {"a": "1"})


def test_form_action_restricts_the_form_and_its_redirects(browser, here, there):
    policy = {"Content-Security-Policy": "default-src 'none'; form-action 'self'"}
    here.answers["/"] = Response(FORM.format("/x"), headers=policy)
    browser.visit(f"{HERE}/")
    assert browser.submit().url == f"{HERE}/x"
    here.answers["/x"] = Response(status=303, headers={"Location": f"{THERE}/"})
    browser.visit(f"{HERE}/")
    with pytest.raises(Blocked):
        browser.submit()
    assert there.requests == []


def test_fragment_is_kept_through_redirects(browser, here):
    for location, url in (("/x", f"{HERE}/x#a"), ("/x#b", f"{HERE}/x#b")):
        here.answers["/"] = Response(status=302, headers={"Location": location})
        assert browser.visit(f"{HERE}/#a").url == url


def test_ports_belong_to_the_same_site():
    assert site_of("http://127.0.0.1:1/x") == site_of("http://127.0.0.1:2/y")
    assert site_of("https://a.example.com/") == site_of("https://b.example.com/")
    assert site_of("http://localhost:1/") != site_of("http://127.0.0.1:1/")
    assert site_of("http://example.com/") != site_of("https://example.com/")
