"""The housekeeping of the delivery process: clean-up, lookups of domains, counts, and the audit log's lines.

No sign-in waits for the clean-up: statements ignore expired rows themselves.
"""

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import Literal

import structlog

from auth.core.keys import resealing
from auth.core.settings import Settings
from auth.core.tokens.derived_keys import Sealer
from auth.delivery import notices
from auth.rules import organizations
from auth.rules.ends import ProviderReason, what_ends
from auth.rules.messages import address_of_notices
from sql import Database, acts, queries

log = structlog.get_logger()

_LOOKUPS = 50  # lookups of domains in an hour, three seconds each at most
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
    queries.delete_unused_passkeys,
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
    queries.remove_users_of_ended_providers,
    queries.delete_providers_of_ended_organizations,
    queries.delete_ended_organizations,
)


def keep_house(settings: Settings, db: Database, sealer: Sealer) -> None:
    """Expire messages, encrypt secrets with the newest key, remove expired rows and secrets, count active
    users. End the sessions of disabled providers, of ended organizations, and of applications whose
    document's host the settings no longer name.

    Raises `psycopg2.Error`.
    """
    queries.expire_messages(db)
    queries.forget_previous_secrets(db)
    resealing.reseal(db, sealer)
    # Finish what an interruption or a change of the settings has left.
    reason: ProviderReason = "provider_disabled"
    lost_access = asdict(what_ends("access_lost", has_session=True))
    clean(db, [queries.disable_providers_of_ended_organizations])
    clean(db, [partial(queries.end_what_is_over, reason=reason)])
    for end in (queries.end_access_of_documents, queries.end_members_of_ended_organizations):
        clean(db, [partial(end, **lost_access)])
    clean(db)
    with db.transaction() as tx:
        if queries.try_lock_janitor(tx).is_ours:
            queries.count_active_users(tx)
    look_up_domains(settings, db)


def look_up_domains(settings: Settings, db: Database) -> None:
    """Look up the records that prove domains, outside transactions (rule 50). Raises `psycopg2.Error`.

    A domain stays as it is while DNS does not answer.
    """
    rows = queries.list_domains_to_look_up(db, most=_LOOKUPS)
    if not rows:
        return
    # dnspython takes 3 MiB, which a service without domains does not spend.
    from auth.core.net import text_records

    for row in rows:
        records = text_records.of_domain(row.domain)
        key = {"organization_id": row.organization_id, "domain": row.domain}
        with acts.begin(db) as act:
            act.lock_providers_of(row.organization_id)
            act.lock_organizations([row.organization_id])
            domain = act.read(queries.select_domain, **key)
            if domain is None or domain.proved_at is None or domain.token != row.token:
                continue
            if records is None:
                is_missing = domain.missing_since is not None
                queries.record_lookup(act, **key, is_held=True, is_missing=is_missing)
            elif organizations.is_proof_of_domain(records, row.token):
                queries.record_lookup(act, **key, is_held=True, is_missing=False)
            else:
                effect = organizations.what_missing_record_does(domain.missing_since, domain.now)
                _record_missing(settings, act, row, effect)


def _record_missing(
    settings: Settings,
    act: acts.Act,
    row: "queries.ListDomainsToLookUp",
    effect: Literal["tell", "keep", "lose"],
) -> None:
    key = {"organization_id": row.organization_id, "domain": row.domain}
    queries.record_lookup(act, **key, is_held=effect != "lose", is_missing=True)
    if effect == "tell":
        _tell_owners(settings, act, row, "organization_domain_missing")
    elif effect == "lose":
        queries.take_domain_from_provider(act, **key)
        _tell_owners(settings, act, row, "organization_sign_in", change="domain_lost")
        organization = {"id": row.organization_id, "slug": row.slug}
        details = json.dumps({"organization": organization, "domain": row.domain})
        queries.record_acts(act, user_id=None, email=None, acts=["domain_lost"], events=[], details=details)


def _tell_owners(
    settings: Settings, act: acts.Act, row: "queries.ListDomainsToLookUp", kind: str, **others: str
) -> None:
    variables = notices.variables_of(row, domain=row.domain, **others)
    for owner in notices.owners_of(act, row.organization_id):
        if address := address_of_notices(owner, offers_phone=settings.offers_phone):
            queries.write_message(
                act,
                message_id=str(uuid.uuid4()),
                user_id=owner.id,
                kind=kind,
                recipient=address,
                message_variables=variables,
                message_secret=None,
                token_id=None,
                lifetime=None,
                longest_delay=0,
                is_notice=True,
            )


def count_hours(db: Database) -> None:
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
            minute = queries.take_minute_of_audit(tx) if queries.try_lock_janitor(tx).is_ours else None
            is_complete = minute is None
            for entry in json.loads(minute.entries) if minute else []:
                log.info("auth_audit_event", **entry)


def clean(db: Database, removals: Iterable[Callable[..., int]] = REMOVALS) -> int:
    """Run statements in batches, in one process of all nodes at a time. Return the number of changed rows.

    Raises `psycopg2.Error`.
    """
    total = 0
    for remove in removals:
        removed = BATCH
        while removed == BATCH:
            with db.transaction() as tx:
                removed = remove(tx, batch=BATCH) if queries.try_lock_janitor(tx).is_ours else 0
            total += removed
    return total
