"""Files that are written atomically, and the access to files with secrets."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path

DRAFT = ".latchkey-draft"
_NOT_OWNER = stat.S_IRWXG | stat.S_IRWXO
_MOUNTED_SECRETS = "/run/secrets"
# Seconds. A draft without a write for this time was left by a killed process.
_ABANDONED_AFTER = 3600


@contextmanager
def replacing(path: Path, publish: Callable[[str, Path], object] = os.replace) -> Iterator[BufferedRandom]:
    """Yield a file, readable only by its owner, that replaces `path` once it is complete.

    Raises `OSError`.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=DRAFT)
    try:
        with os.fdopen(descriptor, "w+b") as draft:
            # Use the clock of the file system, which may be on another machine.
            _remove_abandoned(path.parent, os.fstat(descriptor).st_mtime - _ABANDONED_AFTER)
            yield draft
            draft.flush()
            os.fsync(draft.fileno())
        publish(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Create or replace a file. A replaced one keeps its owner: root may write what the service reads."""
    with replacing(path) as draft:
        if path.exists():
            status = path.stat()
            os.fchown(draft.fileno(), status.st_uid, status.st_gid)
            os.fchmod(draft.fileno(), stat.S_IMODE(status.st_mode))
        draft.write(text.encode())


def write_once(path: Path, text: str) -> None:
    """Create a file unless it exists. Of processes that start together, the first one wins."""
    with suppress(FileExistsError), replacing(path, publish=os.link) as draft:
        draft.write(text.encode())


def exposure(path: Path) -> str | None:
    """Return what is wrong if group or others have access to a file of secrets. Raises `OSError`."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode) or not mode & _NOT_OWNER:
        return None
    # Docker and Kubernetes mount secrets as files of root that everyone can read, and chmod fails. A
    # container has no other users.
    is_mounted = status.st_uid == 0 and os.statvfs(path).f_flag & os.ST_RDONLY
    if is_mounted or path.resolve().is_relative_to(_MOUNTED_SECRETS) or is_shared(status):
        return None
    return f"group or others have access to it (mode {mode:o}): chmod 600 {path}"


def is_shared(status: os.stat_result) -> bool:
    """Whether, besides its owner, only a supplementary group of this process has access to a file.

    Kubernetes gives the files of a volume to the group `fsGroup` when a pod starts. Other users may have the
    primary group.
    """
    is_of_group = stat.S_IMODE(status.st_mode) in (0o640, 0o660)
    return is_of_group and status.st_gid in set(os.getgroups()) - {os.getegid()}


def _remove_abandoned(directory: Path, oldest: float) -> None:
    for draft in directory.glob(f".*{DRAFT}"):
        with suppress(FileNotFoundError):  # another process has removed it
            if draft.stat().st_mtime < oldest:
                draft.unlink()
