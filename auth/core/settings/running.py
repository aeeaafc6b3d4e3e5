"""What a service leaves in its state directory for commands: its settings, and why its last start failed."""

import fcntl
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from auth.core import files
from auth.core.settings import Settings, kept_secrets, listing, name_of

_RECORD, _ERROR = "service.json", "start_error"
# A command may have others than the processes of the service. Keys have their fingerprints in the database.
_OF_PROCESSES = (
    "database_owner_url",
    "state_dir",
    "bind",
    "workers",
    "deliver",
    "metrics_bind",
    "log_format",
    "log_level",
)
_NOT_COMPARED = {name_of(field) for field in (*_OF_PROCESSES, *kept_secrets.FILES)}
# Locked by the service until it ends.
_locked: list[BinaryIO] = []


def announce(settings: Settings) -> None:
    """Record the settings of the service that runs now, unless the state directory cannot be written."""
    record = {"settings": _chosen(settings), "sources": sorted(set(settings.origins.values()))}
    path = settings.state_dir / _RECORD
    with suppress(OSError):
        (settings.state_dir / _ERROR).unlink(missing_ok=True)
        files.write(path, json.dumps(record))
        file = path.open("rb")
        fcntl.flock(file, fcntl.LOCK_EX)
        _locked[:] = [file]


def keep_error(state_dir: Path, text: str) -> None:
    """Keep why a start failed, unless that is why nothing can be written."""
    with suppress(OSError):
        files.write(state_dir / _ERROR, text)


def last_error(state_dir: Path) -> str | None:
    """Return why the last start failed, unless it was one beside a running service. Raises `OSError`."""
    if is_serving(state_dir):
        return None
    try:
        return " ".join((state_dir / _ERROR).read_text().split())
    except FileNotFoundError:
        return None


def is_serving(state_dir: Path) -> bool:
    return _record(state_dir) is not None


def port(state_dir: Path) -> str | None:
    """Return the PORT that the running service was given, if any."""
    record = _record(state_dir)
    return record["settings"].get("PORT") if record else None


def difference(settings: Settings) -> str | None:
    """Return a line that names the settings in which a command differs from the running service."""
    record = _record(settings.state_dir)
    if record is None:
        return None
    theirs, own = record["settings"], _chosen(settings)
    names = sorted(name for name in theirs.keys() | own if theirs.get(name) != own.get(name))
    if not names:
        return None
    sources = " and ".join(record["sources"]).replace("environment", "the environment") or "the defaults"
    return (
        f"The running service has other settings than this command: {', '.join(names)}."
        f" It has its own from {sources}. Run this with them, under systemd by deploy/latchkey."
    )


def _chosen(settings: Settings) -> dict[str, str]:
    """Return the values of the settings that are not defaults, without secrets."""
    chosen = (each for each in listing.listed(settings) if each.name in settings.origins)
    return {each.name: each.value for each in chosen if each.name not in _NOT_COMPARED}


def _record(state_dir: Path) -> Mapping[str, Any] | None:
    """Return the record of the running service, if there is one."""
    with suppress(OSError, ValueError), (state_dir / _RECORD).open("rb") as file:
        try:
            # Shared, because commands that run at the same time must not take each other for the service.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return dict(json.load(file))
    return None
