"""A provider that is not trusted to verify addresses makes nobody a member by naming their address."""

import pytest

from tests.support.answers import assert_error
from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.commands import run_command
from tests.support.fake_provider import FakeProvider
from tests.support.oauth import ALLOW_LIST, Service

DAVE = "dave@example.com"


@pytest.fixture(scope="module")
def idp():
    with FakeProvider("idp") as provider:
        yield provider


@pytest.fixture
def app(make_app, idp):
    return make_app(AUTH_ORGANIZATIONS="users", AUTH_CONSOLE="true", **idp.settings(), **ALLOW_LIST)


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def sign_stranger_in(app, idp, database):
    """Sign a user in at the provider, with the claims that it makes, and return the user's id."""

    def sign_stranger_in(**claims):
        idp.person = {"sub": "stranger", **claims}
        Service(app).signed_in("idp")
        return database.value("SELECT id::text FROM users WHERE made_by = 'oauth'")

    return sign_stranger_in


@pytest.mark.parametrize("door", ["api", "console", "command", "create"])
def test_operator_who_names_an_address_adds_no_stranger_who_has_claimed_it(
    acme, sign_stranger_in, client, service_role, act_at, database, door
):
    id = sign_stranger_in(email=DAVE, email_verified=True)
    assert database.one("SELECT email, email_proved FROM users WHERE id = %(id)s", id=id) == (DAVE, False)
    if door == "api":
        response = client.put(f"{acme}/members/{id}", json={"role": "owner"}, headers=service_role)
        assert_error(response, 403, "email_not_confirmed")
    elif door == "create":
        body = {"name": "Other", "owner": id}
        response = client.post("/organizations", json=body, headers=service_role)
        assert_error(response, 403, "email_not_confirmed")
    elif door == "command":
        result = run_command(client.application, "organizations", "add", "acme", DAVE, "--role", "owner")
        assert result.exit_code == 3
    else:
        assert act_at(f"/console{acme}", "add", email=DAVE, role="owner").status == 403
    assert database.count("memberships") == 1
    assert database.count("organizations") == 1


def test_operator_adds_a_user_without_an_address(acme, sign_stranger_in, client, service_role):
    path = f"{acme}/members/{sign_stranger_in()}"
    assert client.put(path, json={"role": "member"}, headers=service_role).status_code == 200
