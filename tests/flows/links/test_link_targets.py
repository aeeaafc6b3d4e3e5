"""The targets of links of recoveries, invitations and notices, at a service with an application."""

import pytest

from tests.extensions.pages.test_second_step import shown_app
from tests.support.answers import DIALECT
from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import CHALLENGE, SITE, fragment, own_form, path, query, tokens_for, type_in
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import ALICE, DAVE, PASSWORD, sign_in

APPLICATION = "https://app.example.com/start"
ALLOWED = "https://app.example.com/choose?x=1"
PAGE, JOIN = f"{SITE}/new-password?then=site", f"{SITE}/join?then=site"
NEW = "Fresh-Horse-2"
# The requests for a link, with their bodies.
ASKS = {
    "/recover": {"email": ALICE},
    "/admin/invite": {"email": DAVE},
    "/admin/generate_link recovery": {"type": "recovery", "email": ALICE},
    "/admin/generate_link invite": {"type": "invite", "email": DAVE},
}


@pytest.fixture
def app(make_app):
    return make_app(AUTH_SITE_URL=APPLICATION)


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)


@pytest.fixture
def ask(service_role, mailbox, alice):
    """Ask for a link, and return it as it is in the mail or the response."""

    def ask(client, what, headers=None, **body):
        url, asked = what.partition(" ")[0], ASKS[what] | body
        credentials = {} if what == "/recover" else service_role
        response = client.post(url, json=asked, headers=credentials | (headers or {}))
        assert response.status_code == 200, response.text
        return response.json.get("action_link") or mailbox.link_for(asked["email"])

    return ask


def spent(client, link):
    """Press the button of a link's page in a new browser, and return the redirect."""
    visitor, browser = Visitor(client.application), client.application.test_client()
    fields = visitor.visit(link).forms[0].fields | own_form(browser)
    return browser.post("/verify", data=fields, headers={"Sec-Fetch-Site": "same-origin"})


def opened(client, link):
    """Open a link as a program does, and return the redirect."""
    return client.get(link.removeprefix(SITE))


class TestAsked:
    @pytest.mark.parametrize("what", ASKS)
    @pytest.mark.parametrize("lead", [spent, opened])
    def test_link_signs_the_client_in_on_our_page(self, client, ask, database, what, lead):
        response = lead(client, ask(client, what))
        assert (response.status_code, response.location) == (303, JOIN if "invite" in what else PAGE)
        assert "latchkey=" in response.headers["Set-Cookie"]
        assert (database.count("sessions"), database.count("browser_sessions")) == (1, 1)
        assert database.count("authorization_codes") == 0

    @pytest.mark.parametrize("what", ASKS)
    def test_application_with_its_own_page_gets_the_tokens(self, make_app, client, ask, what):
        kind = "recovery" if "recover" in what else "invite"
        in_dialect = spent(client, ask(client, what, DIALECT))
        assert fragment(in_dialect, APPLICATION) == tokens_for(kind)
        if kind == "recovery":
            named = spent(client, ask(client, what, redirect_to=ALLOWED))
            assert fragment(named, ALLOWED) == tokens_for(kind)
            without = make_app(AUTH_SITE_URL=APPLICATION, AUTH_PAGES="false").test_client()
            assert fragment(spent(without, ask(without, what)), APPLICATION) == tokens_for(kind)

    def test_application_with_a_challenge_gets_a_code(self, client, ask, database):
        response = spent(client, ask(client, "/recover", code_challenge=CHALLENGE))
        assert list(query(response, APPLICATION)) == ["code"]
        assert database.count("sessions") == 0

    def test_link_without_a_stored_target_leads_to_the_site(self, client, ask, database):
        link = ask(client, "/recover").partition("&redirect_to=")[0]
        database.run("UPDATE one_time_tokens SET redirect_to = NULL")
        assert fragment(spent(client, link), APPLICATION) == tokens_for("recovery")

    def test_program_is_led_where_the_button_leads_without_an_application(self, make_app, ask, database):
        client = make_app(AUTH_SITE_URL=SITE).test_client()
        for lead in (spent, opened):
            link = ask(client, "/recover", DIALECT).partition("&redirect_to=")[0]
            database.run("UPDATE one_time_tokens SET redirect_to = NULL")
            assert lead(client, link).location == f"{SITE}/new-password"
        # But a code is for the application.
        link = ask(client, "/recover", code_challenge=CHALLENGE).partition("&redirect_to=")[0]
        assert query(opened(client, link)).keys() == {"code"}

    def test_administrator_in_the_console_leads_to_our_page(self, app, client, carol, alice, mailbox):
        operator = Visitor(app).with_session_of(carol)
        operator.visit("/console/users/invite")
        operator.press("invite", email=DAVE)
        operator.visit(f"/console/users/{alice.id}/recover")
        operator.press("recover")
        for address, target in ((DAVE, JOIN), (ALICE, PAGE)):
            assert spent(client, mailbox.link_for(address)).location == target


class TestNewPassword:
    def test_invited_user_chooses_a_password_and_goes_on_to_the_application(self, visitor, client, ask):
        visitor.visit(ask(client, "/admin/invite"))
        page = visitor.submit()
        assert page.url == JOIN
        said = words(page)
        assert f"Welcome to app.example.com Choose a password for {DAVE} ." in said
        assert not [text for text in ("current", "new password", "signed out") if text in said]
        assert "too short" in words(visitor.submit(password="Ab-1"))
        page = visitor.submit(password=NEW)
        assert page.url == APPLICATION
        assert not [url for url in page.trail if "token" in url or "#" in url]
        assert sign_in(client, DAVE, NEW).status_code == 200

    def test_page_of_an_invitation_leads_users_with_a_password_to_the_one_that_says_what_ends(
        self, visitor, client, alice, ask
    ):
        visitor.with_session_of(alice)
        assert visitor.visit("/join?then=site").url == PAGE
        assert "We’ll sign you out on your other devices" in words(visitor.page)

    @cases("what", ["/recover", "/admin/invite"])
    def test_user_who_chooses_no_password_goes_on_to_the_application(self, visitor, client, alice, ask, what):
        visitor.visit(ask(client, what))
        visitor.submit()
        assert visitor.press("sign-in/continue").url == APPLICATION

    def test_without_an_application_an_invited_user_ends_on_the_account(self, make_app, ask):
        app = make_app(AUTH_SITE_URL=SITE)
        visitor = Visitor(app)
        visitor.visit(ask(app.test_client(), "/admin/invite"))
        assert visitor.submit().url == f"{SITE}/join"
        page = visitor.submit(password=NEW)
        assert unsigned(page) == f"{SITE}/account?done=first_password"
        assert "Your password has been saved." in words(page)

    def test_forgotten_password_is_replaced_by_code_or_link(self, visitor, alice, mailbox, outbox):
        for by_link in (False, True):
            visitor.cookies.clear()
            visitor.visit("/forgot-password")
            visitor.submit(email=ALICE)
            if by_link:
                visitor.visit(mailbox.link_for(ALICE))
                visitor.submit()
            else:
                visitor.submit(code=outbox.last(ALICE).code)
            assert visitor.page.url == PAGE
            assert visitor.submit(password=f"{NEW}{by_link}").url == APPLICATION

    def test_second_step_comes_before_the_password(self, visitor, client, alice, ask, database):
        app, _ = set_up(alice.open_session())
        visitor.visit(ask(client, "/recover"))
        assert visitor.submit().url == f"{SITE}/second-step?next=new-password&then=site"
        kept = database.value("SELECT password_hash FROM users")
        visitor.send("/new-password", password=NEW)
        assert database.value("SELECT password_hash FROM users") == kept
        visitor.visit("/second-step?next=new-password&then=site")
        assert visitor.press("second-step", code=app.code()).url == PAGE
        assert visitor.submit(password=NEW).url == APPLICATION

    def test_factor_that_is_required_is_set_up_before_the_password(self, make_app, ask):
        required = make_app(AUTH_SITE_URL=APPLICATION, AUTH_MFA_REQUIRED="all")
        visitor = Visitor(required)
        visitor.visit(ask(required.test_client(), "/admin/invite"))
        assert visitor.submit().url == f"{SITE}/account/two-step?next=join&then=site"
        visitor.press("account/two-step")
        visitor.press("account/two-step/verify", code=shown_app(visitor.page).code())
        assert visitor.click("../../sign-in?next=join&then=site").url == JOIN
        assert visitor.submit(password=NEW).url == APPLICATION

    def test_recent_changes_are_shown_on_the_way(self, visitor, client, alice, ask, database):
        assert "recent change" not in words(visitor.visit(ask(client, "/recover")))
        database.run("UPDATE users SET created_at = created_at - interval '1 day'")
        thief = alice.open_session()
        thief.put("/user", json={"phone": "+491701234567", "current_password": PASSWORD})
        visitor.visit(ask(client, "/recover"))
        visitor.submit()
        assert visitor.link("1 recent change") == f"{SITE}/account/changes?then=site"

    @cases("then", [None, "https://evil.example", "console", "", "site/../x"])
    def test_password_changed_without_a_place_to_go_on_to_leads_to_the_account(self, app, alice, then):
        visitor = Visitor(app).with_session_of(alice)
        if then is None:
            visitor.visit("/account")
            visitor.click("new-password")
        else:
            visitor.visit(f"/new-password?then={then}")
        assert unsigned(visitor.submit(password=f"{NEW}{then}")) == f"{SITE}/account?done=password"


class TestOtherBrowsers:
    """A browser in which Bob is signed in opens the link."""

    @pytest.fixture
    def visitor(self, app, bob) -> Visitor:
        return Visitor(app).with_session_of(bob)

    def test_link_ends_the_session_and_forms_of_another_user(self, visitor, client, bob, ask, database):
        visitor.visit("/new-password")
        old_form = visitor.page.forms[0].fields
        visitor.visit(ask(client, "/admin/invite"))
        page = visitor.submit()
        assert (DAVE in words(page), bob.email in words(page)) == (True, False)
        assert database.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == 1
        before = database.all("SELECT email, password_hash FROM users ORDER BY email")
        assert visitor.post(f"{SITE}/new-password", old_form | {"password": NEW}).status == 403
        assert database.all("SELECT email, password_hash FROM users ORDER BY email") == before

    def test_expired_link_does_not_ask_the_user_for_a_password(self, visitor, client, ask, database):
        visitor.visit(ask(client, "/admin/invite"))
        database.run("UPDATE one_time_tokens SET expires_at = now()")
        page = visitor.submit()
        assert (page.status, "This link no longer works" in words(page)) == (403, True)
        assert "password" not in page.text


class TestUndo:
    """Mallory has changed Alice's email; Alice uses the link of the notice."""

    @pytest.fixture
    def notice(self, client, alice, outbox):
        def notice(session):
            session.put("/user", json={"email": "mallory@evil.example", "current_password": PASSWORD})
            code = outbox.last("mallory@evil.example", "email_change").code
            type_in(client, "email_change", "mallory@evil.example", code)
            return path("undo", outbox.last(ALICE, "email_changed").token)

        return notice

    def test_undo_page_leads_to_a_new_password(self, visitor, client, alice, notice, outbox, database):
        visitor.visit(notice(alice.open_session()))
        page = visitor.submit()
        assert unsigned(page).startswith(f"{SITE}/verify/done?typed=")
        assert "Your account is secure" in words(page)
        assert ALICE not in page.text
        assert "Choose a new password" in words(page)
        # The link may have been forwarded, so it does not sign in.
        assert visitor.session_cookie is None
        assert database.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == 0
        assert "Check your inbox" in words(visitor.submit())
        assert visitor.submit(code=outbox.last(ALICE, "recovery").code).url == PAGE
        assert visitor.submit(password=NEW).url == APPLICATION
        assert sign_in(client, ALICE, NEW).status_code == 200

    def test_factor_that_remains_is_asked_for(self, visitor, alice, notice, outbox, database):
        app, session = set_up(alice.open_session())
        database.run("UPDATE factors SET verified_at = verified_at - interval '30 days'")
        visitor.visit(notice(session))
        visitor.submit()
        visitor.submit(factor_code=app.code())
        visitor.submit()
        page = visitor.submit(code=outbox.last(ALICE, "recovery").code)
        assert page.url == f"{SITE}/second-step?next=new-password&then=site"

    def test_without_pages_it_leads_to_the_application(self, make_app, alice, notice):
        visitor = Visitor(make_app(AUTH_SITE_URL=APPLICATION, AUTH_PAGES="false"))
        visitor.visit(notice(alice.open_session()))
        assert visitor.submit().url.startswith(f"{APPLICATION}#message=The%20account%20was%20taken%20back")
