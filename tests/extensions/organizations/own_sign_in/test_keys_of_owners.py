"""Administrative keys and an organization's own sign-in: what a key, or a session that it opened, has changed there makes
nobody an administrator.
"""

import pytest

from tests.support import passkeys
from tests.support.admin_keys import make_admin_key
from tests.support.answers import assert_error

BOSS = "boss@example.com"
NO_OWNER = "role: must not be owner where a domain is proved or a provider is connected"


@pytest.fixture
def key(service):
    return make_admin_key(service.parts, "organizations:write")


@pytest.fixture
def give(client, key, acme, bob):
    """Have the key give Bob a role, or invite him."""

    def give(way, role):
        if way == "member":
            return client.put(f"{acme}/members/{bob.id}", json={"role": role}, headers=key.headers)
        body = {"email": bob.email, "role": role}
        return client.post(f"{acme}/invitations", json=body, headers=key.headers)

    return give


@pytest.mark.parametrize("way", ["member", "invitation"])
def test_key_makes_no_owner_where_a_domain_is_proved(give, provider, database, way):
    before = database.everything("memberships", "organization_invitations")
    assert_error(give(way, "owner"), 403, "insufficient_permissions", details=NO_OWNER)
    assert database.everything("memberships", "organization_invitations") == before
    assert give(way, "admin").status_code in (200, 201)


@pytest.mark.parametrize("way", ["member", "invitation"])
def test_key_makes_no_owner_where_a_command_has_proved_a_domain(give, latchkey, acme, way):
    latchkey("organizations", "prove", "acme", "acme.example")
    assert_error(give(way, "owner"), 403, "insufficient_permissions", details=NO_OWNER)


@pytest.mark.parametrize("way", ["member", "invitation"])
def test_key_makes_owners_of_other_organizations(give, way):
    assert give(way, "owner").status_code in (200, 201)


def test_operator_makes_an_owner_where_a_domain_is_proved(client, service_role, acme, provider, bob):
    response = client.put(f"{acme}/members/{bob.id}", json={"role": "owner"}, headers=service_role)
    assert response.status_code == 200


@pytest.fixture
def owner_by_key(sign_in, database):
    """The owner's session, as if the link of a key had opened it."""
    database.run("UPDATE sessions SET by_key = true WHERE id = %(id)s", id=sign_in.owner.id)


def test_user_made_by_a_provider_that_a_keys_session_has_changed_becomes_no_administrator(
    on, owner_by_key, sign_in, provider, customers, service, service_role
):
    assert sign_in.change(provider, name="Acme Inc.").status_code == 200
    customers.acme.be("9", BOSS)
    session = service.signed_in(f"custom:{provider}")
    passkeys.register(session)
    response = service.client.put(
        f"/admin/users/{session.claims['sub']}", json={"role": "admin"}, headers=service_role
    )
    assert_error(response, 400, "validation_failed", details=None)
    assert response.json["msg"].startswith("An administrative key has set this email: ")


def test_provider_that_a_keys_session_has_connected_is_marked_as_the_keys(
    owner_by_key, sign_in, customers, database
):
    assert sign_in.prove(customers.acme.domain).status_code == 200
    assert sign_in.connect(customers.acme, member_role="member").status_code == 201
    assert database.value("SELECT by_key FROM identity_providers")


def test_user_made_by_another_provider_may_become_an_administrator(
    on, provider, customers, service, service_role
):
    customers.acme.be("9", BOSS)
    session = service.signed_in(f"custom:{provider}")
    response = service.client.put(
        f"/admin/users/{session.claims['sub']}", json={"role": "admin"}, headers=service_role
    )
    assert response.status_code == 200, response.text
