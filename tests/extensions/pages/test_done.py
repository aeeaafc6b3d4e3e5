"""A page shows the result of an action only in its browser, for ten minutes: no link can fake it."""

import hmac
import re
import time
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.support.cases import cases
from tests.support.contract import page_routes
from tests.support.elapsed import assert_left
from tests.support.links import SITE, Outbox, path
from tests.support.pages import Visitor, words
from tests.support.user_agent import Page
from tests.support.users import DAVE, PASSWORD

SAVED, DELETED = "Your name has been saved.", "was deleted"
TEN_MINUTES = 600


@pytest.fixture
def renamed_url(visitor, alice) -> str:
    """The URL where Alice's browser learns that her name is saved."""
    visitor.with_session_of(alice).visit("/account/name")
    page = visitor.submit(name="Alice")
    assert SAVED in words(page)
    return page.url


@pytest.fixture
def declined_url(visitor, client, outbox) -> str:
    client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    visitor.visit(path("signup", outbox.last(DAVE).token))
    page = visitor.press("verify", action="decline")
    assert DELETED in words(page)
    return page.url


def test_message_stays_when_the_page_is_loaded_again_and_is_shown_in_no_other_browser(
    app, visitor, alice, renamed_url
):
    assert SAVED in words(visitor.visit(renamed_url))
    other = Visitor(app).with_session_of(alice)
    other.visit("/account")
    assert 'class="success"' not in other.visit(renamed_url).text
    # A browser that was signed in here before shows no message either.
    visitor.cookies = [cookie for cookie in visitor.cookies if cookie.name != "latchkey_form"]
    assert 'class="success"' not in visitor.visit(renamed_url).text


def test_message_ends_after_ten_minutes(visitor, renamed_url, monkeypatch):
    expiry = int(urlsplit(renamed_url).query.split(".")[1])
    assert_left(expiry - time.time(), of=TEN_MINUTES)
    for later, is_shown in ((-2, True), (2, False)):
        monkeypatch.setattr(time, "time", lambda later=later: expiry + later)
        assert ('class="success"' in visitor.visit(renamed_url).text) is is_shown


@cases("change", ["another message", "a later end", "no signature", "no end", "the name alone"])
def test_changed_url_says_nothing(visitor, renamed_url, change):
    name, expiry, signature = urlsplit(renamed_url).query.removeprefix("done=").split(".")
    done = {
        "another message": f"password.{expiry}.{signature}",
        "a later end": f"{name}.{int(expiry) + 1}.{signature}",
        "no signature": f"{name}.{expiry}.",
        "no end": f"{name}.{signature}",
        "the name alone": name,
    }[change]
    page = visitor.visit(f"/account?done={done}")
    assert (page.status, 'class="success"' in page.text) == (200, False)


@cases("cookie", ["", "x", "a" * 42])
def test_secret_that_anybody_knows_signs_nothing(app, alice, cookie):
    visitor = Visitor(app).with_session_of(alice)
    if cookie:
        visitor.plant("latchkey_form", cookie)
    expiry = int(time.time()) + 60
    signature = hmac.digest(cookie.encode(), f"done password {expiry}".encode(), "sha256").hex()
    page = visitor.visit(f"/account?done=password.{expiry}.{signature}")
    assert (page.status, 'class="success"' in page.text) == (200, False)


def test_page_after_a_link_is_loaded_again_without_effect(visitor, database, declined_url):
    before, text = database.everything(), words(visitor.page)
    assert not [url for method, url, _headers in visitor.requests[-1:] if method == "POST"]
    for _ in range(2):
        assert words(visitor.visit(declined_url)) == text
    assert database.everything() == before


@pytest.mark.parametrize("way", ["another browser", "a signed-in browser", "too late"])
def test_page_after_a_link_is_shown_in_no_other_browser(app, visitor, bob, monkeypatch, declined_url, way):
    now = time.time()
    if way == "too late":
        monkeypatch.setattr(time, "time", lambda: now + TEN_MINUTES + 2)
    else:
        visitor = Visitor(app)
    if way == "a signed-in browser":
        visitor.with_session_of(bob)
    page = visitor.visit(declined_url)
    neutral = "/account" if way == "a signed-in browser" else "/sign-in"
    assert (page.url, page.status) == (f"{SITE}{neutral}", 200)
    assert DELETED not in page.text


def test_without_pages_the_page_after_a_link_leads_others_to_the_site(make_app, client, outbox: Outbox):
    app = make_app(AUTH_SITE_URL="https://app.example.com/start", AUTH_PAGES="false")
    client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    visitor = Visitor(app)
    visitor.visit(path("signup", outbox.last(DAVE).token))
    assert DELETED in words(visitor.press("verify", action="decline"))
    assert Visitor(app).visit(visitor.page.url).url == "https://app.example.com/start"


def test_deletion_is_told_to_the_browser_that_deleted(app, visitor, alice):
    assert Visitor(app).visit("/account/deleted").url == f"{SITE}/sign-in"
    visitor.signed_in_as(alice).visit("/account/delete")
    page = visitor.press("account/delete", confirmed="yes")
    assert "Your account has been deleted" in words(page)
    assert "Your account has been deleted" in words(visitor.visit(page.url))
    assert Visitor(app).visit(page.url).url == f"{SITE}/sign-in"


class TestErrors:
    """The error that a redirect names. `BLOCKED` would frighten a user."""

    BLOCKED, CALL = "This account is blocked.", "Call 555-0100"

    @pytest.fixture(params=["a stranger's browser", "a signed-in browser"])
    def victim(self, request, app, alice) -> Visitor:
        visitor = Visitor(app)
        return visitor.with_session_of(alice) if request.param == "a signed-in browser" else visitor

    @pytest.fixture
    def attacker(self, app) -> Visitor:
        visitor = Visitor(app)
        visitor.visit("/sign-in")
        return visitor

    @staticmethod
    def text_of(page: Page) -> str:
        """Return the text of a page without the id of its request."""
        return re.sub(r"[0-9a-f-]{36}", "", words(page))

    def test_link_plants_an_error_on_no_page(self, app, victim, attacker):
        error = {"error_code": "user_banned", "reason": self.CALL}
        assert self.BLOCKED in words(attacker.visit(f"/sign-in?{attacker.result_query(**error)}"))
        signed = dict(parse_qsl(attacker.result_query(**error)))
        queries = (
            error,
            signed,
            {name: f"{value}.{int(time.time()) + 60}.{'0' * 64}" for name, value in error.items()},
            {"error_code": "session_expired"},
            {"opened": "yes"},
        )
        pages = sorted({path for method, path, _view in page_routes(app) if method == "get"})
        assert {"/sign-in", "/sign-up", "/account", "/account/email", "/forgot-password"} <= {*pages}
        for page in pages:
            plain = self.text_of(victim.visit(page))
            for query in queries:
                assert self.text_of(victim.visit(f"{page}?{urlencode(query)}")) == plain, (page, query)


def test_page_writes_no_more_challenges_than_its_limit_and_none_for_a_head_request(make_app, alice, database):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_VERIFY": "2 per hour"}
    app = make_app(**limits)
    stranger = Visitor(app)
    assert app.test_client().head("/sign-in/passkey").status_code == 200
    assert [stranger.visit("/sign-in/passkey").status for _ in range(4)] == [200, 200, 429, 429]
    assert database.count("factor_challenges") == 2
    # Another site may have opened the page so often. Signing in by the script, or in the account, still works.
    response = app.test_client().post("/passkeys/authentication/options", json={})
    assert response.status_code == 200
    assert Visitor(app).with_session_of(alice).visit("/account/passkeys/new").status == 200
