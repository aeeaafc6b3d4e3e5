"""Addresses that have no page of their own, opened by a browser and by a program."""

import pytest

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.links import SITE
from tests.support.pages import Visitor, words

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
GERMAN = BROWSER | {"Accept-Language": "de"}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@pytest.fixture
def visitor(app) -> Visitor:
    return Visitor(app)


class TestUnknownPath:
    @cases("path", ["/nowhere", "/sign-in/", "/account/nowhere", "/console/nowhere", "/auth/v1/nowhere"])
    def test_browser_gets_a_page_in_its_language_and_a_program_the_envelope(self, client, path):
        page = client.get(path, headers=GERMAN)
        assert (page.status_code, page.mimetype) == (404, "text/html")
        assert "Seite nicht gefunden" in page.text
        assert_error(client.get(path), 404, "not_found")

    @cases("kind", FORMS)
    def test_form_of_a_browser_gets_the_page_too(self, client, kind):
        for path, status in (("/nowhere", 404), ("/account", 405)):
            page = client.post(path, data={"a": "b"}, content_type=kind, headers=GERMAN)
            assert (page.status_code, "Seite nicht gefunden" in page.text) == (status, True)
            assert ("GET" in page.headers.get("Allow", "")) == (status == 405)

    def test_program_that_posts_gets_the_envelope(self, client):
        assert_error(client.post("/nowhere", json={}, headers=BROWSER), 404, "not_found")
        assert_error(client.post("/account", json={}, headers=BROWSER), 405, "method_not_allowed")
        for kind in FORMS:
            assert_error(client.post("/nowhere", data={"a": "b"}, content_type=kind), 404, "not_found")


class TestDevelopmentInbox:
    @cases("path", ["/dev/inbox", "/dev/inbox/nonsense"])
    def test_browser_gets_a_page_if_the_inbox_is_off_or_out_of_reach(self, make_app, path):
        off = make_app().test_client().get(path, headers=GERMAN)
        assert (off.status_code, "Seite nicht gefunden" in off.text) == (404, True)
        client = make_app(AUTH_DEV_INBOX="true").test_client()
        elsewhere = client.get(path, headers=GERMAN, environ_base={"REMOTE_ADDR": "192.168.1.5"})
        assert (elsewhere.status_code, elsewhere.mimetype) == (403, "text/html")
        assert "nur auf dem Rechner, auf dem der Dienst läuft" in elsewhere.text
        assert not [name for name, _ in elsewhere.headers if name.startswith("Access-Control-")]


class TestChangePassword:
    """The address where password managers look for the form."""

    def test_it_leads_to_the_form_by_the_sign_in(self, visitor, alice):
        visitor.visit("/.well-known/change-password")
        assert "sign-in?next=new-password" in visitor.page.url
        assert visitor.submit(email=alice.email, password=PASSWORD).url == f"{SITE}/new-password"

    def test_it_leads_a_signed_in_browser_to_the_form_at_once(self, visitor, alice):
        visitor.signed_in_as(alice)
        assert "Choose a new password" in words(visitor.visit("/.well-known/change-password"))

    def test_without_pages_there_is_none(self, make_app):
        client = make_app(AUTH_PAGES="false").test_client()
        assert_error(client.get("/.well-known/change-password"), 404, "not_found")
