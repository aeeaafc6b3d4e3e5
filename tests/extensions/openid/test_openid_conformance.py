"""What applications and their attackers meet on the whole way, from /oauth/authorize to /oauth/userinfo.

Other files test each endpoint alone: test_authorization.py, test_oauth_token.py and more.
"""

from urllib.parse import urlsplit

import pytest

from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import SITE
from tests.support.openid import claims_of
from tests.support.openid_flow import Application, make_application
from tests.support.pages import Visitor

REDIRECT_URI = "https://app.example.com/callback"
# Other than https://app.example.com/callback, and than http://127.0.0.1:4711/callback but for its port.
LOOK_ALIKES = """
https://evil.example/callback https://app.example.com.evil.example/callback
https://app.example.com@evil.example/callback https://app.example.com:443/callback
https://app.example.com:8443/callback https://app.example.com./callback https://APP.example.com/callback
HTTPS://app.example.com/callback http://app.example.com/callback https://app.example.com/callback/
https://app.example.com/callback/../evil https://app.example.com/callback%2f..%2fevil
https://app.example.com/%63allback https://app.example.com/CALLBACK
https://app.example.com/callback?next=//evil.example https://app.example.com/callback#@evil.example
https://app.example.com%00.evil.example/callback https://xn--pp-hia.example.com/callback
//app.example.com/callback /callback javascript:alert(1)
"""
LOOPBACK_LOOK_ALIKES = """
http://127.0.0.1:5/callback/ http://127.0.0.1:5 http://127.0.0.1:5@evil.example/callback
http://127.0.0.1:80:5/callback http://127.0.0.1:x/callback http://127.0.0.1:+5/callback
http://127.0.0.1:5_0/callback http://127.0.0.1:/callback http://127.0.0.2:5/callback
http://127.0.0.1.evil.example:5/callback http://localhost:5/callback http://[::1]:5/callback
http://127.1:5/callback http://0x7f000001:5/callback http://2130706433:5/callback
https://127.0.0.1:5/callback http://user@127.0.0.1:5/callback http://127.0.0.1:5/callback?x=1
http://127.0.0.1:5/callback#x http://127.0.0.1:0/callback http://127.0.0.1:65536/callback
"""


@pytest.fixture
def notes(client, database) -> Application:
    return make_application(client, database, redirect_uris=[REDIRECT_URI])


@pytest.fixture
def make_native(client, database):
    """Register a program on the user's device."""

    def make(redirect_uri: str) -> Application:
        return make_application(
            client, database, redirect_uris=[redirect_uri], token_endpoint_auth_method="none"
        )

    return make


@pytest.fixture
def visitor(app, alice) -> Visitor:
    """Alice's browser, signed in."""
    return Visitor(app).with_session_of(alice)


class TestConformance:
    @pytest.mark.parametrize("text", ['é "&=+%/\\<b>;,', "\r\nSet-Cookie: a=b\r\n\r\n<b>", "{}\u2028", None])
    def test_state_and_nonce_come_back_as_they_were_sent(self, notes, visitor, text):
        returned = notes.authorized(visitor, state=text, nonce=text)
        assert returned == {"code": returned["code"], "iss": SITE} | ({"state": text} if text else {})
        tokens = notes.redeem(returned["code"]).json
        assert claims_of(tokens["id_token"]).get("nonce") == text

    def test_request_that_waits_for_its_client_locks_no_user(self, app, notes, visitor, alice, database):
        """A deletion of the client locks them in this order."""
        hint = {"id_token_hint": notes.tokens(visitor)["id_token"]}
        with database.locked("oauth_clients", notes.client.id) as lock:
            page = lock.start(lambda: notes.begin(Visitor(app), **hint))
            database.run("SELECT FROM users FOR UPDATE NOWAIT")
        assert urlsplit(page.result().url).path == "/sign-in"

    @pytest.mark.parametrize("has_factor", [True, False])
    def test_requested_level_is_reached_by_a_user_who_can(self, app, client, notes, alice, has_factor):
        assert client.get("/.well-known/openid-configuration").json["acr_values_supported"] == [
            "aal1",
            "aal2",
        ]
        phone_app = set_up(alice.open_session())[0] if has_factor else None
        visitor = Visitor(app).with_session_of(alice)
        page = notes.begin(visitor, acr_values="aal2")
        assert urlsplit(page.url).path == ("/second-step" if phone_app else "/oauth/consent")
        if phone_app:
            visitor.submit(code=phone_app.code(1))
        code = notes.returned(visitor.submit(action="approve"))["code"]
        assert claims_of(notes.redeem(code).json["id_token"])["acr"] == ("aal2" if has_factor else "aal1")


class TestRedirects:
    """RFC 9700, section 4.11: neither an open redirector nor a leak of codes."""

    @cases(
        "redirect_uri",
        [
            *LOOK_ALIKES.split(),
            "https://app.example.com/callback ",
            " https://app.example.com/callback",
            "https://app.example.com\\@evil.example/callback",
            "https://\uff41pp.example.com/callback",
            "https://app.example.com\u3002evil.example/callback",
            "https://app.example.com/callback\r\nSet-Cookie: a=b",
        ],
    )
    def test_uri_that_looks_like_the_registered_one_is_refused(self, notes, visitor, redirect_uri):
        notes.tokens(visitor)
        for changes in ({}, {"prompt": "none"}, {"response_type": "token"}):
            page = notes.begin(visitor, redirect_uri=redirect_uri, **changes)
            assert (page.status, page.url) == (400, page.trail[0])

    @cases("port", [":1", ":65535", ":80", ""])
    @cases("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_port_of_loopback_may_vary(self, make_native, visitor, host, port):
        """RFC 8252, section 7.3. The code goes to the program that listens there, and is redeemed with it."""
        application = make_native(f"http://{host}:4711/callback")
        application.redirect_uri = f"http://{host}{port}/callback"
        assert "/oauth/consent" in application.begin(visitor).url
        page = visitor.submit(action="approve", stop=lambda url: url.startswith(application.redirect_uri))
        assert application.redeem(application.returned(page)["code"]).status_code == 200

    @cases(
        ("registered", "redirect_uri"),
        [
            ("http://127.0.0.1", "http://127.0.0.1.evil.example"),
            ("https://localhost/callback", "https://localhost:3000/callback"),
            ("myapp://localhost/callback", "myapp://localhost:3000/callback"),
            *(
                ("http://127.0.0.1:4711/callback", uri)
                for uri in (
                    *LOOPBACK_LOOK_ALIKES.split(),
                    "http://127.0.0.1:\u0665/callback",
                    "http://127.0.0.1:5\\@evil.example/callback",
                )
            ),
        ],
    )
    def test_nothing_else_of_loopback_may_vary(self, make_native, visitor, registered, redirect_uri):
        page = make_native(registered).begin(visitor, redirect_uri=redirect_uri)
        assert (page.status, page.url) == (400, page.trail[0])

    def test_form_with_the_consent_is_not_sent_on(self, app, notes, visitor):
        """Section 4.12: not by 307."""
        notes.begin(visitor)
        form = visitor.page.forms[0].fields | {"action": "approve"}
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in visitor.cookies)
        headers = {"Cookie": cookies, "Sec-Fetch-Site": "same-origin"}
        answer = app.test_client(use_cookies=False).post("/oauth/consent", data=form, headers=headers)
        assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (303, REDIRECT_URI)
