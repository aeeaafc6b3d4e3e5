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
OTHER = "another key that only this environment has"
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


# What a server has in /etc/latchkey.env.
OF_THE_GUIDE = dict(
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
def place() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def origin(place) -> SimpleNamespace:
    """A backup of a service with a user who is signed in and got a link, and that service, stopped."""
    state_dir = place / "origin"
    changes = OF_THE_GUIDE | {
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
        done = latchkey("backup", place / "latchkey.age", "--json", **changes)
        assert done.returncode == 0, done.stderr
        file = Path(json.loads(done.stdout)["file"])
        refused = restore(file, state_dir)
        later = later.refreshed().refreshed()
    return SimpleNamespace(
        state_dir=state_dir, file=file, session=session, later=later, link=link, done=done, refused=refused
    )


def test_backup_is_rehearsed_past_a_proxy_and_shows_what_it_contains_but_no_secrets(origin):
    assert (origin.done.returncode, origin.done.stderr) == (0, "")
    outcome = json.loads(origin.done.stdout)
    assert re.fullmatch(r"latchkey-\d{8}T\d{6}Z\.age", origin.file.name)
    assert outcome["bytes"] == origin.file.stat().st_size
    assert (outcome["tables"]["users"], outcome["tables"]["sessions"]) == (1, 2)
    assert stat.S_IMODE(origin.file.stat().st_mode) == 0o600
    shown = origin.file.read_bytes() + origin.done.stdout.encode()
    for secret in [*secrets_of(origin.state_dir).values(), "alice@example.com", "CREATE TABLE"]:
        assert secret.encode() not in shown


def test_restore_is_refused_while_the_service_runs(origin):
    assert origin.refused.returncode == 1
    assert "is in use by a running service" in origin.refused.stderr


def test_restore_elsewhere_brings_users_and_secrets_and_ends_sessions_links_and_messages(origin, place):
    state_dir = place / "elsewhere"
    done = restore(origin.file, state_dir)
    assert (done.returncode, done.stderr) == (0, "")
    assert secrets_of(state_dir) == secrets_of(origin.state_dir)
    kept = state_dir / "restored.env"
    assert f"{kept} has the settings of the backed-up service" in done.stdout
    lines = set(kept.read_text().splitlines())
    assert {
        "AUTH_JWT_AUDIENCE='it\\'s'",
        *(f"{name}='{text}'" for name, text in OF_THE_GUIDE.items()),
    } <= lines
    assert {stat.S_IMODE((state_dir / name).stat().st_mode) for name in (*SECRETS, kept.name)} == {0o600}
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
            # A dump does not say that only requests may call them.
            (0, CALLED_BY_ALL_ROLES),
            # The empty database from before is gone.
            ("postgres,template0,template1", DATABASES),
        ):
            assert value(state_dir, query) == expected


def test_restore_can_keep_sessions_and_waiting_messages(origin, place):
    state_dir = place / "kept"
    done = restore(origin.file, state_dir, "--keep-sessions", "--resend")
    assert done.returncode == 0, done.stderr
    with serving(state_dir, AUTH_JWT_AUDIENCE="it's") as client:
        session = origin.session.on(client)
        # Its issuer was the origin's port.
        session_of(client, refresh(client, session.refresh_token))
        # Its token is newer than the backup. The response is lost.
        for _ in range(2):
            session_of(client, refresh(client, origin.later.refresh_token))
        assert value(state_dir, "SELECT count(*) FROM outbox WHERE outcome IS NULL") >= 1


def test_restore_is_undone_with_its_secrets_until_the_next_backup(origin, place):
    state_dir = place / "undone"
    environment = {"AUTH_STATE_DIR": str(state_dir)}
    with serving(state_dir) as client:
        register(client, key_of(state_dir), "bob@example.com")
    before = secrets_of(state_dir)
    assert restore(origin.file, state_dir).returncode == 0
    assert secrets_of(state_dir) != before
    done = latchkey("restore", "--undo", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert secrets_of(state_dir) == before
    with serving(state_dir) as client:
        assert sign_in(client, "bob@example.com").status_code == 200
        assert sign_in(client, "alice@example.com").status_code == 401
        assert value(state_dir, DATABASES) == "postgres,template0,template1"
    again = latchkey("restore", "--undo", **environment)
    assert (again.returncode, "There is no restore to undo" in again.stderr) == (1, True)
    assert restore(origin.file, state_dir).returncode == 0
    with serving(state_dir):
        assert latchkey("backup", place / "next.age", "--no-rehearsal", **environment).returncode == 0
        assert value(state_dir, DATABASES) == "postgres,template0,template1"
    assert latchkey("restore", "--undo", **environment).returncode == 1


def run_of(release: Path, state_dir: Path, *arguments: object) -> None:
    """Run a command of an earlier release."""
    done = subprocess.run(
        [sys.executable, "-m", "auth.ops.commands", *map(str, arguments)],
        cwd=release,
        env={**SETTINGS, "PATH": os.environ["PATH"], "AUTH_STATE_DIR": str(state_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def back_up_by(release: Path, state_dir: Path) -> Path:
    """Back up a service of an earlier release with Alice, and return the file."""
    with serving(state_dir, directory=release) as client:
        register(client, key_of(state_dir), "alice@example.com")
        run_of(release, state_dir, "backup", "create", state_dir.with_suffix(".age"))
    (file,) = state_dir.parent.glob(f"{state_dir.stem}-*.age")
    return file


def test_backup_of_the_oldest_release_that_is_upgraded_is_restored(place, oldest_release_files):
    file = back_up_by(oldest_release_files, place / "oldest")
    done = restore(file, place / "newer")
    assert done.returncode == 0, done.stderr
    with serving(place / "newer") as client:
        assert sign_in(client, "alice@example.com").status_code == 200


def test_older_backup_is_restored_by_the_release_that_the_refusal_names_and_then_upgraded(place, tmp_path):
    file = back_up_by(oldest_release.unpack(tmp_path / "0.6.1", OLDER["0.6.1"]), place / "older")
    state_dir, key = place / "through", place / "identity"
    refused = restore(file, state_dir)
    assert (refused.returncode, refused.stdout, refused.stderr) == (
        3,
        "",
        f"Error: {file} cannot be used: its schema has version 54, from before 0.7.0."
        " Restore it with Latchkey 0.7.1, then upgrade.\n",
    )
    assert not state_dir.exists()
    verified = latchkey("backup", "verify", file, "--identity", key)
    assert (verified.returncode, verified.stderr) == (3, refused.stderr)
    run_of(
        oldest_release.unpack(tmp_path / "bridge", schema.BRIDGE_COMMIT),
        state_dir,
        *("restore", file, "--identity", key),
    )
    with serving(state_dir) as client:
        assert sign_in(client, "alice@example.com").status_code == 200


def test_release_before_goes_on_with_its_backup_after_an_upgrade(place, files_of_the_release_before):
    """As in docs/deployment.md: its own command restores, over the database of this release."""
    state_dir, key = place / "upgraded", place / "key of before"
    files.write(key, IDENTITY)
    file = back_up_by(files_of_the_release_before, state_dir)
    with serving(state_dir) as client:
        register(client, key_of(state_dir), "bob@example.com")
    run_of(files_of_the_release_before, state_dir, "restore", file, "--identity", key)
    with serving(state_dir, directory=files_of_the_release_before) as client:
        assert client.get("/health").json["version"] == previous_release.NAME
        assert sign_in(client, "alice@example.com").status_code == 200
        assert sign_in(client, "bob@example.com").status_code == 401


def test_backup_is_not_called_good_if_requests_would_lack_a_right(origin, place, tmp_path):
    release = oldest_release.copy_checkout(tmp_path)
    with (release / "sql" / "grants.sql").open("a") as grants:
        grants.write("REVOKE INSERT ON sessions FROM {role};\n")
    files.write(place / "key", IDENTITY)
    verify = ("backup", "verify", origin.file, "--identity", place / "key")
    verified = run_process(SETTINGS, *verify, cwd=release)
    assert (verified.returncode, verified.stdout) == (1, "")
    assert "A sign-in fails on the restored service: 500" in verified.stderr


# A trigger that runs with the rights of requests. A backup has none of what the operator has granted to their role.
OF_THE_OPERATOR = """
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


def test_backup_with_triggers_and_tables_of_the_operator_passes_its_rehearsal(place):
    state_dir = place / "own"
    with serving(state_dir) as client:
        execute(state_dir, OF_THE_OPERATOR)
        register(client, key_of(state_dir), "alice@example.com")
        done = latchkey("backup", place / "own.age", AUTH_STATE_DIR=str(state_dir))
        assert done.returncode == 0, done.stderr


class TestUnusableFile:
    """Nothing is touched, and no database is left."""

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
    def test_file_is_refused(self, origin, place, case):
        (target := place / "target").mkdir(exist_ok=True)
        for name in SECRETS:
            shutil.copy(origin.state_dir / name, target)  # with its mode
        file = place / "changed.age"
        change, reason = self.CASES[case]
        whole = origin.file.read_bytes()
        plaintext = b"".join(archive.read(origin.file, IDENTITY, lambda _: None))
        changed = change(json.loads(plaintext.split(b"\n", 1)[0]), whole, plaintext)
        is_encrypted = case in ("truncated", "not encrypted")
        file.write_bytes(changed if is_encrypted else encrypted(changed))
        before = secrets_of(target)
        done = restore(file, target)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"Error: {file} cannot be used: {reason}"), done.stderr
        assert (secrets_of(target), {path.name for path in target.iterdir()}) == (before, set(SECRETS))

    def test_verify_refuses_it_too(self, origin, place):
        file, identity = place / "cut.age", place / "identity"
        file.write_bytes(origin.file.read_bytes()[:-1])
        files.write(identity, IDENTITY)
        cut, whole = (
            latchkey("backup", "verify", each, "--identity", identity) for each in (file, origin.file)
        )
        assert (cut.returncode, "it is truncated" in cut.stderr) == (3, True)
        assert (whole.returncode, whole.stderr) == (0, "")
        assert "is good (users: 1, " in whole.stdout

    def test_lost_rows_are_noticed_and_leave_no_database(self, origin, place):
        plaintext = b"".join(archive.read(origin.file, IDENTITY, lambda _: None))
        head, file = json.loads(plaintext.split(b"\n", 1)[0]), place / "lost.age"
        file.write_bytes(encrypted(manifested(head, plaintext, tables=head["tables"] | {"users": 2})))
        done = restore(file, place / "lost")
        assert done.returncode == 1
        assert "Row counts differ from the backup: users" in done.stderr
        with serving(place / "lost"):
            assert value(place / "lost", DATABASES) == "postgres,template0,template1"
            assert value(place / "lost", "SELECT count(*) FROM users") == 0


def manifested(head: dict[str, Any], plaintext: bytes, **members: Any) -> bytes:
    """Return the plaintext with another manifest."""
    return json.dumps(head | members).encode() + b"\n" + plaintext.split(b"\n", 1)[1]


def encrypted(plaintext: bytes) -> bytes:
    return pyrage.encrypt(plaintext, [pyrage.x25519.Recipient.from_str(RECIPIENT)])


@pytest.mark.parametrize("name", ["AUTH_SECRET_KEY", "AUTH_SERVICE_ROLE_KEY"])
def test_environment_without_the_key_of_the_backup_is_refused(origin, place, name):
    done = restore(origin.file, place / "conflicting", **{name: OTHER})
    assert done.returncode == 1
    assert f"{name} is set, but lacks a key from the backup" in done.stderr
    assert not (place / "conflicting" / "postgres").exists()


class TestFiles:
    """Backups of the database of the other tests."""

    @pytest.fixture
    def backup(self, environment, client, tmp_path):
        def backup(*arguments, **changes):
            options = ("--no-rehearsal", *arguments)
            return latchkey("backup", tmp_path / "backup.age", *options, **{**environment, **changes})

        return backup

    def test_newest_backups_and_the_new_one_are_kept(self, backup, tmp_path):
        older = ["backup-20200101T000000Z.age", "backup-21000101T000000Z.age"]
        others = ["backup-notes.age", "backup.age", "backups-20200101T000000Z.age"]
        for name in (*older, *others):
            (tmp_path / name).write_text("another")
        assert backup("--keep", "2").returncode == 0
        left = {path.name for path in tmp_path.iterdir()}
        assert (older[0] in left, older[1] in left, len(left)) == (False, True, 5)
        assert set(others) < left

    @pytest.mark.parametrize(
        ("changes", "status", "reason"),
        [
            (
                {"AUTH_SERVICE_ROLE_KEY": OTHER},
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
        done = backup(**changes)
        assert (done.returncode, done.stdout) == (status, "")
        assert done.stderr.startswith(f"Error: {reason}"), done.stderr
        assert list(tmp_path.iterdir()) == [former]

    def test_backup_that_fails_its_rehearsal_does_not_appear(
        self, environment, database, client, alice, tmp_path
    ):
        database.run("UPDATE user_objects SET last_sign_in_at = now()")
        done = latchkey("backup", tmp_path / "backup.age", **environment)
        assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
        assert "rows of user_objects differ from their users" in done.stderr
        database.empty()
