"""/console/applications: gates are applications, which administrators create and change here."""

import pytest

from tests.support.cases import cases
from tests.support.gates import ORIGIN, create
from tests.support.openid import insert_client
from tests.support.pages import words

GATE = "SELECT name, gate_origin, redirect_uris, allowed_roles, skip_consent FROM oauth_clients"


@pytest.fixture
def app(make_app):
    return make_app(AUTH_GATE="true")


@pytest.fixture
def act(armed, codes, database):
    def act(path, **fields):
        database.run("UPDATE factors SET last_step = NULL")
        armed.visit(f"/console/applications/{path}")
        return armed.press(path, factor_code=codes.code(1), **fields)

    return act


def test_gate_is_created_with_what_each_proxy_needs(act, armed, database):
    page = act("new-gate", client_name="docs", url=f"{ORIGIN}/", allowed_roles="staff\nops")
    said = words(page)
    assert "Gate created. Add the configuration below to your proxy." in said
    assert f"Gate, in front of {ORIGIN}" in said
    assert ("server_name docs.example.com;" in said, "forward_auth" in said, "forwardAuth:" in said) == (
        True,
        True,
        True,
    )
    callback = f"{ORIGIN}/.latchkey/callback"
    assert tuple(database.one(GATE)) == ("docs", ORIGIN, [callback], ["staff", "ops"], True)
    assert database.value("SELECT actor FROM audit_log WHERE action = 'client_created'") == "user"
    assert "docs gate 0" in words(armed.visit("/console/applications"))


def test_gate_changes_its_name_and_roles_and_nothing_else(act, app, armed, database):
    id = create(app, ORIGIN, "staff")
    page = armed.visit(f"/console/applications/{id}")
    assert f"{id}/change-gate" in page.text
    assert (f'{id}/change"' in page.text, "new-secret" in page.text) == (False, False)
    assert "Gate changed." in words(act(f"{id}/change-gate", client_name="wiki", allowed_roles="ops"))
    callback = f"{ORIGIN}/.latchkey/callback"
    assert tuple(database.one(GATE)) == ("wiki", ORIGIN, [callback], ["ops"], True)


@cases(
    ("url", "why"),
    [
        (
            "https://docs.example.com/path",
            "it must be an origin, in lower case, such as https://docs.example.com",
        ),
        ("http://docs.example.com", "it must begin with https://, unless its host is this machine"),
        (ORIGIN, "it has a gate already"),
    ],
)
def test_url_that_is_refused_is_said_at_its_field(act, app, database, url, why):
    database.run("DELETE FROM oauth_clients")
    create(app)
    page = act("new-gate", client_name="wiki", url=url, allowed_roles="")
    assert page.status == 400
    assert f"“{url}” can’t be used: {why}." in words(page)
    assert 'aria-invalid="true"' in page.text.partition('name="url"')[2].partition(">")[0]
    assert database.count("oauth_clients") == 1


def test_application_is_not_changed_as_a_gate(armed, database):
    id = insert_client(database)
    assert armed.visit(f"/console/applications/{id}/change-gate").status == 404


class TestOff:
    @pytest.fixture
    def app(self, make_app):
        return make_app()

    def test_no_gate_is_offered_or_created(self, armed):
        assert "Add a gate" not in armed.visit("/console/applications").text
        assert armed.visit("/console/applications/new-gate").status == 404

    def test_gate_from_before_is_offered_no_change(self, database, armed):
        id = insert_client(database)
        database.run("UPDATE oauth_clients SET gate_origin = %(origin)s", origin=ORIGIN)
        page = armed.visit(f"/console/applications/{id}")
        assert (page.status, "change-gate" in page.text, f"{id}/delete" in page.text) == (200, False, True)
