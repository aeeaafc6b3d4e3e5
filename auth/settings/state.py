"""What the service makes for itself and keeps: its secrets, in files of the state directory."""

import os
import secrets
import tempfile
from pathlib import Path

from auth.tokens import access_tokens


def make_directory(directory: Path) -> None:
    """Make the state directory, closed to others.

    Postgres can't run as root. So that root's embedded one, running as another user, reaches its data below here, root's
    directory may be passed through (0711), though not listed.
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
