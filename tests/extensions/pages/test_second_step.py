"""Second factors and passkeys on the pages: at the sign-in, and in the account."""

import html
import json
import re
import uuid
from urllib.parse import parse_qs, urlencode, urljoin

import pytest

from auth.html.forms import FIELD
from auth.web.declarations import route_of
from sql import queries
from tests.support import passkeys
from tests.support.api_keys import insert_key
from tests.support.authenticator import Authenticator
from tests.support.factors import App, set_up
from tests.support.links import CHALLENGE, SITE, VERIFIER
from tests.support.pages import Visitor, unsigned, words
from tests.support.user_agent import Page
from tests.support.users import PASSWORD, session_of

TARGET = "https://app.example.com/signed-in"
TARGET_QUERY = f"?{urlencode({'redirect_to': TARGET, 'code_challenge': CHALLENGE})}"
AGE_FACTOR_PROOF = "UPDATE sessions SET factor_proved_at = now() - interval '16 minutes'"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_REDIRECT_ALLOW_LIST=TARGET)


@pytest.fixture
def codes(alice) -> App:
    """Alice's authenticator app."""
    return set_up(alice.open_session())[0]


@pytest.fixture
def both_steps(visitor, codes) -> None:
    """Alice has signed in with both steps."""
    sign_in(visitor)
    visitor.press("second-step", code=codes.code())


def sign_in(visitor: Visitor, query: str = "") -> None:
    visitor.visit(f"/sign-in{query}")
    visitor.press("sign-in", email="alice@example.com", password=PASSWORD)


def app_of_page(page: Page) -> App:
    """Return an app with the secret that the page shows."""
    secret = page.text.partition('<code translate="no">')[2].partition("</code>")[0]
    return App("", secret.replace(" ", ""))


def session_of_code(client, url: str):
    """Return the session for the code with which the browser has come back to the application."""
    assert url.startswith(f"{TARGET}?code="), url
    body = {"auth_code": parse_qs(url.partition("?")[2])["code"][0], "code_verifier": VERIFIER}
    return session_of(client, client.post("/token?grant_type=pkce", json=body))


def test_continuing_makes_no_network_known(visitor, client, alice, database):
    """Otherwise a cookie thief's wrong passwords would count for the user's network."""
    visitor.with_session_of(alice)
    database.run("DELETE FROM known_networks")
    visitor.visit(f"/sign-in{TARGET_QUERY}")
    session_of_code(client, visitor.press("sign-in/continue").url)
    assert (database.count("sessions"), database.count("known_networks")) == (2, 0)


@pytest.mark.parametrize("setting", ["none", "all"])
@pytest.mark.parametrize("has_factor", [True, False])
def test_sign_in_makes_the_browser_known_once_no_step_of_its_user_is_missing(
    make_app, alice, database, setting, has_factor
):
    """A step that every user must have is missing, but nobody can pass it before it is added."""
    visitor = Visitor(make_app(AUTH_MFA_REQUIRED=setting))
    app, _session = set_up(alice.open_session()) if has_factor else (None, None)
    visitor.signed_in_as(alice)
    known = database.count("known_networks", "network LIKE 'browser %%'")
    assert known == (0 if has_factor else 1)
    if app:
        visitor.press("second-step", code=app.code())
        assert database.count("known_networks", "network LIKE 'browser %%'") == 1


def test_browser_of_a_deleted_user_becomes_known_to_nobody(parts, database):
    """The user may be deleted while a sign-in ends."""
    queries.know_browser(parts.db, session_id=str(uuid.uuid4()), browser="browser x")
    assert database.count("known_networks") == 0


@pytest.mark.parametrize("path", ["/second-step", "/second-step/passkey", "/second-step/key"])
def test_each_factor_counts_as_a_sign_in_in_the_metrics(app, path):
    endpoints = [rule.endpoint for rule in app.url_map.iter_rules() if rule.rule == path]
    assert "factor" in {route_of(app.view_functions[endpoint]).sign_in for endpoint in endpoints}


def test_user_with_a_passkey_can_defend_the_account_when_passkeys_are_disabled(make_app, alice, database):
    authenticator, passkey = passkeys.register(alice.open_session())
    thief = alice.open_session()
    visitor = Visitor(make_app(AUTH_PASSKEYS_ENABLED="false"))
    sign_in(visitor)

    def prove() -> Page:
        credential = json.dumps(authenticator.get(visitor.passkey_options))
        return visitor.press("second-step/passkey", credential=credential)

    assert prove().url == f"{SITE}/account"
    visitor.press("account/sessions/end-others")
    assert thief.get("/user").status_code == 401
    database.run(AGE_FACTOR_PROOF)
    removal = f"/account/remove?kind=passkey&id={passkey['id']}"
    assert visitor.visit(removal).url.startswith(f"{SITE}/second-step?next=")
    assert prove().url == f"{SITE}{removal}"
    visitor.press("account/remove")
    assert database.count("factors") == 0
    # No passkey is added, and none signs in.
    assert [visitor.visit(path).status for path in ("/account/passkeys/new", "/sign-in/passkey")] == [
        404,
        404,
    ]


class TestAuthenticatorApp:
    def test_password_alone_opens_nothing_and_the_code_the_account_under_a_new_cookie(self, visitor, codes):
        sign_in(visitor)
        for path in ("/account", "/account/data", "/account/email", "/new-password"):
            assert visitor.visit(path).url.startswith(f"{SITE}/second-step?next=")
        before = visitor.session_cookie
        assert "That code is wrong." in visitor.press("second-step", code=codes.wrong_code()).text
        visitor.visit("/account")
        form, cookies = visitor.page.forms[0].fields | {"code": codes.code()}, visitor.cookies
        assert visitor.post(f"{SITE}/second-step", form).url == f"{SITE}/account"
        assert visitor.session_cookie.value != before.value
        assert visitor.visit("/second-step").url == f"{SITE}/account"
        # The form was sent twice, and the second response comes after the first has renewed the cookie.
        visitor.cookies = cookies
        assert "error_code=session_expired" in visitor.post(f"{SITE}/second-step", form).url
        assert visitor.session_cookie

    @pytest.mark.parametrize("way", ["second-step", "second-step/recovery"])
    def test_form_that_is_sent_twice_goes_on_and_gives_no_cookie(self, visitor, alice, database, way):
        """A double click does so without JavaScript; a new cookie would help a thief of the first one."""
        app, session = set_up(alice.open_session())
        code = session.post("/factors/recovery-codes", json={}).json["codes"][0]
        sign_in(visitor)
        before = visitor.page
        form = {"recovery_code": code} if way.endswith("recovery") else {"code": app.code()}
        assert visitor.press(way, **form).url == f"{SITE}/account"
        hashes = database.all("SELECT token_hash FROM browser_sessions")
        # Sent before the answer with the new cookie, and after it.
        current = {FIELD: visitor.page.forms[0].fields[FIELD]}
        assert visitor.post(f"{SITE}/{way}", form | current).url == f"{SITE}/account"
        visitor.page = before
        assert visitor.press(way, **form).url == f"{SITE}/account"
        assert database.all("SELECT token_hash FROM browser_sessions") == hashes
        # Without the step, the same code is refused.
        visitor.press("sign-out")
        sign_in(visitor)
        page = visitor.press(way, **form)
        assert (page.status, "is wrong" in page.text) == (422, True)

    def test_application_gets_a_session_of_its_level_and_age(self, visitor, codes, client, database):
        sign_in(visitor, TARGET_QUERY)
        assert "One more step" in visitor.page.text
        session = session_of_code(client, visitor.press("second-step", code=codes.code()).url)
        assert session.get("/sessions").status_code == 200
        database.run(AGE_FACTOR_PROOF)
        visitor.visit(f"/sign-in{TARGET_QUERY}")
        session = session_of_code(client, visitor.press("sign-in/continue").url)
        response = session.put("/user", json={"password": "Another-Horse-1"})
        assert (response.status_code, response.json["error_code"]) == (400, "reauthentication_needed")

    def test_link_of_another_site_does_not_open_a_session(self, visitor, both_steps, database):
        visitor.be_at("https://evil.example/")
        page = visitor.click(f"{SITE}/second-step?{urlencode({'redirect_to': TARGET})}")
        assert page.url.startswith(f"{SITE}/sign-in?redirect_to=")
        assert "Continue as" in page.text
        assert database.count("sessions", "opened_by IS NOT NULL") == 0

    def test_page_says_before_a_first_factor_what_it_ends(self, visitor, alice, database):
        sentence = "You’ll be signed out on other devices and in connected applications."
        visitor.signed_in_as(alice)
        text = words(visitor.visit("/account/two-step"))
        assert (sentence in text, "Your API keys will stop working." in text) == (True, False)
        insert_key(database, alice.id)
        text = words(visitor.visit("/account/two-step"))
        assert f"{sentence} Your API keys will stop working." in text
        app = app_of_page(visitor.press("account/two-step"))
        visitor.press("verify", code=app.code())
        assert sentence not in words(visitor.visit("/account/two-step"))
        assert database.count("api_keys") == 0

    def test_secret_is_shown_once_and_what_was_scanned_stays_good(self, app, visitor, alice, database):
        """A copy of the cookie must not read the secret of an app that the owner is adding."""
        visitor.signed_in_as(alice)
        visitor.visit("/account/two-step")
        first_page = visitor.press("account/two-step")
        codes = app_of_page(first_page)
        verify_url = f"{SITE}/account/two-step/verify?factor_id={first_page.forms[0].fields['factor_id']}"
        thief = Visitor(app)
        thief.cookies = list(visitor.cookies)
        wrong = visitor.press("account/two-step/verify", code=codes.wrong_code())
        german = visitor.press("preferences", language="de")
        for page in (wrong, german, visitor.visit(verify_url), thief.visit(verify_url)):
            assert app_of_page(page).secret == ""
            assert "<svg" not in page.text.partition('class="qr"')[2]
        assert german.url == verify_url
        assert "Neuen Code zum Scannen anzeigen" in words(german)
        # A new code begins anew, with the proof that the first one took.
        database.run(AGE_FACTOR_PROOF.replace("factor_proved_at =", "created_at ="))
        assert thief.visit("/account/two-step").url.startswith(f"{SITE}/account/confirm")
        visitor.visit(verify_url)
        visitor.press("account/two-step/verify", code=codes.code())
        assert database.count("factors", "verified_at IS NOT NULL") == 1

    def test_new_recovery_codes_by_an_app_verified_before_are_told_to_the_user(
        self, visitor, both_steps, codes, database
    ):
        """A forged form may name an app that was verified long ago."""
        database.run("UPDATE factors SET last_step = 0")
        visitor.visit("/account/two-step")
        (app,) = database.all("SELECT id FROM factors")
        page = visitor.send("/account/two-step/verify", factor_id=str(app.id), code=codes.code())
        assert (page.status, database.count("recovery_codes")) == (200, 10)
        assert "recovery_codes_created" in {row.kind for row in database.all("SELECT kind FROM outbox")}

    def test_limit_of_apps_is_named(self, visitor, both_steps, alice, database):
        database.run(
            "INSERT INTO factors (id, user_id, factor_type, friendly_name, secret, verified_at)"
            " SELECT gen_random_uuid(), %(id)s, 'totp', n, '', now() FROM generate_series(1, 10) AS n",
            id=alice.id,
        )
        visitor.visit("/account/two-step")
        page = visitor.press("account/two-step")
        assert page.status == 422
        assert "You’ve reached the limit of apps and keys. Remove one first." in words(page)
        assert database.count("factors") == 11

    def test_factor_of_another_user_is_not_renamed(self, visitor, alice, bob):
        app, _session = set_up(bob.open_session())
        assert visitor.with_session_of(alice).visit(f"/account/rename?id={app.id}").status == 404

    def test_required_factor_is_set_up_first_and_leads_back_to_the_application(self, make_app, alice):
        visitor = Visitor(make_app(AUTH_MFA_REQUIRED="all", AUTH_REDIRECT_ALLOW_LIST=TARGET))
        sign_in(visitor)
        page = visitor.visit("/account")
        assert (page.url, "requires a second step" in page.text) == (f"{SITE}/account/two-step", True)
        assert visitor.press("sign-out").url.endswith("/sign-out")
        sign_in(visitor, TARGET_QUERY)
        visitor.press("account/two-step")
        assert "data:" not in visitor.page.headers["Content-Security-Policy"]
        app = app_of_page(visitor.page)
        visitor.press("verify", code=app.wrong_code())
        visitor.press("verify", code=app.code())
        match = re.search(r'class="button" href="([^"]+)"', visitor.page.text)
        assert match
        visitor.visit(urljoin(visitor.page.url, html.unescape(match[1])))
        assert f"Continue as {alice.email}" in words(visitor.page)
        assert visitor.press("sign-in/continue").url.startswith(f"{TARGET}?code=")


class TestPasskeys:
    @pytest.fixture
    def authenticator(self, visitor, alice, database) -> Authenticator:
        """An authenticator with a passkey that Alice created on the pages."""
        authenticator = Authenticator()
        visitor.signed_in_as(alice).visit("/account/passkeys/new")
        credential = json.dumps(authenticator.create(visitor.passkey_options))
        # It has verified its user, so it counts as the second step of this session.
        page = visitor.press("account/passkeys", credential=credential)
        assert unsigned(page) == f"{SITE}/account?done=passkey_added#security"
        assert "The passkey has been added." in words(page)
        assert database.value("SELECT aal FROM sessions WHERE ended_at IS NULL") == "aal2"
        return authenticator

    def test_passkey_alone_may_be_skipped_on_the_way_to_the_application(self, app, authenticator, client):
        visitor = Visitor(app)
        sign_in(visitor, TARGET_QUERY)
        assert visitor.page.url.startswith(f"{SITE}/second-step?")
        assert "Not now" in words(visitor.page)
        session = session_of_code(client, visitor.press("second-step/skip").url)
        assert (session.claims["aud"], session.claims["aal"]) == ("authenticated", "aal1")
        assert session.delete("/user").json["error_code"] == "insufficient_aal"
        # Our own pages still ask.
        for path in ("/account", "/account/email"):
            page = visitor.visit(path)
            assert page.url.startswith(f"{SITE}/second-step?next=")
            assert "Not now" not in words(page)
        assert "Not now" not in words(visitor.visit(f"/second-step{TARGET_QUERY}&next=email"))
        # The next application is continued to after the same question.
        visitor.visit(f"/sign-in{TARGET_QUERY}")
        visitor.press("sign-in/continue")
        assert visitor.press("second-step/skip").url.startswith(f"{TARGET}?code=")

    @pytest.mark.parametrize("required", ["none", "all"])
    def test_step_that_is_missing_is_not_skipped(self, make_app, authenticator, alice, database, required):
        visitor = Visitor(make_app(AUTH_MFA_REQUIRED=required, AUTH_REDIRECT_ALLOW_LIST=TARGET))
        if required == "none":
            set_up(passkeys.sign_in(alice.client, authenticator))
        sign_in(visitor, TARGET_QUERY)
        assert "Not now" not in words(visitor.page)
        form = next(form for form in visitor.page.forms if form.action.endswith("sign-out")).fields
        page = visitor.post(f"{SITE}/second-step/skip", form)
        assert page.url.startswith(f"{SITE}/second-step?")
        assert database.count("sessions", "opened_by IS NOT NULL") == 0


def test_first_code_is_taken_only_in_the_session_that_began(app, visitor, alice, database):
    visitor.signed_in_as(alice)
    visitor.visit("/account/two-step")
    page = visitor.press("account/two-step")
    verify_url = f"{SITE}/account/two-step/verify?factor_id={page.forms[0].fields['factor_id']}"
    thief = Visitor(app).signed_in_as(alice)
    assert unsigned(thief.visit(verify_url)) == f"{SITE}/account/two-step?error_code=mfa_factor_not_found"
    database.run("DELETE FROM factor_challenges")
    assert "wasn’t added in time" in words(visitor.visit(verify_url))
