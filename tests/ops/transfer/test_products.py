"""`latchkey users import` of the exports of other products, as their documentation shows them."""

import json
import re
from pathlib import Path

import pytest

from auth.ops.transfer import products
from tests.support.answers import assert_error
from tests.support.commands import run_command
from tests.support.users import PASSWORD, sign_in

FILES = Path(__file__).parent / "files"
# The users that the files become, one in a line, with the name of their file.
EXPECTED = [json.loads(line) for line in (FILES.parent / "expected.jsonl").read_text().splitlines()]
FIREBASE = ("--firebase-hash-config", str(FILES / "firebase-hash-config.txt"))
DELETED, NO_SCHEME = "was deleted in Supabase", "password_hash has no supported scheme"
TOO_COSTLY = "password_hash takes as long as 6.1 log-ins; at most 4 are accepted with AUTH_BCRYPT_COST=10"
NO_ADDRESS = "has no email, phone, provider identity or passkey"


@pytest.fixture
def users(make_app, database):
    """Return a function that imports a file, and returns the users by address and the outcomes of the rows."""

    def run(name, *options, exit_code=0):
        app = make_app(AUTH_BCRYPT_COST="10")
        result = run_command(
            app, "users", "import", str(FILES / name), "--trust-addresses", "--json", *options
        )
        assert result.exit_code == exit_code, result.output
        outcomes = [json.loads(line) for line in result.output.splitlines()]
        objects = database.all(
            "SELECT shown.user_object::json AS object FROM users AS u CROSS JOIN user_object_of(u, NULL, false) AS shown"
        )
        users = {row.object["email"] or row.object["phone"]: row.object for row in objects}
        return users, outcomes

    return run


def refusals(outcomes):
    return [row["reason"] for row in outcomes if row.get("status") == "refused"]


def describe(user, file, today):
    """Return what a file says about a user; a time that it does not state is `now`."""
    names = ["email", "phone", "role", "created_at", "last_sign_in_at", "email_confirmed_at"]
    names += ["phone_confirmed_at", "invited_at", "banned_until", "user_metadata", "app_metadata"]
    description = {"file": file.name} | {name: user[name] for name in names if user[name]}
    if user["id"] in file.read_text():
        description["id"] = user["id"]
    external = [each for each in user["identities"] if each["provider"] not in ("email", "phone")]
    names = ["provider", "created_at", "last_sign_in_at", "identity_data"]
    description["identities"] = [{name: each[name] for name in names if each[name]} for each in external]
    return json.loads(re.sub(f'"{today}T[^"]*Z"', '"now"', json.dumps(description)))


def assert_password(client, email, database):
    """Assert that the password is accepted, a wrong one is not, and the hash is renewed."""
    assert_error(sign_in(client, email, f"{PASSWORD}x"), 401, "invalid_credentials")
    assert sign_in(client, email).status_code == 200
    stored = database.value("SELECT password_hash FROM users WHERE email = %(email)s", email=email)
    assert stored.startswith("latchkey1$2b$04$")


@pytest.mark.parametrize(
    ("name", "options", "reasons", "passwords"),
    [
        ("auth0.ndjson", (), [], ["alice"]),
        ("auth0-hashes.ndjson", (), [], ["bob"]),
        ("firebase.json", FIREBASE, [], ["alice"]),
        ("supabase.csv", (), [DELETED], ["alice"]),
        ("supabase.ndjson", (), [], ["alice"]),
        ("keycloak.json", (), ["is a service account"], ["alice", "dave", "erin"]),
        ("django.json", (), [TOO_COSTLY, NO_ADDRESS], ["alice"]),
        ("wordpress.json", (), [NO_SCHEME], ["alice", "bob"]),
        ("wordpress.csv", (), [NO_SCHEME], ["alice", "bob"]),
        ("users.csv", (), [], ["alice", "bob"]),
        ("users.jsonl", (), [], ["alice"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_export_is_imported_with_its_passwords(users, client, database, name, options, reasons, passwords):
    today = database.value("SELECT (now() AT TIME ZONE 'UTC')::date")
    imported, outcomes = users(name, *options, exit_code=3 if reasons else 0)

    expected = [entry for entry in EXPECTED if entry["file"] == name]
    assert [describe(imported[each], FILES / name, today) for each in sorted(imported)] == expected
    assert refusals(outcomes) == reasons
    database.run("UPDATE users SET banned_until = NULL, email_confirmed_at = now()")
    for email in (f"{person}@example.com" for person in passwords):
        assert_password(client, email, database)


def test_unusable_password_of_django_signs_nobody_in(users, client):
    users("django.json", exit_code=3)
    assert_error(sign_in(client, "bob@example.com"), 401, "invalid_credentials")


def test_hash_of_firebase_needs_the_parameters_of_the_project_or_is_left_out(users, database):
    imported, outcomes = users("firebase.json", exit_code=3)
    assert "alice@example.com" not in imported
    assert refusals(outcomes) == [
        "password_hash: needs the project's hash parameters, --firebase-hash-config"
    ]
    imported, _outcomes = users("firebase.json", *FIREBASE, "--without-passwords")
    assert "alice@example.com" in imported
    assert database.count("users", "password_hash IS NOT NULL") == 0


def test_incomplete_parameters_of_firebase_are_refused(make_app, tmp_path):
    (tmp_path / "config").write_text("rounds: 8,\n")
    options = ("--firebase-hash-config", str(tmp_path / "config"))
    result = run_command(make_app(), "users", "import", str(FILES / "firebase.json"), *options)
    assert result.exit_code == 2
    assert "lacks base64_signer_key, mem_cost. Copy the whole hash_config." in result.output


@pytest.mark.parametrize("path", sorted(FILES.glob("*.*s*")), ids=lambda path: path.name)
def test_entries_of_another_product_result_only_in_refusals(make_app, database, monkeypatch, path):
    for product in products.PRODUCTS:
        monkeypatch.setattr(products, "detect", lambda _entry, product=product: product)
        result = run_command(make_app(), "users", "import", str(path), "--dry-run")
        assert result.exit_code in (0, 3), (product, result.output)
    assert database.count("users") == 0
