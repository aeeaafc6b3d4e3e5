"""/console/providers: what administrators see and do, each action with a factor."""

import pytest

from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.pages import words

PATH = "/console/providers"


@pytest.fixture
def app(sso):
    return sso.app


@pytest.fixture
def submit(act_at):
    """Submit a form with a factor's code, and return the words of the next page."""
    return lambda path, **fields: words(act_at(PATH, path, **fields))


def test_provider_is_added_and_keeps_the_secret_that_a_change_leaves_out(sso, acme, submit, armed, database):
    sso.delete(acme)
    fields = {"name": "Acme", "issuer": acme.provider.url, "client_id": acme.provider.client_id}
    fields |= {"client_secret": acme.provider.client_secret, "domains": "acme.example\nacme.test"}
    assert "Provider added" in submit("new", identifier="custom:acme", **fields)
    id = database.value("SELECT id::text FROM identity_providers WHERE identifier = 'custom:acme'")
    text = words(armed.visit(f"{PATH}/{id}"))
    assert f"/providers/{id}/callback" in text
    assert acme.provider.client_secret not in armed.visit(f"{PATH}/{id}/change").text
    assert "Provider changed" in submit(f"{id}/change", name="Acme Inc.", client_secret="")
    acme.be("1", "alice@acme.test")
    sso.signed_in("custom:acme")
    assert "Acme Inc." in words(armed.visit(PATH))
