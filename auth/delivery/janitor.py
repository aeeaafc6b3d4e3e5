"""Hourly clean-up. Nothing depends on it: statements ignore expired rows themselves."""

from collections.abc import Iterable

from auth.keys import resealing
from auth.tokens.keys import Sealer
from sql import Database

BATCH = 500  # rows per transaction: requests must not wait long for its locks

STATEMENTS = (
    "delete_expired_request_counts",
    "delete_expired_failure_counts",
    "delete_expired_one_time_tokens",
    "delete_expired_authorization_codes",
    "delete_expired_oauth_flows",
    "delete_expired_oauth_requests",
    "delete_unallowed_clients",
    "delete_expired_id_tokens",
    "delete_expired_api_keys",
    "delete_expired_factor_challenges",
    "delete_unverified_factors",
    "delete_old_sessions",
    "delete_expired_sessions",
    "finish_stale_events",
    "delete_old_messages",
    "delete_old_bulk_acts",
    "delete_old_networks",
    "delete_old_audit_rows",
    "delete_unused_users",
    "delete_anonymous_users",
)


def keep_house(db: Database, sealer: Sealer) -> None:
    """Expire messages, encrypt secrets with the newest key, remove expired rows, count active users.

    Raises `psycopg2.Error`.
    """
    db.run("expire_messages")
    resealing.reseal(db, sealer)
    clean(db)
    with db.transaction() as tx:
        if tx.one("take_janitors_turn").is_ours:
            tx.run("count_active_users")


def count(db: Database) -> None:
    """Count what the console draws, in one process of all nodes at a time. Raises `psycopg2.Error`.

    Sign-ins do not count themselves, because all would wait for the row of the hour.
    """
    is_complete = False
    while not is_complete:
        with db.transaction() as tx:
            is_complete = not tx.one("take_janitors_turn").is_ours or tx.one("count_hours").is_complete


def remove_unverified_factors(db: Database) -> None:
    """Remove factors that were not verified in time. Raises `psycopg2.Error`.

    Called every minute, because GET /user lists them.
    """
    clean(db, ["delete_unverified_factors"])


def clean(db: Database, statements: Iterable[str] = STATEMENTS) -> int:
    """Remove expired rows in batches, in one process of all nodes at a time. Raises `psycopg2.Error`."""
    removed = 0
    for statement in statements:
        count = BATCH
        while count == BATCH:
            with db.transaction() as tx:
                count = tx.run(statement, batch=BATCH) if tx.one("take_janitors_turn").is_ours else 0
            removed += count
    return removed
