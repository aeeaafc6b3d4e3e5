"""A member of two organizations uses an application for one of them, with code that is not ours: openid-client and
mod_auth_openidc. Needs what test_relying_parties.py needs.
"""

import jwt
import pytest

from tests.support.browser import choose
from tests.support.relying_parties import allow, create_client, sign_in
from tests.system.browser.clients.relying_parties import PARTIES

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_ORGANIZATIONS": "users"}


@pytest.fixture(params=PARTIES, ids=lambda party: party.__name__)
def party(request, page, site, origin, service_role):
    party = request.param(origin)
    party.scopes = "openid offline_access organization"
    with party.use(create_client(site, service_role, **party.registration())):
        yield party
        # Its pages may still ask for an icon.
        page.open("about:blank")


@pytest.fixture
def organizations(site, service_role, alice):
    """The ids of Acme and Beta, in which Alice has another role."""

    def make(slug, role):
        response = site.post(
            "/organizations", json={"name": slug.title(), "slug": slug}, headers=service_role
        )
        path = f"/organizations/{slug}/members/{alice.id}"
        assert site.put(path, json={"role": role}, headers=service_role).status_code in (200, 201)
        return response.json["id"]

    return {"acme": make("acme", "admin"), "beta": make("beta", "billing")}


def test_member_of_two_organizations_chooses_one_and_keeps_it_until_the_membership_ends(
    page, party, site, origin, service_role, alice, organizations
):
    name = type(party).__name__
    page.open(party.url)
    sign_in(page, alice)
    page.wait_for("Choose an organization")
    # Nothing is chosen beforehand, and the browser asks for a choice.
    page.click("Allow")
    assert page.url.startswith(f"{origin}/oauth/consent")
    choose(page, organizations["beta"])
    allow(page, name)
    page.wait(lambda: page.url.startswith(party.url))
    organization = {"id": organizations["beta"], "slug": "beta", "role": "billing"}
    signed_in = party.session(page)
    for session in (signed_in, party.refresh(page)):
        assert session["id_token"]["organization"] == session["userinfo"]["organization"] == organization
        assert (
            jwt.decode(session["access_token"], options={"verify_signature": False})["organization"]
            == organization
        )
    assert site.delete(f"/organizations/beta/members/{alice.id}", headers=service_role).status_code == 204
    assert party.refresh(page) is None
    page.open(f"{origin}/account")
    page.wait_for("Acme")
    assert "Beta" not in page.text
