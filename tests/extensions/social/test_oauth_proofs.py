"""Sign-ins by a provider as proofs: they are as old as the provider's own sign-in, if it says so."""

import time
from urllib.parse import urlencode

import pytest

from auth.core.settings.presets import PRESETS
from tests.support.cases import cases
from tests.support.links import SITE, VERIFIER, WITH_CHALLENGE
from tests.support.oauth import query
from tests.support.pages import Visitor
from tests.support.users import session_of

pytest_plugins = ["tests.support.oauth_fixtures"]
FRESH_SIGN_IN = {"max_age": "0", "prompt": "login"}
HOUR = 3600


@pytest.fixture(autouse=True)
def acme(acme):
    acme.person = {"sub": "somebody-at-acme", "name": "Somebody"}
    return acme


def by_redirect(service, acme, **query_parameters):
    return service.session(service.sign_in("acme", **query_parameters))


def by_code(service, acme, **query_parameters):
    code = query(service.sign_in("acme", **WITH_CHALLENGE, **query_parameters))["code"]
    body = {"auth_code": code, "code_verifier": VERIFIER}
    return session_of(service.client, service.client.post("/token?grant_type=pkce", json=body))


def by_id_token(service, acme, **query_parameters):
    if query_parameters:
        acme.signed_in_at = time.time()
    body = {"provider": "acme", "id_token": acme.id_token()}
    return session_of(service.client, service.client.post("/token?grant_type=id_token", json=body))


def status_of_proof(session) -> int:
    """Return the status of a request that needs a proof of the last 15 minutes."""
    return session.get("/user/identities/authorize?provider=github").status_code


@cases("sign_in", [by_redirect, by_code, by_id_token])
def test_proof_is_as_old_as_the_sign_in_at_the_provider(service, acme, database, sign_in):
    sign_in(service, acme)
    for signed_in_at, status in ((None, 200), (time.time() - HOUR, 400), (time.time() + HOUR, 200)):
        acme.signed_in_at = signed_in_at
        session = sign_in(service, acme)
        assert (session.get("/user").status_code, status_of_proof(session)) == (200, status), signed_in_at
    database.run(
        "UPDATE sessions SET created_at = created_at - interval '15 minutes',"
        " reauthenticated_at = reauthenticated_at - interval '15 minutes'"
    )
    assert status_of_proof(session) == 400
    acme.signed_in_at = time.time() - HOUR
    assert status_of_proof(sign_in(service, acme, prompt="login")) == 200


@cases("auth_time", ["now", True, -1, {}, 1e300])
def test_time_that_is_no_date_proves_nothing(service, acme, auth_time):
    acme.claims = {"auth_time": auth_time}
    assert status_of_proof(by_redirect(service, acme)) == 400


def test_flow_for_a_proof_asks_the_provider_to_authenticate_the_user_again(service, acme):
    for query_parameters, expected in (
        ({}, {}),
        ({"prompt": "consent"}, {}),
        ({"prompt": "login"}, FRESH_SIGN_IN),
    ):
        parameters = service.leave(service.browser(), "acme", **query_parameters)
        assert {name: parameters[name] for name in FRESH_SIGN_IN if name in parameters} == expected
    url = service.client.get("/authorize?provider=acme&prompt=login&skip_http_redirect=true").json["url"]
    assert "prompt=login" in url


def test_each_provider_is_asked_in_its_own_words():
    parameters = {name: dict(preset.asks_again) for name, preset in PRESETS.items() if preset.asks_again}
    assert parameters == {
        "azure": {"prompt": "login"},
        "gitlab": FRESH_SIGN_IN,
        "facebook": {"auth_type": "reauthenticate"},
    }


def test_page_that_asks_for_a_proof_takes_a_fresh_sign_in_only(service, acme):
    acme.signed_in_at = time.time() - HOUR
    visitor = Visitor(service.app)
    visitor.visit(f"/authorize?{urlencode({'provider': 'acme', 'redirect_to': f'{SITE}/sign-in'})}")
    assert visitor.visit("/account/email").url == f"{SITE}/account/confirm?next=email"
    href = next(part for part in visitor.page.text.split('"') if "provider=acme" in part).replace(
        "&amp;", "&"
    )
    # A provider that does not obey signs in, but proves nothing.
    acme.claims = {"auth_time": acme.signed_in_at}
    assert visitor.click(href).url == f"{SITE}/account/confirm?next=email"
    acme.claims = {}
    assert visitor.click(href).url == f"{SITE}/account/email"
