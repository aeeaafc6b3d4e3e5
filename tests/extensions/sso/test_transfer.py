"""Users of customers' providers in the file of `users export`."""

import json

import pytest

from tests.support.cases import cases
from tests.support.commands import run_command

ALICE = "alice@acme.example"
DELETE_USERS = "DELETE FROM users WHERE role <> 'admin'"


@pytest.fixture
def file(sso, acme, tmp_path):
    """An export with Alice, whom the provider has signed in."""
    sso.signed_in(acme.identifier)
    path = tmp_path / "users.jsonl"
    assert run_command(sso.app, "users", "export", str(path), "--plaintext").exit_code == 0
    return path


def import_users(sso, file, *options):
    return run_command(sso.app, "users", "import", str(file), "--trust-addresses", *options)


def test_import_gives_a_user_back_to_the_provider(sso, acme, file, database):
    (exported,) = map(json.loads, file.read_text().splitlines())
    database.run(DELETE_USERS)
    result = import_users(sso, file)
    assert result.exit_code == 0, result.output
    user = sso.signed_in(acme.identifier).get("/user").json
    assert (user["id"], user["email"]) == (exported["id"], ALICE)
    assert {each["provider"] for each in user["identities"]} == {f"sso:{acme.id}", "email"}


def test_import_leaves_out_the_identity_of_a_provider_that_is_not_here(sso, acme, file, database):
    sso.delete(acme)
    database.run(DELETE_USERS)
    result = import_users(sso, file)
    assert result.exit_code == 0, result.output
    (row,) = database.all(
        "SELECT provider FROM identities JOIN users AS u ON u.id = user_id WHERE email = %(email)s",
        email=ALICE,
    )
    assert row.provider == "email"


@cases("options", [(), ("--dry-run",)])
def test_import_refuses_a_user_with_nothing_but_a_customers_provider(sso, acme, file, database, options):
    (exported,) = map(json.loads, file.read_text().splitlines())
    identities = [each for each in exported["identities"] if each["provider"] != "email"]
    file.write_text(json.dumps({"id": exported["id"], "identities": identities}))
    database.run(DELETE_USERS)
    result = import_users(sso, file, *options)
    assert (result.exit_code, "has no email, phone, provider identity or passkey" in result.output) == (
        3,
        True,
    )
    assert database.count("users", "role <> 'admin'") == 0
