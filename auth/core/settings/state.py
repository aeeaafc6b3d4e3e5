"""The state directory: generated secrets, and the data of the embedded Postgres."""

import errno
import fcntl
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from auth.core import files

POSTGRES_PORT = "5432"  # names the socket; nothing listens on TCP
# The variable in which prometheus_client expects the directory of its files.
METRICS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
# The variable in which the master tells a process its slot, the unique name of its files.
METRICS_SLOT = "LATCHKEY_METRICS_SLOT"
_WANTED_WORKERS = "wanted_workers"
_GONE = (errno.ECONNREFUSED, errno.ENOENT)
_REMEDIES = {
    errno.EROFS: "Mount its file system for writing.",
    errno.ENOSPC: "Free space on its disk.",
    errno.EDQUOT: "Free space, or raise the quota.",
}


def directory_of(environment: Mapping[str, str | None]) -> Path:
    """Return the state directory, even if other settings are invalid."""
    return Path(environment.get("AUTH_STATE_DIR") or "var").resolve()


def make_directory(directory: Path) -> None:
    # Postgres cannot run as root, so its account must be able to enter root's directory, but not list it.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
    directory.chmod(mode)


class InUseError(Exception):
    """A running service uses the state directory."""


def lock(directory: Path, kind: int = fcntl.LOCK_EX) -> int:
    """Lock the directory until the returned descriptor is closed. Raises `InUseError` and `OSError`.

    Python opens files close-on-exec, so other programs do not inherit the lock.
    """
    # Root must not truncate the target of another user's link.
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(descriptor)
        os.close(descriptor)
        raise InUseError(f"{directory} is in use by a running service{holder}") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _holder(descriptor: int) -> str:
    """Return the process that locked last, unless it has ended while others share the lock."""
    try:
        pid = int(os.pread(descriptor, 20, 0))
        os.kill(pid, 0)
    except PermissionError:
        pass  # it belongs to another user
    except (ValueError, ProcessLookupError):
        return ""
    return f", process {pid}"


def begin_metrics(state_dir: Path, name: str) -> None:
    """Create an empty directory for the metrics of the processes that this one starts. Raises `OSError`."""
    directory = state_dir / f"metrics-{name}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    os.environ[METRICS_DIRECTORY] = str(directory)


def keep_wanted_workers(number: int) -> None:
    """Tell the process that serves the metrics how many workers the master keeps."""
    if directory := os.environ.get(METRICS_DIRECTORY):
        files.write(Path(directory) / _WANTED_WORKERS, str(number))


def wanted_workers() -> int | None:
    """Return that number. `latchkey deliver` has no workers."""
    path = Path(os.environ[METRICS_DIRECTORY]) / _WANTED_WORKERS
    return int(path.read_text(encoding="utf-8")) if path.exists() else None


def discard_gauges(slot: int) -> None:
    """Remove the gauges of an ended process, such as the length of its queue. Its totals stay.

    A HUP may turn metrics on, but only a start creates their directory. An error would end the master.
    """
    if directory := os.environ.get(METRICS_DIRECTORY):
        for path in Path(directory).glob(f"gauge_live*_{slot}.db"):
            path.unlink(missing_ok=True)


def unusable(directory: Path, error: OSError) -> str:
    return f"AUTH_STATE_DIR: {unusable_place(directory, error, 'Set it to a directory that this user owns.')}"


def unusable_place(place: object, error: OSError, remedy: str) -> str:
    reason = "It is not a directory" if isinstance(error, FileExistsError) else error.strerror
    return f"{place} cannot be used: {reason}. {_REMEDIES.get(error.errno or 0, remedy)}"


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def make_once(path: Path, make: Callable[[], str]) -> None:
    """Write a new secret, unless the file exists. Raises `OSError`."""
    if not path.exists():
        make_directory(path.parent)
        files.write_once(path, make() + "\n")


class NotRunningError(Exception):
    """No service runs with the embedded Postgres of this state directory."""


def running_postgres_url(directory: Path) -> str:
    """Return the URL for the superuser, who owns the tables. Raises `NotRunningError`."""
    data = directory.resolve() / "postgres"
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except PermissionError as error:
        raise NotRunningError(unusable(directory, error)) from None
    except OSError:
        lines = []
    if len(lines) < 8 or lines[7].strip() != "ready" or not _listens(Path(lines[4] or data)):
        raise NotRunningError(
            f"DATABASE_URL is not set, and no service runs with the state directory {directory}."
            " Start it, or set AUTH_STATE_DIR to its directory."
        )
    return postgres_url(Path(lines[4] or data))


def _listens(socket_dir: Path) -> bool:
    """Whether a process listens on a socket of Postgres: after a crash, both files are still there."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        return client.connect_ex(str(socket_dir / f".s.PGSQL.{POSTGRES_PORT}")) not in _GONE


def is_embedded(directory: Path, database_url: str) -> bool:
    """Whether a database is the embedded Postgres of this state directory, which runs."""
    try:
        return database_url == of_requests(running_postgres_url(directory))
    except NotRunningError:
        return False


def postgres_url(socket_dir: Path) -> str:
    """Return the URL for the superuser. It needs no password: only our account may enter the directory."""
    return f"postgresql://postgres@/postgres?host={quote(str(socket_dir), safe='')}&port={POSTGRES_PORT}"


def of_requests(postgres_url: str) -> str:
    """Return the URL of an embedded Postgres for the role of requests, which owns nothing."""
    return postgres_url.replace("//postgres@", "//latchkey@", 1)
