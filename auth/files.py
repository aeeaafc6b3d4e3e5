"""Files that appear whole or not at all."""

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

DRAFT = ".latchkey-draft"
# In seconds. A draft that has not been written to for as long was left by a process that was killed.
_ABANDONED_AFTER = 3600


@contextmanager
def replacing(path: Path, publish: Callable[[str, Path], object] = os.replace) -> Iterator[BinaryIO]:
    """Yield a file, readable by its owner alone, that replaces `path` once it is complete.

    Raises `OSError`.
    """
    _remove_abandoned(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=DRAFT)
    try:
        with os.fdopen(descriptor, "w+b") as draft:
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
            before = path.stat()
            os.fchown(draft.fileno(), before.st_uid, before.st_gid)
            os.fchmod(draft.fileno(), stat.S_IMODE(before.st_mode))
        draft.write(text.encode())


def write_once(path: Path, text: str) -> None:
    """Create a file unless it exists: of processes that start together, the first one wins."""
    with suppress(FileExistsError), replacing(path, publish=os.link) as draft:
        draft.write(text.encode())


def _remove_abandoned(directory: Path) -> None:
    oldest = time.time() - _ABANDONED_AFTER
    for draft in directory.glob(f".*{DRAFT}"):
        with suppress(FileNotFoundError):  # another process has removed it
            if draft.stat().st_mtime < oldest:
                draft.unlink()
