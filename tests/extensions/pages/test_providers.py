"""Providers on the pages: signing in, connecting and disconnecting."""

from urllib.parse import urlencode

import pytest

from auth.core.settings import SettingsError
from auth.ops.processes.start_checks import check_files
from auth.web.context import EXTENSION
from tests.support.cases import cases
from tests.support.links import SITE
from tests.support.pages import Visitor, unsigned
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.oauth_fixtures"]


@pytest.fixture(autouse=True)
def person(acme) -> None:
    """The person who is signed in at the provider, without an email."""
    acme.person = {"sub": "somebody-at-acme", "name": "Somebody"}


@pytest.fixture
def visitor(service) -> Visitor:
    return Visitor(service.app)


def link_of(visitor, provider: str) -> str:
    """Return the link of a provider's button."""
    hrefs = [part.partition('"')[0].replace("&amp;", "&") for part in visitor.page.text.split('href="')[1:]]
    return next(href for href in hrefs if f"provider={provider}&" in href)


def test_provider_signs_the_browser_in_without_tokens_in_urls(visitor, acme):
    visitor.visit("/sign-in")
    page = visitor.click(link_of(visitor, "acme"))
    assert page.url == f"{SITE}/account"
    assert "access_token" not in str(page.trail)
    assert visitor.session_cookie
    # The last way to sign in stays.
    assert "This is your last way to sign in." in visitor.remove("identity").text


def test_other_site_does_not_sign_the_browser_in_by_a_provider(visitor, acme, alice, database):
    """Login CSRF: at the provider, the browser may be signed in as the attacker."""
    visitor.signed_in_as(alice)
    visitor.be_at("https://evil.example/")
    page = visitor.click(
        f"{SITE}/authorize?{urlencode({'provider': 'acme', 'redirect_to': f'{SITE}/sign-in'})}"
    )
    assert (page.url, alice.email in page.text) == (f"{SITE}/account", True)
    assert database.count("sessions") == 1


def test_refusal_of_a_provider_is_told_to_a_browser_that_came_without_cookies(make_service, acme):
    acme.person, base_url = {}, "https://auth.example.com"
    visitor = Visitor(make_service(AUTH_BASE_URL=base_url).app, base_url)
    page = visitor.visit(
        f"/authorize?{urlencode({'provider': 'acme', 'redirect_to': f'{base_url}/sign-in'})}"
    )
    assert "The provider didn’t sign you in." in page.text
    assert visitor.visit(page.url).text.count("The provider didn’t sign you in.") == 1


def test_account_is_connected_after_the_proof_that_interrupted_it(visitor, acme, alice, database):
    visitor.signed_in_as(alice).visit("/account")
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    page = visitor.send("/account/connect", provider="acme")
    assert page.url == f"{SITE}/account/confirm?next=account%2Fconnect%3Fprovider%3Dacme"
    assert database.count("oauth_flows") == 0
    page = visitor.press("account/confirm", current_password=PASSWORD)
    assert page.url.startswith(f"{SITE}/link-identity?")
    # An attacker may have started the flow.
    assert ("a…@example.com" in page.text, alice.email in page.text) == (True, False)
    assert unsigned(visitor.submit()) == f"{SITE}/account?done=identity_linked"


def test_address_that_begins_to_connect_needs_a_session_a_proof_and_a_provider(
    visitor, service, acme, alice, database
):
    path = "/account/connect?provider=acme"
    assert visitor.visit(path).url == f"{SITE}/sign-in"
    visitor.signed_in_as(alice)
    assert visitor.visit("/account/connect?provider=nobody").status == 400
    cookies = "; ".join(f"{each.name}={each.value}" for each in visitor.cookies)
    client = service.app.test_client(use_cookies=False)
    assert client.head(path, headers={"Cookie": cookies}).status_code == 200
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    assert visitor.visit(path).url.startswith(f"{SITE}/account/confirm?")
    assert database.count("oauth_flows") == 0


def settings_of(*names: str, **more: str) -> dict[str, str]:
    """Return the settings of unused providers. Only OKTA is not built in."""
    values = {"CLIENT_ID": "id", "CLIENT_SECRET": "secret"}
    settings = {f"AUTH_PROVIDER_{name}_{key}": value for name in names for key, value in values.items()}
    return (
        settings
        | ({"AUTH_PROVIDER_OKTA_ISSUER": "https://okta.example.com"} if "OKTA" in names else {})
        | more
    )


@cases("page", ["/sign-in", "/sign-up"])
def test_providers_are_on_both_pages_and_from_three_on_in_a_row(make_app, page):
    two = Visitor(make_app(**settings_of("GOOGLE", "OKTA"))).visit(page).text
    assert ("Continue with Google</a>" in two, "Continue with okta</a>" in two) == (True, True)
    three = Visitor(make_app(**settings_of("GOOGLE", "OKTA", "GITHUB"))).visit(page).text
    assert three.count('title="GitHub" aria-label="Continue with GitHub"><svg class="mark"') == 1
    assert 'aria-label="Continue with okta"><span class="mark initial" aria-hidden="true">O</span>' in three
    assert "Continue with GitHub</a>" not in three


def test_way_that_a_browser_used_last_is_marked_there_alone(service, acme, alice):
    visitor = Visitor(service.app)

    def marked_way() -> str:
        """Return the text before the mark on the next visit."""
        visitor.send("/sign-out")
        before, mark, _ = visitor.visit("/sign-in").text.partition(' <span class="badge">Last used</span>')
        assert mark
        return before.rpartition(">")[2]

    visitor.visit("/sign-in")
    visitor.click(link_of(visitor, "acme"))
    assert marked_way() == "Continue with acme"
    visitor.press("sign-in", email=alice.email, password=PASSWORD)
    assert marked_way() == "Password"
    stranger = Visitor(service.app)
    stranger.plant("latchkey_last_used", '"><script>')
    assert "Last used" not in stranger.visit("/sign-in").text


def test_logo_of_a_provider_is_shown_and_served_without_scripts(make_app, tmp_path):
    (tmp_path / "okta.svg").write_text("<svg/>")
    logos = {
        "AUTH_PROVIDER_OKTA_LOGO": str(tmp_path / "okta.svg"),
        "AUTH_PROVIDER_GITHUB_LOGO": "https://cdn.example.com/github.png",
    }
    app = make_app(**settings_of("OKTA", "GITHUB", **logos))
    page = Visitor(app).visit("/sign-in")
    assert '<img class="mark" src="brand/logo/okta" alt="">Continue with okta' in page.text
    assert '<img class="mark" src="https://cdn.example.com/github.png" alt="">Continue' in page.text
    assert "img-src 'self' https://cdn.example.com;" in page.headers["Content-Security-Policy"]
    response = app.test_client().get("/brand/logo/okta")
    assert (response.mimetype, response.data) == ("image/svg+xml", b"<svg/>")
    assert "sandbox" in response.headers["Content-Security-Policy"]
    for name in ("github", "nobody"):
        assert app.test_client().get(f"/brand/logo/{name}").status_code == 404
    (tmp_path / "okta.svg").unlink()
    with pytest.raises(SettingsError, match=r"AUTH_PROVIDER_OKTA_LOGO: .* cannot be read"):
        check_files(app.extensions[EXTENSION].settings)


def test_passkey_is_offered_after_the_return_of_a_provider(make_service, acme):
    visitor = Visitor(make_service(AUTH_PASSKEY_OFFER="auto").app)
    visitor.visit("/sign-in")
    page = visitor.click(link_of(visitor, "acme"))
    assert page.url == f"{SITE}/account/passkeys/offer"
    assert visitor.press("account/passkeys/offer/decline").url == f"{SITE}/account"
