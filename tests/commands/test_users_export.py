"""`latchkey users export`, and its import into an empty service."""

import json
import os
import signal
import stat

import pytest

from auth.commands.common import failures
from auth.operations import age
from auth.operations.backup_files import replacing
from auth.transfer import exporting
from tests.support.cases import cases
from tests.support.cast import PASSWORD, sign_in
from tests.support.commands import run_command


@pytest.fixture(autouse=True)
def _cheap(monkeypatch):
    monkeypatch.setattr(age, "_WORK_FACTOR", 10)


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


def test_only_the_owner_can_read_the_export(export):
    path, _output = export()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_outcome_is_printed_as_json(export, alice):
    path, output = export("--json")
    assert json.loads(output) == {"users": 1, "file": str(path)}


def test_passphrase_of_a_plaintext_export_is_refused(app, tmp_path):
    path, passphrase = tmp_path / "users.jsonl", tmp_path / "passphrase"
    passphrase.write_text("correct horse battery")
    options = ("--plaintext", "--passphrase-file", str(passphrase))
    result = run_command(app, "users", "export", str(path), *options)
    assert (result.exit_code, path.exists()) == (2, False)


def test_file_that_cannot_be_created_is_named(app, tmp_path):
    path = tmp_path / "missing" / "users.jsonl"
    result = run_command(app, "users", "export", str(path), "--plaintext")
    assert (result.exit_code, result.stderr) == (1, f"Error: {path.parent}: No such file or directory.\n")


def test_pages_are_complete(export, database, monkeypatch):
    monkeypatch.setattr(exporting, "_PAGE", 7)
    database.run(
        "INSERT INTO users (email, made_by) SELECT 'u' || number || '@example.com', 'administrator' FROM generate_series(1, 50) AS number"
    )
    path, _output = export()
    assert len({json.loads(line)["email"] for line in path.read_text().splitlines()}) == 50


def test_anonymous_users_are_left_out(export, alice, database):
    database.run("INSERT INTO users (made_by) VALUES ('anonymous')")
    path, output = export("--json")
    assert (len(path.read_text().splitlines()), json.loads(output)["users"]) == (1, 1)


@cases("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_an_export_leaves_the_previous_file_alone(tmp_path, number):
    path = tmp_path / "users.jsonl"
    path.write_text("before")
    # A shell starts background jobs with SIGINT ignored.
    interrupts = signal.signal(signal.SIGINT, signal.default_int_handler)

    def pieces():
        yield b"half"
        signal.raise_signal(number)
        yield b"the rest"

    with pytest.raises((KeyboardInterrupt, SystemExit)), failures(path), replacing(path) as draft:
        draft.writelines(pieces())
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", [path.name])
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    signal.signal(signal.SIGINT, interrupts)


def test_drafts_of_killed_exports_are_removed(tmp_path):
    names = [".users.a1b2c3d4.part", ".users.running1.part", ".others.a1b2c3d4.part", ".users.mine"]
    for name in names:
        (tmp_path / name).write_text("half")
        if "running" not in name:
            os.utime(tmp_path / name, (0, 0))
    with replacing(tmp_path / "users") as draft:
        draft.write(b"all")
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "users"])


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
    client.post(
        "/admin/users",
        json={"email": "dave@example.com", "password": PASSWORD, "ban_duration": "permanent"},
        headers=service_role,
    )
    contents = """
        SELECT users.*, (SELECT json_agg(json_build_array(provider, subject, identity_data, i.created_at) ORDER BY provider)
                           FROM identities AS i WHERE user_id = users.id) AS identities
          FROM users ORDER BY id"""
    before = [row._replace(updated_at=None) for row in database.all(contents)]
    path, _output = export()
    database.empty()

    result = run_command(app, "users", "import", str(path), "--trust-addresses", "--allow-admins")

    assert result.exit_code == 0, result.output
    assert [row._replace(updated_at=None) for row in database.all(contents)] == before
    assert sign_in(client, alice.email).status_code == 200
    login = {"email": carol.email, "password": PASSWORD}
    assert client.post("/login-admin", json=login).status_code == 200


def test_export_is_encrypted_and_imported_with_the_passphrase(app, client, alice, database, tmp_path):
    path, passphrase = tmp_path / "users.age", tmp_path / "passphrase"
    passphrase.write_text("a passphrase of this test\n")
    options = [str(path), "--passphrase-file", str(passphrase)]
    assert run_command(app, "users", "export", *options).exit_code == 0
    assert alice.email.encode() not in path.read_bytes()
    database.empty()

    passphrase.write_text("another passphrase\n")
    refused = run_command(app, "users", "import", *options)
    assert refused.exit_code == 3
    assert "the passphrase is wrong" in refused.output
    assert database.count("users") == 0

    passphrase.write_text("a passphrase of this test\n")
    assert run_command(app, "users", "import", *options, "--trust-addresses").exit_code == 0
    assert sign_in(client, alice.email).status_code == 200


def test_truncated_export_imports_no_users(app, alice, database, tmp_path):
    path = tmp_path / "users.age"
    environment = {"AUTH_BACKUP_PASSPHRASE": "a passphrase of this test"}
    assert run_command(app, "users", "export", str(path), env=environment).exit_code == 0
    path.write_bytes(path.read_bytes()[:-1])
    database.empty()
    result = run_command(app, "users", "import", str(path), env=environment)
    assert result.exit_code == 3
    assert "truncated" in result.output
    assert database.count("users") == 0


def test_export_needs_a_passphrase_or_plaintext(app, tmp_path):
    result = run_command(app, "users", "export", str(tmp_path / "users.age"))
    assert result.exit_code == 2
    assert "There is no passphrase" in result.output
    result = run_command(
        app, "users", "export", str(tmp_path / "users.age"), env={"AUTH_BACKUP_PASSPHRASE": "short"}
    )
    assert result.exit_code == 2
    assert "at least 12 characters" in result.output
    assert os.listdir(tmp_path) == []
