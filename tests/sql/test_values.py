"""Values of each type come back as they were, prepared or not, whatever the text of a statement would make of them."""

from contextlib import closing

import pytest

import sql
from sql import Database, load_statements, query_of

ECHO = """-- name: echo(t text, b bytea, a text[], j jsonb, n integer, big bigint, f double precision)
-- -> row (t?, b?, a?, j?, n?, big?, f?)
SELECT :t AS t, :b AS b, :a AS a, :j AS j, :n AS n, :big AS big, :f AS f, '%' AS percent, ':t' AS quoted;

-- The next section: it's here.
"""
TEXTS = [
    "", "'", "''", "\\", "\\'", "a\\", "E'\\''", "'; DROP TABLE users; --", "%", "%s", "%(t)s", "$1", "$$", "--", "/*", "*/",
    ":t", "::text", "\n-- x", "\r\n", "é😀\ufeff\u2028", "\x01\x7f", "{}", "{a,b}", "NULL", "null", '"', '\\"', "a,b",
]  # fmt: skip
LEAST, GREATEST = (-(2**31), -(2**63)), (2**31 - 1, 2**63 - 1)


@pytest.fixture(
    params=[(True, "on"), (False, "on"), (False, "off")], ids=["prepared", "direct", "old strings"]
)
def db(request, database_url, tmp_path, monkeypatch):
    prepares, strings = request.param
    (tmp_path / "echo.sql").write_text(ECHO, encoding="utf-8")
    statements = load_statements(tmp_path)
    monkeypatch.setattr(sql, "shipped", lambda: statements)
    url = f"{database_url}&options=-c%20standard_conforming_strings%3D{strings}"
    with closing(Database(url, size=1, prepare=prepares)) as db:
        yield db


@pytest.fixture
def echo(db):
    run = query_of(sql.shipped()["echo"])

    def echo(on=db, **values):
        row = run(on, **values)
        assert (row.percent, row.quoted) == ("%", ":t")
        got = row._asdict() | {"b": None if row.b is None else bytes(row.b)}
        assert {name: got[name] for name in values} == values

    return echo


def test_texts_come_back_as_they_were(db, echo):
    for text in TEXTS:
        values = {
            "t": text,
            "b": text.encode(),
            "a": [text, f"{text}{text}", None],
            "j": {f"k{text}": [text, None, 1.5]},
        }
        echo(**values, n=-1, big=-1, f=1e300)
        with db.transaction() as tx:
            echo(tx, **values, n=-1, big=-1, f=-1e-300)


def test_nothing_empty_and_extreme_values_come_back_as_they_were(echo):
    echo(t=None, b=None, a=None, j=None, n=None, big=None, f=None)
    for n, big in (LEAST, GREATEST):
        echo(t="", b=b"\0\xff'\\", a=[], j={}, n=n, big=big, f=float("-inf"))


def test_text_that_postgres_cannot_store_is_refused(echo):
    for text in ("\0", "\udcff"):
        with pytest.raises(ValueError, match=r"NUL|surrogates"):
            echo(t=text, b=b"", a=[], j={}, n=0, big=0, f=0.0)
