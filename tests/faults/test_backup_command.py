"""`latchkey backup` and `latchkey restore`: a service is backed up, destroyed and restored elsewhere."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest

from auth.context import EXTENSION
from auth.operations import age
from auth.settings import fingerprints
from tests.support.cast import Session, refresh, register, session_of, sign_in
from tests.support.processes import CHECKOUT, Service
from tests.support.server import ServerClient

pytestmark = [
    pytest.mark.selection,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

PASSPHRASE = "a passphrase of these tests"
SETTINGS: dict[str, Any] = {"AUTH_DELIVER": "false", "AUTH_WORKERS": "1", "AUTH_BCRYPT_COST": "4"}
SECRETS = ("secret_key", "service_role_key", "jwt_keys.json")


def latchkey(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "auth.commands", *map(str, arguments)],
        cwd=CHECKOUT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/",
            "AUTH_BACKUP_PASSPHRASE": PASSPHRASE,
            **SETTINGS,
            **environment,
        },
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def secrets_of(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text().strip() for name in SECRETS}


def key_of(directory: Path) -> dict[str, str]:
    return {"apikey": (directory / "service_role_key").read_text().strip()}


@contextmanager
def serving(directory: Path, **changes: str) -> Iterator[ServerClient]:
    with (
        Service(directory, **{**SETTINGS, **changes}) as service,
        closing(ServerClient(service.port)) as client,
    ):
        yield client


def value(directory: Path, query: str, database: str = "postgres") -> Any:
    """Return the first value of a query to the embedded Postgres of a running service."""
    connection = psycopg2.connect(f"postgresql://postgres@/{database}?host={directory}/postgres")
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(query)
        (found,) = cursor.fetchone() or (None,)
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    # Not pytest's tmp_path: the path of a socket must be short, and Postgres's account must be able to pass.
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory).resolve()


@pytest.fixture(scope="module")
def origin(place) -> SimpleNamespace:
    """A backup of a service with a user who is signed in and got a link, and that service, stopped."""
    state_dir, file = place / "origin", place / "latchkey.age"
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        alice = register(client, key_of(state_dir), "alice@example.com")
        session = alice.sign_in()
        body = {"type": "magiclink", "email": alice.email}
        link = client.post("/admin/generate_link", json=body, headers=key_of(state_dir)).json["hashed_token"]
        assert client.post("/recover", json={"email": alice.email}).status_code == 200
        hook = {"url": "http://127.0.0.1:9/", "events": ["user.created"]}
        assert client.post("/admin/webhooks", json=hook, headers=key_of(state_dir)).status_code == 200
        done = latchkey("backup", file, "--json", AUTH_STATE_DIR=str(state_dir), AUTH_JWT_AUDIENCE="it's")
        refused = latchkey("restore", file, AUTH_STATE_DIR=str(state_dir))
    return SimpleNamespace(
        state_dir=state_dir, file=file, session=session, link=link, done=done, refused=refused
    )


def test_backup_reports_what_it_contains_as_json(origin):
    assert (origin.done.returncode, origin.done.stderr) == (0, "")
    told = json.loads(origin.done.stdout)
    assert (told["file"], told["bytes"]) == (str(origin.file), origin.file.stat().st_size)
    assert (told["tables"]["users"], told["tables"]["sessions"]) == (1, 1)


def test_backup_is_readable_by_its_owner_alone_and_shows_nothing(origin):
    assert stat.S_IMODE(origin.file.stat().st_mode) == 0o600
    content = origin.file.read_bytes()
    for secret in [*secrets_of(origin.state_dir).values(), "alice@example.com", "CREATE TABLE"]:
        assert secret.encode() not in content


def test_output_shows_no_secrets(origin):
    told = origin.done.stdout + origin.done.stderr
    assert [name for name, secret in secrets_of(origin.state_dir).items() if secret in told] == []


def test_restore_is_refused_while_the_service_runs(origin):
    assert origin.refused.returncode == 1
    assert "is in use by a running service" in origin.refused.stderr


@pytest.fixture(scope="module")
def restored(origin, place) -> Iterator[SimpleNamespace]:
    """A service on another port, with the restored backup."""
    state_dir = place / "elsewhere"
    done = latchkey("restore", origin.file, AUTH_STATE_DIR=str(state_dir))
    assert (done.returncode, done.stderr) == (0, "")
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        yield SimpleNamespace(state_dir=state_dir, client=client, text=done.stdout)


class TestRestoreElsewhere:
    def test_user_signs_in(self, restored):
        assert sign_in(restored.client, "alice@example.com").status_code == 200

    def test_secrets_are_those_of_the_backup(self, restored, origin):
        assert secrets_of(restored.state_dir) | {"jwt_keys.json": ""} == secrets_of(origin.state_dir) | {
            "jwt_keys.json": ""
        }
        found, expected = (
            json.loads(secrets_of(directory)["jwt_keys.json"])
            for directory in (restored.state_dir, origin.state_dir)
        )
        assert found == expected
        assert {stat.S_IMODE((restored.state_dir / name).stat().st_mode) for name in SECRETS} == {0o600}

    def test_settings_of_the_environment_are_kept_in_a_file(self, restored):
        path = restored.state_dir / "restored.env"
        assert f"{path} has the settings of the service" in restored.text
        assert "AUTH_JWT_AUDIENCE='it\\'s'" in path.read_text().splitlines()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_sessions_have_ended(self, restored, origin):
        session: Session = origin.session.on(restored.client)
        assert session.get("/user").status_code == 401
        assert refresh(restored.client, session.refresh_token).status_code == 400

    def test_links_are_void(self, restored, origin):
        body = {"type": "magiclink", "token_hash": origin.link}
        assert restored.client.post("/verify", json=body).status_code == 403
        assert value(restored.state_dir, "SELECT count(*) FROM one_time_tokens") == 0

    def test_waiting_messages_are_not_sent(self, restored):
        assert value(restored.state_dir, "SELECT count(*) FROM outbox WHERE outcome IS NULL") == 0
        assert value(restored.state_dir, "SELECT count(*) FROM outbox WHERE outcome = 'void'") >= 1

    def test_empty_database_before_it_is_removed(self, restored):
        query = "SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_database"
        assert value(restored.state_dir, query) == "postgres,template0,template1"


def test_restore_can_keep_sessions_and_waiting_messages(origin, place):
    state_dir = place / "kept"
    done = latchkey("restore", origin.file, "--keep-sessions", "--resend", AUTH_STATE_DIR=str(state_dir))
    assert done.returncode == 0, done.stderr
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        session = origin.session.on(client)
        # Its issuer was the origin's port.
        session_of(client, refresh(client, session.refresh_token))
        assert value(state_dir, "SELECT count(*) FROM outbox WHERE outcome IS NULL") >= 1


def test_restore_over_a_service_keeps_its_database_under_another_name(origin, place):
    state_dir = place / "over"
    with serving(state_dir) as client:
        register(client, key_of(state_dir), "bob@example.com")
    for _ in range(2):  # the second one deletes the database that the first one kept
        done = latchkey("restore", origin.file, "--json", AUTH_STATE_DIR=str(state_dir))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["former_database"] == "postgres_before_restore"
    assert secrets_of(state_dir)["secret_key"] == secrets_of(origin.state_dir)["secret_key"]
    with serving(state_dir) as client:
        assert sign_in(client, "alice@example.com").status_code == 200
        assert sign_in(client, "bob@example.com").status_code == 401
        query = "SELECT email FROM users"
        assert value(state_dir, query, "postgres_before_restore") == "alice@example.com"


def test_verify_restores_into_a_temporary_postgres_and_signs_in_past_a_proxy(origin):
    done = latchkey("backup", "--verify", origin.file, HTTP_PROXY="http://127.0.0.1:9")
    assert (done.returncode, done.stderr) == (0, "")
    assert "is good (users: 1, " in done.stdout
    assert done.stdout.rstrip().split(", in ")[0].endswith("signed a user in")


@pytest.fixture(scope="module")
def target(origin, place) -> Path:
    """A state directory whose content must not change."""
    state_dir = place / "target"
    state_dir.mkdir()
    for name in SECRETS[:2]:
        (state_dir / name).write_text(f"the {name} of a service that must not be touched")
    (state_dir / "jwt_keys.json").write_text((origin.state_dir / "jwt_keys.json").read_text())
    return state_dir


class TestUnusableFile:
    """Nothing is touched."""

    def assert_refused(self, file, target, reason, **environment):
        before = {path: path.read_bytes() for path in target.iterdir()}
        done = latchkey("restore", file, AUTH_STATE_DIR=str(target), **environment)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"Error: {file} cannot be used: {reason}"), done.stderr
        assert {path: path.read_bytes() for path in target.iterdir()} == before

    def changed(self, origin, change):
        content = bytearray(origin.file.read_bytes())
        file = origin.file.with_name("changed.age")
        file.write_bytes(change(content))
        return file

    def manifested(self, origin, **members):
        """Encrypt the backup again with another manifest."""
        with origin.file.open("rb") as backup:
            head, rest = b"".join(age.decrypt(backup, PASSPHRASE)).split(b"\n", 1)
        plaintext = json.dumps(json.loads(head) | members).encode() + b"\n" + rest
        return self.changed(origin, lambda _: b"".join(age.encrypt([plaintext], PASSPHRASE)))

    def test_truncated_file_is_refused(self, origin, target):
        file = self.changed(origin, lambda content: content[:-1])
        self.assert_refused(file, target, "it is truncated or was altered")

    def test_altered_file_is_refused(self, origin, target):
        def alter(content):
            content[-100] ^= 1
            return content

        self.assert_refused(self.changed(origin, alter), target, "it is truncated or was altered")

    def test_wrong_passphrase_is_refused(self, origin, target):
        reason = "the passphrase is wrong"
        self.assert_refused(origin.file, target, reason, AUTH_BACKUP_PASSPHRASE="another passphrase")

    def test_other_file_is_refused(self, origin, target):
        file = self.changed(origin, lambda _: b"PGDMP" + bytes(1000))
        self.assert_refused(file, target, "it is not a file that was encrypted under a passphrase")

    def test_other_file_under_the_passphrase_is_refused(self, origin, target):
        file = self.changed(origin, lambda _: b"".join(age.encrypt([b"{}\n"], PASSPHRASE)))
        self.assert_refused(file, target, "it is not a backup of Latchkey")

    def test_incomplete_dump_is_refused(self, origin, target):
        with origin.file.open("rb") as backup:
            plaintext = b"".join(age.decrypt(backup, PASSPHRASE))
        file = self.changed(origin, lambda _: b"".join(age.encrypt([plaintext[:-9]], PASSPHRASE)))
        self.assert_refused(file, target, "its compressed part is incomplete")

    def test_backup_of_a_newer_release_is_refused(self, origin, target):
        file = self.manifested(origin, schema_version=9999)
        self.assert_refused(file, target, "its schema has version 9999")

    def test_verify_refuses_it_too(self, origin):
        file = self.changed(origin, lambda content: content[:-1])
        assert latchkey("backup", "--verify", file).returncode == 3

    def test_lost_rows_are_noticed_and_leave_no_database(self, origin, place):
        state_dir = place / "lost"
        with origin.file.open("rb") as backup:
            head = json.loads(b"".join(age.decrypt(backup, PASSPHRASE)).split(b"\n", 1)[0])
        file = self.manifested(origin, tables=head["tables"] | {"users": 2})
        done = latchkey("restore", file, AUTH_STATE_DIR=str(state_dir))
        assert done.returncode == 1
        assert "another number of rows than were backed up: users" in done.stderr
        with serving(state_dir):
            query = "SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_database"
            assert value(state_dir, query) == "postgres,template0,template1"
            assert value(state_dir, "SELECT count(*) FROM users") == 0


def test_environment_with_another_secret_key_is_refused(origin, place):
    done = latchkey(
        "restore",
        origin.file,
        AUTH_STATE_DIR=str(place / "conflicting"),
        AUTH_SECRET_KEY="another secret key that only this environment has",
    )
    assert done.returncode == 1
    assert "AUTH_SECRET_KEY is set, and lacks a key of the backup" in done.stderr
    assert not (place / "conflicting" / "postgres").exists()


class TestPassphrase:
    def test_missing_passphrase_is_an_error(self, origin):
        done = latchkey("backup", "--verify", origin.file, AUTH_BACKUP_PASSPHRASE="")
        assert (done.returncode, done.stdout) == (2, "")
        assert "There is no passphrase: set AUTH_BACKUP_PASSPHRASE" in done.stderr

    def test_passphrase_may_come_from_a_file(self, origin, place):
        (place / "passphrase").write_text(PASSPHRASE + "\n")
        (place / "cut.age").write_bytes(origin.file.read_bytes()[:-1])
        arguments = ("backup", "--verify", place / "cut.age", "--passphrase-file", place / "passphrase")
        assert "it is truncated or was altered" in latchkey(*arguments, AUTH_BACKUP_PASSPHRASE="").stderr


class TestFiles:
    """Backups of the database of the other tests."""

    @pytest.fixture
    def backup(self, environment, client, tmp_path):
        def backup(*arguments, **changes):
            return latchkey("backup", tmp_path / "backup.age", *arguments, **{**environment, **changes})

        return backup

    def test_backups_that_are_kept_are_numbered(self, backup, tmp_path):
        file = tmp_path / "backup.age"
        contents = []
        for _ in range(3):
            assert backup("--keep", "2").returncode == 0
            contents.append(file.read_bytes())
        assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.age", "backup.age.1"]
        assert (tmp_path / "backup.age.1").read_bytes() == contents[1]

    def test_failed_backup_leaves_the_former_one(self, backup, tmp_path):
        (tmp_path / "backup.age").write_text("the former one")
        done = backup(DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: DATABASE_URL: can't use the database: ")
        assert [path.read_text() for path in tmp_path.iterdir()] == ["the former one"]

    def test_backup_with_other_keys_than_those_of_the_database_is_refused(
        self, backup, tmp_path, default_app
    ):
        parts = default_app.extensions[EXTENSION]
        fingerprints.keep(parts.db, parts.settings)
        done = backup(AUTH_SERVICE_ROLE_KEY="another key that only this environment has")
        assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
        assert "AUTH_SERVICE_ROLE_KEY: Is not what this database was last used with" in done.stderr

    def test_short_passphrase_is_refused(self, backup, tmp_path):
        done = backup(AUTH_BACKUP_PASSPHRASE="short")
        assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
        assert "must have at least 12 characters" in done.stderr

    def test_backup_into_a_missing_directory_is_an_error(self, environment, tmp_path):
        done = latchkey("backup", tmp_path / "missing" / "file", **environment)
        assert done.returncode == 1
        assert "No such file or directory" in done.stderr
