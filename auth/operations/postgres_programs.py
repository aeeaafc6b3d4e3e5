"""Finds pg_dump and psql in the embedded Postgres, on PATH, or where Debian installs them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from psycopg2.extensions import make_dsn, parse_dsn

from auth.operations import embedded_postgres
from auth.operations.embedded_postgres import EmbeddedPostgresError


class NoProgramError(Exception):
    """A line for the operator."""


def find(name: str, least: int) -> str:
    """Return the path of a program of at least this major version. Raises `NoProgramError`."""
    found: dict[int, str] = {}
    for path in _candidates(name):
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
        if match := re.search(r"(\d+)[.\d]*", done.stdout):
            found.setdefault(int(match[1]), path)
    if not found:
        raise NoProgramError(f"There is no {name}: install the client programs of Postgres {least} or newer.")
    newest = max(found)
    if newest < least:
        raise NoProgramError(
            f"The database is Postgres {least}, but {name} is of version {newest}:"
            f" install the client programs of Postgres {least} or newer."
        )
    return found[newest]


def connection(url: str) -> tuple[str, dict[str, str]]:
    """Return a connection string without the password, and an environment with it but without our secrets."""
    parts = parse_dsn(url)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AUTH_")}
    environment |= {"LC_ALL": "C", "PGAPPNAME": "latchkey"}
    environment.pop("DATABASE_URL", None)
    if password := parts.pop("password", None):
        environment["PGPASSWORD"] = password
    return make_dsn(**parts), environment


def _candidates(name: str) -> list[str]:
    candidates = []
    try:
        embedded = embedded_postgres.find_programs() / name
        candidates += [str(embedded)] if embedded.exists() else []
    except EmbeddedPostgresError:
        pass
    places = [shutil.which(name), *sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))]
    return candidates + [place for place in places if place]
