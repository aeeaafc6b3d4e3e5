"""The start of a service in the gunicorn master: the database, the schema, the keys and the application."""

import atexit
import errno
import fcntl
import gc
import os
import socket
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

import psycopg2

from auth.core import logs
from auth.core.keys import fingerprints
from auth.core.net.networks import is_loopback
from auth.core.settings import Settings, SettingsError, served, state
from auth.delivery.process import Delivery
from auth.ops.connections import single
from auth.ops.processes import start_checks
from auth.ops.processes.embedded_postgres import EmbeddedPostgres
from auth.ops.processes.master import Master
from sql import schema
from sql.pool import SIZE, unusable

# The errors for an address without an interface, and for names that do not resolve.
_NO_ADDRESS = (errno.EADDRNOTAVAIL, socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_AGAIN)
_OTHER_CONNECTIONS = 20  # for operators and their tools
_MEMORY = "/dev/shm"  # noqa: S108


def start(server: Master, settings: Settings) -> None:
    """Prepare the database and the keys, and create the application.

    Raises `EmbeddedPostgresError`, `OtherKeys`, `SettingsError`, `OSError` and `psycopg2.Error`.
    """
    _refuse_wider_address(server, settings)
    _refuse_without_temporary_files(server)
    if not settings.database_url:
        _start_embedded_postgres(server, settings)
    database_url = settings.find_database()
    _refuse_taken_address(settings)
    try:
        _migrate(server, settings, settings.find_owner())
    except psycopg2.Error as error:
        raise SettingsError(unusable(settings.owner_setting, error)) from None
    with single(database_url) as db:
        settings = fingerprints.keep(db, settings, fingerprints.common_or_new)
    if settings.metrics_bind:
        state.begin_metrics(settings.state_dir, str(settings.port))
    if settings.db_prepare and (problem := start_checks.pooler_problem(database_url)):
        raise SettingsError(problem)
    if settings.db_prepare:
        with single(database_url) as db:
            shortage = start_checks.connections_problem(settings, db)
        if shortage:
            logs.say(settings, f"DATABASE_URL: {' '.join(shortage)}", "warning")
    hook = settings.hook("custom_access_token")
    if hook and hook.function:
        from auth.extensions.hooks.checks import problem_of

        with single(database_url) as db:
            problem = problem_of(hook, db)
        # This need not stop the service: sessions and access tokens stay valid.
        if problem:
            warning = (
                f"AUTH_HOOK_CUSTOM_ACCESS_TOKEN: All sign-ins fail: {problem}. Fix the function as"
                " docs/hooks.md shows."
            )
            logs.say(settings, warning, "warning")
    make_application(replace(settings, database_url=database_url))


def _migrate(server: Master, settings: Settings, owner_url: str) -> None:
    # Check this before a migration: the database may belong to another deployment.
    not_migrated = (psycopg2.errors.UndefinedTable, psycopg2.errors.InsufficientPrivilege)
    with suppress(*not_migrated), single(owner_url) as db:
        fingerprints.check(db, settings)
    if settings.database_url:
        _share_state_directory(server, settings)
    notice = partial(logs.say, settings, level="warning")
    for step in schema.apply(owner_url, notice=notice, requests_url=settings.find_requests()):
        if step not in schema.UNVERSIONED:
            logs.say(settings, f"Migrated the database: {step}.")


def make_application(settings: Settings) -> None:
    """Create the application, which the workers share, and the `Delivery` of the delivery process."""
    from app import create_app

    if not settings.serves_this_machine:
        _leave_machine(settings)
    # Set them together: the next worker and the next delivery process use them.
    delivery = Delivery(settings) if settings.deliver or settings.metrics_bind else None
    served.application, served.delivery, served.current = create_app(settings), delivery, settings
    if settings.metrics_bind:
        from auth.ops.processes import request_metrics  # noqa: F401
    gc.unfreeze()  # so that a reload frees the previous application
    gc.collect()
    gc.freeze()  # otherwise the collector writes to this memory, which copies it for each worker


def _leave_machine(settings: Settings) -> None:
    """End what providers that work on one machine alone have opened there, and name those that are on."""
    from auth.flows.admin import providers_out_of_place as out_of_place

    with single(settings.find_database()) as db:
        providers = out_of_place.end_terms(settings, db)
    for each in providers:
        if each.enabled:
            problem, remedy = out_of_place.problem_of(settings, each), out_of_place.remedy_of(each)
            logs.say(settings, f"{problem}, and what it had opened has ended. {remedy}", "warning")


def _start_embedded_postgres(server: Master, settings: Settings) -> None:
    connections = max(100, settings.workers * SIZE + _OTHER_CONNECTIONS)
    server.embedded_postgres = postgres = EmbeddedPostgres(
        settings.state_dir, {"max_connections": str(connections)}
    )
    # gunicorn does not call on_exit if the port is taken or the schema cannot be applied.
    atexit.register(postgres.stop)
    url = postgres.start()
    for directory in postgres.opened_directories:
        logs.say(settings, f"Made {directory} passable (o+x): Postgres does not run as root.")
    os.environ["DATABASE_URL"] = state.of_requests(url)  # for the delivery process, and reloads


def _share_state_directory(server: Master, settings: Settings) -> None:
    """Lock the state directory: no embedded Postgres can start in it, and missing keys can be created.

    If no key is missing, the directory may be read-only or absent.
    """
    missing = fingerprints.missing(settings)
    try:
        if missing:
            state.make_directory(settings.state_dir)
        server.state_lock = state.lock(settings.state_dir, fcntl.LOCK_SH)
    except (state.InUseError, OSError):
        if missing:
            raise


def address(settings: Settings) -> str:
    host = f"[{settings.bind}]" if ":" in settings.bind else settings.bind
    return f"{host}:{settings.port}"


def directory_of_heartbeats() -> str | None:
    """Return where workers write each second: memory, which a read-only container has too, and which no full
    or slow disk delays. None is gunicorn's default, the directory of temporary files.
    """
    return _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None


def _refuse_without_temporary_files(server: Master) -> None:
    """Refuse with one line: gunicorn would fail when it starts the workers."""
    if server.cfg.worker_tmp_dir:
        return
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        raise SettingsError(
            "TMPDIR: No directory of temporary files can be written. Mount a tmpfs at /tmp or /dev/shm."
        ) from None


def _refuse_wider_address(server: Master, settings: Settings) -> None:
    """Refuse to serve other machines while AUTH_BASE_URL and AUTH_BIND say this one, where owners may name
    providers of it: options of gunicorn and inherited sockets win over AUTH_BIND.
    """
    hosts = _inherited_hosts() or [each[0] for each in server.cfg.address if isinstance(each, tuple)]
    wider = next((host for host in hosts if not is_loopback(host)), None)
    if settings.serves_this_machine and wider:
        raise SettingsError(
            f"AUTH_BIND: gunicorn listens on {wider}, not {settings.bind}. Set AUTH_BIND={wider}."
        )


def _inherited_hosts() -> list[str]:
    """Return the addresses of the sockets that systemd, or the master before a USR2, has bound."""
    descriptors = [int(each) for each in os.environ.get("GUNICORN_FD", "").split(",") if each]
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        descriptors += [3 + number for number in range(int(os.environ.get("LISTEN_FDS", "0")))]
    hosts = []
    for descriptor in descriptors:
        with socket.socket(fileno=os.dup(descriptor)) as listening:
            if listening.family != socket.AF_UNIX:
                hosts.append(str(listening.getsockname()[0]))
    return hosts


def _refuse_taken_address(settings: Settings) -> None:
    """Refuse with one line: gunicorn would retry for five seconds, and log two lines each time."""
    if "LISTEN_FDS" in os.environ or "GUNICORN_FD" in os.environ:
        return  # we inherit a bound socket
    deadline = time.monotonic() + 3  # workers of a killed service may still listen
    family = socket.AF_INET6 if ":" in settings.bind else socket.AF_INET
    while True:
        try:
            socket.create_server((settings.bind, settings.port), family=family).close()
            return
        except OSError as error:
            number = error.errno
        if number != errno.EADDRINUSE or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if number in _NO_ADDRESS:
        raise SettingsError(
            f"AUTH_BIND: {settings.bind} is not an address of this machine."
            " Set it to one, such as 127.0.0.1, or to 0.0.0.0 for all."
        )
    raise SettingsError(
        f"Can't listen on {address(settings)}: {os.strerror(number or 0)}."
        " Set PORT or AUTH_BIND to use another address."
    )
