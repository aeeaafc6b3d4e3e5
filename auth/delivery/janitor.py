"""Removes expired rows. Nothing depends on it: every statement refuses expired rows by itself."""

from collections.abc import Callable

from sql import Database

# Rows per transaction: few enough that requests do not wait for its locks.
BATCH = 500

STATEMENTS = (
    "delete_expired_request_counts",
    "delete_expired_failure_counts",
    "delete_expired_one_time_tokens",
    "delete_expired_authorization_codes",
    "delete_expired_oauth_flows",
    "delete_expired_id_tokens",
    "delete_old_sessions",
    "delete_expired_sessions",
    "finish_stale_events",
    "delete_old_messages",
    "delete_old_networks",
    "delete_old_audit_rows",
)


def clean(db: Database, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Remove expired rows batch by batch and return their number. Raises `psycopg2.Error`.

    One process of all nodes cleans at a time; the statements find no rows in the others.
    """
    removed = 0
    for statement in STATEMENTS:
        count = BATCH
        while count == BATCH and not is_stopping():
            count = db.run(statement, batch=BATCH)
            removed += count
    return removed
