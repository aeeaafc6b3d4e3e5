"""The redirect URI of an organization's next provider: owners register it before they connect the provider."""

import json

import pytest

from tests.support.answers import ANYTHING, assert_error
from tests.support.commands import run_command
from tests.support.own_providers import DOMAIN
from tests.support.server import at_once

TAKEN = "This is not the next provider's redirect URI"


@pytest.fixture
def next_uri(sign_in):
    """Return the redirect URI of the next provider. Acme has proved its domain."""
    assert sign_in.prove(DOMAIN).status_code == 200
    return lambda: sign_in.owner.get(f"{sign_in.path}/providers").json["next_redirect_uri"]


def test_redirect_uri_is_the_same_until_a_provider_has_it(next_uri, sign_in, customers):
    uri = next_uri()
    assert next_uri() == uri
    connected = sign_in.connect(customers.acme)
    assert (connected.status_code, connected.json["redirect_uri"]) == (201, uri)
    assert next_uri() != uri
    # A deleted provider leaves its redirect URI to no other one.
    assert (
        sign_in.owner.delete(f"{sign_in.path}/providers/{connected.json['id']}", json={}).status_code == 204
    )
    assert next_uri() != uri


def test_refused_connection_keeps_the_redirect_uri(next_uri, sign_in, customers, database):
    uri = next_uri()
    assert sign_in.connect(customers.acme, issuer="http://127.0.0.1:9").status_code == 400
    assert_error(sign_in.connect(customers.acme, domains=["globex.example"]), 422, "domain_not_proved")
    assert next_uri() == uri
    assert database.count("identity_providers") == 0


def test_connection_with_another_redirect_uri_is_refused(next_uri, sign_in, customers, database):
    before = next_uri()
    assert sign_in.connect(customers.acme, redirect_uri=before).status_code == 201
    for uri in (before, "https://evil.example/callback", before.upper()):
        refused = sign_in.connect(customers.globex, redirect_uri=uri)
        assert (refused.status_code, refused.json) == (
            409,
            {"code": 409, "msg": TAKEN, "error_code": "validation_failed"},
        )
    assert database.count("identity_providers") == 1
    assert sign_in.connect(customers.globex, redirect_uri=next_uri(), domains=[]).status_code == 201


def test_client_chooses_no_id(next_uri, sign_in, customers):
    uri, chosen = next_uri(), "00000000-0000-4000-8000-000000000001"
    for name in ("id", "next_provider_id"):
        refused = sign_in.connect(customers.acme, **{name: chosen})
        assert (refused.status_code, refused.json["details"]) == (
            400,
            f"{name}: is not a member of this body",
        )
    assert sign_in.connect(customers.acme).json["redirect_uri"] == uri


def test_of_owners_who_connect_at_once_one_gets_the_redirect_uri(next_uri, sign_in, customers, database):
    uri = next_uri()
    answers = at_once(4, lambda _: sign_in.connect(customers.acme, domains=[], redirect_uri=uri))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert database.count("identity_providers") == 1


def test_organizations_have_different_redirect_uris(next_uri, sign_in, owner, bob, client, beta):
    globex = bob.open_session(client).post("/organizations", json={"name": "Globex"}).json
    uris = [owner.get(f"{beta}/providers").json["next_redirect_uri"], next_uri()]
    assert len({*uris}) == 2
    assert_error(owner.get(f"/organizations/{globex['id']}/providers"), 404, "organization_not_found")


def test_imported_provider_leaves_no_id_to_the_next_one(
    next_uri, sign_in, customers, database, client, tmp_path
):
    """A backup may be from before a provider was connected that the imported file has."""
    connected = sign_in.connect(customers.acme).json
    path = tmp_path / "organizations.jsonl"
    assert run_command(client.application, "organizations", "export", str(path)).exit_code == 0
    database.run("DELETE FROM identity_provider_domains; DELETE FROM identity_providers")
    database.run(f"UPDATE organizations SET next_provider_id = '{connected['id']}'")
    (line,) = map(json.loads, path.read_text().splitlines())
    line["providers"][0]["client_secret"] = customers.acme.provider.client_secret
    path.write_text(f"{json.dumps(line)}\n")
    assert run_command(client.application, "organizations", "import", str(path)).exit_code == 0
    assert database.one("SELECT id::text FROM identity_providers") == (connected["id"],)
    uri = next_uri()
    assert uri != connected["redirect_uri"]
    again = sign_in.connect(customers.globex, domains=[])
    assert (again.status_code, again.json) == (201, ANYTHING)
    assert again.json["redirect_uri"] == uri
