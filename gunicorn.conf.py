"""Configuration of gunicorn. Names without an underscore are its settings and hooks."""

# Before all other imports, which would keep blocking sockets and locks. Processes and signals are left alone:
# the master starts processes in signal handlers, where a greenlet cannot wait.
from gevent import monkey as _monkey

_monkey.patch_all(os=False, subprocess=False, signal=False)

# Collect rarely, also in workers: imports leave little garbage, and few requests leave cycles. Saves 10 % of
# a start, and 4 % of GET /user.
import gc

gc.set_threshold(50_000, 20, 20)

import atexit
import errno
import os
import signal
import socket
import sys
import time
from contextlib import suppress as _suppress
from dataclasses import replace as _replace
from functools import partial as _partial

import psycopg2

from auth import logs as _logs
from auth import settings as _settings
from auth.delivery import channels
from auth.operations import start_checks as _start_checks
from auth.operations.delivery_process import DeliveryProcess
from auth.operations.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from auth.settings import fingerprints as _fingerprints
from auth.settings import key_ring as _key_ring
from auth.settings import relying_party as _relying_party
from auth.settings import served as _served
from auth.settings import state as _state
from sql import Database as _Database
from sql import schema
from sql.pool import SIZE as _POOL_SIZE
from sql.pool import reason as _reason


def _load() -> _settings.Settings:
    loaded = _settings.load(missing_secrets="ignore")
    _start_checks.check_files(loaded)
    return loaded


try:
    # A reload has loaded and checked them before gunicorn executes this file again.
    _loaded = _served.current or _load()
except (_settings.SettingsError, OSError) as _error:
    sys.exit(str(_error))

bind = f"[{_loaded.bind}]:{_loaded.port}" if ":" in _loaded.bind else f"{_loaded.bind}:{_loaded.port}"
workers = _loaded.workers
worker_class = "auth.web.gunicorn_worker.Worker"
# Below the usual limit of 1,024 open files of a process. Further connections wait in the backlog.
worker_connections = 800
# Longer than the 60 s of nginx and cloud load balancers: a request sent while we close the connection would
# be lost.
keepalive = 75
graceful_timeout = 8  # Docker allows 10 s, in which Postgres stops too
# An access token with 16 KiB of metadata is 24 KiB long. The number of fields bounds a connection's memory.
limit_request_field_size = 32_768
limit_request_fields = 50
limit_request_line = 8190  # a percent-encoded URL of 2,048 characters in a query, and a token
# No peer may set the scheme or address of a request; the application reads AUTH_TRUSTED_PROXIES.
forwarded_allow_ips = ""
sendfile = False  # it would bypass Connection.sendall
reuse_port = False  # a second service would share the port unnoticed
control_socket_disable = True  # all services of a system user would share it
errorlog = "-"
loglevel = "warning"  # debug lines would quote requests, with their tokens


def on_starting(server) -> None:
    """Start Postgres and apply the schema, or exit with one line for the operator."""
    # Until gunicorn installs its handlers. SystemExit stops a Postgres that has just been started.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    for warning in _loaded.warnings:
        _say(warning, "warning")
    server.embedded_postgres = None
    server.delivery = DeliveryProcess(_partial(_say, level="warning"), delivers=_loaded.deliver)
    try:
        database_url = _loaded.database_url or _start_embedded_postgres(server)
        _refuse_taken_address()
        # Before a migration: this may be the database of another deployment.
        with _suppress(psycopg2.errors.UndefinedTable):
            _with_database(database_url, _partial(_fingerprints.check, settings=_loaded))
        if _loaded.database_url:
            _share_state_directory(server)
        schema.apply(database_url)
        kept = _with_database(database_url, _partial(_fingerprints.keep, settings=_loaded, make_missing=True))
        if _loaded.metrics_bind:
            _state.begin_metrics(_loaded.state_dir, str(_loaded.port))
        pooler_problem = _loaded.db_prepare and _start_checks.pooler_problem(database_url)
    except _state.InUseError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except (EmbeddedPostgresError, _fingerprints.OtherKeys, _settings.SettingsError) as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(_state.unusable(_loaded.state_dir, error))
    except psycopg2.Error as error:
        act = "use the database" if isinstance(error, psycopg2.OperationalError) else "apply the schema"
        sys.exit(f"DATABASE_URL: can't {act}: {_reason(error)}")
    if pooler_problem:
        sys.exit(pooler_problem)
    _served.current = _replace(kept, database_url=database_url)
    if redis_problem := _start_checks.redis_problem(_loaded):
        _say(redis_problem, "warning")


def when_ready(server) -> None:
    """Announce the address, and let requests finish on Ctrl-C: gunicorn would cut them off."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, frame: _end(server, frame))
    # The terminal was closed, or the operator replaces the workers.
    if sys.stderr.isatty():
        signal.signal(signal.SIGHUP, lambda _number, frame: _end(server, frame))
    # Called by gunicorn's main loop, which may wait for the database; a signal handler may not.
    server.handle_hup = _partial(_reload, server)
    if _wants_delivery_process():
        server.delivery.start()
    signal.signal(signal.SIGALRM, lambda _number, _frame: _watch(server))
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    kept = "secrets and signing keys" + (", database" if server.embedded_postgres else "")
    _say(f"State: {_loaded.state_dir} ({kept}). Back it up.")
    if passkey_notice := _relying_party.notice(_loaded):
        _say(passkey_notice, "warning")
    for notice in channels.notices(_loaded):
        _say(notice, "warning")
    if _loaded.metrics_bind:
        _say(f"Metrics: http://{_loaded.metrics_bind}/metrics")
    _say(f"Serving {_loaded.base_url}, listening on {bind}. Ctrl-C stops it.")


def on_reload(server) -> None:
    server.delivery.reload(is_wanted=_wants_delivery_process())


def post_fork(server, worker) -> None:
    if server.embedded_postgres:
        server.embedded_postgres.close_in_child()


def post_worker_init(worker) -> None:
    # Plain attributes, because a request reads 30 settings, each by two calls: 8 % of GET /user.
    vars(worker.cfg).update({name: setting.get() for name, setting in worker.cfg.settings.items()})
    gc.freeze()  # what is loaded stays
    # A terminal sends these to every process; the master decides when a worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def on_exit(server) -> None:
    """Stop the embedded Postgres after the last worker; fail if it died, for the supervisor."""
    # Python removes its handlers before it ends, and SIGALRM would kill it.
    signal.setitimer(signal.ITIMER_REAL, 0)
    server.delivery.stop()
    if server.embedded_postgres:
        died = server.embedded_postgres.has_died()
        server.embedded_postgres.stop()
        if died:
            sys.exit(1)
    _say("Stopped.")


def _start_embedded_postgres(server) -> str:
    connections = max(100, workers * _POOL_SIZE + 20)  # 20 for operators and their tools
    server.embedded_postgres = EmbeddedPostgres(_loaded.state_dir, {"max_connections": str(connections)})
    # gunicorn does not call on_exit if the port is taken or the schema cannot be applied.
    atexit.register(server.embedded_postgres.stop)
    database_url = server.embedded_postgres.start()
    for directory in server.embedded_postgres.opened:
        _say(f"Made {directory} passable (o+x): Postgres does not run as root.")
    os.environ["DATABASE_URL"] = database_url  # for the workers
    return database_url


def _wants_delivery_process() -> bool:
    return _loaded.deliver or _loaded.metrics_bind is not None  # which it serves


def _share_state_directory(server) -> None:
    """Lock the state directory, so that no embedded Postgres starts in it, and that missing keys may be made.

    If there is nothing to make, it may be read-only or absent.
    """
    missing = _fingerprints.missing(_loaded)
    try:
        if missing:
            _state.make_directory(_loaded.state_dir)
        server.state_lock = _state.lock(_loaded.state_dir, shared=True)
    except (_state.InUseError, OSError):
        if missing:
            raise


def _with_database(url: str, use):
    db = _Database(url, size=1, prepare=False)
    try:
        return use(db)
    finally:
        db.close()


def _refuse_taken_address() -> None:
    """Exit with one line: gunicorn would retry for five seconds, and log two lines each time."""
    if "LISTEN_FDS" in os.environ or "GUNICORN_FD" in os.environ:
        return  # we inherit a bound socket
    deadline = time.monotonic() + 3  # the workers of a service that was just killed may still listen
    family = socket.AF_INET6 if ":" in _loaded.bind else socket.AF_INET
    while True:
        try:
            socket.create_server((_loaded.bind, _loaded.port), family=family).close()
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                is_name = isinstance(error, socket.gaierror)
                reason = error.strerror if is_name else os.strerror(error.errno or 0)
                sys.exit(f"Can't listen on {bind}: {reason}. PORT and AUTH_BIND choose another address.")
            time.sleep(0.1)


def _end(server, frame) -> None:
    server.delivery.end()  # at once: it finishes its messages while the workers finish their requests
    server.signal(signal.SIGTERM, frame)


def _reload(server) -> None:
    """Replace the workers, unless they could not start or would have other keys than the database."""
    environment = dict(os.environ)
    try:
        loaded = _load()
        _served.current = _with_database(loaded.database_url, _partial(_fingerprints.keep, settings=loaded))
    except (_settings.SettingsError, _fingerprints.OtherKeys, OSError) as error:
        problem = str(error)
    except psycopg2.Error as error:
        problem = f"DATABASE_URL: can't use the database: {_reason(error)}"
    else:
        type(server).handle_hup(server)
        return
    # `load` has added the variables of .env.
    for name in os.environ.keys() - environment:
        del os.environ[name]
    _say(f"Not reloaded, the workers keep running: {problem}", "error")


def _watch(server) -> None:
    with _suppress(Exception):  # the workers log it
        _served.current, _ = _key_ring.reread(_served.current)
    server.delivery.watch()
    if not server.embedded_postgres:
        return
    if server.embedded_postgres.has_died():
        # A supervisor starts the whole service again from a known state.
        signal.setitimer(signal.ITIMER_REAL, 0)
        _say(f"The embedded Postgres has died, see {_loaded.state_dir / 'postgres.log'}. Stopping.", "error")
        server.signal(signal.SIGTERM, None)
    else:
        server.embedded_postgres.bound_log()


def _say(line: str, level: str = "info") -> None:
    _logs.say(_loaded, line, level)
