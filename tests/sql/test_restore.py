"""A restore under a running service: tables, types and functions get new ids."""

from sql import queries


def test_statement_that_the_connection_has_lost_is_prepared_again(parts):
    queries.ping(parts.db)
    with parts.db.pool.connection() as connection, connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert queries.ping(parts.db).answer == 1
