"""The gunicorn master: what it starts, watches and reloads. The hooks of `gunicorn.conf.py`.

A HUP executes only that file again, so this module keeps no settings: `auth.settings.served` has them.

The master imports the application, and its workers share that memory, as forks. Before a fork there must be
nothing that two workers cannot share: no connection, thread, random state, open file, metric (which opens its
file) or application with its parts. So `create_app` is left to the worker, and what starts the service closes
its connections. The delivery process lives by threads, and gevent has patched the master: it is a program of
its own.
"""

import atexit
import errno
import gc
import importlib
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import psycopg2

from auth import logs
from auth.keys import fingerprints, key_ring
from auth.operations import start_checks
from auth.operations.delivery_process import DeliveryProcess
from auth.operations.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from auth.senders import channels
from auth.settings import Settings, SettingsError, load, relying_party, running, served, state
from sql import Database, schema
from sql.pool import SIZE, reason

T = TypeVar("T")

_OTHER_CONNECTIONS = 20  # for operators and their tools


def settings() -> Settings:
    """Return the settings of the master. Load them at the first call; exit if they cannot be used."""
    if served.current is None:
        try:
            served.current = _load()
        except (SettingsError, OSError) as error:
            # The state directory as the doctor finds it without valid settings.
            running.keep_error(Path(os.environ.get("AUTH_STATE_DIR") or "var").resolve(), str(error))
            sys.exit(logs.refusal(str(error)))
    return served.current


def address(settings: Settings) -> str:
    host = f"[{settings.bind}]" if ":" in settings.bind else settings.bind
    return f"{host}:{settings.port}"


def on_starting(server: Any) -> None:
    """Start Postgres, apply the schema and import the application, or exit with one line for the operator."""
    # Until gunicorn installs its handlers. SystemExit stops a Postgres that has just been started.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    chosen = settings()
    served.inbox_key = state.new_secret()
    for warning in chosen.warnings:
        _say(warning, "warning")
    server.embedded_postgres = None
    server.delivery = DeliveryProcess(partial(_say, level="warning"), delivers=chosen.deliver)
    try:
        _start_or_exit(server, chosen)
    except SystemExit as error:
        if isinstance(error.code, str):
            running.keep_error(chosen.state_dir, error.code)
            sys.exit(logs.refusal(error.code))
        raise
    if redis_problem := start_checks.redis_problem(chosen):
        _say(redis_problem, "warning")
    _import_application()


def _start_or_exit(server: Any, chosen: Settings) -> None:
    try:
        _start(server, chosen)
    except state.InUseError as error:
        print(logs.refusal(str(error)), file=sys.stderr)
        sys.exit(2)
    except (EmbeddedPostgresError, fingerprints.OtherKeys, SettingsError) as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(state.unusable(chosen.state_dir, error))
    except psycopg2.Error as error:
        act = "use the database" if isinstance(error, psycopg2.OperationalError) else "apply the schema"
        sys.exit(f"DATABASE_URL: can't {act}: {reason(error)}")


def _start(server: Any, chosen: Settings) -> None:
    database_url = chosen.database_url or _start_embedded_postgres(server, chosen)
    _refuse_taken_address(chosen)
    # Before a migration: this may be the database of another deployment.
    with suppress(psycopg2.errors.UndefinedTable):
        _with_database(database_url, partial(fingerprints.check, settings=chosen))
    if chosen.database_url:
        _share_state_directory(server, chosen)
    for step in schema.apply(database_url, notice=partial(_say, level="warning")):
        if step not in (schema.SCHEMA.name, schema.FUNCTIONS.name):
            _say(f"Migrated the database: {step}.")
    kept = _with_database(database_url, partial(fingerprints.keep, settings=chosen, make_missing=True))
    if chosen.metrics_bind:
        state.begin_metrics(chosen.state_dir, str(chosen.port))
    if chosen.db_prepare and (problem := start_checks.pooler_problem(database_url)):
        sys.exit(problem)
    hook = chosen.hook("custom_access_token")
    check = partial(start_checks.hook_problem, hook) if hook and hook.function else None
    # No reason to stop: sessions stay, and so do access tokens.
    if check and (problem := _with_database(database_url, check)):
        _say(f"AUTH_HOOK_CUSTOM_ACCESS_TOKEN: {problem}. Until then, nobody can sign in.", "warning")
    served.current = replace(kept, database_url=database_url)


def when_ready(server: Any) -> None:
    """Announce the address, and change what gunicorn does at signals and every second."""
    # gunicorn would cut requests off at Ctrl-C. A terminal that was closed sends HUP.
    for number in (signal.SIGINT, signal.SIGHUP) if sys.stderr.isatty() else (signal.SIGINT,):
        signal.signal(number, lambda _number, frame: server.signal(signal.SIGTERM, frame))
    # Called by gunicorn's main loop, which may wait and start processes; a signal handler may not.
    server.handle_term = partial(_end, server)
    server.handle_hup = partial(_reload, server)
    server.manage_workers = partial(_watch, server)
    chosen = settings()
    running.announce(chosen)
    if _wants_delivery_process(chosen):
        server.delivery.start()
    kept = "secrets and signing keys" + (", database" if server.embedded_postgres else "")
    _say(f"State: {chosen.state_dir} ({kept}). Back it up.")
    if passkey_notice := relying_party.notice(chosen):
        _say(passkey_notice, "warning")
    for notice in channels.notices(chosen):
        _say(notice, "warning")
    if chosen.metrics_bind:
        _say(f"Metrics: http://{chosen.metrics_bind}/metrics")
    _say(f"Serving {chosen.base_url}, listening on {address(chosen)}. Press Ctrl-C to stop.")
    _announce_inbox(chosen)


def on_reload(server: Any) -> None:
    running.announce(settings())
    server.delivery.reload(is_wanted=_wants_delivery_process(settings()))
    _announce_inbox(settings())


def pre_fork(server: Any, worker: Any) -> None:
    """Give the worker the first slot for metrics that no worker has."""
    taken = {other.slot for other in server.WORKERS.values()}
    worker.slot = next(slot for slot in itertools.count() if slot not in taken)
    os.environ[state.METRICS_SLOT] = str(worker.slot)


def post_fork(server: Any, worker: Any) -> None:
    if server.embedded_postgres:
        server.embedded_postgres.close_in_child()


def post_worker_init(worker: Any) -> None:
    gc.freeze()  # what is loaded stays
    # A terminal sends these to every process; the master decides when a worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def child_exit(server: Any, worker: Any) -> None:
    # A HUP may turn metrics on, but only a start makes their directory. An error here would end the master.
    state.discard_gauges(worker.slot)


def on_exit(server: Any) -> None:
    """Stop the embedded Postgres after the last worker; fail if it died, for the supervisor."""
    server.delivery.stop()
    if server.embedded_postgres:
        died = server.embedded_postgres.has_died()
        server.embedded_postgres.stop()
        if died:
            sys.exit(1)
    _say("Stopped.")


def _import_application() -> None:
    """Load what the workers share. They create the application: by name, as it is above this room."""
    importlib.import_module("app")
    if settings().metrics_bind:
        importlib.import_module("auth.web.request_metrics")
    gc.collect()
    gc.freeze()  # else the collector would write to this memory, and copy it for each worker


def _start_embedded_postgres(server: Any, chosen: Settings) -> str:
    connections = max(100, chosen.workers * SIZE + _OTHER_CONNECTIONS)
    server.embedded_postgres = EmbeddedPostgres(chosen.state_dir, {"max_connections": str(connections)})
    # gunicorn does not call on_exit if the port is taken or the schema cannot be applied.
    atexit.register(server.embedded_postgres.stop)
    database_url = server.embedded_postgres.start()
    for directory in server.embedded_postgres.opened:
        _say(f"Made {directory} passable (o+x): Postgres does not run as root.")
    os.environ["DATABASE_URL"] = database_url  # for the delivery process, and reloads
    return database_url


def _announce_inbox(chosen: Settings) -> None:
    if chosen.dev_inbox:  # the log holds no secrets
        print(f"Messages: {chosen.base_url}/dev/inbox?key={served.inbox_key}", flush=True)


def _wants_delivery_process(chosen: Settings) -> bool:
    return chosen.deliver or chosen.metrics_bind is not None  # which it serves


def _share_state_directory(server: Any, chosen: Settings) -> None:
    """Lock the state directory, so that no embedded Postgres starts in it, and that missing keys may be made.

    If there is nothing to make, it may be read-only or absent.
    """
    missing = fingerprints.missing(chosen)
    try:
        if missing:
            state.make_directory(chosen.state_dir)
        server.state_lock = state.lock(chosen.state_dir, shared=True)
    except (state.InUseError, OSError):
        if missing:
            raise


def _with_database(url: str, use: Callable[[Database], T]) -> T:
    with closing(Database(url, size=1, prepare=False)) as db:
        return use(db)


def _refuse_taken_address(chosen: Settings) -> None:
    """Exit with one line: gunicorn would retry for five seconds, and log two lines each time."""
    if "LISTEN_FDS" in os.environ or "GUNICORN_FD" in os.environ:
        return  # we inherit a bound socket
    deadline = time.monotonic() + 3  # the workers of a service that was just killed may still listen
    family = socket.AF_INET6 if ":" in chosen.bind else socket.AF_INET
    while True:
        try:
            socket.create_server((chosen.bind, chosen.port), family=family).close()
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                is_name = isinstance(error, socket.gaierror)
                problem = error.strerror if is_name else os.strerror(error.errno or 0)
                sys.exit(
                    f"Can't listen on {address(chosen)}: {problem}."
                    " Set PORT or AUTH_BIND to use another address."
                )
            time.sleep(0.1)


def _end(server: Any) -> NoReturn:
    server.delivery.end()  # it finishes its messages while the workers finish their requests
    raise StopIteration  # as gunicorn does


def _reload(server: Any) -> None:
    """Replace the workers, unless they could not start or would have other keys than the database."""
    try:
        loaded = _load()
        if server.embedded_postgres:
            # `_start_embedded_postgres` has set it.
            others = {name: origin for name, origin in loaded.origins.items() if name != "DATABASE_URL"}
            loaded = replace(loaded, origins=others)
        served.current = _with_database(loaded.database_url, partial(fingerprints.keep, settings=loaded))
    except (SettingsError, fingerprints.OtherKeys, OSError) as error:
        problem = str(error)
    except psycopg2.Error as error:
        problem = f"DATABASE_URL: can't use the database: {reason(error)}"
    else:
        type(server).handle_hup(server)
        return
    _say(f"Not reloaded; the workers keep running: {problem}", "error")


def _load() -> Settings:
    loaded = load(missing_secrets="ignore")
    start_checks.check_files(loaded)
    return loaded


def _watch(server: Any) -> None:
    """Replace ended workers, as gunicorn does, and the delivery process; refresh the keys."""
    type(server).manage_workers(server)
    with suppress(Exception):  # the workers log it
        served.current, _ = key_ring.reread(settings())
    server.delivery.watch()
    if not server.embedded_postgres:
        return
    if server.embedded_postgres.has_died():
        # A supervisor starts the whole service again from a known state.
        log = settings().state_dir / "postgres.log"
        _say(f"The embedded Postgres died; see {log}. Stopping.", "error")
        _end(server)
    server.embedded_postgres.bound_log()


def _say(line: str, level: str = "info") -> None:
    logs.say(settings(), line, level)
