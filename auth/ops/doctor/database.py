"""Checks of the database: its version, schema, limits and clock."""

import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from urllib.parse import urlsplit

import psycopg2
import requests
from psycopg2 import errorcodes
from psycopg2.errors import (
    DiskFull,
    InsufficientPrivilege,
    ReadOnlySqlTransaction,
    UndefinedFunction,
    UndefinedTable,
)

from auth.cli import printable
from auth.core import constants
from auth.core.checks import Context, Failure, NotChecked, Note, check, span
from auth.core.net.sockets import is_here
from auth.core.settings.state import NotRunningError
from auth.ops.doctor.public_url import fetch
from auth.ops.processes import start_checks
from sql import Database, queries, schema
from sql.pool import NotInTime, reason

GREATEST_CLOCK_DIFFERENCE = 5.0  # seconds
_POOLED = "AUTH_DB_PREPARE is false, as for a pooler"
_REFUSED_WITHIN = 0.5  # seconds within which a working machine refuses a connection
_REMEDIES_OF_WRITES = {
    errorcodes.PROGRAM_LIMIT_EXCEEDED: (
        "Drop what keeps old rows (pg_replication_slots, pg_prepared_xacts), then, as a superuser in that"
        " database, run: VACUUM;"
    ),
    errorcodes.INSUFFICIENT_PRIVILEGE: (
        "As the owner of the tables, run in psql: REVOKE ALL ON last_done FROM {role}; Then grant the others,"
        " with that owner's URL in AUTH_DATABASE_OWNER_URL, by: latchkey migrate"
    ),
}
_LOCK_SECONDS = 0.7  # seconds after which a lock counts as a problem


@check("database", "The database responds")
def _answers(context: Context) -> Failure | None:
    try:
        queries.ping(context.db)
    except NotRunningError as error:
        return Failure(str(error), "Fix what else fails here, then run: systemctl start latchkey")
    except psycopg2.Error as error:
        return Failure(
            f"The service cannot use the database, so all requests fail: {reason(error)}",
            "Start that Postgres, or correct the setting: DATABASE_URL=postgresql://user:password@host/database",
            timed_out=isinstance(error, NotInTime),
        )
    return None


@check("locks", "No statement waits for a lock")
def _locks(context: Context) -> Failure | None:
    """Take the locks of requests, and if that takes long, find who holds them."""
    with ThreadPoolExecutor(1) as thread:
        touching = thread.submit(queries.touch_users_and_sessions, context.db)
        wait([touching], _LOCK_SECONDS)
        # Postgres shows the activity of other roles only to superusers and members, such as the owner.
        with closing(
            Database(context.settings.find_owner(), size=1, prepare=False, gives_up_at=context.gives_up_at)
        ) as db:
            # On a busy machine, the statement starts to wait late.
            while not (blockers := queries.list_blockers(db)) and not touching.done():
                wait([touching], _LOCK_SECONDS)
        if not blockers:
            with suppress(ReadOnlySqlTransaction):  # another check reports it
                touching.result()
            return None
    first = blockers[0]
    since = f", in a transaction for {span(first.seconds)}" if first.seconds is not None else ""
    holder = f"{first.application or 'a program'} as {first.role}{since}"
    last_query = f": {first.query}" if first.query else ""
    statements = "1 statement" if first.waiting == 1 else f"{first.waiting} statements"
    effect = f"blocks {statements}, one for {span(first.longest)}: {first.waiting_query}"
    return Failure(
        printable(f"Session {first.pid} ({holder}{last_query}) {effect}. Requests that need this lock fail."),
        f"As {first.role} or a superuser, run in psql: {first.remedy}",
    )


@check("database-disk", "The database's disk has room")
def _room(context: Context) -> Failure | None:
    try:
        queries.write_to_disk(context.db)
    except DiskFull as error:
        return Failure(
            f"The disk of the database is full, so sign-ins and changes fail: {reason(error)}",
            "Free space on the disk of Postgres' data directory. Nothing needs a restart.",
        )
    return None


@check("database-version", "The database is UTF8 and writable")
def _version(context: Context) -> Failure | None:
    server = queries.select_server(context.db)
    if server.encoding != "UTF8":
        return Failure(
            f"The database's encoding is {server.encoding}, which cannot store all names and texts.",
            "Create a database with ENCODING 'UTF8', and set DATABASE_URL to it.",
        )
    if server.is_read_only:
        return Failure(
            "The database is read-only, as replicas and demoted primaries are: sign-ins and changes fail.",
            "List all hosts in DATABASE_URL, and add ?target_session_attrs=read-write to it.",
        )
    try:
        queries.write_a_row(context.db)
    except (UndefinedFunction, UndefinedTable):
        return None  # the check of the schema reports it
    except psycopg2.Error as error:
        if error.pgcode is None:  # no answer
            raise
        remedy = _REMEDIES_OF_WRITES.get(error.pgcode or "", "Mend in Postgres what that says.")
        return Failure(
            f"The database refuses writes, so sign-ins and changes fail: {error.diag.message_primary}.",
            remedy.format(role=server.role),
        )
    return None


@check("collation", "The indexes are sorted as the system compares")
def _collation(context: Context) -> Failure | None:
    collation = queries.select_collation(context.db)
    if collation.recorded in (None, collation.actual):
        return None
    return Failure(
        f"The indexes were built with version {collation.recorded} of the collation, but Postgres has"
        f" {collation.actual or 'none'} now: users may not be found, and one address may get two accounts.",
        f"As the owner of the database, run in psql: {collation.remedy}",
    )


@check("schema", "The schema matches this release")
def _schema(context: Context) -> Failure | None:
    try:
        row = queries.select_schema_version(context.db)
    except UndefinedTable:
        row = None
    except InsufficientPrivilege:
        return Failure(
            "The role of DATABASE_URL has no rights on the tables, so all requests fail.",
            "Set AUTH_DATABASE_OWNER_URL to the URL of the tables' owner, then run: latchkey migrate",
        )
    if row is None:
        return Failure("The database has no schema: no service has used it yet.", "Run: latchkey migrate")
    if row.version < schema.OLDEST:
        return Failure(
            f"The schema has version {row.version}, from before {schema.OLDEST_RELEASE}, which this release"
            " does not upgrade.",
            f"Install {schema.BRIDGE_RELEASE} first, as docs/deployment.md says.",
        )
    if row.version < schema.NEWEST:
        return Failure(
            f"The schema has version {row.version}, but this release needs {schema.NEWEST}.",
            "Restart the service, or run: latchkey migrate",
        )
    if row.usable_from > schema.NEWEST:
        return Failure(
            f"The schema has version {row.version}, but this release supports at most {schema.NEWEST}.",
            "Install the release that upgraded the database on this machine too.",
        )
    return None


@check("role", "Requests run as a role that owns nothing")
def _role(context: Context) -> Failure | None:
    role = queries.select_role(context.db)
    if role.owns_tables:
        return Note(
            f"Requests run as {role.name}, which owns the tables: an injected statement could change them,"
            " and rewrite the audit log.",
            "Set AUTH_DATABASE_OWNER_URL to what DATABASE_URL is now, and DATABASE_URL to the same"
            " database with another role. The next start creates that role, or you do:"
            f" CREATE ROLE latchkey_requests LOGIN ROLE {role.name} PASSWORD '…'",
        )
    if role.may_create:
        return Note(
            f"Requests run as {role.name}, which may create tables and functions: so could an injected"
            " statement.",
            f"As the owner of the schema or a superuser, run in psql: {role.remedy}",
        )
    return None


@check("pooler", "Prepared statements work")
def _pooler(context: Context) -> Failure | None:
    if not context.settings.db_prepare:
        raise NotChecked(_POOLED)
    queries.ping(context.db)  # fails if the database hangs
    if start_checks.pooler_problem(context.settings.find_database()) is None:
        return None
    return Failure(
        "DATABASE_URL points to a pooler in transaction mode, such as PgBouncer, where prepared statements"
        " fail.",
        "Set AUTH_DB_PREPARE=false.",
    )


@check("connections", "Postgres has enough free connections")
def _connections(context: Context) -> Failure | None:
    if not context.settings.db_prepare:
        raise NotChecked(_POOLED)
    problem = start_checks.connections_problem(context.settings, context.db)
    return Failure(*problem) if problem else None


@check("clock", "The clocks agree")
def _clock(context: Context) -> Failure | None:
    clocks = {"the database's": partial(_time_of_postgres, context)}
    sites = map(urlsplit, (context.settings.site_url, context.settings.base_url))
    if site := next((site for site in sites if not is_here(site.hostname or "")), None):
        clocks[f"that of {site.netloc}"] = partial(_time_of_site, context, site.geturl())
    is_checked = False
    for name, read in clocks.items():
        before, clock = time.time(), read()
        if clock is None:
            continue
        is_checked, difference = True, (before + time.time()) / 2 - clock
        if abs(difference) > GREATEST_CLOCK_DIFFERENCE:
            direction = "ahead of" if difference > 0 else "behind"
            return Failure(
                f"This machine's clock is {abs(difference):.0f} s {direction} {name}: tokens can seem"
                " expired, or not yet valid.",
                "On both machines, run: timedatectl set-ntp true",
            )
    if not is_checked:
        raise NotChecked("neither Postgres nor AUTH_SITE_URL is on another machine")
    return None


def _time_of_postgres(context: Context) -> float | None:
    server = queries.select_server(context.db)
    return None if is_here(server.address or "localhost") else server.clock


def _time_of_site(context: Context, url: str) -> float | None:
    try:
        headers = fetch(context, url, {"Cache-Control": "no-cache"}).headers
        # A cached response includes its age. The date has no fractions.
        date = parsedate_to_datetime(headers["Date"]).timestamp()
        return date + int(headers.get("Age", "0")) + 0.5
    except (requests.RequestException, KeyError, ValueError):
        return None


@check("encryption", "Connections to other machines are encrypted")
def _encryption(context: Context) -> Failure | None:
    lines = context.settings.open_connections
    if not lines:
        return None
    remedy = "Set the named parameter. If only you use that network, run: latchkey doctor --skip encryption"
    return Failure(" ".join(lines), remedy)


@check("redis", "The rate limit storage responds")
def _redis(context: Context) -> Failure | None:
    began = time.monotonic()
    if start_checks.redis_problem(context.settings, context.seconds_left) is None:
        return None
    return Failure(
        "Redis does not respond, so no rate limits apply.",
        "Start that Redis, or set AUTH_RATE_LIMIT_STORAGE=postgresql.",
        timed_out=time.monotonic() - began > _REFUSED_WITHIN,
    )


@check("administrators", "There is an administrator")
def _administrators(context: Context) -> Failure | None:
    if queries.count_administrators(context.db, without=None).total:
        return None
    return Failure(
        "There is no administrator, so the console admits no user.", "Run: latchkey create-admin EMAIL"
    )


@check("admin-keys", "Programs use the administrative keys")
def _admin_keys(context: Context) -> Failure | None:
    days = constants.UNUSED_ADMIN_KEY // constants.DAY
    unused = [
        key.name
        for key in queries.list_admin_keys(context.db)
        if key.now - key.unused_since > timedelta(days=days)
    ]
    if not unused:
        return None
    return Note(
        printable(f"No program has used these administrative keys for {days} days: {', '.join(unused)}."),
        "End each by: latchkey keys end NAME",
    )


CHECKS = (
    _answers,
    _version,
    _collation,
    _schema,
    _role,
    _pooler,
    _connections,
    _clock,
    _encryption,
    _redis,
    _locks,
    _room,
    _administrators,
    _admin_keys,
)
