"""Cookies that another host of the domain, or a page without TLS, has planted next to ours."""

import pytest

from auth.html.forms import SESSION
from tests.support.cases import cases
from tests.support.pages import Visitor

OURS = f"__Host-{SESSION}"
# Some parsers take these for spaces; browsers, for a part of the name, which they allow before `__Host-`.
SPACES = ["\xa0", "\x85", "\x1c", "\x1f", "\x0b", "\x0c", " \xa0", "\xa0 "]


@pytest.fixture
def token(make_app, alice):
    """The value of the cookie of a browser that is signed in as Alice."""
    app = make_app(AUTH_BASE_URL="https://auth.example.com")
    visitor = Visitor(app, "https://auth.example.com").with_session_of(alice)
    return visitor.cookies[-1].value


@pytest.fixture
def goes_to(make_app):
    """Return a function that sends a header `Cookie`, and returns where GET /account leads, or None if it is shown."""
    client = make_app(AUTH_BASE_URL="https://auth.example.com").test_client(use_cookies=False)

    def goes_to(header: str) -> str | None:
        answer = client.get("/account", headers={"Cookie": header, "Accept": "text/html"})
        assert answer.status_code in (200, 303)
        return answer.headers.get("Location", "").partition("?")[0] or None

    return goes_to


def test_cookie_alone_signs_in(goes_to, token):
    for header in (f"{OURS}={token}", f"x=1; {OURS}={token};y=2", f'{OURS}="{token}"'):
        assert goes_to(header) is None


@cases("spaces", SPACES)
def test_name_that_only_looks_like_ours_is_another_name(goes_to, token, spaces):
    assert goes_to(f"{spaces}{OURS}={token}") == "sign-in"
    assert goes_to(f"{spaces}{OURS}=x; {OURS}={token}") is None


@cases("header", ["{0}={1}; {0}={1}", "{0}={1}; {0}=x", "{0}=x; {0}={1}", "{0}; {0}={1}", "{0}={1};\t{0}=x"])
def test_cookie_whose_name_comes_twice_signs_in_nobody(goes_to, token, header):
    assert goes_to(header.format(OURS, token)) == "sign-in"


@cases("name", [SESSION, OURS.lower(), OURS.upper(), f"__Secure-{SESSION}", f"{OURS}-x"])
def test_cookie_with_another_prefix_signs_in_nobody(goes_to, token, name):
    assert goes_to(f"{name}={token}") == "sign-in"
    assert goes_to(f"{name}=x; {OURS}={token}") is None
