"""The releases that an upgrade starts from: their service and their SQL, read from the history of the
checkout."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sql import schema
from tests.support.processes import CHECKOUT

SERVICE = "app.py auth gunicorn.conf.py openapi.yaml schema.sql sql wsgi.py"


def unpack(directory: Path, commit: str = schema.OLDEST_COMMIT, files: str = SERVICE) -> Path:
    """Write the release's service and SQL, or all its files, below a directory; return it.

    Skips the test without that commit: in an archive or a shallow clone.
    """
    command = f"git archive --format=zip {commit} {files}"
    try:
        archive = subprocess.run(command.split(), cwd=CHECKOUT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"").decode().strip() or error
        pytest.skip(f"NO UPGRADE IS TESTED: the history of the checkout is missing ({reason})")
    zipfile.ZipFile(io.BytesIO(archive.stdout)).extractall(directory)
    return directory


def copy_checkout(directory: Path) -> Path:
    """Write the service and SQL of the checkout below a directory, to be changed; return it."""
    for name in SERVICE.split():
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, directory / name)
        else:
            shutil.copy(CHECKOUT / name, directory)
    return directory


def migrate(release: Path, url: str, state_dir: Path) -> None:
    """Create or upgrade a database by the command of this release."""
    subprocess.run(
        [sys.executable, "-m", "auth.ops.commands", "migrate"],
        cwd=release,
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url, "AUTH_STATE_DIR": str(state_dir)},
        capture_output=True,
        check=True,
    )


def script(release: Path) -> str:
    """Return the statements that create a database of this release."""
    functions = [path.read_text() for path in sorted((release / "sql" / "functions").glob("*.sql"))]
    version = max(int(path.name[:4]) for path in (release / "sql" / "migrations").glob("*.sql"))
    return "\n".join(
        [
            (release / "schema.sql").read_text(),
            "SET check_function_bodies = off;",
            *functions,
            f"INSERT INTO schema_version (version) VALUES ({version});",
        ]
    )
