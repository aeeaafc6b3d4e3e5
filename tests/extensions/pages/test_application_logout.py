"""Applications sign the browser out: /oauth/logout (OpenID Connect RP-Initiated Logout 1.0), and /sign-out."""

import time
import uuid
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from auth.html.forms import SESSION
from auth.web.application import FORM
from tests.support.cases import cases
from tests.support.environment import BASE_URL
from tests.support.links import CHALLENGE, SITE, VERIFIER
from tests.support.openid import REDIRECT_URI, granted_code, insert_client, make_client
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import session_of

APP = "https://grafana.example.com"
BACK = f"{APP}/signed-out?from=latchkey"
UNREGISTERED = "We can’t send you back to the application, because its return address isn’t registered."


@pytest.fixture
def client_id(database) -> str:
    return insert_client(database, post_logout_redirect_uris=[BACK])


@pytest.fixture
def hint(parts, alice, client_id):
    """Make an ID token, an hour old and expired."""
    parts.openid_keys.make_first()

    def hint(sub=alice.id, aud=client_id, **claims):
        payload = {"sub": sub, "aud": aud, "auth_time": 0, **claims}
        return parts.client_tokens.id_token(payload, issued_at=int(time.time()) - 7200, algorithm="RS256")

    return hint


def path(**parameters):
    query = {"post_logout_redirect_uri": BACK, "state": "a state & more", **parameters}
    return f"/oauth/logout?{urlencode({name: value for name, value in query.items() if value})}"


def is_signed_in(visitor) -> bool:
    return visitor.visit("/account").url == f"{SITE}/account"


def test_application_with_an_expired_id_token_signs_the_browser_out(app, alice, hint, database):
    visitor = Visitor(app).with_session_of(alice)
    session = alice.open_session()
    other_browser = Visitor(app).with_session_of(alice)
    visitor.be_at(APP)
    assert visitor.click(SITE + path(id_token_hint=hint())).url == f"{BACK}&state=a%20state%20%26%20more"
    assert not visitor.session_cookie
    assert not is_signed_in(visitor)
    assert is_signed_in(other_browser)
    assert session.get("/user").status_code == 200
    assert database.value("SELECT details ->> 'scope' FROM audit_log WHERE action = 'signed_out'") == "local"
    # The browser is signed out already.
    assert visitor.visit(path(id_token_hint=hint(), state=None)).url == BACK


def test_sign_out_ends_the_sessions_that_applications_got_from_the_browser(
    app, client, alice, hint, database
):
    visitor, grafana = Visitor(app).with_session_of(alice), make_client(database)
    browser_session_id = database.value("SELECT session_id FROM browser_sessions")
    grafana_code = granted_code(database, grafana, alice.open_session(), session_id=browser_session_id)
    tokens = grafana.redeem(client, grafana_code, redirect_uri=REDIRECT_URI).json
    visitor.visit(f"/sign-in?redirect_to={SITE}/health&code_challenge={CHALLENGE}")
    code = visitor.press("sign-in/continue").url.partition("?code=")[2]
    proof = {"auth_code": code, "code_verifier": VERIFIER}
    session = session_of(client, client.post("/token?grant_type=pkce", json=proof))
    assert session.get("/user").status_code == 200

    visitor.visit(path(id_token_hint=hint(aud=grafana.id), post_logout_redirect_uri=None))
    assert not is_signed_in(visitor)
    assert session.get("/user").status_code == 401
    assert grafana.refresh(client, tokens["refresh_token"]).status_code == 400
    assert database.count("oauth_grants") == 1


def test_form_with_an_id_token_that_fits_in_no_url_signs_the_browser_out(app, alice, hint, client_id):
    visitor = Visitor(app).with_session_of(alice)
    visitor.be_at(APP)
    long_token = hint(groups=[f"{number:036}" for number in range(240)])
    assert len(long_token) > 11_000
    form = {
        "id_token_hint": long_token,
        "client_id": client_id,
        "post_logout_redirect_uri": BACK,
        "state": "x y",
    }
    assert visitor.post(f"{SITE}/oauth/logout", form).url == f"{BACK}&state=x%20y"
    urls = [url for _, url, _ in visitor.requests if url.startswith(f"{SITE}/oauth/logout?")]
    assert [len(url) < 600 for url in urls] == [True]
    # The reference is no ID token.
    (reference,) = parse_qs(urlsplit(urls[0]).query)["id_token_hint"]
    assert reference.count(".") == 0
    assert not is_signed_in(visitor)


def test_reference_to_an_id_token_counts_for_ten_minutes(app, parts, alice, client_id):
    claims = {"sub": alice.id, "aud": client_id}

    def reference(until, purpose="logout hint"):
        return parts.sealer.seal_for_url(claims | {"until": until}, purpose)

    visitor, good = Visitor(app).with_session_of(alice), reference(9e9)
    for hint in (reference(int(time.time()) - 1), reference(9e9, "another purpose"), good[:-2], "\u00fc"):
        visitor.visit(path(id_token_hint=hint, client_id=client_id))
        assert "asks to sign you out" in words(visitor.page)
    visitor.visit(path(id_token_hint=good, client_id=client_id, post_logout_redirect_uri=None))
    assert not is_signed_in(visitor)


def test_without_an_id_token_the_user_is_asked_and_goes_back(app, alice, client_id):
    visitor = Visitor(app).with_session_of(alice)
    visitor.visit(path(client_id=client_id, ui_locales="xx de"))
    text = words(visitor.page)
    assert "Grafana möchte Sie in diesem Browser von localhost:8000 abmelden." in text
    assert f"Sie sind als {alice.email} angemeldet." in text
    assert is_signed_in(visitor)
    visitor.visit(path(client_id=client_id))
    assert visitor.press("oauth/logout/confirm").url == f"{BACK}&state=a%20state%20%26%20more"
    assert not is_signed_in(visitor)


class TestRefusedHints:
    @pytest.fixture
    def refused_hints(self, hint, parts, alice, bob, client_id):
        session = alice.open_session()
        header, payload, signature = hint().split(".")
        claims = {"sub": alice.id, "aud": client_id, "client_id": client_id, "scope": "openid"}
        access_token = parts.client_tokens.issue(claims, issued_at=int(time.time()), lifetime=60)
        return {
            "no hint": {},
            "another user's": {"id_token_hint": hint(sub=bob.id)},
            "another application's": {"id_token_hint": hint(aud=str(uuid.uuid4())), "client_id": client_id},
            "of no application": {"id_token_hint": hint(aud=str(uuid.uuid4()))},
            "of several": {"id_token_hint": hint(aud=[client_id])},
            "forged": {"id_token_hint": f"{header}.{payload}.{signature[::-1]}"},
            "access token": {"id_token_hint": access_token},
            "session token": {"id_token_hint": session.access_token},
            "no token": {"id_token_hint": "x"},
        }

    def test_other_site_cannot_sign_the_user_out(self, app, alice, refused_hints):
        visitor = Visitor(app).with_session_of(alice)
        for name, parameters in refused_hints.items():
            visitor.be_at("https://evil.example")
            visitor.click(SITE + path(**parameters))
            assert visitor.page.url.startswith(f"{SITE}/oauth/logout?"), name
            assert is_signed_in(visitor), name
            visitor.be_at("https://evil.example")
            page = visitor.post(f"{SITE}/oauth/logout", parameters)
            assert page.url.partition("?")[0] == f"{SITE}/oauth/logout", name
            assert is_signed_in(visitor), name
            visitor.be_at("https://evil.example")
            assert visitor.post(f"{SITE}/oauth/logout/confirm", parameters).status in (403, 200), name
            assert is_signed_in(visitor), name

    def test_signed_out_browser_stays_with_us(self, visitor, refused_hints):
        for name, parameters in refused_hints.items():
            if name != "another user's":
                visitor.visit(path(**parameters))
                assert visitor.page.url.startswith(f"{SITE}/oauth/logout?"), name
                assert "signed out" in words(visitor.page), name


class TestRedirects:
    @cases(
        "uri",
        [
            *("https://evil.example/", f"{BACK}/", BACK.upper(), f"{APP}@evil.example"),
            *("//evil.example", "javascript:alert(1)", "x" * 2048, None),
        ],
    )
    def test_other_uri_than_a_registered_one_leads_nowhere(self, app, alice, hint, client_id, uri):
        visitor = Visitor(app).with_session_of(alice)
        for hints in ({}, {"id_token_hint": hint()}):
            visitor.visit(path(client_id=client_id, post_logout_redirect_uri=uri, **hints))
            assert (UNREGISTERED in words(visitor.page)) == (uri is not None)
            if not hints:
                assert is_signed_in(visitor)
                visitor.visit(path(client_id=client_id, post_logout_redirect_uri=uri))
                visitor.press("oauth/logout/confirm")
            assert unsigned(visitor.page).partition("?")[0] == f"{SITE}/sign-out"
            assert "You’re signed out" in words(visitor.page)
            assert not is_signed_in(visitor)
            visitor.with_session_of(alice)

    def test_uri_in_the_form_is_checked_again(self, app, alice, client_id):
        visitor = Visitor(app).with_session_of(alice)
        visitor.visit(path(client_id=client_id))
        page = visitor.send("/oauth/logout/confirm", client_id=client_id, post_logout_redirect_uri=f"{APP}/x")
        assert (page.status, page.url) == (200, f"{SITE}/sign-out")
        assert not is_signed_in(visitor)

    def test_client_that_registered_itself_gets_only_its_own_users_back(self, app, alice, hint, database):
        """Otherwise a stranger could make our page open any website."""
        client_id = insert_client(database, is_dynamic=True, post_logout_redirect_uris=[BACK])
        visitor = Visitor(app)
        visitor.visit(path(id_token_hint=hint(aud=client_id)))
        assert visitor.page.url.startswith(f"{SITE}/oauth/logout?")
        visitor.with_session_of(alice)
        visitor.visit(path(client_id=client_id))
        assert visitor.press("oauth/logout/confirm").url.startswith(SITE)
        visitor.with_session_of(alice)
        assert visitor.visit(path(id_token_hint=hint(aud=client_id))).url.startswith(BACK)


def test_repeated_parameter_is_refused(visitor, client_id):
    page = visitor.visit(f"{path(client_id=client_id)}&client_id={client_id}")
    assert (page.status, page.url.startswith(BASE_URL)) == (400, True)


class TestLinkToSignOut:
    """GET /sign-out?redirect_to=…, for applications that are no clients."""

    BACK = "https://app.example.com/bye?from=latchkey"
    LINK = f"/sign-out?{urlencode({'redirect_to': BACK})}"

    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**")

    def test_button_ends_all_sessions_of_the_browser_and_leads_back(self, app, alice, database):
        visitor = Visitor(app).with_session_of(alice)
        visitor.visit("/sign-in?redirect_to=https://app.example.com/")
        visitor.press("sign-in/continue")
        visitor.be_at("https://app.example.com")
        visitor.click(SITE + self.LINK)
        assert "app.example.com asks to sign you out" in words(visitor.page)
        assert is_signed_in(visitor)
        visitor.visit(self.LINK)
        assert visitor.press("sign-out").url == self.BACK
        assert not visitor.session_cookie
        assert database.count("sessions", "ended_at IS NULL") == 0
        # The browser is signed out already.
        assert visitor.visit(self.LINK).url == self.BACK

    def test_signed_out_browser_has_no_session_and_no_page_kept(self, app, alice):
        visitor = Visitor(app).with_session_of(alice)
        account = visitor.visit("/account")
        assert (account.status, account.headers["Cache-Control"]) == (200, "no-store")
        assert alice.email in account.text
        visitor.visit("/sign-out")
        visitor.press("sign-out")
        assert not visitor.session_cookie
        assert alice.email not in visitor.page.text
        # The browser's cookie no longer opens any page of the account.
        assert alice.email not in visitor.visit("/account").text

    @cases("url", ["https://evil.example/", "//evil.example", "javascript:alert(1)", f"{SITE}/account", ""])
    def test_other_url_leads_nowhere(self, app, alice, url):
        for visitor in (Visitor(app), Visitor(app).with_session_of(alice)):
            page = visitor.visit(f"/sign-out?{urlencode({'redirect_to': url})}")
            if not url.startswith(SITE) and url:
                assert (page.status, "AUTH_REDIRECT_ALLOW_LIST" in words(page)) == (400, True)
                continue
            if visitor.session_cookie:
                visitor.send("/sign-out", redirect_to=url, back="yes")
            assert visitor.page.url.startswith(f"{SITE}/sign-out")
            assert "You’re signed out" in words(visitor.page)


class TestCounts:
    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LOGOUT="2 per 5 minutes")

    def test_strangers_of_the_network_keep_nobody_from_signing_out(self, app, alice, bob, hint, client_id):
        stranger, form = app.test_client(use_cookies=False), {"content_type": FORM}
        for _ in range(5):
            for answer in (stranger.post("/oauth/logout", **form), stranger.get(path(client_id=client_id))):
                assert answer.status_code in (200, 303)
                assert not [name for name in dict(answer.headers) if name.startswith("X-RateLimit")]
            response = stranger.get(path(id_token_hint=hint()), headers={"Cookie": f"{SESSION}={'x' * 43}"})
            assert (response.status_code, response.headers["Location"].partition("?")[0]) == (
                303,
                f"{APP}/signed-out",
            )
        for person, way in ((alice, "hint"), (bob, "question")):
            visitor = Visitor(app).with_session_of(person)
            if way == "hint":
                fields = {"id_token_hint": hint(), "client_id": client_id, "post_logout_redirect_uri": BACK}
                visitor.be_at(APP)
                assert visitor.post(f"{SITE}/oauth/logout", fields).url == BACK
            else:
                visitor.visit(path(client_id=client_id))
                assert visitor.press("oauth/logout/confirm").url == f"{BACK}&state=a%20state%20%26%20more"
            assert not is_signed_in(visitor)
