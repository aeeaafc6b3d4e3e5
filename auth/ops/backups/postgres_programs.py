"""Runs pg_dump and psql from the embedded Postgres, PATH, or Debian's directories."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from psycopg2.extensions import make_dsn, parse_dsn

from auth.ops.backups.archive import BackupError
from auth.ops.processes import embedded_postgres
from auth.ops.processes.embedded_postgres import EmbeddedPostgresError

_WITH_TLS = ("require", "verify-ca", "verify-full")


@contextmanager
def running(
    command: Sequence[str], url: str, least: int, stdout: int, stdin: int | None = None
) -> Iterator[Any]:
    """Run a program of version `least` or newer. Yield its pipe. Exceptions kill it. Raises `BackupError`."""
    name, *options = command
    conninfo, environment = _connection(url)
    options += ["--no-password", f"--dbname={conninfo}"]
    program = _newest(name, least, parse_dsn(url).get("sslmode"))
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603
            [program, *options], env=environment, stdin=stdin, stdout=stdout, stderr=errors
        ) as process,
    ):
        try:
            yield process.stdin or process.stdout
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            reason = errors.read(2000).decode(errors="replace")
            raise BackupError(f"{name} failed. Fix what it says: {' '.join(reason.split())}")


def _newest(name: str, least: int, sslmode: str | None) -> str:
    candidates = [shutil.which(name), *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))]
    # The programs of the embedded Postgres are built without TLS.
    if sslmode not in _WITH_TLS:
        with suppress(EmbeddedPostgresError):
            candidates.insert(0, shutil.which(embedded_postgres.find_programs() / name))
    paths: dict[int, str] = {}
    for path in map(str, filter(None, candidates)):
        process = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
        if match := re.search(r"(\d+)[.\d]*", process.stdout):
            paths.setdefault(int(match[1]), path)
    newest = max(paths, default=0)
    if newest < least:
        problem = f"{name} is version {newest}" if newest else f"there is no {name}"
        raise BackupError(
            f"The database is Postgres {least}, but {problem}."
            f" Install the client programs of Postgres {least} or newer."
        )
    return paths[newest]


def _connection(url: str) -> tuple[str, dict[str, str]]:
    """Return a connection string without the password, and an environment with it but without our secrets."""
    parts = parse_dsn(url)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AUTH_")}
    environment |= {"LC_ALL": "C", "PGAPPNAME": "latchkey"}
    environment.pop("DATABASE_URL", None)
    if password := parts.pop("password", None):
        environment["PGPASSWORD"] = password
    return make_dsn(**parts), environment
