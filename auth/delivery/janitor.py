"""Removes what has expired. Nothing waits for that: what has expired is refused by every statement, whether or not it is still there."""

from collections.abc import Callable

from sql import Database

# Rows to a statement, and so to a transaction: few enough that nobody else waits.
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
    """Remove what has expired, batch by batch, and return how many rows that were. Raises `psycopg2.Error`.

    Over all processes and nodes one cleans at a time: to the others there is nothing to remove.
    """
    removed = 0
    for statement in STATEMENTS:
        count = BATCH
        while count == BATCH and not is_stopping():
            count = db.run(statement, batch=BATCH)
            removed += count
    return removed
