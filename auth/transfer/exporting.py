import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sql import Database

_PAGE = 1000


def lines(database: Database, count: Callable[[int], object]) -> Iterator[bytes]:
    """Yield each user as a line of JSON, which `users import` reads. `count` is called with how many."""
    after = None
    while rows := database.all("export_users", after=after, page_size=_PAGE):
        yield "".join(f"{row.record}\n" for row in rows).encode()
        count(len(rows))
        after = rows[-1].id


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that only its owner can read. An interrupted export leaves none. Raises `OSError`."""
    part = path.with_name(f"{path.name}.part")
    with suppress(FileNotFoundError):
        part.unlink()
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
