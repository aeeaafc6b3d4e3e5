"""deploy/install with real wheels and a real database; instead of systemd and root, scripts do what they would do."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from auth import __version__
from sql import schema
from tests.support.processes import CHECKOUT, short_directory
from tests.support.wheels import build_wheel

pytestmark = pytest.mark.selection

NEXT = "9.0.0"
# `start` fails if the release is broken, as a unit of Type=notify does.
SYSTEMCTL = """#!/bin/sh
[ "$1" = show ] && echo "ExecStart={ path=$LATCHKEY_ROOT/current/bin/latchkey ; ignore_errors=no }"
[ "$1" = restart ] || exit 0
echo "restart $(readlink "$LATCHKEY_ROOT/current")" >> "$LATCHKEY_ROOT/log"
exec "$LATCHKEY_ROOT/current/bin/latchkey" --version > /dev/null
"""
SYSTEMD_RUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


def _be_the_next_release(checkout: Path) -> None:
    package = checkout / "auth" / "__init__.py"
    package.write_text(package.read_text().replace(__version__, NEXT))


def _migrate(checkout: Path) -> None:
    _be_the_next_release(checkout)
    migration = checkout / "sql" / "migrations" / f"{schema.NEWEST + 1:04}_next.sql"
    migration.write_text("CREATE TABLE next_things (id integer);\n")


def _break(checkout: Path) -> None:
    _be_the_next_release(checkout)
    (checkout / "auth" / "commands" / "__init__.py").write_text("raise SystemExit('broken')")


class Machine:
    def __init__(self, root: Path, database_url: str) -> None:
        self.root = root
        programs = root / "programs"
        programs.mkdir()
        scripts = {"systemctl": SYSTEMCTL, "systemd-run": SYSTEMD_RUN, "id": "#!/bin/sh\necho 0\n"}
        for name, text in scripts.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        (programs / "python3").symlink_to(sys.executable)
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LATCHKEY_ROOT": str(root),
            "DATABASE_URL": database_url,
            "AUTH_STATE_DIR": str(root / "var"),
            # The packages of this environment, so that pip needs no network.
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_CACHE_DIR": "1",
            "PYTHONPATH": sysconfig.get_path("purelib"),
        }

    def install(self, argument: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [str(CHECKOUT / "deploy" / "install"), str(argument)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def release(self) -> str:
        """Return the release that the command of the link says it is."""
        command = [str(self.root / "current" / "bin" / "latchkey"), "--version"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True)
        return done.stdout.split()[-1]

    def restarts(self) -> list[str]:
        return (self.root / "log").read_text().splitlines()


@pytest.fixture(scope="module")
def wheels() -> Iterator[dict[str, Path]]:
    changes = {"this": lambda _: None, "next": _be_the_next_release, "migrating": _migrate, "broken": _break}
    with short_directory() as directory:
        for name in changes:
            (directory / name).mkdir()
        yield {name: build_wheel(directory / name, change) for name, change in changes.items()}


@pytest.fixture
def url(new_database) -> str:
    return new_database()


@pytest.fixture
def bare(url) -> Iterator[Machine]:
    """A machine without a release."""
    with short_directory() as root:
        yield Machine(root, url)


@pytest.fixture
def machine(bare, wheels) -> Machine:
    """A machine with this release."""
    assert bare.install(wheels["this"])[0] == 0
    return bare


def test_release_is_installed_beside_the_other_and_left_again(machine, wheels):
    assert machine.release() == __version__
    status, output = machine.install(wheels["next"])
    assert (status, output.splitlines()[-1]) == (0, f"{NEXT} runs. To go back: deploy/install --back")
    assert (machine.release(), (machine.root / __version__).is_dir()) == (NEXT, True)
    assert machine.install(wheels["next"]) == (1, f"deploy/install: {NEXT} is installed and current.\n")
    assert machine.install("--back") == (0, f"{__version__} runs instead of {NEXT}.\n")
    assert machine.release() == __version__
    assert machine.restarts() == [f"restart {each}" for each in (__version__, NEXT, __version__)]


def test_release_that_does_not_start_is_left_at_once(machine, wheels):
    status, output = machine.install(wheels["broken"])
    assert (status, machine.release()) == (1, __version__), output


def test_release_with_a_migration_is_not_left(machine, wheels, url):
    assert machine.install(wheels["migrating"])[0] == 0
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM next_things")
    status, output = machine.install("--back")
    assert (status, machine.release()) == (1, NEXT)
    assert f"{__version__} cannot use the schema of {NEXT}. Restore a backup" in output


def test_release_is_not_installed_beside_the_unit_of_a_checkout(bare, wheels):
    program = bare.root / "programs" / "systemctl"
    program.write_text(program.read_text().replace("/current/bin/latchkey ;", "/.venv/bin/gunicorn ;"))
    status, output = bare.install(wheels["this"])
    assert (status, "install deploy/latchkey.service" in output) == (1, True)
    assert not (bare.root / __version__).exists()


@pytest.mark.parametrize("argument", ["nonsense", "--help", "latchkey.tar.gz"])
def test_what_is_no_release_changes_nothing(bare, argument):
    before = sorted(bare.root.iterdir())
    status, output = bare.install(argument)
    assert (status, "is not a wheel of Latchkey" in output) == (1, True)
    assert sorted(bare.root.iterdir()) == before
