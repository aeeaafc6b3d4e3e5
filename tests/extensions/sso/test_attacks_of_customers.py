"""Further attacks of a customer: on flows, codes and documents, while an operator changes the provider."""

import pytest

from tests.support.answers import ANYTHING, assert_error
from tests.support.cases import cases
from tests.support.oauth import FAILED, STALE, assert_failed

ALICE = "alice@acme.example"
DISABLED = ("sso_provider_disabled", "access_denied")
USERS = "SELECT count(*) FROM users"


def _assert_refused(sso, body):
    response = sso.client.post("/token?grant_type=id_token", json=body)
    assert_error(response, 400, "bad_oauth_callback", "Bad ID token", details=ANYTHING)


@pytest.mark.parametrize("field", ["issuer", "discovery_url"])
def test_flow_that_is_on_its_way_ends_when_its_code_would_go_elsewhere(sso, acme, globex, database, field):
    browser = sso.browser()
    url = sso.return_url(browser, acme.identifier)
    value = globex.provider.url
    if field == "discovery_url":
        value = acme.other_document(token_endpoint=f"{globex.provider.url}/token")
    response = sso.change(acme, **{field: value}, client_secret=globex.provider.client_secret)
    assert response.status_code == 200
    assert_failed(browser.visit(url), *STALE)
    assert "/token" not in globex.provider.paths()
    assert database.value(USERS) == 0


def test_issuer_that_is_replaced_while_it_answers_signs_in_nobody(sso, acme, globex, database):

    def sign(claims):
        database.run(
            "UPDATE identity_providers SET issuer = %(issuer)s WHERE id = %(id)s",
            issuer=globex.provider.url,
            id=acme.id,
        )
        return acme.provider.signed(claims)

    acme.provider.sign = sign
    assert_failed(sso.sign_in(acme.identifier), *DISABLED)
    assert (database.value(USERS), database.count("sessions")) == (0, 0)


def test_discovery_document_that_changes_its_issuer_later_signs_in_nobody(sso, acme, globex, database):
    assert sso.change(acme, name="Acme Inc.").status_code == 200
    acme.provider.metadata = {"issuer": globex.provider.url}
    assert_failed(sso.sign_in(acme.identifier), "bad_oauth_callback", "temporarily_unavailable")
    assert "/authorize" not in acme.provider.paths()
    assert database.value(USERS) == 0


@cases("issuer", ["https://login.microsoftonline.com/{tenantid}/v2.0", "of the other customer", ""])
def test_id_token_that_names_another_issuer_or_tenant_is_refused(sso, acme, globex, database, issuer):
    acme.be("1", ALICE, tid="9188040d-6c67-4c5b-b112-36a304b66dad")
    acme.provider.claims = {"iss": globex.provider.url if issuer.startswith("of") else issuer}
    assert_failed(sso.sign_in(acme.identifier), *FAILED)
    assert database.value(USERS) == 0


def test_id_token_of_one_provider_is_no_other_ones(sso, acme, globex, database):
    globex.be("1", ALICE)
    for token in (globex.provider.id_token(), globex.provider.id_token(iss=acme.provider.url)):
        body = {"provider": acme.identifier, "id_token": token}
        _assert_refused(sso, body)
    assert database.value(USERS) == 0
