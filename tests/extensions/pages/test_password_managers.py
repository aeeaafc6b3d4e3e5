"""What password managers and screen readers find in the forms of all pages."""

import re
from html.parser import HTMLParser

import pytest

from tests.support.answers import assert_error
from tests.support.links import BROWSER
from tests.support.page_tour import tour_all
from tests.support.pages import Visitor

pytest_plugins = ["tests.support.tour_fixtures"]

# What browsers may fill in. `webauthn` offers passkeys.
ADDRESSES = {"username", "username webauthn", "email"}
PASSWORDS = {"current-password", "new-password"}


class Inputs(HTMLParser):
    """The inputs of each form of a page, by their attributes, in their order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[list[dict[str, str]]] = []
        self.ids: list[str] = []
        self.described_by: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.described_by += attributes.get("aria-describedby", "").split()
        if tag == "form":
            self.forms.append([])
        elif tag == "input" and attributes.get("type") != "hidden":
            assert self.forms, attributes
            self.forms[-1].append(attributes)


@pytest.fixture
def pages(page_client, database) -> dict[str, Inputs]:
    pages: dict[str, Inputs] = {}
    page_client.check = lambda name: pages.update({name: Inputs(page_client.visitor.page.text)})
    tour_all(page_client, database)
    return pages


def test_each_password_comes_after_its_account_and_each_code_is_called_one(pages):
    """Managers skip a field with the attribute `hidden`, and iOS then suggests no password."""
    passwords, codes = 0, 0
    for name, page in pages.items():
        for form in page.forms:
            tokens = [field.get("autocomplete", "") for field in form]
            fields = dict(zip(tokens, form, strict=True))
            for field in form:
                assert not ("hidden" in field and field.get("autocomplete")), name
                if field["name"] == "client_secret":
                    # The secret of a customer's provider: the owner's password is not filled in.
                    assert field["autocomplete"] == "new-password"
                elif field.get("type") == "password":
                    passwords += 1
                    assert field["autocomplete"] in PASSWORDS, (name, field)
                    assert ADDRESSES & {*tokens}, (name, form)
                    (account,) = ADDRESSES & {*tokens}
                    assert tokens.index(account) < tokens.index(field["autocomplete"]), name
                    assert account != "username" or fields[account]["name"] in ("email", "username"), name
                elif field.get("class") == "code" and field["name"] != "user_code":
                    codes += 1
                    assert (field["autocomplete"], field["inputmode"]) == ("one-time-code", "numeric"), name
    assert passwords > 10
    assert codes > 10


def test_each_description_of_a_field_is_on_its_page(pages):
    for name, page in pages.items():
        assert {*page.described_by} <= {*page.ids}, name
        assert len({*page.ids}) == len(page.ids), name


def test_error_of_no_field_describes_the_field_that_gets_the_focus(app, alice, database):
    database.run("UPDATE users SET banned_until = 'infinity'")
    visitor = Visitor(app)
    visitor.visit("/sign-in")
    page = visitor.submit(email=alice.email, password="Correct-Horse-1")
    assert '<p class="alert" id="problem" role="alert">This account is blocked.' in page.text
    assert "<title>Error: Sign in to localhost:8000</title>" in page.text
    assert "<title>Sign in to localhost:8000</title>" in visitor.visit("/sign-in").text
    (focused,) = re.findall(r"<input[^>]* autofocus[^>]*>", page.text)
    assert 'name="email"' in focused
    assert 'aria-describedby="problem"' in focused
    assert "aria-invalid" not in page.text


def test_well_known_path_that_should_not_exist_is_not_found(client):
    """Managers trust /.well-known/change-password of a site only if this path is not 200."""
    path = "/.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200"
    assert client.get(path, headers=BROWSER).status_code == 404
    answer = client.get("/.well-known/change-password", headers=BROWSER)
    assert (answer.status_code, answer.headers["Location"]) == (303, "../sign-in?next=new-password")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://[::1]:8000", "http://localhost:8000"])
def test_pages_at_an_ip_address_offer_no_passkeys_which_browsers_refuse_there(make_app, alice, url):
    """WebAuthn needs a domain: https://github.com/w3c/webauthn/pull/515."""
    has_domain = "localhost" in url
    app = make_app(AUTH_BASE_URL=url, AUTH_JWT_ISSUER="http://localhost:8000")
    visitor = Visitor(app, url)
    page = visitor.visit("/sign-in")
    assert ("Sign in with a passkey" in page.text, "username webauthn" in page.text) == (
        has_domain,
        has_domain,
    )
    page = visitor.submit(email=alice.email, password="Correct-Horse-1")
    assert page.url == f"{url}/account"
    endpoints = app.test_client().get("/.well-known/passkey-endpoints")
    if has_domain:
        assert endpoints.json == {"enroll": f"{url}/account/passkeys/new", "manage": f"{url}/account"}
        assert "Create a passkey" in visitor.visit(endpoints.json["enroll"]).text
        visitor.visit(f"{url}/account")
    else:
        assert_error(endpoints, 404, "not_found")
    page = visitor.page
    assert ("Add a passkey" in page.text) == has_domain
    assert "Add an authenticator app" in page.text
