"""The state directory: the secrets that the service makes for itself, and its embedded Postgres."""

import os
import secrets
import tempfile
from pathlib import Path
from urllib.parse import quote

from auth.tokens import access_tokens

# Part of the name of the socket.
POSTGRES_PORT = "5432"  # names the socket; nothing listens on TCP


def make_directory(directory: Path) -> None:
    """Make the state directory, closed to others.

    Postgres can't run as root. So that root's embedded one, running as another user, reaches its data below
    here, root's directory may be passed through (0711), though not listed.
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
    directory.chmod(mode)


def kept_secret(directory: Path, name: str) -> str:
    """Return the secret of that name, 256 random bits as 43 characters; make it when there is none."""
    return _kept(directory, name, lambda: secrets.token_urlsafe(32))


def kept_jwt_keys(directory: Path) -> str:
    """Return the JWK Set that signs access tokens as JSON; make one with an ES256 key when there is none."""
    return _kept(directory, "jwt_keys.json", access_tokens.new_jwk_set)


def _kept(directory: Path, name: str, make) -> str:
    path = directory / name
    if not path.exists():
        make_directory(directory)
        # Two processes may start at once: each writes a whole file of its own, and the first link wins.
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
    """Return the URL of the embedded Postgres of a running service. Raises `NotRunningError`."""
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
    """Return the URL of the embedded Postgres whose socket is in a directory."""
    return f"postgresql://postgres@/postgres?host={quote(str(socket_dir), safe='')}&port={POSTGRES_PORT}"
