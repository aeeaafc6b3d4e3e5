"""The state directory: generated secrets, and the data of the embedded Postgres."""

import os
import secrets
import tempfile
from pathlib import Path
from urllib.parse import quote

from auth.tokens import access_tokens

POSTGRES_PORT = "5432"  # names the socket; nothing listens on TCP


def make_directory(directory: Path) -> None:
    # Postgres cannot run as root: another account passes through root's directory, without listing it.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
    directory.chmod(mode)


def kept_secret(directory: Path, name: str) -> str:
    """Return a secret of 256 random bits; generate it the first time."""
    return _kept(directory, name, lambda: secrets.token_urlsafe(32))


def kept_jwt_keys(directory: Path) -> str:
    """Return the JWK Set that signs access tokens, as JSON; generate it the first time."""
    return _kept(directory, "jwt_keys.json", access_tokens.new_jwk_set)


def _kept(directory: Path, name: str, make) -> str:
    path = directory / name
    if not path.exists():
        make_directory(directory)
        # Two processes may start at once: each writes a file of its own, and the first link wins.
        descriptor, draft = tempfile.mkstemp(dir=directory, prefix=f".{name}.")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(make() + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)
    return path.read_text().strip()


class NotRunningError(Exception):
    """No service runs with the embedded Postgres of this state directory."""


def running_postgres_url(directory: Path) -> str:
    """Raises `NotRunningError`."""
    data = directory.resolve() / "postgres"
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        lines = []
    if len(lines) < 8 or lines[7].strip() != "ready":
        raise NotRunningError(
            "DATABASE_URL is not set, and no service runs with the Postgres of its own:"
            " start it first, with make run"
        )
    return postgres_url(Path(lines[4] or data))


def postgres_url(socket_dir: Path) -> str:
    return f"postgresql://postgres@/postgres?host={quote(str(socket_dir), safe='')}&port={POSTGRES_PORT}"
