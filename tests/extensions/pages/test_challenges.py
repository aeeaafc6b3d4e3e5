"""Challenges of factors and passkeys are rows: their number is bounded, and limits count what writes them."""

import pytest

from tests.support import passkeys, security_keys
from tests.support.pages import Visitor
from tests.support.server import at_once
from tests.support.users import PASSWORD

BROWSER = {"Accept": "text/html"}


@pytest.fixture
def equipped(alice):
    """Alice's session at `aal2`, with her security key, its id, and a passkey."""
    key, key_id, session = security_keys.set_up(alice.open_session())
    return session, key, key_id, passkeys.register(session)[0]


@pytest.fixture
def browser(visitor, equipped, database) -> Visitor:
    """A browser that has to pass the second step."""
    visitor.visit("/sign-in")
    visitor.press("sign-in", email="alice@example.com", password=PASSWORD)
    database.run("DELETE FROM factor_challenges")
    return visitor


def headers_of(visitor):
    return BROWSER | {"Cookie": f"latchkey={visitor.session_cookie.value}"}


def passkey_challenges(database) -> int:
    return database.count("factor_challenges", "purpose = 'passkey_authentication'")


def test_fifty_concurrent_requests_of_a_session_leave_five(equipped, browser, server, database):
    session, _, key_id, _ = equipped
    bearer, headers = session.authorization, headers_of(browser)

    def request_challenge(number: int) -> int:
        if number % 2:
            return server.get("/second-step", headers=headers).status_code
        return server.post(f"/factors/{key_id}/challenge", headers=bearer, json={}).status_code

    assert set(at_once(50, request_challenge)) == {200}
    rows = database.all("SELECT count(*) FROM factor_challenges GROUP BY session_id, purpose, factor_id")
    assert [row.count for row in rows] == [5] * 3


class TestLimits:
    @pytest.fixture
    def limited_browser(self, make_app, browser) -> Visitor:
        """The same browser, at a service where the second step is tried and shown twice an hour."""
        limits = {"AUTH_RATE_LIMIT_VERIFY": "2 per hour", "AUTH_RATE_LIMIT_USER_CHANGES": "2 per hour"}
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", **limits))
        visitor.cookies = browser.cookies
        return visitor

    @pytest.mark.parametrize("path", ["/second-step", "/account/confirm"])
    def test_page_beyond_the_limit_gets_no_challenge(self, limited_browser, database, path):
        assert [limited_browser.visit(path).status for _ in range(4)] == [200, 200, 429, 429]
        assert passkey_challenges(database) == 2

    @pytest.mark.parametrize("path", ["second-step/key", "second-step/passkey", "account/confirm"])
    def test_refused_form_beyond_the_limit_is_shown_without_challenges(self, limited_browser, database, path):
        limited_browser.visit("/second-step")
        pages = [limited_browser.send(f"/{path}", current_password="Wrong-Horse-1") for _ in range(4)]
        assert [page.status for page in pages] == [400, 400, 429, 429]
        assert ["data-passkey" in page.text for page in pages] == [True, False, False, False]
        assert passkey_challenges(database) == 2
        # A form that no limit counts gets no challenge either.
        form = limited_browser.page.forms[0].fields | {"form_token": "0" * 64}
        assert limited_browser.post(f"{limited_browser.origin}/{path}", form).status == 403
        assert passkey_challenges(database) == 2

    def test_head_request_writes_no_challenge(self, app, browser, database):
        without_cookies = app.test_client(use_cookies=False)
        for path in ("/second-step", "/account/confirm"):
            assert without_cookies.head(path, headers=headers_of(browser)).status_code == 200
        assert database.count("factor_challenges") == 0
