"""After `deploy/install --back`: the release before goes on with the database of the newer one, and with its backups."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from auth.core import files
from sql import schema
from tests.support import oldest_release, previous_release
from tests.support.processes import CHECKOUT, short_directory
from tests.support.users import register, sign_in
from tests.system.sql.test_upgrades import COMMITS, OLDER
from tests.system.trials.test_backup_command import IDENTITY, key_of, latchkey, restore, run_of, serving

# This release can use the schema after each migration.
MIGRATIONS = ("CREATE TABLE added (x integer)", "SELECT")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with short_directory() as directory:
        files.write(directory / "identity", IDENTITY)
        yield directory


@pytest.fixture(scope="module")
def next_release(tmp_path_factory) -> Path:
    """The service of a newer release, whose migrations leave the way back to this one."""
    directory = oldest_release.copy_checkout(tmp_path_factory.mktemp("next"))
    for number, text in enumerate(MIGRATIONS, schema.NEWEST + 1):
        migration = directory / "sql" / "migrations" / f"{number:04}_next.sql"
        migration.write_text(f"-- Usable from {schema.NEWEST:04}\n{text};\n")
    return directory


@pytest.fixture(scope="module")
def newer(folder, next_release) -> SimpleNamespace:
    """The backup that a newer release has made, and the one that this release has made after the way back."""
    state_dir = folder / "newer"
    with serving(state_dir) as client:
        register(client, key_of(state_dir), "alice@example.com")
    with serving(state_dir, directory=next_release):
        by_next = back_up(next_release, state_dir, "next")
    with serving(state_dir):
        return SimpleNamespace(by_next=by_next, by_this=back_up(CHECKOUT, state_dir, "this"))


def back_up(release: Path, state_dir: Path, name: str) -> Path:
    """Back up by a command of a release, which restores the backup and signs in a user."""
    run_of(release, state_dir, "backup", "create", state_dir.with_name(f"{name}.age"))
    (file,) = state_dir.parent.glob(f"{name}-*.age")
    return file


@pytest.mark.parametrize("name", ["by_next", "by_this"])
def test_backup_of_the_database_of_a_newer_release_is_restored_and_serves(newer, folder, name):
    file, state_dir = getattr(newer, name), folder / f"restored-{name}"
    verification = latchkey("backup", "verify", file, "--identity", folder / "identity")
    assert (verification.returncode, verification.stderr) == (0, "")
    result = restore(file, state_dir)
    assert result.returncode == 0, result.stderr
    with serving(state_dir) as client:
        assert sign_in(client, "alice@example.com").status_code == 200


def test_release_before_backs_up_and_serves_what_this_one_restores(folder, tmp_path):
    """The command of this release restores, and the release before starts, as docs/deployment.md says."""
    state_dir, restored = folder / "upgraded", folder / "restored-upgraded"
    oldest = oldest_release.unpack(tmp_path / "0.6.1", OLDER["0.6.1"])
    previous = oldest_release.unpack(tmp_path / "0.7.0", COMMITS["0.7.0"])
    with serving(state_dir, directory=oldest) as client:
        register(client, key_of(state_dir), "alice@example.com")
    for release in (previous, CHECKOUT):
        with serving(state_dir, directory=release) as client:
            assert sign_in(client, "alice@example.com").status_code == 200
    with serving(state_dir, directory=previous):
        file = back_up(previous, state_dir, "by-before")
    result = restore(file, restored)
    assert result.returncode == 0, result.stderr
    with serving(restored, directory=previous) as client:
        assert client.get("/health").json["version"] == previous_release.NAME
        assert sign_in(client, "alice@example.com").status_code == 200
