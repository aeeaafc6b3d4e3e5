"""`latchkey users import` of the exports of other products, as their documentation shows them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.answers import assert_error
from tests.support.commands import run_command
from tests.support.processes import CHECKOUT
from tests.support.programs import find_program
from tests.support.users import PASSWORD, sign_in

FILES = Path(__file__).parent / "files"
FOREVER = "9999-12-31T23:59:59.000000Z"
GOOGLE = ("google", "103547991597142817347")


@pytest.fixture
def users(make_app, database):
    """Import a file, and return the users by address, with the outcomes of the rows."""

    def run(name, *options, exit_code=0):
        app = make_app(AUTH_BCRYPT_COST="10")
        result = run_command(
            app, "users", "import", str(FILES / name), "--trust-addresses", "--json", *options
        )
        assert result.exit_code == exit_code, result.output
        outcomes = [json.loads(line) for line in result.output.splitlines()]
        objects = database.all("SELECT object::json AS object FROM user_objects")
        found = {row.object["email"] or row.object["phone"]: row.object for row in objects}
        return found, outcomes

    return run


def identities(user):
    return {
        (each["provider"], each["identity_data"]["sub"])
        for each in user["identities"]
        if each["provider"] not in ("email", "phone")
    }


def assert_password(client, email, database):
    """Assert that the password is accepted, a wrong one is not, and the hash is renewed."""
    assert_error(sign_in(client, email, f"{PASSWORD}x"), 401, "invalid_credentials")
    assert sign_in(client, email).status_code == 200
    stored = database.value("SELECT password_hash FROM users WHERE email = %(email)s", email=email)
    assert stored.startswith("latchkey1$2b$04$")


def reasons(outcomes):
    return [row["reason"] for row in outcomes if row.get("status") == "refused"]


class TestAuth0:
    def test_profiles_are_imported(self, users, client, database):
        found, _outcomes = users("auth0.ndjson")

        alice, bob, phone = found["alice@example.com"], found["bob@example.com"], found["+491701234567"]
        assert alice["created_at"] == alice["email_confirmed_at"] == "2019-12-06T18:36:12.412000Z"
        assert alice["last_sign_in_at"] == "2024-05-01T10:00:00.000000Z"
        assert alice["user_metadata"] == {
            "name": "Alice Archer",
            "avatar_url": "https://s.gravatar.com/avatar/0f?s=480",
            "theme": "dark",
        }
        assert alice["app_metadata"] == {
            "plan": "pro",
            "auth0_id": "auth0|5dea9f9c82dd7c0e76e4ec93",
            "provider": "email",
            "providers": ["email"],
        }
        assert identities(alice) == set()
        assert identities(bob) == {GOOGLE, ("azure", "4cf0a30169d55031")}
        assert (phone["phone_confirmed_at"], phone["banned_until"]) == (phone["created_at"], FOREVER)
        assert_password(client, "alice@example.com", database)

    def test_export_of_password_hashes_is_imported(self, users, client, database):
        found, _outcomes = users("auth0-hashes.ndjson")

        assert found["alice@example.com"]["email_confirmed_at"] is None
        assert found["bob@example.com"]["email_confirmed_at"]
        assert found["bob@example.com"]["app_metadata"]["auth0_id"] == "auth0|euclid"
        assert_password(client, "bob@example.com", database)


class TestFirebase:
    CONFIG = ("--firebase-hash-config", str(FILES / "firebase-hash-config.txt"))

    def test_users_are_imported(self, users, client, database):
        found, _outcomes = users("firebase.json", *self.CONFIG)

        alice, bob, phone = found["alice@example.com"], found["bob@example.com"], found["+491701234567"]
        assert alice["created_at"] == "2019-12-06T18:36:12.412000Z"
        assert alice["app_metadata"]["firebase_id"] == "AbCdEfGhIjKlMnOpQrStUvWxYz12"
        assert bob["app_metadata"]["plan"] == "pro"
        assert identities(bob) == {GOOGLE}
        assert (phone["phone_confirmed_at"], phone["banned_until"]) == (phone["created_at"], FOREVER)
        assert_password(client, "alice@example.com", database)

    def test_hash_needs_the_parameters_of_the_project_or_is_left_out(self, users, database):
        found, outcomes = users("firebase.json", exit_code=3)
        assert "alice@example.com" not in found
        assert reasons(outcomes) == [
            "password_hash: give the hash parameters of the project, --firebase-hash-config"
        ]
        found, _outcomes = users("firebase.json", *self.CONFIG, "--without-passwords")
        assert "alice@example.com" in found
        assert database.count("users", "password_hash IS NOT NULL") == 0

    def test_incomplete_parameters_are_refused(self, make_app, tmp_path):
        (tmp_path / "config").write_text("rounds: 8,\n")
        result = run_command(
            *(make_app(), "users", "import", str(FILES / "firebase.json")),
            *("--firebase-hash-config", str(tmp_path / "config")),
        )
        assert result.exit_code == 2
        assert "lacks base64_signer_key, mem_cost" in result.output


class TestSupabase:
    def test_table_of_users_as_csv_is_imported(self, users, client, database):
        found, outcomes = users("supabase.csv", exit_code=3)

        alice, phone = found["alice@example.com"], found["+491701234567"]
        assert alice["id"] == "3f0c5bd4-0a55-4d8e-9d92-5ddf13ed0a01"
        assert alice["email_confirmed_at"] == "2023-01-02T03:04:05.678901Z"
        assert alice["user_metadata"] == {
            "name": "Alice Archer",
            "bio": 'likes "quotes", commas\nand lines',
        }
        assert alice["app_metadata"] == {"plan": "pro", "provider": "email", "providers": ["email"]}
        assert phone["banned_until"] == "2099-01-01T00:00:00.000000Z"
        assert reasons(outcomes) == ["was deleted in Supabase"]
        assert_password(client, "alice@example.com", database)

    def test_users_with_identities_are_imported(self, users, client, database):
        found, _outcomes = users("supabase.ndjson")

        bob = found["bob@example.com"]
        assert identities(bob) == {GOOGLE}
        assert bob["app_metadata"]["provider"] == "email"
        (google,) = [each for each in bob["identities"] if each["provider"] == "google"]
        assert google["identity_data"]["name"] == "Bob Baker"
        assert google["last_sign_in_at"] == "2024-05-01T10:00:00.000000Z"
        assert_password(client, "alice@example.com", database)


def test_realm_of_keycloak_is_imported(users, client, database):
    found, outcomes = users("keycloak.json", exit_code=3)

    alice = found["alice@example.com"]
    assert alice["id"] == "2a117809-8285-4718-a131-bd61fb57cd01"
    assert alice["user_metadata"] == {
        "name": "Alice Archer",
        "username": "alice",
        "locale": "de",
        "teams": ["red", "blue"],
    }
    assert alice["app_metadata"]["roles"] == ["app_admin", "default-roles-example"]
    assert identities(found["bob@example.com"]) == {GOOGLE}
    dave = found["dave@example.com"]
    assert (dave["email_confirmed_at"], dave["banned_until"]) == (None, FOREVER)
    assert reasons(outcomes) == ["is a service account"]
    assert_password(client, "alice@example.com", database)
    assert_password(client, "erin@example.com", database)
    database.run("UPDATE users SET banned_until = NULL, email_confirmed_at = now()")
    assert_password(client, "dave@example.com", database)


def test_dumpdata_of_django_is_imported(users, client, database):
    found, outcomes = users("django.json", exit_code=3)

    alice = found["alice@example.com"]
    assert (alice["role"], alice["created_at"]) == ("authenticated", "2021-03-04T05:06:07.000000Z")
    assert alice["user_metadata"] == {"name": "Alice Archer", "username": "alice"}
    assert alice["app_metadata"]["django_id"] == 1
    assert alice["app_metadata"]["is_superuser"] is True
    assert found["dave@example.com"]["banned_until"] == FOREVER
    erin, nobody = reasons(outcomes)
    assert erin == (
        "password_hash takes the time of 6.1 log-ins, and at most 4 are accepted with AUTH_BCRYPT_COST=10"
    )
    assert nobody == "has neither an email nor a phone nor an identity of a provider nor a passkey"
    assert_password(client, "alice@example.com", database)
    assert_error(sign_in(client, "bob@example.com"), 401, "invalid_credentials")


@pytest.mark.parametrize("name", ["wordpress.json", "wordpress.csv"])
def test_user_list_of_wordpress_is_imported(users, client, database, name):
    found, outcomes = users(name, exit_code=3)

    alice, bob = found["alice@example.com"], found["bob@example.com"]
    assert alice["role"] == "authenticated"
    assert alice["app_metadata"]["wordpress_id"] == 1
    assert bob["app_metadata"]["roles"] == ["editor", "shop_manager"]
    assert alice["created_at"] == "2021-03-04T05:06:07.000000Z"
    assert reasons(outcomes) == ["password_hash is of no supported scheme"]
    assert_password(client, "alice@example.com", database)
    assert_password(client, "bob@example.com", database)


def test_own_format_is_imported_as_csv_and_json_lines(users, client, database):
    found, _outcomes = users("users.csv")
    alice, bob = found["alice@example.com"], found["bob@example.com"]
    assert alice["user_metadata"] == {"name": "Alice Archer"}
    assert bob["phone"] == "+491701234567"
    assert bob["email_confirmed_at"]  # trusted, because the file does not say otherwise
    assert_password(client, "alice@example.com", database)
    assert_password(client, "bob@example.com", database)

    database.empty()
    found, _outcomes = users("users.jsonl")
    assert identities(found["bob@example.com"]) == {GOOGLE}
    assert_password(client, "alice@example.com", database)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.*s*")), ids=lambda path: path.name)
def test_entries_of_a_wrong_shape_are_refused_and_the_others_imported(make_app, database, tmp_path, path):
    """Reading every file as every product results only in refusals."""
    for product in ("auth0", "firebase", "supabase", "keycloak", "django", "wordpress", "latchkey"):
        result = run_command(make_app(), "users", "import", str(path), "--format", product, "--dry-run")
        assert result.exit_code in (0, 3), (product, result.output)
    assert database.count("users") == 0


def test_documented_join_of_auth0_gives_each_hash_to_its_own_user_only(tmp_path):
    find_program("jq", "jq", "NOTHING IS TESTED OF THE JOIN")
    page = (CHECKOUT / "docs" / "moving-in.md").read_text()
    shutil.copy(FILES / "auth0.ndjson", tmp_path / "users.ndjson")
    shutil.copy(FILES / "auth0-hashes.ndjson", tmp_path / "hashes.ndjson")
    join = "\n".join(re.findall(r"^jq .*$", page, re.MULTILINE))
    subprocess.run(["sh", "-e", "-c", join], cwd=tmp_path, check=True)
    lines = (tmp_path / "auth0.ndjson").read_text().splitlines()
    hashed = [user["email"] for user in map(json.loads, lines) if user.get("passwordHash")]
    assert (len(lines), hashed) == (3, ["alice@example.com"])
