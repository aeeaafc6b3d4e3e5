"""A key with the scope `providers` reads, renames and turns off customers' providers, and nothing else: its holder gets
nobody's sign-in, whatever server or application the holder runs.
"""

import pytest

from tests.source.test_contract import CONTRACT
from tests.support.admin_keys import make_admin_key
from tests.support.answers import assert_error
from tests.support.api_keys import make_key
from tests.support.pages import Visitor, words
from tests.support.users import PASSWORD, register

BOSS = "boss@operator.example"
TABLES = ("identity_providers", "identity_provider_domains", "identities", "users", "sessions")
MEMBERS = CONTRACT["components"]["schemas"]["CustomProviderChange"]["properties"].keys()
# A value of each member that a change may have, other than its own one.
VALUES = {
    "issuer": "{globex}",
    "discovery_url": "{document}",
    "client_id": "holders-app",
    "client_secret": "another",
    "acceptable_client_ids": ["holders-app"],
    "scopes": ["openid", "email", "groups"],
    "authorization_params": {"prompt": "login"},
    "attribute_mapping": {"department": "dept"},
    "custom_claims_allowlist": ["groups"],
    "domains": ["acme.example", "operator.example"],
    "email_optional": True,
    "skip_nonce_check": True,
    "pkce_enabled": False,
}


@pytest.fixture
def key(sso):
    return make_admin_key(sso.parts, "providers").headers


@pytest.fixture
def change(sso, acme, globex, key):
    """Change Acme's provider, or another one, with the key."""
    urls = {"globex": globex.provider.url}

    def change(provider=acme, **body):
        urls["document"] = acme.other_document(token_endpoint=f"{globex.provider.url}/token")
        values = {
            name: value.format(**urls) if isinstance(value, str) else value for name, value in body.items()
        }
        return sso.client.put(f"/admin/custom-providers/{provider.identifier}", json=values, headers=key)

    return change


def assert_refused(answer, member):
    assert_error(answer, 403, "insufficient_permissions", details=f"{member}: must be absent")


def test_every_member_of_a_change_is_attacked_or_open_to_the_key():
    assert VALUES.keys() | {"name", "enabled"} == MEMBERS


@pytest.mark.parametrize("beside", [{}, {"name": "Acme", "enabled": True}, {"client_secret": "another"}])
@pytest.mark.parametrize("member", VALUES)
def test_key_sets_no_member_that_decides_who_signs_in(sso, change, acme, globex, database, member, beside):
    before, requests = database.everything(*TABLES), globex.provider.paths()
    response = change(**{member: VALUES[member]} | beside)
    assert_refused(response, min({member, *beside} - {"name", "enabled"}))
    assert database.everything(*TABLES) == before
    sso.sign_in(acme.identifier)
    assert globex.provider.paths() == requests


def test_key_sets_no_such_member_even_to_its_present_value(sso, change, acme, key):
    unchanged_values = {
        "issuer": f"{acme.provider.url}/",
        "client_id": acme.provider.client_id,
        "domains": [acme.domain],
    }
    for member, value in unchanged_values.items():
        assert_refused(change(**{member: value}), member)
    for body in ({"ISSUER": "x"}, {"identifier": "custom:evil"}, {"enabled": "false"}, {"name": 5}):
        path = f"/admin/custom-providers/{acme.identifier}"
        assert sso.client.put(path, json=body, headers=key).status_code == 400
    assert change(domains=None, enabled=None, name="Acme").status_code == 200


@pytest.mark.parametrize("body", [{"acceptable_client_ids": ["holders-app"]}, {"client_id": "holders-app"}])
@pytest.mark.parametrize("secret", [{}, {"client_secret": "secret-at-acme-idp"}])
def test_id_token_for_the_holders_application_opens_nothing(sso, change, acme, database, body, secret):
    """An employee has signed in there with the company's account."""
    sso.signed_in(acme.identifier)
    change(**body, **secret)
    sessions = database.count("sessions")
    token = {"provider": acme.identifier, "id_token": acme.provider.id_token(aud="holders-app")}
    assert sso.client.post("/token?grant_type=id_token", json=token).status_code == 400
    assert database.count("sessions") == sessions


def test_document_of_the_holder_signs_in_nobody(sso, change, acme, globex, monkeypatch):
    """Anyone may have a page at the issuer's host."""
    monkeypatch.setattr(globex.provider, "client_id", acme.provider.client_id)
    user_id, requests = sso.signed_in(acme.identifier).claims["sub"], globex.provider.paths()
    change(discovery_url="{document}")
    change(discovery_url="{document}", client_secret="secret-at-acme-idp")
    assert sso.signed_in(acme.identifier).claims["sub"] == user_id
    assert globex.provider.paths() == requests


class TestDomains:
    """The holder runs Globex's provider, and wants addresses of the operator's own domain."""

    @pytest.fixture(params=["add", "create", "turn on"])
    def attack(self, request, sso, change, globex, key):
        """Try to let Globex's provider sign in the boss, and return its name."""
        if request.param == "add":
            change(globex, domains=["globex.example", "operator.example"])
        elif request.param == "create":
            body = globex.body(identifier="custom:evil", domains=["operator.example"])
            response = sso.client.post("/admin/custom-providers", json=body, headers=key)
            assert_error(response, 403, "insufficient_scope", details="no scope opens this")
        else:
            domains = ["globex.example", "operator.example"]
            assert sso.change(globex, domains=domains, enabled=False).status_code == 200
            response = change(globex, enabled=True, name="Globex")
            details = "enabled: a provider that is off stays off"
            assert_error(response, 403, "insufficient_permissions", details=details)
        globex.be("1", BOSS)
        return "custom:evil" if request.param == "create" else globex.identifier

    def test_sign_in_page_sends_no_administrator_to_the_holder(
        self, sso, attack, service_role, database, globex
    ):
        person = register(sso.client, service_role, BOSS, "admin")
        visitor = Visitor(sso.app)
        visitor.visit("/sign-in")
        visitor.submit(email=BOSS, password=PASSWORD)
        assert globex.provider.url not in visitor.page.url
        visitor.visit("/account")
        assert BOSS in words(visitor.page)
        assert database.count("identities", "user_id = %(id)s AND provider LIKE 'sso:%%'", id=person.id) == 0

    @pytest.mark.parametrize("role", ["", "editor"])
    def test_open_invitation_stays_that_of_the_invited(self, sso, attack, service_role, database, role):
        body = {"email": BOSS} | ({"data": {"x": 1}} if not role else {})
        assert sso.client.post("/invite", json=body, headers=service_role).status_code == 200
        if role:
            database.run("UPDATE users SET role = %(role)s WHERE email = %(email)s", role=role, email=BOSS)
        assert "access_token" not in sso.sign_in(attack).url
        assert database.count("sessions") == 0
        assert database.count("users", "email = %(email)s AND NOT email_proved", email=BOSS) == 1


def test_key_turns_nothing_on_that_the_operator_has_disabled(sso, change, acme, database):
    sso.signed_in(acme.identifier)
    assert sso.change(acme, enabled=False).status_code == 200
    for body in ({"enabled": True}, {"enabled": True, "name": "Acme"}):
        response = change(**body)
        details = "enabled: a provider that is off stays off"
        assert_error(response, 403, "insufficient_permissions", details=details)
    assert (
        database.count("identity_providers", "identifier = %(name)s AND enabled", name=acme.identifier) == 0
    )
    assert change(name="Acme Inc.").json["enabled"] is False
    assert change(enabled=False).json["enabled"] is False


def test_key_renames_a_provider_and_turns_it_off_with_the_same_effect_as_the_operator(
    sso, change, acme, database, key
):
    session = sso.signed_in(acme.identifier)
    make_key(session)
    assert change(name="Acme Inc.", enabled=True).json["name"] == "Acme Inc."
    assert session.get("/user").status_code == 200
    before = database.everything("identities", "identity_provider_domains")
    assert change(enabled=False).json["enabled"] is False
    assert session.get("/user").status_code in (401, 403)
    assert (database.count("api_keys"), database.count("users")) == (0, 1)
    assert database.everything("identities", "identity_provider_domains") == before
    row = database.one(
        "SELECT actor, details ->> 'administrator' AS administrator FROM audit_log WHERE action = 'provider_disabled'"
    )
    assert tuple(row) == ("service_role", "key billing")
    providers = sso.client.get("/admin/custom-providers", headers=key).json["providers"]
    assert [each["enabled"] for each in providers] == [False, True]
    assert sso.change(acme, enabled=True).status_code == 200


def test_key_turns_off_no_provider_of_an_administrator(sso, change, acme, database, key):
    """It would end the administrator's sessions, keys and grants."""
    session = sso.signed_in(acme.identifier)
    database.run("UPDATE users SET role = 'admin', admin_since = now()")
    before = database.everything("sessions", "identity_providers", "api_keys")
    assert_error(change(enabled=False), 403, "insufficient_permissions")
    assert database.everything("sessions", "identity_providers", "api_keys") == before
    assert change(name="Acme Inc.").status_code == 200
    assert sso.change(acme, enabled=False).status_code == 200
    assert session.get("/user").status_code in (401, 403)


def test_key_deletes_no_provider(sso, acme, key, database):
    for name in (acme.identifier, acme.id):
        response = sso.client.delete(f"/admin/custom-providers/{name}", headers=key)
        assert_error(response, 403, "insufficient_scope", details="no scope opens this")
    assert database.count("identity_providers") == 2


def test_key_beside_the_token_of_a_user_or_an_administrator_opens_nothing(sso, acme, key, carol, alice):
    apikey = {"apikey": key["Authorization"].removeprefix("Bearer ")}
    path = f"/admin/custom-providers/{acme.identifier}"
    for person in (alice, carol):
        token = {"Authorization": f"Bearer {person.open_session(sso.client).access_token}"}
        for body in ({"name": "Evil"}, {"issuer": "https://evil.example"}):
            for headers in (token, token | apikey):
                response = sso.client.put(path, json=body, headers=headers)
                assert response.status_code == 403, response.text
    assert sso.client.put(path, json={"name": "Acme Inc."}, headers=apikey).status_code == 200
    assert_refused(sso.client.put(path, json={"issuer": "https://evil.example"}, headers=apikey), "issuer")
