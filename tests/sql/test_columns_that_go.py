"""Columns that only nodes of the release before read: the next release drops them while this one's nodes serve."""

from contextlib import closing
from typing import Any

import psycopg2
import pytest

import sql
from sql import Database, queries, schema

DROPS = """
DROP TRIGGER users_object ON users;
DROP TRIGGER identities_object ON identities;
DROP TRIGGER factors_object ON factors;
ALTER TABLE user_objects DROP COLUMN object;
"""


@pytest.fixture
def url(new_database):
    url = new_database()
    schema.apply(url)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(DROPS)
    return url


def test_no_statement_names_them(url):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        for statement in sql.shipped().values():
            cursor.execute(statement.prepare(), {})


def test_list_of_users_and_the_check_of_a_backup_run(url):
    db = Database(url)
    try:
        found: dict[str, Any] = {
            "filters": {},
            "among": None,
            "sort": "last_sign_in",
            "place": None,
            "id": None,
        }
        assert queries.search_users(db, **found, page_size=9) == []
        assert queries.count_stale_user_objects(db).total == 0
    finally:
        db.close()
