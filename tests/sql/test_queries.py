"""The types of the named statements: sql/queries.pyi, and the rows that statements return."""

from dataclasses import replace

import pytest

import sql
from sql import queries
from tests.support.checked_rows import UnmarkedNone
from tests.support.query_stubs import STUBS, stubs


def test_stubs_are_those_that_postgres_describes(database_url):
    assert STUBS.read_text() == stubs(database_url), "run: make queries"


def test_marked_columns_are_columns():
    text = STUBS.read_text()
    for statement in sql.load_statements().values():
        for column in statement.nullable:
            assert (
                f"\n    {column}: " in text.partition(f"\ndef {statement.name}(")[0].rpartition("\nclass ")[2]
            )


def test_none_in_an_unmarked_column_fails_the_tests(parts, alice, monkeypatch):
    """This keeps the header of a statement true."""
    statement = sql.shipped()["select_addresses"]
    assert "phone" in statement.nullable
    with monkeypatch.context() as patch:
        patch.setitem(sql.shipped(), "select_addresses", replace(statement, nullable=frozenset()))
        with pytest.raises(UnmarkedNone, match=r"select_addresses returned None in \['phone'\]"):
            queries.select_addresses(parts.db, id=alice.id)
    assert queries.select_addresses(parts.db, id=alice.id) == ("alice@example.com", None)


def test_missing_row_of_a_statement_that_always_returns_one_is_an_error(parts):
    statement = sql.load_statements()["select_addresses"]
    always = sql.query_of(sql.Statement(**vars(statement) | {"returns": "row"}))
    with pytest.raises(TypeError):
        always(parts.db, id="00000000-0000-0000-0000-000000000000")
