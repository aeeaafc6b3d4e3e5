"""`latchkey gates`, and what `latchkey explain` says of gates."""

import json

import pytest
import yaml

from auth.openid.gates.snippets import snippet
from tests.support.commands import run_command
from tests.support.gates import ORIGIN, create


@pytest.fixture
def app(make_app):
    return make_app(AUTH_GATE="true")


def test_gate_is_created_listed_and_deleted(app, database):
    created = run_command(app, "gates", "create", "docs", ORIGIN, "--role", "staff", "--proxy", "nginx")
    assert created.exit_code == 0
    assert "    server_name docs.example.com;\n" in created.stdout
    id = database.value("SELECT id::text FROM oauth_clients")
    assert run_command(app, "gates", "list").stdout == f"{id}  {ORIGIN}  docs  staff\n"
    again = run_command(app, "gates", "create", "docs", ORIGIN)
    assert (again.exit_code, f"{ORIGIN} has a gate already" in again.stderr) == (2, True)
    deleted = run_command(app, "gates", "delete", id)
    assert deleted.stdout == f"{id} is deleted, and its sessions have ended.\n"
    assert run_command(app, "gates", "list").stdout == ""


def test_json_has_the_client_without_a_secret(app):
    created = json.loads(run_command(app, "gates", "create", "docs", ORIGIN, "--json").stdout)
    assert created["gate_origin"] == ORIGIN
    assert created["redirect_uris"] == [f"{ORIGIN}/.latchkey/callback"]
    assert (created["skip_consent"], "client_secret" in created) == (True, False)


def test_client_that_is_no_gate_is_not_deleted(app, database):
    created = run_command(app, "clients", "create", "x", "https://x.example.com/", "--json")
    refused = run_command(app, "gates", "delete", json.loads(created.stdout)["client_id"])
    assert (refused.exit_code, database.count("oauth_clients")) == (3, 1)


def test_gates_that_are_off_are_not_created(make_app, database):
    refused = run_command(make_app(), "gates", "create", "docs", ORIGIN)
    assert (refused.exit_code, database.count("oauth_clients")) == (1, 0)
    assert "Set AUTH_GATE=true, and restart the service." in refused.stderr


def test_snippet_names_the_host_the_tool_and_the_service():
    for proxy in ("nginx", "caddy", "traefik"):
        text = snippet(proxy, "https://wiki.example.net:8443", tool="10.0.0.2:80", service="10.0.0.3:8000")
        assert "wiki.example.net" in text
        assert "10.0.0.2:80" in text
        assert "10.0.0.3:8000" in text
        assert "docs" not in text.replace("docs/gate.md", "")
        # nginx compares Host with it.
        assert ("!= wiki.example.net:8443)" in text) is (proxy == "nginx")


def test_snippet_of_traefik_asks_the_gate_for_every_other_path():
    text = snippet("traefik", ORIGIN, tool="127.0.0.1:9090", service="127.0.0.1:8000")
    parts = yaml.safe_load(text)["http"]
    tool, own = parts["routers"].values()
    assert tool["middlewares"] == [*parts["middlewares"]]
    assert own["service"] != tool["service"]
    gate = parts["middlewares"][tool["middlewares"][1]]["forwardAuth"]
    assert gate["address"] == "http://127.0.0.1:8000/gate"
    assert "Cookie" in gate["authResponseHeaders"]
    removed = parts["middlewares"][tool["middlewares"][0]]["headers"]["customRequestHeaders"]
    named = [name for name in gate["authResponseHeaders"] if name != "Cookie"]
    assert {name.lower() for name in removed} == {
        "upgrade",
        *(each.lower() for name in named for each in (name, name.replace("-", "_"))),
    }
    assert {*removed.values()} == {""}


def test_explain_says_which_gate_turns_a_user_away_and_why(app, alice, database):
    create(app, ORIGIN, "staff", "editor")
    assert (
        f"turned away   by the gate docs ({ORIGIN}), which is for staff or editor\n"
        in run_command(app, "explain", alice.email).stdout
    )
    found = json.loads(run_command(app, "explain", alice.email, "--json").stdout)
    assert (found["can_sign_in"], [gate["name"] for gate in found["closed_gates"]]) == (True, ["docs"])
    database.run("UPDATE users SET role = 'staff'")
    assert "turned away" not in run_command(app, "explain", alice.email).stdout
