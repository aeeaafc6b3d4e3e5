import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from auth.context import Latchkey
from auth.transfer import factors
from sql import Database

_PAGE = 1000


def lines(database: Database, parts: Latchkey, count: Callable[[int], object]) -> Iterator[bytes]:
    """Yield each user as a line of JSON, which `users import` reads. `count` is called with how many.

    Raises `CannotOpen` for the secret of a factor.
    """
    after = None
    while rows := database.all("export_users", after=after, page_size=_PAGE):
        yield "".join(f"{_record(row, parts)}\n" for row in rows).encode()
        count(len(rows))
        after = rows[-1].id


def _record(row: Any, parts: Latchkey) -> str:
    if row.factors is None:
        return row.record
    # Postgres has written the rest as JSON.
    exported = [factors.exported(factor, parts) for factor in json.loads(row.factors)]
    return f'{row.record[:-1]}, "factors": {json.dumps(exported)}}}'


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
