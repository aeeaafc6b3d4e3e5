"""Checks at the start: of the files in the settings, and of the servers that the service depends on."""

from typing import Any
from urllib.parse import urlsplit

from limits.storage import storage_from_string

from auth.core.net import sockets
from auth.core.settings import Settings, SettingsError
from auth.core.settings.brand import read_logo
from auth.core.settings.values.hooks import Hook
from auth.delivery.rendering import load_templates
from auth.hooks import http_hooks as hooks
from sql import Database, queries

_LONGEST = 2.0  # seconds


def check_files(settings: Settings) -> None:
    """Raises `SettingsError` if the mail templates or a logo cannot be used."""
    load_templates(settings)
    try:
        for setting, logo in settings.logos.items():
            read_logo(setting, logo)
    except ValueError as error:
        raise SettingsError(str(error)) from None


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


def redis_problem(settings: Settings, seconds: float = _LONGEST) -> str | None:
    uri = settings.rate_limit_storage
    if not settings.rate_limits_enabled or not uri.startswith(("redis://", "rediss://")):
        return None
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    options: dict[str, Any] = dict.fromkeys(
        ("socket_timeout", "socket_connect_timeout"), min(seconds, _LONGEST)
    )
    # By default, a Redis that hangs is tried four times.
    options["retry"] = Retry(NoBackoff(), 0)
    if storage_from_string(uri, **options).check():
        return None
    return "AUTH_RATE_LIMIT_STORAGE: Redis does not respond. Requests are not limited until it does."


def hook_problem(hook: Hook, db: Database, seconds: float = _LONGEST) -> str | None:
    """Return why a hook cannot be asked, without asking it. Raises `psycopg2.Error`."""
    if hook.function is None:
        return _connection_problem(hook, min(seconds, _LONGEST))
    schema, name = hook.function
    function = queries.select_function(db, schema=schema, name=name)
    if function.is_allowed is None:
        return f"there is no function {schema}.{name}(jsonb)"
    return None if function.is_allowed else f"GRANT USAGE ON SCHEMA {schema} and EXECUTE ON FUNCTION {name}"


def _connection_problem(hook: Hook, seconds: float) -> str | None:
    parts = urlsplit(hook.url)
    host, is_safe = parts.hostname or "", parts.scheme == "https"
    try:
        with sockets.Deadline(seconds, hooks.allowed_addresses(hook)) as deadline:
            connection = deadline.connect(host, parts.port or (443 if is_safe else 80), seconds)
            with sockets.tls().wrap_socket(connection, server_hostname=host) if is_safe else connection:
                return None
    except OSError as error:
        return sockets.why(error)
