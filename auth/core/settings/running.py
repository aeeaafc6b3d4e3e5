"""The record of a service in its state directory, for commands: its settings, but no secrets, and why its
last start failed."""

import fcntl
import json
import os
import pwd
import shlex
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from dotenv import dotenv_values

from auth.core import files
from auth.core.settings import Settings, kept_secrets, listing, name_of, names
from auth.core.settings.listing import Listed
from auth.core.settings.providers import PROVIDER_PREFIX

_RECORD, _ERROR = "service.json", "start_error"
_ENVIRONMENT = "environment"
# Settings of which a command has its own.
_OF_COMMANDS = ("state_dir", "metrics_bind", "log_format", "log_level")
_OF_PROCESSES = ("database_owner_url", "bind", "workers", "deliver")
# Settings that no command reads.
OF_REQUESTS = (
    "anonymous_enabled",
    "cors_origins",
    "oauth_consent_url",
    "oauth_dynamic_registration",
    "refresh_token_rotation",
    "service_role_jwt",
    "verify_on_get",
)
# The URL of the owner is often kept from the service, or from most commands.
_OPTIONAL = set(map(name_of, _OF_PROCESSES))
# Keys have their fingerprints in the database.
_NOT_COMPARED = set(map(name_of, (*_OF_COMMANDS, *_OF_PROCESSES, *OF_REQUESTS, *kept_secrets.FILES)))
# Locked by the service until it ends.
_locked: list[BinaryIO] = []


class OtherUserError(Exception):
    """The service runs as another user, whose files this command must not trust."""


def announce(settings: Settings) -> None:
    """Record the settings of the running service, unless the state directory is read-only."""
    environment = {**dotenv_values(".env"), **os.environ}
    values = {each.name: environment.get(each.name) for each in _chosen(settings)}
    # A secret that is shown as it is hides nothing: the URL of a server without a password.
    hidden = [each.name for each in _chosen(settings) if each.is_secret and each.value != values[each.name]]
    record = {
        "settings": _compared(settings),
        "given": {name: value for name, value in values.items() if name not in hidden},
        "withheld": [name for name in hidden if name not in _OPTIONAL],
        "dotenv": str(Path(".env").resolve()),
    }
    path = settings.state_dir / _RECORD
    with suppress(OSError):
        (settings.state_dir / _ERROR).unlink(missing_ok=True)
        path.unlink(missing_ok=True)  # a replaced file would keep its owner
        files.write(path, json.dumps(record))
        file = path.open("rb")
        fcntl.flock(file, fcntl.LOCK_EX)
        _locked[:] = [file]


def keep_error(state_dir: Path, text: str) -> None:
    """Record why a start failed, if the state directory can be written."""
    with suppress(OSError):
        files.write(state_dir / _ERROR, text)


def last_error(state_dir: Path) -> str | None:
    """Return why the last start failed, unless it was one beside a running service. Raises `OSError`."""
    if is_serving(state_dir):
        return None
    try:
        with _opened(state_dir / _ERROR) as file:
            return " ".join(file.read().decode(errors="replace").split()) if _is_own(file) else None
    except FileNotFoundError:
        return None


def is_serving(state_dir: Path) -> bool:
    """Raises `OtherUserError`."""
    return _record(state_dir) is not None


def environment(state_dir: Path) -> dict[str, str]:
    """Return the service's variables: those of its file, and others but secrets. Raises `OtherUserError`."""
    record = _record(state_dir)
    if record is None:
        return {}
    variables: dict[str, str | None] = {}
    with suppress(OSError, ValueError):
        variables |= dotenv_values(record["dotenv"])
    # The service may have started before its file was changed.
    variables |= record["given"]
    of_service = set(names()) - set(map(name_of, _OF_COMMANDS))
    return {
        name: value
        for name, value in variables.items()
        if value is not None and (name in of_service or name.startswith(PROVIDER_PREFIX))
    }


def withheld(state_dir: Path, own: Container[str]) -> list[str]:
    """Return a line for each secret of the service that is not a command's `own`. Raises `OtherUserError`."""
    record = _record(state_dir)
    hidden = record["withheld"] if record else ()
    remedy = "The running service has this secret in its environment. Give it to the command too: export"
    return [f"{name}: {remedy} {name}=…" for name in hidden if name not in own]


def difference(settings: Settings) -> str | None:
    """Return how the settings of a command differ from the running service's, and the remedy."""
    record = _record(settings.state_dir)
    if record is None:
        return None
    theirs, own, plain = record["settings"], _compared(settings), record["given"]
    differing = sorted(name for name in theirs.keys() | own if theirs.get(name) != own.get(name))
    if not differing:
        return None
    problem = f"The running service has other settings than this command: {', '.join(differing)}."
    files_of = {settings.origins.get(name, _ENVIRONMENT) for name in differing} - {_ENVIRONMENT}
    if files_of:
        return f"{problem} Restart the service if it reads {min(files_of)}; else remove them there."
    exports = [
        f"{name}={shlex.quote(plain[name]) if name in plain else '…'}" for name in differing if name in theirs
    ]
    unsets = [name for name in differing if name not in theirs]
    lines = (f"export {' '.join(exports)}" if exports else "", f"unset {' '.join(unsets)}" if unsets else "")
    return f"{problem} To act with the service's, run: {'; '.join(filter(None, lines))}"


def _compared(settings: Settings) -> dict[str, str]:
    return {each.name: each.value for each in _chosen(settings) if each.name not in _NOT_COMPARED}


def _chosen(settings: Settings) -> Iterator[Listed]:
    return (each for each in listing.listed(settings) if each.name in settings.origins)


def _record(state_dir: Path) -> Mapping[str, Any] | None:
    """Return the record of the running service, if there is one. Raises `OtherUserError`."""
    with suppress(OSError, ValueError), _opened(state_dir / _RECORD) as file:
        try:
            # A shared lock: concurrent commands must not mistake each other for the service.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if _is_own(file):
                return dict(json.load(file))
            owner, own = (_name_of_user(uid) for uid in (os.fstat(file.fileno()).st_uid, os.geteuid()))
            raise OtherUserError(
                f"The service in {state_dir} runs as {owner}, but this command as {own}, and it would do what"
                f" files of {owner} say. Run it as {owner}, for example with sudo -u {shlex.quote(owner)}."
            ) from None
    return None


def _opened(path: Path) -> BinaryIO:
    """Open a regular file, not a link or pipe that another user may have put there. Raises `OSError`."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    return open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))


def _is_own(file: BinaryIO) -> bool:
    return os.fstat(file.fileno()).st_uid == os.geteuid()


def _name_of_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"
