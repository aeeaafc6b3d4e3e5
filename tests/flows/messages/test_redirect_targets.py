"""Redirect targets of links: never outside the allow list, on any route and with any parser.

tests/core/net/test_redirects.py tests the allow list itself.
"""

from urllib.parse import quote, urlencode

import pytest
from flask.testing import FlaskClient

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.cases import cases
from tests.support.deliverers import deliver_due
from tests.support.links import BROWSER, CHALLENGE, Outbox, follow, fragment, path, press, query
from tests.support.users import ALICE, DAVE, PASSWORD

SITE = "https://app.example.com/start"
# Not on this machine, where a target that is not allowed is refused.
BASE_URL = "http://auth.example.com"
PUBLIC = {"AUTH_BASE_URL": BASE_URL, "AUTH_SITE_URL": SITE, "AUTH_VERIFY_ON_GET": "programs"}
DETAILS = "redirect_to: must be at the origin of AUTH_SITE_URL or on AUTH_REDIRECT_ALLOW_LIST"
ALLOWED = """
https://*.preview.example.com/** https://exact.example.com/cb https://query.example.com/cb?x=1
https://port.example.com:8443/** https://segment.example.com/a/*/b myapp://callback exp://**
"""
GOOD = """
https://app.example.com/welcome?next=/home&x=%2F%2Fevil.example https://app.example.com?@evil.example
https://pr-7.preview.example.com/a/b/c https://query.example.com/cb?x=1 https://port.example.com:8443/x
https://segment.example.com/a/anything/b myapp://callback HTTPS://APP.example.com/x?y=%7B1%7d
exp://192.168.1.5:8081/--/callback
"""
# Another host or scheme, a script, userinfo, backslashes, a look-alike host, a port, dots, and a target of no pattern;
# tests/core/net/test_redirects.py has more of each.
HOSTILE = [
    *("https://evil.example?https://app.example.com/", "//evil.example", "http://app.example.com/start"),
    *("javascript://app.example.com/%0aalert(1)", "https://app.example.com@evil.example"),
    *("https:\\\\evil.example", "https://app.example.com.evil.example/", "https://app.example.com:8443/"),
    *("https://app.example.com/.%2E/x", "https://x.preview.example.com:444/", "myapp://callback/x"),
    "https://app.example.com/\r\nLocation: https://evil.example",
]
# The routes that make a link, with a body, in which {} is a number.
ROUTES = {
    "/signup": {"email": "dave{}@example.com", "password": PASSWORD},
    "/magiclink": {"email": ALICE},
    "/otp": {"email": ALICE},
    "/recover": {"email": ALICE},
    "/resend signup": {"type": "signup", "email": DAVE},
    "/resend email_change": {"type": "email_change", "email": "new@example.com"},
    "/user": {"email": "new{}@example.com"},
    "/admin/generate_link": {"type": "magiclink", "email": ALICE},
    "/admin/invite": {"email": "dave{}@example.com"},
}


@pytest.fixture
def app(make_app):
    allowed = ",".join(ALLOWED.split())
    app = make_app(**PUBLIC, AUTH_REDIRECT_ALLOW_LIST=allowed)
    # This client does not check the contract, which would take long for thousands of responses.
    app.test_client_class = FlaskClient
    return app


@pytest.fixture
def outbox(app, database):
    return Outbox(app.extensions["latchkey"], database)


@pytest.fixture
def ask(client, alice, service_role):
    session = alice.open_session()

    def ask(route, redirect_to, place="body", number=0):
        url, body = (
            route.partition(" ")[0],
            {name: template.format(number) for name, template in ROUTES[route].items()},
        )
        if place == "body":
            body["redirect_to"] = redirect_to
        else:
            url += f"?{urlencode({'redirect_to': redirect_to}, doseq=True)}"
        if route == "/user":
            return session.put(url, json=body)
        return client.post(url, json=body, headers=service_role if route.startswith("/admin") else {})

    return ask


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
    rows = database.all(
        "SELECT redirect_to AS target FROM one_time_tokens WHERE redirect_to IS NOT NULL"
        " UNION SELECT variables ->> 'redirect_to' FROM outbox WHERE variables ->> 'redirect_to' IS NOT NULL"
    )
    return sorted(row.target for row in rows)


def leads_to(response, target=SITE):
    return fragment(response, target).get("type") == "magiclink"


class TestCreatingALink:
    """A target that is not allowed is replaced with the default when the link is made."""

    @pytest.mark.parametrize("place", ["body", "query"])
    @pytest.mark.parametrize("route", ROUTES)
    def test_allowed_target_is_kept_and_others_are_replaced(self, client, ask, database, route, place):
        if route == "/resend signup":
            client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        elif route == "/resend email_change":
            ask("/user", None, number="")
        is_for_password = route in ("/recover", "/admin/invite")
        default = f"{BASE_URL}/new-password?then=site" if is_for_password else SITE
        for number, target in enumerate(HOSTILE):
            response = ask(route, target, place, number)
            assert response.status_code in (200, 201), (target, response.text)
            if "action_link" in response.json:
                assert response.json["redirect_to"] == SITE
                assert response.json["action_link"].endswith(f"&redirect_to={quote(SITE, safe='')}")
        assert stored_targets(database) == [default]
        for number, target in enumerate(GOOD.split(), len(HOSTILE)):
            ask(route, target, place, number)
        assert stored_targets(database) == sorted([default, *GOOD.split()])

    @pytest.mark.parametrize("settings", [{}, {"AUTH_DEV_INBOX": "true"}], ids=["here", "with the inbox"])
    @pytest.mark.parametrize("route", ["/magiclink", "/recover", "/signup", "/admin/invite"])
    def test_service_on_this_machine_names_the_setting_that_allows_a_target(
        self, make_app, service_role, alice, database, route, settings
    ):
        client = make_app(AUTH_SITE_URL=SITE, **settings).test_client()
        before, body = database.everything(), {"email": alice.email, **ROUTES[route]}
        for target in ("https://evil.example/#/x", "https://app.example.com:444/"):
            response = client.post(route, json=body | {"redirect_to": target}, headers=service_role)
            assert_error(response, 400, "validation_failed", details=DETAILS)
        assert database.everything() == before
        page = client.get(f"/sign-in?redirect_to={target}", headers=BROWSER)
        assert (page.status_code, DETAILS in page.text) == (400, True)

    def test_clients_of_the_dialect_get_the_site_and_the_log_and_the_inbox_name_the_target(
        self, make_app, service_role, alice, database, capfd
    ):
        app = make_app(AUTH_SITE_URL=SITE, AUTH_DEV_INBOX="true")
        client = app.test_client()
        target = "https://evil.example/there?secret=1#/x"
        for route in ("otp", "recover", "signup"):
            body = {"email": alice.email if route != "signup" else DAVE, **ROUTES.get(f"/{route}", {})}
            answer = client.post(f"/auth/v1/{route}", json=body, query_string={"redirect_to": target})
            assert answer.status_code == 200, answer.text
        assert set(stored_targets(database)) <= {SITE}
        assert '"target": "https://evil.example/there"' in capfd.readouterr().err
        deliver_due(app.extensions["latchkey"])
        messages = client.get("/dev/inbox", headers=service_role)
        assert {each["refused_target"] for each in messages.json} == {"https://evil.example/there"}
        page = client.get("/dev/inbox", headers=service_role | BROWSER)
        assert "redirect_to=https://evil.example/there is neither" in page.text
        response = client.get("/auth/v1/authorize", query_string={"provider": "x", "redirect_to": target})
        assert response.json["error_code"] == "oauth_provider_not_supported"

    def test_body_takes_precedence_over_the_query(self, client, alice, database):
        body = {"email": alice.email, "redirect_to": "https://app.example.com/body"}
        client.post("/magiclink?redirect_to=https://app.example.com/query", json=body)
        assert stored_targets(database) == ["https://app.example.com/body"]

    def test_target_that_is_repeated_or_cannot_be_stored_is_400(self, ask, database):
        before = database.everything()
        targets = ["https://app.example.com/", "https://evil.example/"]
        response = ask("/magiclink", targets, "query")
        assert_error(response, 400, "validation_failed", details="redirect_to: must be given once")
        assert ask("/magiclink", "https://app.example.com/\0").status_code == 400
        for target, place in (("\0", "query"), ("x" * 2048, "query"), ("x" * 2048, "body")):
            response = ask("/magiclink", f"https://app.example.com/{target}", place)
            assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.everything() == before


class TestOpeningALink:
    def test_hostile_target_is_replaced_with_the_button_and_when_the_link_fails(self, client, link):
        for target in HOSTILE:
            token = link()
            page = client.get(path("magiclink", token, redirect_to=target), headers=BROWSER)
            assert (page.status_code, "Location" in page.headers) == (200, False)
            policy = page.headers["Content-Security-Policy"]
            assert "form-action 'self';" in policy, target
            assert leads_to(press(client, "magiclink", token, redirect_to=target)), target
            for use_link in (follow, press):
                response = use_link(client, "magiclink", "x" * 43, redirect_to=target)
                assert fragment(response, SITE)["error"] == "access_denied", target

    def test_hostile_target_is_replaced_with_an_authorization_code(self, client, alice, outbox, database):
        client.post("/magiclink", json={"email": alice.email, "code_challenge": CHALLENGE})
        token = outbox.last().token
        for target in HOSTILE:
            assert list(query(follow(client, "magiclink", token, redirect_to=target), SITE)) == ["code"]
            database.run("UPDATE one_time_tokens SET spent_at = NULL")

    @pytest.mark.parametrize("use_link", [follow, press])
    def test_allowed_target_is_used_and_the_site_is_the_default(self, client, link, use_link):
        assert leads_to(use_link(client, "magiclink", link()))
        for target in GOOD.split():
            assert leads_to(use_link(client, "magiclink", link(), redirect_to=target), target)

    @cases(
        ("target", "location"),
        [
            ("https://app.example.com/?x=1#/a?b#c", "https://app.example.com/?x=1&code=CODE#/a?b#c"),
            ("https://app.example.com/x?", "https://app.example.com/x?code=CODE"),
            ("HTTPS://APP.Example.com:443/{x}|^`", "HTTPS://APP.Example.com:443/%7Bx%7D%7C%5E%60?code=CODE"),
            ("myapp:///callback", "myapp:///callback?code=CODE"),
            ("MyApp://Callback", "MyApp://Callback?code=CODE"),
        ],
    )
    def test_code_is_added_to_the_target_as_it_was_sent(self, make_app, alice, database, target, location):
        allowed = "myapp:///callback,myapp://callback"
        app = make_app(AUTH_SITE_URL=SITE, AUTH_REDIRECT_ALLOW_LIST=allowed)
        client, outbox = app.test_client(), Outbox(app.extensions["latchkey"], database)
        body = {"email": alice.email, "code_challenge": CHALLENGE, "redirect_to": target}
        assert client.post("/magiclink", json=body).status_code == 200
        redirected_to = follow(client, "magiclink", outbox.last().token).headers["Location"]
        assert redirected_to == location.replace(
            "CODE", redirected_to.partition("code=")[2].partition("#")[0]
        )

    @cases("target", ["https://app.example.com/#/reset", "https://app.example.com/#access_token=of-mallory"])
    def test_tokens_take_the_place_of_the_fragment(self, client, link, target):
        response = follow(client, "magiclink", link(), redirect_to=target)
        assert response.location.startswith("https://app.example.com/#access_token=")
        assert ("of-mallory" in response.location, response.location.count("#")) == (False, 1)
        assert leads_to(response, "https://app.example.com/")

    def test_target_of_the_request_is_used_as_long_as_it_is_allowed(self, client, ask, make_app, outbox):
        ask("/magiclink", "https://exact.example.com/cb")
        later_client = make_app(**PUBLIC).test_client()
        assert leads_to(follow(later_client, "magiclink", outbox.last().token))
        ask("/magiclink", "https://exact.example.com/cb")
        response = follow(client, "magiclink", outbox.last().token, redirect_to="")
        assert leads_to(response, "https://exact.example.com/cb")
