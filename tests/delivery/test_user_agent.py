"""The browser's manners that other tests rely on (tests/support/user_agent.py): each is what browsers do, and
what they refuse.
"""

from typing import Any

import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from tests.support.user_agent import Blocked, UserAgent, site_of

HERE, THERE = "https://here.example", "https://there.example"
FORM = "<form method=post action={}><input type=hidden name=a value=1><button name=b value=2></form>"


class Site:
    """A site that answers what it is told to, by path, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Response] = {}
        self.asked: list[Request] = []

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        request.get_data()
        self.asked.append(request)
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
    return site.asked[-1].headers.get("Cookie")


@pytest.mark.parametrize(
    ("cookie", "typed_in", "link", "form"),
    [
        ("c=1; SameSite=Strict; Secure", True, False, False),
        ("c=1; SameSite=Lax; Secure", True, True, False),
        ("c=1; Secure", True, True, False),
        ("c=1; SameSite=None; Secure", True, True, True),
    ],
)
def test_same_site_decides_what_another_site_brings_along(browser, here, cookie, typed_in, link, form):
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


def test_a_form_of_the_site_itself_brings_all(browser, here):
    here.sets("a=1; SameSite=Strict", "b=2; SameSite=Lax")
    browser.visit(f"{HERE}/set")
    browser.post(f"{HERE}/", {"a": "1"})
    assert sent(here) == "a=1; b=2"


@pytest.mark.parametrize(
    "cookie",
    [
        "c=1; SameSite=None",
        "__Host-c=1; Path=/",
        "__Host-c=1; Secure",
        "__Host-c=1; Secure; Path=/; Domain=here.example",
        "__Secure-c=1",
        "c=1; Max-Age=0",
    ],
)
def test_what_breaks_the_rules_is_not_kept(browser, here, cookie):
    here.sets(cookie)
    browser.visit(f"{HERE}/set")
    assert browser.cookies == []


def test_secure_ones_neither_come_nor_go_without_tls(browser, here):
    here.sets("c=1; Secure")
    browser.visit("http://here.example/set")
    assert browser.cookies == []
    browser.visit(f"{HERE}/set")
    browser.visit("http://here.example/")
    assert sent(here) is None


def test_a_cookie_is_its_hosts_and_its_paths(browser, here, there):
    here.sets("c=1; Path=/deep")
    browser.visit(f"{HERE}/set")
    for path, expected in (("/deep", "c=1"), ("/deep/er", "c=1"), ("/deeper", None), ("/", None)):
        browser.visit(f"{HERE}{path}")
        assert sent(here) == expected
    browser.visit(f"{THERE}/deep")
    assert sent(there) is None


@pytest.mark.parametrize(("status", "method"), [(302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_redirect_after_a_form_keeps_its_body_where_its_status_says_so(
    browser, here, there, status, method
):
    here.answers["/"] = Response(status=status, headers={"Location": f"{THERE}/x"})
    browser.visit(f"{HERE}/page")
    browser.post(f"{HERE}/", {"a": "1"})
    assert (there.asked[-1].method, dict(there.asked[-1].form)) == (
        method,
        {"a": "1"} if method == "POST" else {},
    )


def test_it_tells_where_a_request_comes_from(browser, here):
    browser.visit(f"{HERE}/")
    assert here.asked[-1].headers["Sec-Fetch-Site"] == "none"
    browser.post(f"{HERE}/", {})
    assert (here.asked[-1].headers["Sec-Fetch-Site"], here.asked[-1].headers["Origin"]) == (
        "same-origin",
        HERE,
    )
    browser.be_at(THERE)
    browser.post(f"{HERE}/", {})
    assert (here.asked[-1].headers["Sec-Fetch-Site"], here.asked[-1].headers["Origin"]) == (
        "cross-site",
        THERE,
    )


def test_over_another_site_it_comes_from_there(browser, here, there):
    there.answers["/"] = Response(status=302, headers={"Location": f"{HERE}/back"})
    browser.visit(f"{HERE}/")
    browser.click(f"{THERE}/")
    assert here.asked[-1].headers["Sec-Fetch-Site"] == "cross-site"


def test_a_page_without_referrer_tells_no_origin(browser, here):
    here.answers["/"] = Response(FORM.format("/x"), headers={"Referrer-Policy": "no-referrer"})
    browser.visit(f"{HERE}/")
    browser.submit()
    assert (here.asked[-1].headers["Origin"], dict(here.asked[-1].form)) == ("null", {"a": "1"})


def test_a_form_goes_where_the_pages_policy_lets_it_with_all_redirects(browser, here, there):
    here.answers["/"] = Response(
        FORM.format("/x"), headers={"Content-Security-Policy": "default-src 'none'; form-action 'self'"}
    )
    browser.visit(f"{HERE}/")
    assert browser.submit().url == f"{HERE}/x"
    here.answers["/x"] = Response(status=303, headers={"Location": f"{THERE}/"})
    browser.visit(f"{HERE}/")
    with pytest.raises(Blocked):
        browser.submit()
    assert there.asked == []


def test_a_fragment_stays_through_redirects(browser, here):
    here.answers["/"] = Response(status=302, headers={"Location": "/x"})
    assert browser.visit(f"{HERE}/#a").url == f"{HERE}/x#a"
    here.answers["/"] = Response(status=302, headers={"Location": "/x#b"})
    assert browser.visit(f"{HERE}/#a").url == f"{HERE}/x#b"


def test_ports_make_no_other_site():
    assert site_of("http://127.0.0.1:1/x") == site_of("http://127.0.0.1:2/y")
    assert site_of("https://a.example.com/") == site_of("https://b.example.com/")
    assert site_of("http://localhost:1/") != site_of("http://127.0.0.1:1/")
    assert site_of("http://example.com/") != site_of("https://example.com/")
