"""`latchkey backup` and `latchkey restore`: a service is backed up, destroyed and restored elsewhere."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyrage
import pytest

from auth.core import files
from auth.core.keys import fingerprints
from auth.ops.backups import age, archive
from auth.web.context import EXTENSION
from sql import schema
from tests.support import oldest_release, previous_release
from tests.support.commands import run_process
from tests.support.databases import run
from tests.support.processes import CHECKOUT, Service, short_directory
from tests.support.server import ServerClient
from tests.support.users import Session, refresh, register, session_of, sign_in
from tests.system.sql.test_upgrades import OLDER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

RECIPIENT, IDENTITY = age.new_identity()
SETTINGS: dict[str, Any] = {"AUTH_DELIVER": "false", "AUTH_WORKERS": "1", "AUTH_BCRYPT_COST": "4"}
SETTINGS["AUTH_BACKUP_RECIPIENTS"] = RECIPIENT
DATABASES = "SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_database"
CALLED_BY_ALL_ROLES = (
    "SELECT count(*) FROM pg_proc WHERE prosecdef AND has_function_privilege('pg_monitor', oid, 'EXECUTE')"
)
OTHER_KEY = "another key that only this environment has"
SECRETS = ("secret_key", "service_role_key", "jwt_keys.json")


def latchkey(*arguments: object, **environment: str) -> Any:
    return run_process(SETTINGS | environment, *arguments)


def restore(file: Path, state_dir: Path, *options: str, key: str = IDENTITY, **environment: str) -> Any:
    identity = state_dir.with_name("identity")
    files.write(identity, key)
    options = ("--identity", str(identity), *options)
    return latchkey("restore", file, *options, AUTH_STATE_DIR=str(state_dir), **environment)


def secrets_of(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text().strip() for name in SECRETS}


def key_of(directory: Path) -> dict[str, str]:
    return {"apikey": (directory / "service_role_key").read_text().strip()}


# The settings of /etc/latchkey.env in the guide.
SETTINGS_OF_THE_GUIDE = dict(
    re.findall(
        r"^   ((?:AUTH|LATCHKEY)_\w+)=(.+)$", (CHECKOUT / "docs/deployment.md").read_text(), re.MULTILINE
    )
)


@contextmanager
def serving(directory: Path, /, **changes: Any) -> Iterator[ServerClient]:
    with (
        Service(directory, **{**SETTINGS, **changes}) as service,
        closing(ServerClient(service.port)) as client,
    ):
        yield client


def execute(directory: Path, statement: str) -> list[Any]:
    """Run a statement in the embedded Postgres of a running service, and return its rows."""
    return run(f"postgresql://postgres@/postgres?host={directory}/postgres", statement)


def value(directory: Path, query: str) -> Any:
    """Return the first value of a query to the embedded Postgres of a running service."""
    return execute(directory, query)[0][0]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def origin(folder) -> SimpleNamespace:
    """A backup of a service with a user who is signed in and got a link, and that service, stopped."""
    state_dir = folder / "origin"
    changes = SETTINGS_OF_THE_GUIDE | {
        "AUTH_STATE_DIR": str(state_dir),
        "AUTH_JWT_AUDIENCE": "it's",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        alice = register(client, key_of(state_dir), "alice@example.com")
        session, later = alice.sign_in(), alice.sign_in().refreshed()
        body = {"type": "magiclink", "email": alice.email}
        link = client.post("/admin/generate_link", json=body, headers=key_of(state_dir)).json["hashed_token"]
        assert client.post("/recover", json={"email": alice.email}).status_code == 200
        hook = {"url": "http://127.0.0.1:9/", "events": ["user.created"]}
        assert client.post("/admin/webhooks", json=hook, headers=key_of(state_dir)).status_code == 200
        result = latchkey("backup", folder / "latchkey.age", "--json", **changes)
        assert result.returncode == 0, result.stderr
        file = Path(json.loads(result.stdout)["file"])
        refused_restore = restore(file, state_dir)
        later = later.refreshed().refreshed()
    return SimpleNamespace(
        state_dir=state_dir,
        file=file,
        session=session,
        later=later,
        link=link,
        backup=result,
        refused_restore=refused_restore,
    )


def test_backup_is_rehearsed_past_a_proxy_and_shows_what_it_contains_but_no_secrets(origin):
    assert (origin.backup.returncode, origin.backup.stderr) == (0, "")
    outcome = json.loads(origin.backup.stdout)
    assert re.fullmatch(r"latchkey-\d{8}T\d{6}Z\.age", origin.file.name)
    assert outcome["bytes"] == origin.file.stat().st_size
    assert (outcome["tables"]["users"], outcome["tables"]["sessions"]) == (1, 2)
    assert stat.S_IMODE(origin.file.stat().st_mode) == 0o600
    output = origin.file.read_bytes() + origin.backup.stdout.encode()
    for secret in [*secrets_of(origin.state_dir).values(), "alice@example.com", "CREATE TABLE"]:
        assert secret.encode() not in output


def test_restore_is_refused_while_the_service_runs(origin):
    assert origin.refused_restore.returncode == 1
    assert "is in use by a running service" in origin.refused_restore.stderr


def test_restore_elsewhere_brings_users_and_secrets_and_ends_sessions_links_and_messages(origin, folder):
    state_dir = folder / "elsewhere"
    result = restore(origin.file, state_dir)
    assert (result.returncode, result.stderr) == (0, "")
    assert secrets_of(state_dir) == secrets_of(origin.state_dir)
    settings_file = state_dir / "restored.env"
    assert f"{settings_file} has the settings of the backed-up service" in result.stdout
    lines = set(settings_file.read_text().splitlines())
    assert {
        "AUTH_JWT_AUDIENCE='it\\'s'",
        *(f"{name}='{text}'" for name, text in SETTINGS_OF_THE_GUIDE.items()),
    } <= lines
    assert {stat.S_IMODE((state_dir / name).stat().st_mode) for name in (*SECRETS, settings_file.name)} == {
        0o600
    }
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        assert sign_in(client, "alice@example.com").status_code == 200
        session: Session = origin.session.on(client)
        assert session.get("/user").status_code == 401
        assert refresh(client, session.refresh_token).status_code == 400
        body = {"type": "magiclink", "token_hash": origin.link}
        assert client.post("/verify", json=body).status_code == 403
        for expected, query in (
            (0, "SELECT count(*) FROM one_time_tokens"),
            (0, "SELECT count(*) FROM outbox WHERE outcome IS NULL"),
            (1, "SELECT count(*) FROM outbox WHERE outcome = 'void'"),
            # A dump lacks the rights on functions: the restore must limit them to the role of requests.
            (0, CALLED_BY_ALL_ROLES),
            # The empty database from before is gone.
            ("postgres,template0,template1", DATABASES),
        ):
            assert value(state_dir, query) == expected


def test_restore_can_keep_sessions_and_waiting_messages(origin, folder):
    state_dir = folder / "kept"
    result = restore(origin.file, state_dir, "--keep-sessions", "--resend")
    assert result.returncode == 0, result.stderr
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        session = origin.session.on(client)
        # The access token names the origin's port as its issuer, so refresh.
        session_of(client, refresh(client, session.refresh_token))
        # This token is newer than the backup, and is sent twice, as after a lost response.
        for _ in range(2):
            session_of(client, refresh(client, origin.later.refresh_token))
        assert value(state_dir, "SELECT count(*) FROM outbox WHERE outcome IS NULL") >= 1


def test_restore_is_undone_with_its_secrets_until_the_next_backup(origin, folder):
    state_dir = folder / "undone"
    environment = {"AUTH_STATE_DIR": str(state_dir)}
    with serving(state_dir) as client:
        register(client, key_of(state_dir), "bob@example.com")
    before = secrets_of(state_dir)
    assert restore(origin.file, state_dir).returncode == 0
    assert secrets_of(state_dir) != before
    result = latchkey("restore", "--undo", **environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert secrets_of(state_dir) == before
    with serving(state_dir) as client:
        assert sign_in(client, "bob@example.com").status_code == 200
        assert sign_in(client, "alice@example.com").status_code == 401
        assert value(state_dir, DATABASES) == "postgres,template0,template1"
    second_undo = latchkey("restore", "--undo", **environment)
    assert (second_undo.returncode, "There is no restore to undo" in second_undo.stderr) == (1, True)
    assert restore(origin.file, state_dir).returncode == 0
    with serving(state_dir):
        assert latchkey("backup", folder / "next.age", "--no-rehearsal", **environment).returncode == 0
        assert value(state_dir, DATABASES) == "postgres,template0,template1"
    assert latchkey("restore", "--undo", **environment).returncode == 1


def run_of(release: Path, state_dir: Path, *arguments: object) -> None:
    """Run a command of an earlier release."""
    result = subprocess.run(
        [sys.executable, "-m", "auth.ops.commands", *map(str, arguments)],
        cwd=release,
        env={**SETTINGS, "PATH": os.environ["PATH"], "AUTH_STATE_DIR": str(state_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def back_up_by(release: Path, state_dir: Path) -> Path:
    """Back up a service of an earlier release with Alice, and return the file."""
    with serving(state_dir, directory=release) as client:
        register(client, key_of(state_dir), "alice@example.com")
        run_of(release, state_dir, "backup", "create", state_dir.with_suffix(".age"))
    (file,) = state_dir.parent.glob(f"{state_dir.stem}-*.age")
    return file


def test_backup_of_the_oldest_release_that_can_be_upgraded_is_restored(folder, oldest_release_files):
    file = back_up_by(oldest_release_files, folder / "oldest")
    result = restore(file, folder / "newer")
    assert result.returncode == 0, result.stderr
    with serving(folder / "newer") as client:
        assert sign_in(client, "alice@example.com").status_code == 200


def test_older_backup_is_restored_by_the_release_that_the_refusal_names_and_then_upgraded(folder, tmp_path):
    file = back_up_by(oldest_release.unpack(tmp_path / "0.6.1", OLDER["0.6.1"]), folder / "older")
    state_dir, key = folder / "through", folder / "identity"
    refusal = restore(file, state_dir)
    assert (refusal.returncode, refusal.stdout, refusal.stderr) == (
        3,
        "",
        f"Error: {file} cannot be used: its schema has version 54, from before 0.7.0."
        " Restore it with Latchkey 0.7.1, then upgrade.\n",
    )
    assert not state_dir.exists()
    verification = latchkey("backup", "verify", file, "--identity", key)
    assert (verification.returncode, verification.stderr) == (3, refusal.stderr)
    run_of(
        oldest_release.unpack(tmp_path / "bridge", schema.BRIDGE_COMMIT),
        state_dir,
        *("restore", file, "--identity", key),
    )
    with serving(state_dir) as client:
        assert sign_in(client, "alice@example.com").status_code == 200


def test_release_before_goes_on_with_its_backup_after_an_upgrade(folder, files_of_the_release_before):
    """Its own command restores over the database of this release, as docs/deployment.md says."""
    state_dir, key = folder / "upgraded", folder / "key of before"
    files.write(key, IDENTITY)
    file = back_up_by(files_of_the_release_before, state_dir)
    with serving(state_dir) as client:
        register(client, key_of(state_dir), "bob@example.com")
    run_of(files_of_the_release_before, state_dir, "restore", file, "--identity", key)
    with serving(state_dir, directory=files_of_the_release_before) as client:
        assert client.get("/health").json["version"] == previous_release.NAME
        assert sign_in(client, "alice@example.com").status_code == 200
        assert sign_in(client, "bob@example.com").status_code == 401


def test_backup_is_not_called_good_if_requests_would_lack_a_right(origin, folder, tmp_path):
    release = oldest_release.copy_checkout(tmp_path)
    with (release / "sql" / "grants.sql").open("a") as grants:
        grants.write("REVOKE INSERT ON sessions FROM {role};\n")
    files.write(folder / "key", IDENTITY)
    verify = ("backup", "verify", origin.file, "--identity", folder / "key")
    verification = run_process(SETTINGS, *verify, cwd=release)
    assert (verification.returncode, verification.stdout) == (1, "")
    assert "A sign-in fails on the restored service: 500" in verification.stderr


# A trigger that runs with the rights of requests. A backup lacks the rights that the operator has granted to their role.
TABLES_OF_THE_OPERATOR = """
CREATE SCHEMA own;
CREATE TABLE own.profiles (id serial, user_id uuid);
CREATE TABLE profiles_of_public (user_id uuid);
CREATE FUNCTION own.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO own.profiles (user_id) VALUES (NEW.id);
  INSERT INTO public.profiles_of_public VALUES (NEW.id);
  RETURN NEW;
END
$$;
CREATE TRIGGER keeps AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION own.keep();
GRANT USAGE ON SCHEMA own TO latchkey;
GRANT INSERT ON own.profiles, profiles_of_public TO latchkey;
GRANT USAGE ON SEQUENCE own.profiles_id_seq TO latchkey;
ALTER TABLE own.profiles ENABLE ROW LEVEL SECURITY;
ALTER ROLE latchkey BYPASSRLS;
"""


def test_backup_with_triggers_and_tables_of_the_operator_passes_its_rehearsal(folder):
    state_dir = folder / "own"
    with serving(state_dir) as client:
        execute(state_dir, TABLES_OF_THE_OPERATOR)
        register(client, key_of(state_dir), "alice@example.com")
        result = latchkey("backup", folder / "own.age", AUTH_STATE_DIR=str(state_dir))
        assert result.returncode == 0, result.stderr


class TestUnusableFile:
    """A restore of such a file touches nothing, and leaves no database."""

    CASES: ClassVar = {
        "truncated": (lambda head, whole, plaintext: whole[:-1], "it is truncated or altered"),
        "not encrypted": (lambda head, whole, plaintext: b"PGDMP" * 200, "it cannot be decrypted: Header is"),
        "another content": (lambda head, whole, plaintext: b"{}\n", "it is not a backup of Latchkey"),
        "incomplete dump": (lambda head, whole, plaintext: plaintext[:-9], "it cannot be decompressed: "),
        "newer release": (
            lambda head, whole, plaintext: manifested(head, plaintext, schema_version=9999),
            "its schema has version 9999",
        ),
    }

    @pytest.mark.parametrize("case", CASES)
    def test_file_is_refused(self, origin, folder, case):
        (target := folder / "target").mkdir(exist_ok=True)
        for name in SECRETS:
            shutil.copy(origin.state_dir / name, target)  # with its mode
        file = folder / "changed.age"
        change, reason = self.CASES[case]
        whole = origin.file.read_bytes()
        plaintext = b"".join(archive.read(origin.file, IDENTITY, lambda _: None))
        changed = change(json.loads(plaintext.split(b"\n", 1)[0]), whole, plaintext)
        is_encrypted = case in ("truncated", "not encrypted")
        file.write_bytes(changed if is_encrypted else encrypted(changed))
        before = secrets_of(target)
        result = restore(file, target)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr.startswith(f"Error: {file} cannot be used: {reason}"), result.stderr
        assert (secrets_of(target), {path.name for path in target.iterdir()}) == (before, set(SECRETS))

    def test_verify_refuses_it_too(self, origin, folder):
        file, identity = folder / "cut.age", folder / "identity"
        file.write_bytes(origin.file.read_bytes()[:-1])
        files.write(identity, IDENTITY)
        result_of_cut, result_of_whole = (
            latchkey("backup", "verify", each, "--identity", identity) for each in (file, origin.file)
        )
        assert (result_of_cut.returncode, "it is truncated" in result_of_cut.stderr) == (3, True)
        assert (result_of_whole.returncode, result_of_whole.stderr) == (0, "")
        assert "is good (users: 1, " in result_of_whole.stdout

    def test_lost_rows_are_noticed_and_leave_no_database(self, origin, folder):
        plaintext = b"".join(archive.read(origin.file, IDENTITY, lambda _: None))
        head, file = json.loads(plaintext.split(b"\n", 1)[0]), folder / "lost.age"
        file.write_bytes(encrypted(manifested(head, plaintext, tables=head["tables"] | {"users": 2})))
        result = restore(file, folder / "lost")
        assert result.returncode == 1
        assert "Row counts differ from the backup: users" in result.stderr
        with serving(folder / "lost"):
            assert value(folder / "lost", DATABASES) == "postgres,template0,template1"
            assert value(folder / "lost", "SELECT count(*) FROM users") == 0


def manifested(head: dict[str, Any], plaintext: bytes, **members: Any) -> bytes:
    """Return the plaintext with another manifest."""
    return json.dumps(head | members).encode() + b"\n" + plaintext.split(b"\n", 1)[1]


def encrypted(plaintext: bytes) -> bytes:
    return pyrage.encrypt(plaintext, [pyrage.x25519.Recipient.from_str(RECIPIENT)])


@pytest.mark.parametrize("name", ["AUTH_SECRET_KEY", "AUTH_SERVICE_ROLE_KEY"])
def test_environment_without_the_key_of_the_backup_is_refused(origin, folder, name):
    result = restore(origin.file, folder / "conflicting", **{name: OTHER_KEY})
    assert result.returncode == 1
    assert f"{name} is set, but lacks a key from the backup" in result.stderr
    assert not (folder / "conflicting" / "postgres").exists()


class TestFiles:
    """Files of backups of the database that the other tests use."""

    @pytest.fixture
    def backup(self, environment, client, tmp_path):
        def backup(*arguments, **changes):
            options = ("--no-rehearsal", *arguments)
            return latchkey("backup", tmp_path / "backup.age", *options, **{**environment, **changes})

        return backup

    def test_newest_backups_and_the_new_one_are_kept(self, backup, tmp_path):
        older = ["backup-20200101T000000Z.age", "backup-21000101T000000Z.age"]
        other_files = ["backup-notes.age", "backup.age", "backups-20200101T000000Z.age"]
        for name in (*older, *other_files):
            (tmp_path / name).write_text("another")
        assert backup("--keep", "2").returncode == 0
        names = {path.name for path in tmp_path.iterdir()}
        assert (older[0] in names, older[1] in names, len(names)) == (False, True, 5)
        assert set(other_files) < names

    @pytest.mark.parametrize(
        ("changes", "status", "reason"),
        [
            (
                {"AUTH_SERVICE_ROLE_KEY": OTHER_KEY},
                1,
                "AUTH_SERVICE_ROLE_KEY: Differs from what this database last",
            ),
            ({"AUTH_BACKUP_RECIPIENTS": ""}, 2, "AUTH_BACKUP_RECIPIENTS is not set"),
        ],
    )
    def test_failed_backup_leaves_the_former_ones(
        self, backup, tmp_path, default_app, changes, status, reason
    ):
        parts = default_app.extensions[EXTENSION]
        fingerprints.keep(parts.db, parts.settings)
        former = tmp_path / "backup-20200101T000000Z.age"
        former.write_text("the former one")
        result = backup(**changes)
        assert (result.returncode, result.stdout) == (status, "")
        assert result.stderr.startswith(f"Error: {reason}"), result.stderr
        assert list(tmp_path.iterdir()) == [former]

    def test_backup_that_fails_its_rehearsal_does_not_appear(
        self, environment, database, client, alice, tmp_path
    ):
        database.run("UPDATE user_objects SET last_sign_in_at = now()")
        result = latchkey("backup", tmp_path / "backup.age", **environment)
        assert (result.returncode, list(tmp_path.iterdir())) == (1, [])
        assert "rows of user_objects differ from their users" in result.stderr
        database.empty()
