"""`latchkey users export`, and its import into an empty service."""

import gzip
import io
import json
import os
import stat
import sys

import pytest

from auth.core import files
from auth.ops.backups import age
from auth.ops.commands.common import failures
from auth.ops.transfer import records
from tests.support.commands import run_command
from tests.support.users import PASSWORD, sign_in


def encrypted(plaintext: bytes, recipient: str) -> bytes:
    file = io.BytesIO()
    with age.encrypting(file, [recipient]) as sink:
        sink.write(plaintext)
    return file.getvalue()


@pytest.fixture
def export(app, tmp_path):
    def run(*options):
        path = tmp_path / "users.jsonl"
        result = run_command(app, "users", "export", str(path), "--plaintext", *options)
        assert result.exit_code == 0, result.output
        return path, result.output

    return run


def test_export_is_a_line_of_json_for_each_user(export, alice, bob, database):
    path, output = export()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert output == f"Users exported to {path}: 2.\n"
    assert {record["email"] for record in records} == {alice.email, bob.email}
    (record,) = [record for record in records if record["id"] == alice.id]
    assert record["password_hash"] == database.value(
        "SELECT password_hash FROM users WHERE id = %(id)s", id=alice.id
    )
    assert record["email_proved"] is True
    assert [each["provider"] for each in record["identities"]] == ["email"]


def test_only_the_owner_can_read_the_whole_export_which_leaves_out_anonymous_users(
    export, database, monkeypatch
):
    monkeypatch.setattr(records, "_PAGE", 7)
    database.run("INSERT INTO users (made_by) VALUES ('anonymous')")
    database.run(
        "INSERT INTO users (email, made_by) SELECT 'u' || number || '@example.com', 'administrator' FROM generate_series(1, 50) AS number"
    )
    path, output = export("--json")
    assert json.loads(output) == {"users": 50, "file": str(path)}
    assert len({json.loads(line)["email"] for line in path.read_text().splitlines()}) == 50
    assert (stat.S_IMODE(path.stat().st_mode), os.listdir(path.parent)) == (0o600, [path.name])


def test_sign_up_that_nobody_confirmed_is_not_exported_so_no_import_vouches_for_its_password(
    export, client, service_role, alice
):
    for name in ("dave", "erin"):
        client.post("/signup", json={"email": f"{name}@example.com", "password": PASSWORD})
    for user in client.get("/admin/users", headers=service_role).json["data"]:
        if user["email"] == "erin@example.com":
            vouched = {"password": "Fresh-Horse-2"}
            client.put(f"/admin/users/{user['id']}", json=vouched, headers=service_role)
    path, _output = export()
    exported = {json.loads(line)["email"] for line in path.read_text().splitlines()}
    assert exported == {alice.email, "erin@example.com"}


def test_exit_during_an_export_leaves_the_previous_file_alone(tmp_path):
    path = tmp_path / "users.jsonl"
    path.write_text("before")

    def pieces():
        yield b"half"
        sys.exit(143)  # as a signal does

    with (
        pytest.raises(SystemExit),
        failures(path),
        files.replacing(path) as draft,
        age.encrypting(draft, [age.new_identity()[0]]) as sink,
    ):
        sink.writelines(pieces())
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", [path.name])


def test_export_and_import_into_an_empty_service_restores_all_users(
    app, export, client, service_role, alice, carol, database
):
    database.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data, created_at) VALUES (%(id)s, 'google', '12', '{\"sub\": \"12\", \"name\": \"Alice\"}', now() - interval '1 day')",
        id=alice.id,
    )
    metadata = {"user_metadata": {"name": "Алиса"}, "app_metadata": {"plan": "pro"}}
    client.put(f"/admin/users/{alice.id}", json=metadata, headers=service_role)
    client.post("/admin/users", json={"phone": "+491701234567", "role": "editor"}, headers=service_role)
    banned = {"email": "dave@example.com", "password": PASSWORD, "ban_duration": "permanent"}
    client.post("/admin/users", json=banned, headers=service_role)
    contents = """
        SELECT users.*, (SELECT json_agg(json_build_array(provider, subject, identity_data, i.created_at) ORDER BY provider)
                           FROM identities AS i WHERE user_id = users.id) AS identities
          FROM users ORDER BY id"""
    before = [
        row._replace(updated_at=None, password_set_at=None, made_by="import")
        for row in database.all(contents)
    ]
    path, _output = export()
    database.empty()

    result = run_command(app, "users", "import", str(path), "--trust-addresses", "--allow-admins")

    assert result.exit_code == 0, result.output
    assert [row._replace(updated_at=None, password_set_at=None) for row in database.all(contents)] == before
    assert sign_in(client, alice.email).status_code == 200
    login = {"email": carol.email, "password": PASSWORD}
    assert client.post("/login-admin", json=login).status_code == 200


def test_export_is_encrypted_and_imported_with_its_key(make_app, database, tmp_path):
    recipient, identity = age.new_identity()
    app = make_app(AUTH_BACKUP_RECIPIENTS=recipient)
    database.run("INSERT INTO users (email, made_by) VALUES ('alice@example.com', 'administrator')")
    path, key = tmp_path / "users.age", tmp_path / "key"
    assert run_command(app, "users", "export", str(path)).exit_code == 0
    whole = path.read_bytes()
    assert b"alice@example.com" not in whole
    plaintext = gzip.decompress(b"".join(age.decrypt(io.BytesIO(whole), identity)))
    assert json.loads(plaintext)["email"] == "alice@example.com"
    database.empty()

    path.write_bytes(encrypted(b"email\nbob@example.com\n", recipient))
    files.write(key, identity)
    assert run_command(app, "users", "import", str(path), "--identity", str(key)).exit_code == 0
    assert database.value("SELECT email FROM users") == "bob@example.com"
    database.empty()

    for content, text, status, reason in (
        (whole, "", 2, "is encrypted. Name its key file by --identity."),
        (whole, "nonsense", 2, "no whole key AGE-SECRET-KEY-1"),
        (whole, age.new_identity()[1], 3, "No matching keys found"),
        (whole[:-1], identity, 3, "truncated"),
    ):
        path.write_bytes(content)
        files.write(key, text)
        result = run_command(app, "users", "import", str(path), *(["--identity", str(key)] if text else []))
        assert (result.exit_code, reason in result.output) == (status, True), result.output
        assert database.count("users") == 0

    path.write_bytes(whole)
    assert run_command(app, "users", "import", str(path), "--identity", str(key)).exit_code == 0
    assert database.count("users") == 1
    path.write_bytes(encrypted(gzip.compress(plaintext)[:-9], recipient))
    result = run_command(app, "users", "import", str(path), "--identity", str(key))
    assert (result.exit_code, "cannot be decompressed" in result.output) == (3, True)


def test_export_needs_recipients_or_plaintext(app, tmp_path):
    result = run_command(app, "users", "export", str(tmp_path / "users.age"))
    assert (result.exit_code, os.listdir(tmp_path)) == (2, [])
    assert "AUTH_BACKUP_RECIPIENTS is not set" in result.output
