"""An owner's change to another issuer, document or client needs the client secret in the same request: a thief
of an owner's session reads no secret of the company.
"""

import pytest

from tests.support.answers import assert_error
from tests.support.own_providers import DOMAIN, PATH
from tests.support.pages import words

NEEDED = "client_secret: is required with another {}"
SELECT_CLIENT = "SELECT issuer, discovery_url, client_id FROM identity_providers"
FIELDS = ("issuer", "discovery_url", "client_id")


@pytest.fixture
def hostile_values(customers):
    """The values of an attacker who runs Globex's issuer."""
    token_endpoint = f"{customers.globex.provider.url}/token"
    return {
        "issuer": customers.globex.provider.url,
        "discovery_url": customers.acme.other_document(token_endpoint=token_endpoint),
        "client_id": "website",
    }


@pytest.fixture(params=["owner", "operator"])
def change(request, sign_in, provider, client, service_role):
    """Change the provider by the API."""
    if request.param == "owner":
        return lambda **body: sign_in.change(provider, **body)
    path = f"/admin/custom-providers/{provider}"
    return lambda **body: client.put(path, json=body, headers=service_role)


@pytest.mark.parametrize("field", FIELDS)
def test_hostile_issuer_never_gets_the_stored_secret(
    change, press, alice, customers, hostile_values, database, monkeypatch, field
):
    # It answers every client.
    monkeypatch.setattr(customers.globex.provider, "client_id", customers.acme.provider.client_id)
    before = database.all(SELECT_CLIENT)
    response = change(**{field: hostile_values[field]})
    press(alice)
    assert "/token" not in customers.globex.provider.paths()
    assert_error(response, 400, "validation_failed", details=NEEDED.format(field))
    assert database.all(SELECT_CLIENT) == before


@pytest.mark.parametrize("field", FIELDS)
def test_client_secret_in_the_same_request_allows_the_change_and_takes_another_test(
    change, customers, hostile_values, database, field
):
    database.run("UPDATE identity_providers SET tried_at = now()")
    response = change(
        **{field: hostile_values[field], "client_secret": customers.acme.provider.client_secret}
    )
    assert (response.status_code, response.json.get(field)) == (200, hostile_values[field])
    assert database.value("SELECT tried_at FROM identity_providers") is None


def test_page_asks_for_the_secret_of_another_client(provider, browse, alice, customers, database):
    visitor, path = browse(alice), f"{PATH[1:]}/sign-in/providers/{provider}/change"
    fields = {"name": "Acme", "domains": DOMAIN, "member_role": "member"}
    before = database.everything("identity_providers")
    visitor.visit(f"/{path}")
    page = visitor.press(path, client_id="website", client_secret="", **fields)
    assert (page.status, "Copy the client secret from your identity provider" in words(page)) == (400, True)
    assert database.everything("identity_providers") == before
    visitor.press(path, client_id="website", client_secret="another", **fields)
    assert database.value("SELECT client_id FROM identity_providers") == "website"
    visitor.visit(f"/{path}")
    visitor.press(path, client_id="website", client_secret="", **fields | {"name": "Acme Inc."})
    assert database.value("SELECT name FROM identity_providers") == "Acme Inc."
