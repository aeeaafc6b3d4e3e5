"""The pages on which owners set up the sign-in: each refused form says what is wrong, and keeps what was typed."""

import re
from urllib.parse import quote

import pytest

from tests.support.links import SITE
from tests.support.own_providers import DOMAIN, PATH
from tests.support.pages import unsigned, words
from tests.support.users import PASSWORD

SIGN_IN = f"{PATH}/sign-in"


@pytest.fixture
def visitor(sign_in, browse, alice):
    """Alice's browser, whose organization has proved a domain."""
    assert sign_in.prove(DOMAIN).status_code == 200
    return browse(alice)


@pytest.mark.parametrize("domain", ["gmail.com", "no domain", "localhost"])
def test_domain_that_cannot_be_added_is_refused_at_its_field(visitor, database, domain):
    visitor.visit(SIGN_IN)
    page = visitor.press("sign-in/domains", domain=domain)
    assert page.status == 400
    assert page.text.count("Use a domain of your own, like acme.example.") == 1
    assert f'value="{domain}" aria-invalid="true"' in page.text
    assert database.count("organization_domains") == 1


def test_domain_of_another_organization_is_refused_with_the_reason(
    visitor, names, browse, bob, client, database
):
    organization = bob.open_session(client).post("/organizations", json={"name": "Globex"}).json
    browser_of_bob, path = browse(bob), f"/account/organizations/{organization['slug']}/sign-in"
    browser_of_bob.visit(path)
    assert "Not verified yet" in words(browser_of_bob.press("sign-in/domains", domain=DOMAIN))
    token = database.value("SELECT token FROM organization_domains WHERE proved_at IS NULL")
    names.texts[f"_latchkey.{DOMAIN}"] = f"latchkey={token}"
    page = browser_of_bob.press(f"sign-in/domains/{DOMAIN}")
    assert page.status == 400
    assert "Another organization uses this domain." in words(page)
    assert database.count("organization_domains", "proved_at IS NOT NULL") == 1


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "n" * 41, "Use 1 to 40 visible characters."),
        ("client_id", "acme idp", "Copy the client ID from your identity provider"),
        ("client_id", " ", "Copy the client ID from your identity provider"),
        ("client_secret", "gehëim", "Copy the client secret from your identity provider"),
        ("client_secret", " ", "Copy the client secret from your identity provider"),
        ("issuer", "ftp://login.acme.example", "We can’t use this issuer."),
        ("issuer", "http://127.0.0.1:9", "We can’t use this issuer."),
        ("issuer", "https://accounts.google.com", "We can’t use this issuer."),
        ("domains", "gmail.com", "Use domains you’ve verified"),
        ("domains", "other.example", "This domain isn’t verified"),
        ("domains", " ", "Use domains you’ve verified"),
        ("member_role", "Bad role", "Use a role below admin"),
        ("member_role", "owner", "Use a role below admin"),
    ],
)
def test_provider_that_cannot_be_connected_keeps_what_was_typed(
    visitor, customers, database, field, value, message
):
    body = customers.acme.body()
    fields = {name: body[name] for name in ("issuer", "client_id", "client_secret")}
    fields |= {"name": "Acme-Idp", "domains": DOMAIN, "member_role": "member", field: value}
    visitor.visit(f"{SIGN_IN}/new/other")
    page = visitor.press("sign-in/new/other", **fields)
    assert page.status >= 400
    assert message in words(page)
    for text in fields.values():
        assert f'value="{text}"' in page.text
    assert database.count("identity_providers") == 0


def test_page_changes_a_provider_and_keeps_the_secret_that_it_does_not_show(
    browse, alice, provider, customers, database
):
    visitor, path = browse(alice), f"{SIGN_IN}/providers/{provider}/change"
    secret = database.value("SELECT client_secret FROM identity_providers")
    page = visitor.visit(path)
    assert customers.acme.provider.client_secret not in page.text
    page = visitor.press(path[1:], name="Renamed", member_role="billing")
    assert "The identity provider has been changed." in words(page)
    row = database.one("SELECT name, member_role, client_secret FROM identity_providers")
    assert (row.name, row.member_role, bytes(row.client_secret)) == ("Renamed", "billing", bytes(secret))
    visitor.visit(path)
    visitor.press(path[1:], client_secret="another secret", member_role="")
    row = database.one("SELECT tried_at, member_role, client_secret FROM identity_providers")
    assert (row.tried_at, row.member_role) == (None, None)
    assert bytes(row.client_secret) != bytes(secret)


def test_page_takes_no_domain_that_is_not_proved(browse, alice, provider, database):
    visitor, path = browse(alice), f"{SIGN_IN}/providers/{provider}/change"
    visitor.visit(path)
    page = visitor.press(path[1:], domains=f"{DOMAIN} other.example")
    assert page.status == 422
    assert "This domain isn’t verified" in words(page)
    assert f'value="{DOMAIN} other.example"' in page.text
    assert database.value("SELECT array_agg(domain) FROM identity_provider_domains") == [DOMAIN]


@pytest.mark.parametrize("domains", ["", " "])
def test_page_leaves_a_provider_its_domains_where_the_field_is_empty(
    browse, alice, provider, database, domains
):
    visitor, path = browse(alice), f"{SIGN_IN}/providers/{provider}/change"
    visitor.visit(path)
    page = visitor.press(path[1:], name="Renamed", domains=domains)
    assert page.status == 400
    assert "Use domains you’ve verified" in words(page)
    assert database.value("SELECT array_agg(domain) FROM identity_provider_domains") == [DOMAIN]
    assert database.value("SELECT name FROM identity_providers") == "Acme-Idp"


def test_page_changes_nothing_that_the_operator_has_blocked(browse, alice, provider, database):
    database.run("UPDATE identity_providers SET is_blocked = true")
    visitor, path = browse(alice), f"{SIGN_IN}/providers/{provider}/change"
    visitor.visit(path)
    page = visitor.press(path[1:], name="Renamed")
    assert "Only they can turn it on again." in words(page)
    assert database.value("SELECT name FROM identity_providers") == "Acme-Idp"


# A browser reads a backslash as a slash: the form would end the organization.
@pytest.mark.parametrize("name", [r"\..\..\..\end?", "\0", "00000000-0000-0000-0000-000000000000"])
@pytest.mark.parametrize("action", ["test", "on", "off", "delete", "change"])
def test_link_to_an_action_on_no_provider_shows_no_form_for_it(visitor, name, action):
    page = visitor.visit(f"{SIGN_IN}/providers/{quote(name)}/{action}")
    assert page.status == 404
    assert {form.action.rpartition("/")[2] for form in page.forms} <= {"preferences"}


def test_proof_before_a_domain_is_removed_leads_back_to_its_page(visitor, database):
    database.run(
        "UPDATE sessions SET created_at = created_at - interval '20 minutes', reauthenticated_at = NULL"
    )
    path = f"{SIGN_IN}/domains/{DOMAIN}/remove"
    assert "Confirm it’s you" in words(visitor.visit(path))
    visitor.press("account/confirm", current_password=PASSWORD)
    assert unsigned(visitor.page) == f"{SITE}{path}"
    visitor.press(path[1:])
    assert "The domain has been removed." in words(visitor.page)
    assert database.count("organization_domains") == 0


@pytest.mark.parametrize("path", ["..", "../end", "sign-in/..", "sign-in/domains/..a", "a..b", ".", "a."])
def test_proof_leads_to_no_page_beside_those_of_the_organization(visitor, path):
    visitor.visit(f"/account/confirm?next=organizations/acme/{path}")
    visitor.press("account/confirm", current_password=PASSWORD)
    assert unsigned(visitor.page) == f"{SITE}/account"


def test_browser_fills_no_password_of_the_owner_in_as_the_client_secret(visitor, database):
    page = visitor.visit(f"{SIGN_IN}/new/other")
    assert 'name="client_secret" type="password" autocomplete="new-password"' in page.text


class TestNextStep:
    @pytest.fixture
    def steps(self, browse, alice):
        """Return the step that the page calls the present one, None after the last, and the paths of its
        primary buttons.
        """

        def steps():
            text = browse(alice).visit(SIGN_IN).text
            present = re.search(r'<li aria-current="step">([^<]+)', text)
            links = re.findall(r'<a class="button" href="[./]*([^"]+)"', text)
            return present and present[1], links

        return steps

    def test_provider_that_is_on_is_the_last_step_beside_one_that_is_off(
        self, sign_in, provider, customers, steps, database
    ):
        assert sign_in.connect(customers.globex, domains=[]).status_code == 201
        assert steps()[0] == "Test sign\u2011in"
        # The older one is off, or the newer one.
        for is_older in (False, True):
            database.run(
                "UPDATE identity_providers SET is_on = (id = %(id)s) = %(is_older)s",
                id=provider,
                is_older=is_older,
            )
            database.run(
                "UPDATE identity_provider_domains SET provider_id = (SELECT id FROM identity_providers WHERE is_on)"
            )
            assert steps() == (None, [])

    def test_provider_that_is_on_without_a_domain_is_given_one_next(self, provider, steps, database):
        database.run("UPDATE identity_providers SET is_on = true; DELETE FROM identity_provider_domains")
        assert steps() == ("Identity provider", [f"{SIGN_IN[1:]}/providers/{provider}/change"])
        database.run("UPDATE organization_domains SET proved_at = NULL")
        assert steps() == ("Domain", [])


def test_check_of_a_domain_that_is_gone_says_so(visitor, database):
    """Another owner has removed it, or the owner in another tab."""
    visitor.visit(SIGN_IN)
    database.run("DELETE FROM organization_domains")
    page = visitor.press(f"sign-in/domains/{DOMAIN}")
    assert page.status == 404
    assert page.text.count("There’s nothing at this address.") == 1
