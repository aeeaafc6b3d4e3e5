"""The way back from an organization's pages into the application whose menu links there."""

from urllib.parse import quote

import pytest

from tests.support.cases import cases
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD

SITE = "https://nimbus.example.com"
TEAM = f"{SITE}/acme/settings"
PATH = "/account/organizations/acme"
LINKED = f"{PATH}?redirect_to={TEAM}"


@pytest.fixture
def client(make_app):
    settings = {
        "AUTH_SITE_URL": SITE,
        "AUTH_BRAND_NAME": "Nimbus",
        "AUTH_REDIRECT_ALLOW_LIST": "https://admin.example.net/**",
    }
    return make_app(AUTH_ORGANIZATIONS="users", **settings).test_client()


@pytest.fixture
def at_acme(acme, alice, browse):
    """Alice's browser, at the page of Acme, which the application has linked to."""
    visitor = browse(alice)
    visitor.visit(LINKED)
    return visitor


def ways_back(visitor):
    return [link for text in ("Back to Nimbus", "Go to Nimbus") if (link := visitor.link(text))]


def test_page_leads_back_to_where_the_application_linked_from(at_acme):
    assert at_acme.page.url.endswith(PATH)
    assert at_acme.page.status == 200
    assert ways_back(at_acme) == [TEAM]
    assert at_acme.link("Back to your account")


def test_way_back_stays_through_forms_and_other_pages(at_acme):
    at_acme.visit(f"{PATH}/name")
    at_acme.press(f"{PATH[1:]}/name", name="Acme Ltd")
    assert "Acme Ltd" in words(at_acme.page)
    assert ways_back(at_acme) == [TEAM]
    at_acme.visit(f"{PATH}/history")
    at_acme.visit(f"{PATH}?q=alice")
    assert ways_back(at_acme) == [TEAM]


def test_way_back_stays_through_the_sign_in(acme, alice, browse):
    visitor = browse()
    visitor.visit(LINKED)
    visitor.press("sign-in", email=alice.email, password=PASSWORD)
    assert visitor.page.url.endswith(PATH)
    assert ways_back(visitor) == [TEAM]


def test_way_back_stays_through_the_step_that_the_organization_asks_for(acme, alice, browse, database):
    visitor = browse(alice)
    database.run("UPDATE organizations SET level = 'aal2'")
    visitor.visit(LINKED)
    assert "Acme asks for a second step." in words(visitor.page)
    database.run("UPDATE organizations SET level = 'aal1'")
    visitor.visit(PATH)
    assert ways_back(visitor) == [TEAM]


def test_founder_whom_the_application_sent_gets_back_there(alice, browse):
    visitor = browse(alice)
    visitor.visit(f"/account/organizations/new?redirect_to={TEAM}")
    visitor.press("account/organizations/new", name="Acme", slug="acme")
    assert "The organization has been created." in words(visitor.page)
    assert ways_back(visitor) == [TEAM]


def test_planted_cookie_with_an_allowed_url_is_as_good_as_a_link(acme, alice, browse):
    visitor = browse(alice)
    visitor.plant("latchkey_way_back", f'"acme {TEAM}"')
    visitor.visit(PATH)
    assert ways_back(visitor) == [TEAM]


def test_other_organization_and_a_page_without_a_link_lead_to_the_site(at_acme, beta):
    at_acme.visit("/account/organizations/beta")
    assert ways_back(at_acme) == [SITE]
    at_acme.visit(PATH)
    assert ways_back(at_acme) == [TEAM]


def test_another_allowed_application_is_named_by_its_host(acme, alice, browse):
    visitor = browse(alice)
    visitor.visit(f"{PATH}?redirect_to=https://admin.example.net/teams")
    assert 'Back to <bdi translate="no">admin.example.net</bdi></a>' in visitor.page.text


@cases(
    "url",
    [
        "https://evil.example.com/", "javascript:alert(1)", "//evil.example.com", f"{SITE}.evil.example.com/",
        f"{SITE}@evil.example.com/", "nonsense",
    ],
)  # fmt: skip
def test_url_that_is_not_allowed_leads_nowhere(acme, alice, browse, url):
    visitor = browse(alice)
    visitor.visit(f"{PATH}?redirect_to={url}")
    visitor.visit(PATH)
    assert {link.rstrip("/") for link in ways_back(visitor)} == {SITE}


# As the service writes them: without quotes, the space would end the value.
@cases(
    "value",
    [
        '"acme https://evil.example.com/"', '"acme javascript:alert(1)"', '"acme //evil.example.com"', '"acme "', "acme",
        '"acme http://localhost:8000/account"', '"acme http://localhost:8000/sign-in?next=account"',
        f'"beta {TEAM}"', f'"acme {SITE}/\\015\\012x"', f'"acme {SITE}/ü"', f'"acme {SITE}/{"a" * 2048}"',
        '"acme http://["', f'"acme  {SITE}/"', '"><script>',
    ],
)  # fmt: skip
def test_planted_cookie_leads_nowhere(acme, alice, browse, value):
    visitor = browse(alice)
    visitor.plant("latchkey_way_back", value)
    visitor.visit(PATH)
    assert visitor.page.status == 200
    assert ways_back(visitor) == [SITE]


def test_way_back_that_no_cookie_has_room_for_leads_to_the_site(at_acme):
    url = quote(f"{SITE}/?{';' * 1500}", "")
    at_acme.visit(f"{PATH}?redirect_to={url}")
    assert at_acme.page.status == 200
    assert ways_back(at_acme) == [SITE]


def test_long_name_of_no_organization_is_not_found(at_acme):
    assert at_acme.visit(f"/account/organizations/{'a' * 5000}?redirect_to={TEAM}").status == 404


def test_developer_reads_which_setting_lacks_the_url(make_app, alice):
    visitor = Visitor(make_app(AUTH_ORGANIZATIONS="users")).with_session_of(alice)
    visitor.visit(f"{PATH}?redirect_to=https://evil.example.com/")
    assert visitor.page.status == 400
    assert "AUTH_REDIRECT_ALLOW_LIST" in visitor.page.text


def test_server_takes_the_site_instead_of_a_url_that_is_not_allowed(make_app, alice):
    origin = "https://auth.example.com"
    settings = {"AUTH_BASE_URL": origin, "AUTH_SITE_URL": SITE, "AUTH_BRAND_NAME": "Nimbus"}
    visitor = Visitor(make_app(AUTH_ORGANIZATIONS="users", **settings), origin)
    visitor.visit("/sign-in?next=organizations/acme")
    visitor.press("sign-in", email=alice.email, password=PASSWORD)
    visitor.visit("/account/organizations/new")
    visitor.press("account/organizations/new", name="Acme", slug="acme")
    visitor.visit(f"{PATH}?redirect_to=https://evil.example.com/")
    assert visitor.page.status == 200
    assert {link.rstrip("/") for link in ways_back(visitor)} == {SITE}


def test_service_without_a_site_shows_no_way_to_it(make_app, alice):
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_SITE_URL="http://localhost:8000")
    visitor = Visitor(app).with_session_of(alice)
    visitor.visit("/account/organizations/new")
    visitor.press("account/organizations/new", name="Acme", slug="acme")
    assert visitor.link("Back to your account")
    assert "Go to" not in visitor.page.text
