"""Applications sign a user in at the service, with code that is not ours: openid-client and mod_auth_openidc.

Needs Chromium; openid-client needs Node.js and the packages of package.json, mod_auth_openidc needs Apache.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.factors import App, set_up
from tests.support.processes import BRIEF_GUNICORN, wait_until
from tests.support.relying_parties import ENDS, TELLS, allow, create_client, end_session, sign_in
from tests.support.timeouts import BRIEF_ID_TOKEN_LIFETIME
from tests.support.users import Person
from tests.system.browser.clients.relying_parties import (
    PARTIES,
    ModAuthOpenIdc,
    RelyingParty,
)

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    """ID tokens expire within a test."""
    return BRIEF_GUNICORN


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return TELLS


@pytest.fixture(params=PARTIES, ids=lambda party: party.__name__)
def party(
    request: Any, page: Browser, site: Any, origin: str, service_role: dict[str, str]
) -> Iterator[RelyingParty]:
    """An application that is registered at the service."""
    party = request.param(origin)
    with party.use(create_client(site, service_role, **party.registration())):
        yield party
        # Its pages may still ask for an icon.
        page.open("about:blank")


@pytest.fixture
def phone_app(alice: Person) -> App:
    return set_up(alice.open_session())[0]


@pytest.fixture
def signed_in(page: Browser, party: RelyingParty, alice: Person, phone_app: App) -> dict[str, Any]:
    """Sign in at the application, and return what it knows."""
    enter(page, party, alice, phone_app)
    return party.session(page)


def enter(page: Browser, party: RelyingParty, alice: Person, phone_app: App | None = None) -> None:
    page.open(party.url)
    sign_in(page, alice, phone_app)
    allow(page, type(party).__name__)
    page.wait(lambda: page.url.startswith(party.url))


def test_user_signs_in_with_a_second_factor_and_out_of_both(page, party, signed_in, alice, origin):
    claims, userinfo = signed_in["id_token"], signed_in["userinfo"]
    assert (claims["iss"], claims["sub"], claims["email"]) == (origin, alice.id, alice.email)
    assert (claims["acr"], set(claims["amr"])) == ("aal2", {"mfa", "otp", "pwd"})
    assert (userinfo["sub"], userinfo["email"]) == (alice.id, alice.email)
    refreshed = party.refresh(page)
    assert refreshed["userinfo"] == userinfo
    assert refreshed["access_token"] != signed_in["access_token"]
    assert refreshed["refresh_token"] != signed_in["refresh_token"]
    page.open(party.url + party.logout)
    page.wait(lambda: page.url.partition("?")[0] == party.goodbye)
    page.open(party.url)
    page.wait_for("Sign in")


def test_application_keeps_the_user_signed_in_past_its_tokens_with_the_present_groups_until_a_ban(
    page, party, alice, phone_app, database, site, service_role
):
    def change(**members: Any) -> None:
        assert site.put(f"/admin/users/{alice.id}", json=members, headers=service_role).status_code == 200

    change(app_metadata={"groups": ["editors", "staff"]})
    # The access token lives as long as the ID token: a busy machine needs seconds to show the user's data.
    database.run(f"UPDATE oauth_clients SET token_lifetime = {BRIEF_ID_TOKEN_LIFETIME}")
    enter(page, party, alice, phone_app)
    before = party.session(page)
    assert before["userinfo"]["groups"] == ["editors", "staff"]
    change(app_metadata={"groups": ["staff"]})
    wait_until(lambda: time.time() > before["id_token"]["exp"] + 1)
    after = party.refresh(page)
    assert (after["userinfo"]["sub"], after["userinfo"]["groups"]) == (alice.id, ["staff"])
    assert after["access_token"] != before["access_token"]
    change(ban_duration="1h")
    assert party.refresh(page) is None


@pytest.mark.parametrize("party", [ModAuthOpenIdc], indirect=True, ids=["ModAuthOpenIdc"])
@pytest.mark.parametrize("end", ENDS)
def test_application_ends_its_session_when_the_service_ends_it(
    page, party, site, database, service_role, alice, end
):
    enter(page, party, alice)
    end_session(end, site, service_role, alice)
    # A request that reaches mod_auth_openidc meanwhile would store the session anew.
    wait_until(lambda: database.count("outbox", "channel = 'logout' AND outcome = 'sent'"))
    page.open(party.url)
    page.wait(lambda: not page.url.startswith(party.url))
