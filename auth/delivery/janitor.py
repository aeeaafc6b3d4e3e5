"""Hourly clean-up. Nothing depends on it: statements ignore expired rows themselves."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial

import structlog

from auth.core.keys import resealing
from auth.core.tokens.derived_keys import Sealer
from auth.rules.ends import Reason, what_ends
from sql import Database, queries

log = structlog.get_logger()

BATCH = 500  # rows per transaction: requests must not wait long for its locks

REMOVALS: tuple[Callable[..., int], ...] = (
    queries.delete_expired_request_counts,
    queries.delete_expired_failure_counts,
    queries.delete_expired_one_time_tokens,
    queries.delete_expired_typed_addresses,
    queries.delete_expired_authorization_codes,
    queries.delete_expired_oauth_flows,
    queries.delete_expired_oauth_requests,
    queries.delete_unallowed_clients,
    queries.delete_expired_id_tokens,
    queries.delete_expired_captchas,
    queries.delete_expired_api_keys,
    queries.delete_expired_factor_challenges,
    queries.delete_unverified_factors,
    queries.delete_old_sessions,
    queries.delete_expired_sessions,
    queries.finish_stale_events,
    queries.delete_old_messages,
    queries.delete_old_bulk_acts,
    queries.delete_old_networks,
    queries.delete_old_audit_rows,
    queries.delete_unused_users,
    queries.delete_anonymous_users,
    queries.delete_expired_invitations,
    queries.delete_clients_of_ended_organizations,
    queries.delete_ended_organizations,
)


def keep_house(db: Database, sealer: Sealer) -> None:
    """Expire messages, encrypt secrets with the newest key, end what disabled providers, hosts that the
    settings lack and ended organisations have opened, remove expired rows and secrets, count active users.

    Raises `psycopg2.Error`.
    """
    queries.expire_messages(db)
    queries.forget_previous_secrets(db)
    resealing.reseal(db, sealer)
    # Finish what an interruption or a change of the settings has left.
    disabled: Reason = "provider_disabled"
    lost = asdict(what_ends("access_lost", has_session=True))
    clean(db, [partial(queries.end_users_of_disabled_providers, reason=disabled)])
    for end in (queries.end_access_of_documents, queries.end_members_of_ended_organizations):
        clean(db, [partial(end, **lost)])
    clean(db)
    with db.transaction() as tx:
        if queries.try_lock_janitor(tx).is_ours:
            queries.count_active_users(tx)


def count(db: Database) -> None:
    """Count for the console's charts, in one process of all nodes at a time. Raises `psycopg2.Error`.

    Sign-ins do not count themselves: all of them would wait for the row of the hour.
    """
    is_complete = False
    while not is_complete:
        with db.transaction() as tx:
            is_complete = not queries.try_lock_janitor(tx).is_ours or queries.count_hours(tx).is_complete


def log_entries(db: Database) -> None:
    """Write a line for each entry of the audit log, in one process of all nodes. Raises `psycopg2.Error`.

    The transaction ends after the lines are written: a crash repeats those of a minute, and loses none.
    """
    is_complete = False
    while not is_complete:
        with db.transaction() as tx:
            taken = queries.take_minute_of_audit(tx) if queries.try_lock_janitor(tx).is_ours else None
            is_complete = taken is None
            for entry in json.loads(taken.entries) if taken else []:
                log.info("auth_audit_event", **entry)


def clean(db: Database, removals: Iterable[Callable[..., int]] = REMOVALS) -> int:
    """Remove expired rows in batches, in one process of all nodes at a time. Raises `psycopg2.Error`."""
    removed = 0
    for remove in removals:
        count = BATCH
        while count == BATCH:
            with db.transaction() as tx:
                count = remove(tx, batch=BATCH) if queries.try_lock_janitor(tx).is_ours else 0
            removed += count
    return removed
