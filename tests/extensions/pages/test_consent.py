"""Authorization requests of applications on our pages: the steps before and after consent."""

import re

import pytest

from tests.support.cases import cases
from tests.support.factors import App, set_up
from tests.support.links import SITE
from tests.support.openid import (
    REDIRECT_URI,
    answer,
    authorize_path,
    insert_client,
    insert_public_client,
)
from tests.support.pages import Visitor, words
from tests.support.server import at_once
from tests.support.users import PASSWORD

PASS_TWENTY_MINUTES = "UPDATE sessions SET created_at = created_at - interval '20 minutes', reauthenticated_at = NULL, factor_proved_at = NULL"

ONLY_CODES = {"grant_types": ["authorization_code"]}


@pytest.fixture
def client_id(database) -> str:
    return insert_client(database)


@pytest.fixture
def browser(app, alice) -> Visitor:
    return Visitor(app).with_session_of(alice)


@pytest.fixture
def granted(browser, client_id) -> str:
    """A client that Alice has allowed what `authorize_path` asks for."""
    browser.visit(authorize_path(client_id))
    allow(browser)
    return client_id


def allow(visitor: Visitor) -> str:
    """Press Allow, and return the code."""
    return answer(visitor.press("oauth/consent", action="approve").url)["code"]


def asks(visitor: Visitor) -> bool:
    """Whether the page asks for consent."""
    return visitor.page.url.startswith(f"{SITE}/oauth/consent?") and "Allow</button>" in visitor.page.text


class TestStory:
    def test_visitor_signs_in_agrees_and_goes_back_with_a_code(self, visitor, alice, client_id, database):
        visitor.visit(authorize_path(client_id, scope="openid profile groups"))
        assert visitor.page.url.startswith(f"{SITE}/sign-in?next=oauth%2Fconsent")
        assert "to continue to Grafana" in words(visitor.page)
        assert "Your session has ended" not in visitor.page.text
        visitor.submit(email=alice.email, password=PASSWORD)
        assert asks(visitor)
        page_text = words(visitor.page)
        for text in ("grafana.example.com", "See your name, picture and language", "See your groups"):
            assert text in page_text
        assert "email address" not in page_text
        assert alice.email in visitor.page.text
        result = answer(visitor.press("oauth/consent", action="approve").url)
        assert result == {"code": result["code"], "state": "a state & more", "iss": SITE}
        row = database.one("SELECT * FROM oauth_requests")
        assert (row.user_id, row.redirect_uri) == (alice.id, REDIRECT_URI)
        assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "profile", "groups"]

    def test_page_names_the_resource_that_a_client_asks_for(self, visitor, alice, database):
        client_id = insert_client(database, is_dynamic=True)
        visitor.signed_in_as(alice).visit(authorize_path(client_id, resource="https://mcp.example.com/x"))
        assert "It gets access to https://mcp.example.com/x" in words(visitor.page)

    def test_page_links_the_policy_and_terms_of_an_application(self, browser, database):
        uris = {"policy_uri": "https://agent.example/privacy?a=1&b", "tos_uri": "https://law.example/tos"}
        page = browser.visit(authorize_path(insert_client(database, is_dynamic=True, **uris)))
        for uri, text in (
            ("https://agent.example/privacy?a=1&amp;b", "Its privacy policy, at agent.example"),
            ("https://law.example/tos", "Its terms of service, at law.example"),
        ):
            assert f'<a href="{uri}" target="_blank" rel="noopener noreferrer">' in page.text
            assert text in words(page)

    @cases(
        ("settings", "columns", "sentence"),
        [
            ({}, {}, ", remove it in your account, or don’t use it for 30 days."),
            (
                {"AUTH_SESSION_TIMEBOX": "86400"},
                {},
                ", remove it in your account, or after 24 hours at the latest.",
            ),
            ({}, ONLY_CODES, ", remove it in your account, or after an hour at the latest."),
        ],
    )
    def test_page_says_how_long_the_access_lasts(
        self, make_app, alice, database, settings, columns, sentence
    ):
        visitor = Visitor(make_app(**settings)).with_session_of(alice)
        page = visitor.visit(authorize_path(insert_client(database, **columns)))
        assert "Access ends when you sign out" + sentence in words(page)

    def test_new_user_comes_back_after_the_sign_up(self, visitor, client_id, outbox):
        visitor.visit(authorize_path(client_id))
        visitor.visit(visitor.link("Create an account") or "")
        visitor.submit(email="dave@example.com", password=PASSWORD)
        visitor.press("sign-up/verify", code=outbox.last("dave@example.com").code)
        assert asks(visitor)

    def test_cancel_goes_back_with_access_denied(self, browser, client_id, database):
        browser.visit(authorize_path(client_id))
        result = answer(browser.press("oauth/consent", action="deny").url)
        assert (result["error"], result["iss"]) == ("access_denied", SITE)
        assert (database.count("oauth_requests"), database.count("oauth_grants")) == (0, 0)


class TestAutomaticApproval:
    def test_user_who_has_agreed_is_not_asked_again(self, browser, granted, database):
        for scope in ("openid email", "openid"):
            assert answer(browser.visit(authorize_path(granted, scope=scope)).url)["code"]
        assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]

    @cases(
        "parameters",
        [
            {"scope": "openid email phone"},
            {"prompt": "consent"},
            {"prompt": "select_account"},
            {"prompt": "consent select_account"},
        ],
    )
    def test_user_who_has_agreed_is_asked_again_for_more_scopes_or_by_a_prompt(
        self, browser, granted, database, parameters
    ):
        for skips in ("false", "true"):
            database.run(f"UPDATE oauth_clients SET skip_consent = {skips}")
            browser.visit(authorize_path(granted, **parameters))
            assert asks(browser) or (skips == "true" and "scope" in parameters)

    @cases(
        ("uri", "columns"),
        [
            (REDIRECT_URI, {"is_dynamic": True}),
            ("http://127.0.0.1:1/callback", {}),
            ("com.example.app:/callback", {}),
        ],
    )
    def test_client_that_any_program_may_claim_to_be_asks_again(
        self, browser, granted, database, uri, columns
    ):
        client_id = insert_public_client(database, uri, **columns)
        database.run("UPDATE oauth_grants SET client_id = %(id)s", id=client_id)
        browser.visit(authorize_path(client_id, redirect_uri=uri))
        assert asks(browser)
        assert ("registered itself" in browser.page.text) == bool(columns)
        assert ("an app on this device" in words(browser.page)) != bool(columns)

    def test_hint_of_another_user_shows_the_account(self, browser, granted, bob, parts, database):
        claims = {"sub": bob.id, "aud": granted, "auth_time": 0}
        hint = parts.client_tokens.id_token(claims, issued_at=0, algorithm="RS256")
        browser.visit(authorize_path(granted, id_token_hint=hint))
        assert asks(browser)
        assert allow(browser)
        assert database.count("oauth_requests", "user_id = %(id)s", id=bob.id) == 0


class TestNewSignIn:
    """prompt=login and max_age."""

    @cases("parameters", [{"prompt": "login"}, {"max_age": "600"}, {"max_age": "0"}])
    def test_page_names_the_application_and_asks_for_the_password_or_goes_back(
        self, browser, granted, database, parameters
    ):
        database.run(PASS_TWENTY_MINUTES)
        page = browser.visit(authorize_path(granted, **parameters))
        assert page.url.startswith(f"{SITE}/account/confirm?next=oauth")
        assert "Grafana asks you to sign in again." in words(page)
        assert "sensitive change" not in page.text
        assert answer(browser.press("oauth/consent").url)["error"] == "login_required"
        assert database.count("oauth_requests", "code_hash IS NULL") == 0
        browser.visit(authorize_path(granted, **parameters))
        page = browser.press("account/confirm", current_password="Wrong-Horse-1")
        assert "That isn’t your password." in page.text
        assert answer(browser.press("account/confirm", current_password=PASSWORD).url)["code"]

    def test_user_with_a_factor_is_asked_for_it_even_a_moment_after_its_last_use(
        self, visitor, alice, client_id, database
    ):
        app: App = set_up(alice.open_session())[0]
        visitor.visit("/sign-in")
        visitor.submit(email=alice.email, password=PASSWORD)
        visitor.press("second-step", code=app.code())
        database.run("UPDATE factors SET last_step = NULL")
        visitor.visit(authorize_path(client_id, prompt="login"))
        assert visitor.page.url.startswith(f"{SITE}/second-step?next=oauth")
        assert "Grafana asks you to sign in again." in words(visitor.page)
        visitor.press("second-step", code=app.code())
        assert allow(visitor)

    def test_young_session_is_enough_for_max_age(self, browser, granted):
        assert answer(browser.visit(authorize_path(granted, max_age="600")).url)["code"]

    def test_form_does_not_go_around_the_new_sign_in(self, browser, client_id, database):
        browser.visit(authorize_path(client_id, max_age="600"))
        assert asks(browser)
        database.run(
            "UPDATE oauth_requests SET prompts = '{login}', created_at = now() + interval '1 second'"
        )
        page = browser.press("oauth/consent", action="approve")
        assert page.url.startswith(f"{SITE}/account/confirm?next=oauth")
        assert database.count("oauth_grants") == 0

    def test_visitor_who_signs_in_for_the_request_is_not_asked_twice(self, visitor, alice, client_id):
        visitor.visit(authorize_path(client_id, prompt="login", max_age="0"))
        visitor.submit(email=alice.email, password=PASSWORD)
        assert asks(visitor)


def test_user_without_an_allowed_role_gets_a_403_and_a_way_back(browser, granted, database):
    database.run("UPDATE oauth_clients SET allowed_roles = '{editor}'")
    page = browser.visit(authorize_path(granted))
    texts = "You can’t use" in page.text, "Allow</button>" in page.text
    assert (page.status, *texts) == (403, True, False)
    # A form that was open before.
    assert browser.press("oauth/consent", action="approve").status == 403
    result = answer(browser.press("oauth/consent", action="deny").url)
    refusal = ("access_denied", "User may not use this application")
    assert (result["error"], result["error_description"]) == refusal


class TestAttacks:
    def test_attackers_own_request_does_not_sign_the_victim_in(self, app, browser, client_id, database):
        """Login CSRF by the attacker's authorization_id, and a code for the attacker by the victim's."""
        attacker = Visitor(app)
        attacker.visit(authorize_path(client_id))
        url = attacker.page.url.replace(
            "sign-in?next=oauth%2Fconsent%3Fauthorization_id%3D", "oauth/consent?authorization_id="
        )
        for _ in range(2):
            assert "You’re signed in" in words(browser.visit(url))
            assert "Allow" not in words(browser.page)
            # The second time, the victim's browser has the cookie of a request of its own.
            browser.visit(authorize_path(client_id))
        form = {"authorization_id": url.partition("=")[2], "action": "approve"}
        page = browser.send("/oauth/consent", **form)
        assert (page.status, "started in another browser" in page.text) == (404, True)
        assert (database.count("oauth_grants"), database.count("oauth_requests", "user_id IS NOT NULL")) == (
            0,
            0,
        )

    @cases(
        ("state", "is_known"),
        [("expires_at = now()", True), ("approval_hash = 'x'", True), ("id_hash = 'x'", False)],
    )
    def test_page_of_a_finished_request_leads_to_the_application(
        self, browser, client_id, database, state, is_known
    ):
        database.run("DELETE FROM oauth_requests")
        browser.visit(authorize_path(client_id))
        url, form = browser.page.url, {**browser.page.forms[0].fields, "action": "approve"}
        database.run(f"UPDATE oauth_requests SET {state}")
        page = browser.visit(url)
        assert (page.status, "Go to Grafana" in words(page)) == (200 if is_known else 404, is_known)
        page = browser.post(f"{SITE}/oauth/consent", form)
        assert (page.status, "Go back to the application" in page.text) == (404, True)
        assert ("Go to Grafana" in words(page)) is is_known
        assert database.count("oauth_grants") == 0

    def test_form_of_another_site_or_account_is_refused(self, app, browser, bob, client_id, database):
        browser.visit(authorize_path(client_id))
        url, form = browser.page.url, {**browser.page.forms[0].fields, "action": "approve"}
        browser.be_at("https://evil.example/")
        assert browser.post(f"{SITE}/oauth/consent", form).status in (403, 404)
        # Another window has signed in as Bob since the page was shown.
        browser.cookies = [each for each in browser.cookies if each.name == "latchkey_authorize"]
        browser.with_session_of(bob).be_at(url)
        page = browser.post(f"{SITE}/oauth/consent", form)
        assert (page.status, bob.email in page.text, "in another window" in page.text) == (403, True, True)
        assert database.count("oauth_grants") == 0

    @cases(
        ("uri", "target"),
        [(REDIRECT_URI, ""), ("com.example.app:/callback", " com.example.app:")],
    )
    def test_page_may_not_be_framed_and_leads_to_the_application_alone(self, browser, database, uri, target):
        """Clickjacking (RFC 9700, section 4.16)."""
        logo = "https://cdn.example.com/grafana.svg"
        page = browser.visit(authorize_path(insert_client(database, uri, logo_uri=logo), redirect_uri=uri))
        assert f'<img src="{logo}"' in page.text
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Content-Security-Policy"] == (
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' https://cdn.example.com; "
            f"form-action 'self'{target}; frame-ancestors 'none'; base-uri 'none'"
        )

    def test_name_is_text_and_a_strangers_logo_not_loaded(self, browser, database):
        logo, name = "https://mallory.example.com/google.svg", "<b>" + "Grafana " * 50
        page = browser.visit(
            authorize_path(insert_client(database, is_dynamic=True, name=name, logo_uri=logo))
        )
        assert re.search(r'<bdi translate="no">&lt;b&gt;(Grafana )*Graf…</bdi>', page.text)
        assert "<img" not in page.text
        assert "mallory" not in page.text + page.headers["Content-Security-Policy"]

    def test_fifty_approvals_at_once_give_one_code(self, app, alice, client_id, database):
        visitor = Visitor(app).with_session_of(alice)
        visitor.visit(authorize_path(client_id))
        form = {**visitor.page.forms[0].fields, "action": "approve"}
        headers = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in visitor.cookies)}
        headers["Accept"] = "text/html"
        client = app.test_client(use_cookies=False)
        pages = at_once(50, lambda _: client.post("/oauth/consent", data=form, headers=headers))
        assert sorted(page.status_code for page in pages) == [200] + [404] * 49
        assert database.count("oauth_requests", "code_hash IS NOT NULL") == 1
        assert database.count("audit_log", "action = 'grant_added'") == 1
