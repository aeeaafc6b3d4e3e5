"""Checks at the start: the files in the settings, and the servers that the service depends on."""

import os
from collections.abc import Iterator
from typing import Any

from limits.storage import storage_from_string

from auth.core.settings import Settings, SettingsError, relying_party
from auth.core.settings.brand import read_logo
from auth.core.settings.values import validators
from auth.delivery.rendering import load_templates
from auth.delivery.senders import channels
from auth.delivery.senders.smtp_tokens import read_client_key
from sql import Database, queries
from sql.pool import SIZE

_REDIS_TIMEOUT = 2.0  # seconds
# The variables that name a forward proxy.
_FORWARD_PROXY = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
# Connections of the delivery process, the master and a command.
_OTHER_CONNECTIONS = 6


def check_files(settings: Settings) -> None:
    """Read mail templates, logos, a key, leaked passwords. Raises `SettingsError` if one cannot be used."""
    load_templates(settings)
    source = settings.password_leaked
    if source == "file":
        from auth.core.passwords.leaked_file import LeakedFile

        LeakedFile(settings.password_leaked_file).check()
    if settings.smtp_client_key:
        try:
            read_client_key(settings.smtp_client_key)
        except ValueError as error:
            raise SettingsError(f"AUTH_SMTP_CLIENT_KEY: {validators.sentence(error)}") from None
    try:
        for setting, logo in settings.logos.items():
            read_logo(setting, logo)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def notices(settings: Settings) -> Iterator[str]:
    """Yield a line for each open connection, channel without sender, and test setting at a public URL.

    The proxy of a network, which is not used, also has one.
    """
    yield from settings.open_connections
    yield from channels.notices(settings)
    if name := next((each for each in _FORWARD_PROXY if os.environ.get(each)), None):
        yield (
            f"{name} is set, but the service connects to providers, hooks and webhooks without a proxy, to"
            " check each address. Let this machine reach them directly, and unset it for the service."
        )
    if settings.is_local:
        return
    if not settings.rate_limits_enabled:
        yield (
            "AUTH_RATE_LIMITS_ENABLED is false, and AUTH_BASE_URL is not this machine: passwords can be"
            " guessed. Set it to true."
        )
    if settings.smtp_url == "console":
        yield (
            "AUTH_SMTP_URL is console, and AUTH_BASE_URL is not this machine: emails are printed, with links"
            " that sign in, and not sent. Set it to a mail server."
        )


def passkey_notice(settings: Settings) -> str | None:
    """Return a line if the application's pages cannot use passkeys."""
    problem = relying_party.problem_of_site(settings.site_url, settings.webauthn_rp_id)
    if not settings.passkeys_enabled or problem is None:
        return None
    return (
        f"AUTH_WEBAUTHN_RP_ID: Passkeys won't work: {problem}. Before users have passkeys, set it to a domain"
        " with which the hosts of AUTH_SITE_URL and AUTH_BASE_URL end."
    )


def pooler_problem(url: str) -> str | None:
    """Return a line if prepared statements would fail behind a pooler. Raises `psycopg2.Error`."""
    databases = [Database(url, size=1, prepare=False) for _ in range(2)]
    try:
        # Two direct connections, or two of a pooler's sessions, keep a process each.
        rounds = [tuple(queries.select_backend_pid(db).pid for db in databases) for _ in range(3)]
    finally:
        for db in databases:
            db.close()
    if len(set(rounds)) == 1 and len(set(rounds[0])) == 2:
        return None
    return (
        "DATABASE_URL: Leads to a pooler in transaction mode, such as PgBouncer. Set AUTH_DB_PREPARE=false."
    )


def connections_problem(settings: Settings, db: Database) -> tuple[str, str] | None:
    """Return the problem and the remedy if fewer connections are free than this node may open."""
    free, needed = queries.select_server(db).free_connections, settings.workers * SIZE + _OTHER_CONNECTIONS
    if needed <= free:
        return None
    problem = (
        f"This node may open {needed} connections, but Postgres has {free} free: under load, requests wait"
        " or fail."
    )
    workers = (free - _OTHER_CONNECTIONS) // SIZE
    if workers < 1:
        # The master, a command and delivery need theirs, whatever the number of workers.
        return problem, "Raise the limit of Postgres, of the role or of the database, or use PgBouncer."
    return (
        problem,
        f"Set AUTH_WORKERS={workers}, or raise the limit of Postgres, of the role or of the database.",
    )


def redis_problem(settings: Settings, seconds: float = _REDIS_TIMEOUT) -> str | None:
    """Return a line if Redis is set and does not respond within `seconds`."""
    uri = settings.rate_limit_storage
    if not settings.rate_limits_enabled or not uri.startswith(("redis://", "rediss://")):
        return None
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    options: dict[str, Any] = dict.fromkeys(
        ("socket_timeout", "socket_connect_timeout"), min(seconds, _REDIS_TIMEOUT)
    )
    # By default, a Redis that hangs is tried four times.
    options["retry"] = Retry(NoBackoff(), 0)
    if storage_from_string(uri, **options).check():
        return None
    return (
        "AUTH_RATE_LIMIT_STORAGE: Redis does not respond. Requests are not limited until it does. Start"
        " it, or correct the URL."
    )
