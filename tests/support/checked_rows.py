"""Fails a test in which a statement returns None in a column that its header does not mark with `?`."""

from collections.abc import Callable
from typing import Any

from psycopg2.extensions import cursor as Cursor

import sql
from sql import Statement

_row_type = sql._row_type


class UnmarkedNone(AssertionError):
    """A statement returned None in a column that is not marked."""


def checked(statement: Statement, cursor: Cursor) -> Callable[[Any], Any]:
    """Return what makes a row and looks for None in it."""
    make = _row_type(statement, cursor)

    def make_checked(values: Any) -> Any:
        row = make(values)
        unmarked = [
            name for name, value in row._asdict().items() if value is None and name not in statement.nullable
        ]
        if unmarked:
            raise UnmarkedNone(
                f"{statement.name} returned None in {unmarked}; mark them with ? in its header"
            )
        return row

    return make_checked
