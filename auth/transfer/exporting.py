import json
from collections.abc import Callable, Iterator
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
