"""Paths without a page, and errors, for a browser and for a program."""

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.links import SITE
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
GERMAN = BROWSER | {"Accept-Language": "de"}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@cases("path", ["/nowhere", "/sign-in//", "/account/nowhere", "/console/nowhere", "/auth/v1/nowhere"])
def test_unknown_path_is_a_page_in_the_language_of_a_browser_and_the_envelope_of_a_program(client, path):
    page = client.get(path, headers=GERMAN)
    assert (page.status_code, page.mimetype) == (404, "text/html")
    assert "Seite nicht gefunden" in page.text
    assert_error(client.get(path), 404, "not_found")


def test_unknown_path_of_a_form_is_a_page_and_of_a_json_body_the_envelope(client):
    for kind in FORMS:
        for path, status in (("/nowhere", 404), ("/account", 405)):
            page = client.post(path, data={"a": "b"}, content_type=kind, headers=GERMAN)
            assert (page.status_code, "Seite nicht gefunden" in page.text) == (status, True)
            assert ("GET" in page.headers.get("Allow", "")) == (status == 405)
        assert_error(client.post("/nowhere", data={"a": "b"}, content_type=kind), 404, "not_found")
    assert_error(client.post("/nowhere", json={}, headers=BROWSER), 404, "not_found")
    assert_error(client.post("/account", json={}, headers=BROWSER), 405, "method_not_allowed")


@cases(
    ("path", "leads_to"),
    [
        ("/sign-in/verify", "/sign-in"),
        ("/preferences", "/sign-in"),
        ("/account/email/verify", "/account/email"),
        ("/account/passkeys", "/account"),
    ],
)
def test_target_of_a_form_leads_to_its_page_if_it_is_opened(app, alice, path, leads_to):
    visitor = Visitor(app).with_session_of(alice) if leads_to.startswith("/account") else Visitor(app)
    assert visitor.visit(path).url == f"{SITE}{leads_to}"


def test_error_of_a_link_or_form_is_a_page_for_a_browser(client, visitor):
    visitor.visit("/sign-in")
    for page, status in (
        (visitor.visit("/authorize?provider=nobody"), 400),
        (visitor.post(f"{SITE}/preferences", {"language": "de"}), 403),
        (visitor.post(f"{SITE}/verify", {"token": "x", "type": "signup"}), 403),
    ):
        assert (page.status, page.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert ('role="alert"' in page.text) != ("This link is incomplete" in page.text)
    assert client.get("/verify").json["error_code"] == "validation_failed"
    for accept in ("application/json, text/html;q=0.5", "text/html;q=0, */*"):
        for path in ("/nowhere", "/sign-in/verify", "/sign-in?next=a&next=b", "/account"):
            assert client.get(path, headers={"Accept": accept}).is_json, (accept, path)
    assert client.get("/user", headers={"Accept": "text/html"}).json["error_code"] == "no_authorization"


def test_address_for_password_managers_leads_to_the_form_by_the_sign_in(visitor, alice):
    visitor.visit("/.well-known/change-password")
    assert "sign-in?next=new-password" in visitor.page.url
    assert visitor.submit(email=alice.email, password=PASSWORD).url == f"{SITE}/new-password"
    assert "Choose a new password" in words(visitor.visit("/.well-known/change-password"))


def test_service_without_pages_has_no_path_of_one(make_app):
    client = make_app(AUTH_PAGES="false").test_client()
    for url in ("/.well-known/change-password", "/sign-in", "/account", "/new-password"):
        assert_error(client.get(url, headers=BROWSER), 404, "not_found")


class TestLastSlash:
    """A URL was typed or pasted with a slash at its end."""

    @cases("path", ["/sign-in/", "/account/email/", "/console/users/", "/docs/"])
    def test_browser_is_led_to_the_page_without_the_slash_with_its_query(self, client, path):
        answer = client.get(f"{path}?a=b%20c&d", headers=BROWSER)
        expected = "../" * (path.count("/") - 1) + path.strip("/") + "?a=b%20c&d"
        assert (answer.status_code, answer.headers["Location"]) == (303, expected)

    @cases(
        ("method", "path"),
        [("GET", "/health/"), ("GET", "/sign-in//"), ("GET", "/verify%0d%0a/"), ("POST", "/sign-up/")],
    )
    def test_only_an_opened_page_is_redirected(self, client, method, path):
        answer = client.open(path, method=method, headers=BROWSER)
        assert (answer.status_code, "Location" in answer.headers) == (404, False)

    def test_program_is_told_the_path(self, client):
        hint = "Path not found. Leave out the last slash: /health"
        assert_error(client.get("/health/"), 404, "not_found", hint)
