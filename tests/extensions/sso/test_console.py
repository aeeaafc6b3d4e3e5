"""/console/providers: what administrators see and do, each act with a factor."""

import pytest

from tests.support.factors import set_up
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD

PATH = "/console/providers"


@pytest.fixture
def codes(carol):
    return set_up(carol.open_session())[0]


@pytest.fixture
def visitor(sso, carol, codes):
    visitor = Visitor(sso.app)
    visitor.visit("/sign-in?next=console&way=password")
    visitor.submit(email=carol.email, password=PASSWORD)
    visitor.press("second-step", code=codes.code())
    return visitor


@pytest.fixture
def act(visitor, codes, database):
    """Do an act with a code for it, and return the words of the page that follows."""

    def act(path, **fields):
        database.run("UPDATE factors SET last_step = NULL")
        page = visitor.visit(f"{PATH}/{path}")
        assert page.status == 200, words(page)
        return words(visitor.press(path, factor_code=codes.code(1), **fields))

    return act


def test_provider_is_added_and_keeps_the_secret_that_a_change_leaves_out(sso, acme, act, visitor, database):
    sso.delete(acme)
    fields = {"name": "Acme", "issuer": acme.provider.url, "client_id": acme.provider.client_id}
    fields |= {"client_secret": acme.provider.client_secret, "domains": "acme.example\nacme.test"}
    assert "Provider added" in act("new", identifier="custom:acme", **fields)
    id = database.value("SELECT id::text FROM identity_providers WHERE identifier = 'custom:acme'")
    said = words(visitor.visit(f"{PATH}/{id}"))
    assert f"/providers/{id}/callback" in said
    assert acme.provider.client_secret not in visitor.visit(f"{PATH}/{id}/change").text
    assert "Provider changed" in act(f"{id}/change", name="Acme Inc.", client_secret="")
    acme.be("1", "alice@acme.test")
    sso.signed_in("custom:acme")
    assert "Acme Inc." in words(visitor.visit(PATH))
