"""The simulated browser of tests/support/user_agent.py behaves like real browsers."""

import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from tests.support.cases import cases
from tests.support.user_agent import Blocked, UserAgent, site_of

HERE, PLAIN, THERE = "https://here.example", "http://here.example", "https://there.example"
FORM = "<form method=post action=/x><input type=hidden name=a value=1><button name=b value=2></form>"


class Site:
    """A site that returns configured responses by path, and records its requests."""

    def __init__(self):
        self.answers = {}
        self.requests = []

    def __call__(self, environ, start_response):
        request = Request(environ)
        request.get_data()
        self.requests.append(request)
        return self.answers.get(request.path, Response("", 200))(environ, start_response)

    @property
    def told(self):
        """The method, form, cookie, Sec-Fetch-Site and Origin of the last request."""
        last = self.requests[-1]
        names = ("Cookie", "Sec-Fetch-Site", "Origin")
        return last.method, dict(last.form), *(last.headers.get(name) for name in names)


@pytest.fixture
def sites():
    return Site(), Site()


@pytest.fixture
def browser(sites):
    here, there = (Client(site, use_cookies=False) for site in sites)
    return UserAgent({HERE: here, PLAIN: here, THERE: there})


@pytest.mark.parametrize(
    ("cookie", "stored", "link", "form"),
    [
        ("c=1; SameSite=Strict; Secure", True, False, False),
        ("c=1; SameSite=Lax; Secure", True, True, False),
        ("c=1; Secure", True, True, False),
        ("c=1; SameSite=None; Secure", True, True, True),
        *((invalid, False, False, False) for invalid in ("c=1; SameSite=None", "c=1; Max-Age=0")),
        *((f"__Host-c=1; {rest}", False, False, False) for rest in ("Path=/", "Secure")),
        ("__Host-c=1; Secure; Path=/; Domain=here.example", False, False, False),
        ("__Secure-c=1", False, False, False),
    ],
)
def test_valid_cookie_is_stored_and_carried_by_its_same_site(browser, sites, cookie, stored, link, form):
    here, _ = sites
    here.answers["/set"] = Response(headers={"Set-Cookie": cookie})
    if "Secure" in cookie:
        browser.visit(f"{PLAIN}/set")
        assert browser.cookies == []
    browser.visit(f"{HERE}/set")
    assert bool(browser.cookies) is stored
    carried = []
    for come_from, go in (
        (HERE, lambda: browser.visit(f"{HERE}/")),
        (THERE, lambda: browser.click(f"{HERE}/")),
        (THERE, lambda: browser.post(f"{HERE}/", {"a": "1"})),
    ):
        browser.be_at(come_from)
        go()
        carried.append(here.told[2] == "c=1")
    assert carried == [stored, link, form]


def test_cookie_is_sent_only_to_its_host_and_path_with_tls(browser, sites):
    here, there = sites
    here.answers["/set"] = Response(headers={"Set-Cookie": "c=1; Path=/deep; Secure"})
    browser.visit(f"{HERE}/set")
    for url, cookie in (("/deep", "c=1"), ("/deep/er", "c=1"), ("/deeper", None), ("/", None)):
        browser.visit(f"{HERE}{url}")
        assert here.told[2] == cookie
    browser.visit(f"{PLAIN}/deep")
    browser.visit(f"{THERE}/deep")
    assert (here.told[2], there.told[2]) == (None, None)


@cases(("status", "method"), [(302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_redirect_after_a_form_keeps_the_body_for_307_and_308(browser, sites, status, method):
    here, there = sites
    here.answers["/"] = Response(status=status, headers={"Location": f"{THERE}/x"})
    browser.visit(f"{HERE}/page")
    browser.post(f"{HERE}/", {"a": "1"})
    assert there.told[:2] == (method, {"a": "1"} if method == "POST" else {})


def test_request_names_its_origin(browser, sites):
    here, there = sites
    there.answers["/"] = Response(status=302, headers={"Location": f"{HERE}/back"})
    here.answers["/"] = Response(FORM, headers={"Referrer-Policy": "no-referrer"})
    browser.visit(f"{HERE}/page")
    assert here.told[3:] == ("none", None)
    browser.post(f"{HERE}/", {})
    assert here.told[3:] == ("same-origin", HERE)
    browser.be_at(THERE)
    browser.post(f"{HERE}/", {})
    assert here.told[3:] == ("cross-site", THERE)
    browser.be_at(HERE)
    browser.click(f"{THERE}/")
    assert here.told[3:] == ("cross-site", None)
    browser.visit(f"{HERE}/")
    browser.submit()
    assert (here.told[1], here.told[4]) == ({"a": "1"}, "null")


def test_form_action_restricts_the_form_and_its_redirects(browser, sites):
    here, there = sites
    policy = {"Content-Security-Policy": "default-src 'none'; form-action 'self'"}
    here.answers["/"] = Response(FORM, headers=policy)
    browser.visit(f"{HERE}/")
    assert browser.submit().url == f"{HERE}/x"
    here.answers["/x"] = Response(status=303, headers={"Location": f"{THERE}/"})
    browser.visit(f"{HERE}/")
    with pytest.raises(Blocked):
        browser.submit()
    assert there.requests == []


def test_refresh_after_a_form_is_another_navigation(browser, sites):
    here, there = sites
    policy = {"Content-Security-Policy": "default-src 'none'; form-action 'self'"}
    here.answers["/"] = Response(FORM, headers=policy)
    refresh = f'<meta http-equiv="refresh" content="0;url={THERE}/?a=1&amp;b=\'#c">'
    here.answers["/x"] = Response(refresh, headers=policy)
    there.answers["/"] = Response(status=302, headers={"Location": f"{HERE}/end"})
    browser.visit(f"{HERE}/")
    page = browser.submit()
    assert (page.url, page.trail) == (
        f"{HERE}/end#c",
        [f"{HERE}/x", f"{THERE}/?a=1&b='#c", f"{HERE}/end#c"],
    )
    assert there.told[:4] == ("GET", {}, None, "cross-site")


@cases(("location", "url"), [("/x", f"{HERE}/x#a"), ("/x#b", f"{HERE}/x#b")])
def test_fragment_is_kept_through_redirects(browser, sites, location, url):
    sites[0].answers["/"] = Response(status=302, headers={"Location": location})
    assert browser.visit(f"{HERE}/#a").url == url


def test_ports_belong_to_the_same_site():
    assert site_of("http://127.0.0.1:1/x") == site_of("http://127.0.0.1:2/y")
    assert site_of("https://a.example.com/") == site_of("https://b.example.com/")
    assert site_of("http://localhost:1/") != site_of("http://127.0.0.1:1/")
    assert site_of("http://example.com/") != site_of("https://example.com/")
