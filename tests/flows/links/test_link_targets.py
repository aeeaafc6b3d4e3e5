"""The targets of links of recoveries, invitations and notices, at a service with an application."""

import pytest

from tests.support.answers import DIALECT
from tests.support.factors import set_up
from tests.support.links import SITE, fragment, own_form, path, tokens_for, type_in
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import ALICE, DAVE, PASSWORD, sign_in

APPLICATION = "https://app.example.com/start"
ALLOWED = "https://app.example.com/choose?x=1"
PAGE, JOIN = f"{SITE}/new-password?then=site", f"{SITE}/join?then=site"
NEW_PASSWORD = "Fresh-Horse-2"
# The requests for a link, with their bodies.
REQUESTS = {
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

    def ask(client, link_request, headers=None, **body):
        url, members = link_request.partition(" ")[0], REQUESTS[link_request] | body
        credentials = {} if link_request == "/recover" else service_role
        response = client.post(url, json=members, headers=credentials | (headers or {}))
        assert response.status_code == 200, response.text
        return response.json.get("action_link") or mailbox.link_for(members["email"])

    return ask


def press_button(client, link):
    """Press the button of a link's page in a new browser, and return the redirect."""
    visitor, browser = Visitor(client.application), client.application.test_client()
    fields = visitor.visit(link).forms[0].fields | own_form(browser)
    return browser.post("/verify", data=fields, headers={"Sec-Fetch-Site": "same-origin"})


def open_as_program(client, link):
    """Open a link as a program does, and return the redirect."""
    return client.get(link.removeprefix(SITE))


class TestAsked:
    @pytest.mark.parametrize("link_request", REQUESTS)
    @pytest.mark.parametrize("use_link", [press_button, open_as_program])
    def test_link_signs_the_client_in_on_our_page(self, client, ask, database, link_request, use_link):
        response = use_link(client, ask(client, link_request))
        assert (response.status_code, response.location) == (303, JOIN if "invite" in link_request else PAGE)
        assert "latchkey=" in response.headers["Set-Cookie"]
        assert (database.count("sessions"), database.count("browser_sessions")) == (1, 1)
        assert database.count("authorization_codes") == 0

    @pytest.mark.parametrize("link_request", REQUESTS)
    def test_application_with_its_own_page_gets_the_tokens(self, make_app, client, ask, link_request):
        kind = "recovery" if "recover" in link_request else "invite"
        dialect_response = press_button(client, ask(client, link_request, DIALECT))
        assert fragment(dialect_response, APPLICATION) == tokens_for(kind)
        if kind == "recovery":
            response = press_button(client, ask(client, link_request, redirect_to=ALLOWED))
            assert fragment(response, ALLOWED) == tokens_for(kind)
            client_without_pages = make_app(AUTH_SITE_URL=APPLICATION, AUTH_PAGES="false").test_client()
            assert fragment(
                press_button(client_without_pages, ask(client_without_pages, link_request)), APPLICATION
            ) == tokens_for(kind)


class TestNewPassword:
    def test_invited_user_chooses_a_password_and_goes_on_to_the_application(self, visitor, client, ask):
        visitor.visit(ask(client, "/admin/invite"))
        page = visitor.submit()
        assert page.url == JOIN
        page_words = words(page)
        assert f"Welcome to app.example.com Choose a password for {DAVE} ." in page_words
        assert not [text for text in ("current", "new password", "signed out") if text in page_words]
        assert "too short" in words(visitor.submit(password="Ab-1"))
        page = visitor.submit(password=NEW_PASSWORD)
        assert page.url == APPLICATION
        assert not [url for url in page.trail if "token" in url or "#" in url]
        assert sign_in(client, DAVE, NEW_PASSWORD).status_code == 200

    def test_second_step_comes_before_the_password(self, visitor, client, alice, ask, database):
        app, _ = set_up(alice.open_session())
        visitor.visit(ask(client, "/recover"))
        assert visitor.submit().url == f"{SITE}/second-step?next=new-password&then=site"
        password_hash = database.value("SELECT password_hash FROM users")
        visitor.send("/new-password", password=NEW_PASSWORD)
        assert database.value("SELECT password_hash FROM users") == password_hash
        visitor.visit("/second-step?next=new-password&then=site")
        assert visitor.press("second-step", code=app.code()).url == PAGE
        assert visitor.submit(password=NEW_PASSWORD).url == APPLICATION


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
        assert visitor.post(f"{SITE}/new-password", old_form | {"password": NEW_PASSWORD}).status == 403
        assert database.all("SELECT email, password_hash FROM users ORDER BY email") == before


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
        assert visitor.submit(password=NEW_PASSWORD).url == APPLICATION
        assert sign_in(client, ALICE, NEW_PASSWORD).status_code == 200
