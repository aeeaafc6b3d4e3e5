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
def asked(visitor, equipped, database) -> Visitor:
    """A browser that the second step is asked of."""
    visitor.visit("/sign-in")
    visitor.press("sign-in", email="alice@example.com", password=PASSWORD)
    database.run("DELETE FROM factor_challenges")
    return visitor


def cookie(visitor):
    return BROWSER | {"Cookie": f"latchkey={visitor.session_cookie.value}"}


def of_passkeys(database) -> int:
    return database.count("factor_challenges", "purpose = 'passkey_authentication'")


def test_fifty_concurrent_requests_of_a_session_leave_five(equipped, asked, server, database):
    session, _, key_id, _ = equipped
    bearer, headers = session.authorization, cookie(asked)

    def challenged(number: int) -> int:
        if number % 2:
            return server.get("/second-step", headers=headers).status_code
        return server.post(f"/factors/{key_id}/challenge", headers=bearer, json={}).status_code

    assert set(at_once(50, challenged)) == {200}
    found = database.all("SELECT count(*) FROM factor_challenges GROUP BY session_id, purpose, factor_id")
    assert [row.count for row in found] == [5] * 3


class TestLimits:
    @pytest.fixture
    def limited(self, make_app, asked) -> Visitor:
        """The same browser, at a service where the second step is tried and shown twice an hour."""
        limits = {"AUTH_RATE_LIMIT_VERIFY": "2 per hour", "AUTH_RATE_LIMIT_USER_CHANGES": "2 per hour"}
        visitor = Visitor(make_app(AUTH_RATE_LIMITS_ENABLED="true", **limits))
        visitor.cookies = asked.cookies
        return visitor

    @pytest.mark.parametrize("path", ["/second-step", "/account/confirm"])
    def test_page_is_counted(self, limited, database, path):
        assert [limited.visit(path).status for _ in range(4)] == [200, 200, 429, 429]
        assert of_passkeys(database) == 2

    @pytest.mark.parametrize("path", ["second-step/key", "second-step/passkey", "account/confirm"])
    def test_refused_form_beyond_the_limit_is_shown_without_challenges(self, limited, database, path):
        limited.visit("/second-step")
        pages = [limited.send(f"/{path}", current_password="Wrong-Horse-1") for _ in range(4)]
        assert [page.status for page in pages] == [400, 400, 429, 429]
        assert ["data-passkey" in page.text for page in pages] == [True, False, False, False]
        assert of_passkeys(database) == 2
        # Neither is one that no limit of forms counts.
        form = limited.page.forms[0].fields | {"form_token": "0" * 64}
        assert limited.post(f"{limited.origin}/{path}", form).status == 403
        assert of_passkeys(database) == 2

    def test_head_request_writes_none(self, app, asked, database):
        without_cookies = app.test_client(use_cookies=False)
        for path in ("/second-step", "/account/confirm"):
            assert without_cookies.head(path, headers=cookie(asked)).status_code == 200
        assert database.count("factor_challenges") == 0
