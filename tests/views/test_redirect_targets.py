"""Redirect targets of links: never outside the allow list, on any route and with any parser."""

from urllib.parse import quote, urlencode

import pytest
from flask.testing import FlaskClient

from tests.conftest import BASE_URL
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.links import BROWSER, CHALLENGE, Outbox, follow, fragment, path, press, query

SITE = "https://app.example.com/start"
ALLOWED = [
    "https://*.preview.example.com/**",
    "https://exact.example.com/cb",
    "https://query.example.com/cb?x=1",
    "https://port.example.com:8443/**",
    "https://segment.example.com/a/*/b",
    "myapp://callback",
]
GOOD = [
    "https://app.example.com",
    "https://app.example.com/",
    "https://app.example.com:443/x",
    "https://app.example.com/welcome?next=/home&x=%2F%2Fevil.example",
    "https://app.example.com//x",
    "https://app.example.com?@evil.example",
    "https://pr-7.preview.example.com/a/b/c",
    "https://exact.example.com/cb",
    "https://query.example.com/cb?x=1",
    "https://port.example.com:8443/x",
    "https://segment.example.com/a/anything/b",
    "myapp://callback",
]
HOSTILE = [
    # Another host.
    "https://evil.example",
    "https://evil.example/start",
    "https://evil.example/https://app.example.com/start",
    "https://evil.example?https://app.example.com/start",
    "https://2130706433/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    # No scheme, or another one.
    "//evil.example",
    "///evil.example",
    "//app.example.com/",
    "/relative",
    "../x",
    "?x=1",
    "app.example.com",
    "http://app.example.com/start",
    "https:evil.example",
    "https:/evil.example",
    "https:///evil.example",
    "https:app.example.com",
    "https:/app.example.com",
    "https:\\\\evil.example",
    "HTTPS://app.example.com/",
    "Https://app.example.com/",
    "hTTps://evil.example",
    "ftp://app.example.com/",
    "wss://app.example.com/",
    "://app.example.com/",
    # Scripts and documents.
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "javascript://app.example.com/%0aalert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data://app.example.com/,x",
    "vbscript:x",
    "file:///etc/passwd",
    "file://app.example.com/x",
    "blob:https://app.example.com/x",
    "view-source:https://app.example.com/",
    "about:blank",
    # Userinfo.
    "https://app.example.com@evil.example",
    "https://app.example.com:443@evil.example/",
    "https://app.example.com%40evil.example/",
    "https://app.example.com%2f@evil.example/",
    "https://user@app.example.com/",
    "https://user:password@app.example.com/",
    "https://@app.example.com/",
    "https://evil.example@app.example.com/",
    "https://evil.example#@app.example.com/",
    "https://evil.example?@app.example.com/",
    # Backslashes, which browsers read as slashes.
    "https://evil.example\\@app.example.com",
    "https://evil.example\\.app.example.com/",
    "https://app.example.com\\@evil.example",
    "https://app.example.com\\.evil.example",
    "https://app.example.com/\\evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    # Look-alike hosts.
    "https://app.example.com.evil.example/",
    "https://app.example.comevil.example/",
    "https://evilapp.example.com/",
    "https://evil-app.example.com/",
    "https://app-example.com/",
    "https://appxexample.com/",
    "https://app.example.com./",
    "https://.app.example.com/",
    "https://APP.example.com/",
    "https://app%2eexample.com/",
    "https://\u0430pp.example.com/",
    "https://app.example\u3002com/",
    "https://app.example.com\uff0fevil.example",
    "https://app.example.com\u2100evil.example",
    "https://xn--pp-7lc.example.com/",
    # Ports.
    "https://app.example.com:8443/",
    "https://app.example.com:80/",
    "https://app.example.com:0/",
    "https://app.example.com:/",
    "https://app.example.com:443:443/",
    "https://app.example.com:-443/",
    "https://app.example.com:99999/",
    "https://port.example.com/",
    # Paths that parsers shorten or cut differently.
    "https://app.example.com/../x",
    "https://app.example.com/a/./b",
    "https://app.example.com/..",
    "https://app.example.com/%2e%2e/x",
    "https://app.example.com/.%2E/x",
    "https://app.example.com/a/%2e",
    "https://app.example.com/..;/x",
    "https://app.example.com/%2e.;a=b/x",
    "https://app.example.com/%252e%252e/x",
    "https://app.example.com/%2f%2fevil.example",
    "https://app.example.com/%2F..%2Fx",
    "https://app.example.com/%5cevil.example",
    "https://app.example.com/%00",
    "https://app.example.com/#fragment",
    "https://app.example.com#",
    # Control characters and spaces.
    "https://app.example.com/\r\nLocation: https://evil.example",
    "https://app.example.com/\nSet-Cookie: x=y",
    "https://app.example.com/%0d%0aSet-Cookie:x",
    "https://app.example.com/\t",
    "https://evil.example\t.app.example.com/",
    "ht\ntps://evil.example",
    "\thttps://app.example.com/",
    " https://app.example.com/",
    "https://app.example.com/ ",
    "https://app.example.com /",
    "https://app.example.com/\x7f",
    "https://app.example.com/\u2028",
    "https://app.example.com/\u00a0",
    "https://app.example.com/<script>",
    "https://app.example.com/\"onclick='x'",
    "https://app.example.com/`x`",
    "https://app.example.com/{x}|^",
    # URLs that no pattern matches.
    "https://preview.example.com/",
    "https://.preview.example.com/",
    "https://a.b.preview.example.com/",
    "https://evil.example/.preview.example.com/",
    "https://evil.example%2f.preview.example.com/",
    "https://evil.example?.preview.example.com/",
    "https://x.preview.example.com.evil.example/",
    "https://x.preview.example.com:444/",
    "https://*.preview.example.com/",
    "https://exact.example.com/cb/",
    "https://exact.example.com/cb/x",
    "https://exact.example.com/CB",
    "https://exact.example.com/",
    "https://query.example.com/cb",
    "https://query.example.com/cb?x=2",
    "https://query.example.com/cb?x=1&y=2",
    "https://segment.example.com/a/x/y/b",
    "https://segment.example.com/a//b",
    "https://segment.example.com/a/../b",
    "myapp://callback/x",
    "myapp://callback@evil",
    "myapp://evil",
    "myapp:callback",
    "myapp:///callback",
    "MYAPP://callback",
    "otherapp://callback",
]
# A third, and one of most kinds, for routes that share a check.
SOME, FEW = HOSTILE[::3], HOSTILE[::20]
DAVE = "dave@example.com"


@pytest.fixture
def app(make_app):
    app = make_app(AUTH_SITE_URL=SITE, AUTH_REDIRECT_ALLOW_LIST=",".join(ALLOWED))
    # Without the check against the contract, which takes long for thousands of responses.
    app.test_client_class = FlaskClient
    return app


@pytest.fixture
def outbox(app, database):
    return Outbox(app.extensions["latchkey"], database)


@pytest.fixture
def link(client, alice, service_role, database):
    """Return the token of a link that signs Alice in, without a redirect target, unspent again."""
    body = {"type": "magiclink", "email": alice.email}
    token = client.post("/admin/generate_link", json=body, headers=service_role).json["hashed_token"]

    def unspent():
        database.run("UPDATE one_time_tokens SET spent_at = NULL")
        return token

    return unspent


def stored_targets(database):
    """Return the targets of all links and messages in the database."""
    tokens = database.all(
        "SELECT DISTINCT redirect_to AS target FROM one_time_tokens WHERE redirect_to IS NOT NULL"
    )
    messages = database.all(
        "SELECT DISTINCT variables ->> 'redirect_to' AS target FROM outbox WHERE variables ->> 'redirect_to' IS NOT NULL"
    )
    return sorted({row.target for row in tokens + messages})


def test_hostile_targets_are_distinct_and_many():
    assert len(HOSTILE) == len(set(HOSTILE))
    assert len(SOME) >= 40


class TestCreatingALink:
    """A target that is not allowed is replaced with the default when the link is made."""

    @pytest.fixture(
        params=[
            "/signup",
            "/magiclink",
            "/otp",
            "/recover",
            "/resend signup",
            "/resend email_change",
            "/user",
            "/admin/generate_link",
            "/admin/invite",
        ]
    )
    def ask(self, request, client, alice, service_role, database):
        """Request a link with a target."""
        target, _, type = request.param.partition(" ")
        method, headers = client.post, {}
        if request.param == "/user":
            method, headers = client.put, alice.sign_in().authorization
        elif target.startswith("/admin"):
            headers = service_role
        if type == "signup":
            client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        elif type == "email_change":
            client.put("/user", json={"email": "new@example.com"}, headers=alice.sign_in().authorization)

        def ask(number, redirect_to, by):
            body = {
                "/signup": {"email": f"dave{number}@example.com", "password": PASSWORD},
                "/resend signup": {"type": "signup", "email": DAVE},
                "/resend email_change": {"type": "email_change", "email": "new@example.com"},
                "/user": {"email": f"new{number}@example.com"},
                "/admin/generate_link": {"type": "magiclink", "email": alice.email},
                "/admin/invite": {"email": f"dave{number}@example.com"},
            }.get(request.param, {"email": alice.email})
            url = target if by == "body" else f"{target}?{urlencode({'redirect_to': redirect_to})}"
            response = method(
                url,
                json=body | ({"redirect_to": redirect_to} if by == "body" else {}),
                headers=headers,
            )
            assert response.status_code in (200, 201), (redirect_to, response.text)
            return response

        return ask

    @pytest.fixture
    def default(self, request):
        """What replaces a target that is not allowed."""
        is_for_password = request.node.callspec.params["ask"] in ("/recover", "/admin/invite")
        return f"{BASE_URL}/new-password?then=site" if is_for_password else SITE

    @pytest.mark.parametrize("by", ["body", "query"])
    def test_allowed_target_is_kept_and_others_are_replaced(self, ask, default, database, by):
        for number, target in enumerate(FEW):
            response = ask(number, target, by)
            if "action_link" in response.json:
                assert response.json["redirect_to"] == SITE
                assert response.json["action_link"].endswith(f"&redirect_to={quote(SITE, safe='')}")
        assert stored_targets(database) == [default]
        for number, target in enumerate(GOOD[::4], len(FEW)):
            ask(number, target, by)
        assert stored_targets(database) == sorted([default, *GOOD[::4]])

    def test_no_hostile_target_is_kept(self, client, alice, database):
        for target in SOME:
            assert (
                client.post("/magiclink", json={"email": alice.email, "redirect_to": target}).status_code
                == 200
            )
        assert stored_targets(database) == [SITE]

    def test_body_takes_precedence_over_the_query(self, client, alice, database):
        client.post(
            "/magiclink?redirect_to=https://app.example.com/query",
            json={"email": alice.email, "redirect_to": "https://app.example.com/body"},
        )
        assert stored_targets(database) == ["https://app.example.com/body"]

    def test_repeated_target_is_400(self, client, alice, database):
        before = database.everything()
        response = client.post(
            "/magiclink?redirect_to=https://app.example.com/&redirect_to=https://evil.example/",
            json={"email": alice.email},
        )
        assert_error(response, 400, "validation_failed", details="redirect_to: must be given once")
        assert database.everything() == before

    @pytest.mark.parametrize(
        "target", ["https://app.example.com/\0", "https://app.example.com/" + "x" * 2048]
    )
    def test_target_that_cannot_be_stored_is_400(self, client, alice, database, target):
        before = database.everything()
        assert (
            client.post("/magiclink", json={"email": alice.email, "redirect_to": target}).status_code == 400
        )
        response = client.post(
            f"/magiclink?{urlencode({'redirect_to': target})}", json={"email": alice.email}
        )
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.everything() == before

    @cases("target", [1, ["https://app.example.com/"], {}, True])
    def test_target_that_is_not_a_string_is_400(self, client, alice, service_role, target):
        session = alice.open_session()
        for request_for, body in (
            ("/signup", {"email": DAVE, "password": PASSWORD}),
            ("/magiclink", {"email": DAVE}),
            ("/otp", {"email": DAVE}),
            ("/recover", {"email": DAVE}),
            ("/resend", {"type": "signup", "email": DAVE}),
            ("/admin/generate_link", {"type": "magiclink", "email": DAVE}),
            ("/admin/invite", {"email": DAVE}),
        ):
            response = client.post(request_for, json=body | {"redirect_to": target}, headers=service_role)
            assert_error(response, 400, "validation_failed", details="redirect_to: must be a string")
        assert session.put("/user", json={"email": DAVE, "redirect_to": target}).status_code == 400


class TestOpeningALink:
    def test_hostile_target_is_replaced(self, client, link):
        for target in HOSTILE:
            assert (
                fragment(follow(client, "magiclink", link(), redirect_to=target), SITE)["type"] == "magiclink"
            ), target

    def test_hostile_target_is_replaced_with_the_button_of_the_page(self, client, link):
        for target in FEW:
            token = link()
            page = client.get(path("magiclink", token, redirect_to=target), headers=BROWSER)
            assert (page.status_code, "Location" in page.headers) == (200, False)
            assert "form-action 'self' https://app.example.com;" in page.headers["Content-Security-Policy"], (
                target
            )
            assert (
                fragment(press(client, "magiclink", token, redirect_to=target), SITE)["type"] == "magiclink"
            ), target

    def test_hostile_target_is_replaced_when_the_link_fails(self, client):
        for target in FEW:
            assert (
                fragment(follow(client, "magiclink", "x" * 43, redirect_to=target), SITE)["error"]
                == "access_denied"
            ), target
            assert (
                fragment(press(client, "magiclink", "x" * 43, redirect_to=target), SITE)["error"]
                == "access_denied"
            ), target

    def test_hostile_target_is_replaced_with_an_authorization_code(self, client, alice, outbox, database):
        client.post("/magiclink", json={"email": alice.email, "code_challenge": CHALLENGE})
        token = outbox.last().token
        for target in FEW:
            assert list(query(follow(client, "magiclink", token, redirect_to=target), SITE)) == ["code"]
            database.run("UPDATE one_time_tokens SET spent_at = NULL")

    def test_allowed_target_is_used(self, client, link):
        for target in GOOD:
            assert (
                fragment(follow(client, "magiclink", link(), redirect_to=target), target)["type"]
                == "magiclink"
            )
            assert (
                fragment(press(client, "magiclink", link(), redirect_to=target), target)["type"]
                == "magiclink"
            )

    def test_policy_of_the_page_allows_the_target(self, client, link):
        """Browsers apply form-action to the redirect after a POST."""
        for target, source in (
            ("https://pr-7.preview.example.com/x", "https://pr-7.preview.example.com"),
            ("https://port.example.com:8443/x", "https://port.example.com:8443"),
            ("myapp://callback", "myapp:"),
        ):
            page = client.get(path("magiclink", link(), redirect_to=target), headers=BROWSER)
            assert f"form-action 'self' {source};" in page.headers["Content-Security-Policy"]

    def test_target_that_is_no_longer_allowed_is_replaced(self, app, make_app, alice, outbox):
        app.test_client().post(
            "/magiclink", json={"email": alice.email, "redirect_to": "https://exact.example.com/cb"}
        )
        later = make_app(AUTH_SITE_URL=SITE).test_client()
        assert fragment(follow(later, "magiclink", outbox.last().token), SITE)["type"] == "magiclink"

    def test_site_is_the_default(self, client, link):
        assert fragment(follow(client, "magiclink", link()), SITE)["type"] == "magiclink"

    def test_repeated_target_is_400(self, client, link, database):
        token = link()
        response = client.get(
            path("magiclink", token)
            + "&redirect_to=https://app.example.com/&redirect_to=https://evil.example"
        )
        assert_error(response, 400, "validation_failed", details="redirect_to: must be given once")
        assert fragment(follow(client, "magiclink", token), SITE)["type"] == "magiclink"
