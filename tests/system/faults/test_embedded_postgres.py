"""The embedded Postgres starts and ends with its parent process, and starts again after any crash."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from auth.core.settings.state import InUseError
from auth.ops.processes.embedded_postgres import EmbeddedPostgres, find_programs
from tests.support.processes import children_of, is_running, wait_until

pytestmark = pytest.mark.root

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
WITHOUT_FSYNC = {"fsync": "off"}


@pytest.fixture(scope="module")
def state_dir() -> Iterator[Path]:
    """A state directory with a database, which is shut down between tests."""
    # Not pytest's tmp_path: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as directory:
        state_dir = Path(directory).resolve() / "var"
        postgres = EmbeddedPostgres(state_dir, WITHOUT_FSYNC)
        run(postgres.start(), "CREATE TABLE kept AS SELECT 'since the first start' AS what")
        postgres.stop()
        yield state_dir


@pytest.fixture
def start(state_dir: Path) -> Iterator[Callable[..., tuple[EmbeddedPostgres, str]]]:
    """Return a function that starts a server, which is stopped after the test."""
    servers = []

    def start(directory: Path = state_dir) -> tuple[EmbeddedPostgres, str]:
        postgres = EmbeddedPostgres(directory, WITHOUT_FSYNC)
        servers.append(postgres)
        return postgres, postgres.start()

    yield start
    for postgres in reversed(servers):
        postgres.stop()


def copy(state_dir: Path, to: Path) -> Path:
    """Copy a state directory. When root runs the tests, the files become root's, as those of a restored backup."""
    shutil.copytree(state_dir, to)
    return to


def run(url: str, statement: str):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


def postmaster_of(state_dir: Path) -> int:
    return int((state_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def crash(postgres: EmbeddedPostgres, state_dir: Path) -> None:
    """Kill the server, wait for its end and release the lock."""
    pids = [postmaster := postmaster_of(state_dir), *children_of(postmaster)]
    os.kill(postmaster, signal.SIGKILL)
    # The others end a moment later; until then no server can start on their data.
    wait_until(lambda: postgres.has_died() and not any(map(is_running, pids)))
    postgres.stop()


DEFAULTS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "server_encoding": "UTF8"}
DEFAULTS |= {"TimeZone": "UTC", "jit": "off", "listen_addresses": "", "max_connections": "100"}


@pytest.fixture
def directory() -> Iterator[Path]:
    """An empty directory with a short path."""
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as name:
        yield Path(name).resolve()


def test_interrupted_first_start_is_repeated_and_makes_a_durable_database_in_utf8_without_tcp(directory):
    state_dir = directory / "var"
    (state_dir / "postgres.new-1234").mkdir(parents=True)
    (state_dir / "postgres.new-1234" / "PG_VERSION").write_text("18\n")
    postgres = EmbeddedPostgres(state_dir)
    try:
        url = postgres.start()
        values = run(url, "SELECT " + ", ".join(f"current_setting('{name}')" for name in DEFAULTS))
        assert dict(zip(DEFAULTS, values, strict=True)) == DEFAULTS
        assert run(url, "SELECT lower('ÄÉШ')") == ("äéш",)
        assert not (state_dir / "postgres.new-1234").exists()
    finally:
        postgres.stop()


def psql(url: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(find_programs() / "psql"), url, "-tAc", "SELECT what FROM kept"]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_data_survives_a_restart_and_only_its_own_user_reads_it_in_one_service_at_a_time(start, state_dir):
    _, url = start()
    with pytest.raises(InUseError, match="in use by a running service"):
        start()
    assert psql(url).stdout == "since the first start\n"
    assert mode(state_dir) == (0o711 if os.geteuid() == 0 else 0o700)
    assert mode(state_dir / "postgres") == 0o700
    assert {mode(path) for path in state_dir.iterdir() if path.is_file()} == {0o600}
    if os.geteuid() == 0:
        result = psql(url, user=54321, group=54321, extra_groups=[])
        assert (result.returncode, "Permission denied" in result.stderr) == (2, True)


@as_root
def test_parent_directories_are_opened_for_passing_through_only(start, state_dir, directory):
    copied, opened = copy(state_dir, directory / "inner" / "var"), [directory, directory / "inner"]
    (directory / "inner").chmod(0o700)
    postgres, _ = start(copied)
    assert [parent for parent in postgres.opened_directories if parent.is_relative_to(directory)] == opened
    assert [mode(parent) for parent in opened] == [0o701, 0o701]


@on_linux
def test_postgres_does_not_inherit_the_environment(start, state_dir, monkeypatch):
    monkeypatch.setenv("AUTH_SECRET_KEY", "correct horse battery staple 0123456789")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATABASE", "another")
    _, url = start()
    assert run(url, "SELECT what FROM kept")
    assert b"correct horse" not in Path(f"/proc/{postmaster_of(state_dir)}/environ").read_bytes()


def test_committed_data_survives_a_crash_when_another_process_has_the_recorded_id(start, state_dir):
    postgres, url = start()
    run(url, "DROP TABLE IF EXISTS committed; CREATE TABLE committed AS SELECT 1 AS one")
    crash(postgres, state_dir)
    # Start it as the same user: Postgres does not take the processes of other users for its server.
    owner = (state_dir / "postgres").stat().st_uid
    with subprocess.Popen(["sleep", "60"], user=owner) as other_process:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            path = state_dir / "postgres" / name
            path.write_text("\n".join([str(other_process.pid), *path.read_text().splitlines()[1:], ""]))
        _, url = start()
        assert run(url, "SELECT one FROM committed") == (1,)
        assert other_process.poll() is None
        other_process.kill()


def test_server_that_outlived_its_service_is_stopped(start, state_dir):
    orphan, _ = start()
    orphan.release_lock()  # as if its service had died
    log = state_dir / "postgres.log"
    before = log.stat().st_size

    _, url = start()

    assert run(url, "SELECT what FROM kept")
    wait_until(orphan.has_died)  # it removes its files a moment before it ends
    assert "received fast shutdown request" in log.read_text()[before:]


@pytest.mark.parametrize("name", ["a" * 120, "one,two"])
def test_socket_is_in_another_directory_when_libpq_cannot_use_the_path(name, start, state_dir):
    directory = copy(state_dir, state_dir.parent / name / "var")
    postgres, url = start(directory)
    socket_dir = Path(run(url, "SELECT current_setting('unix_socket_directories')")[0])
    assert run(url, "SELECT what FROM kept")
    assert mode(socket_dir) == 0o700
    crash(postgres, directory)
    socket_dir.mkdir(mode=0o700, exist_ok=True)  # a killed service leaves it behind
    start(directory)
    assert not socket_dir.exists()


def test_log_is_rotated_while_postgres_writes_to_it_and_contains_no_values_of_rows(start, state_dir):
    postgres, url = start()
    log, older = state_dir / "postgres.log", state_dir / "postgres.log.1"
    with log.open("a") as file:
        file.write("x" * 1_100_000)
    run(url, "CREATE TABLE users (email text PRIMARY KEY); INSERT INTO users VALUES ('alice@example.com')")
    postgres.bound_log()
    with pytest.raises(psycopg2.errors.UniqueViolation):
        run(url, "INSERT INTO users VALUES ('alice@example.com')")
    text = wait_until(lambda: text if "duplicate key" in (text := log.read_text()) else "")
    assert "alice" not in text
    assert log.stat().st_size < 1000
    assert older.stat().st_size > 1_100_000
