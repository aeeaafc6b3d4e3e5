"""The gunicorn master, which starts, watches and reloads processes: the hooks of `gunicorn.conf.py`.

A HUP executes only that file again, so this module keeps no settings: `auth.core.settings.served` has them.

The master creates the application, and its forks, the workers and the delivery process, share that memory.
Before a fork nothing may exist that two of them cannot share: no connection, thread, random state, open file
or metric (which opens a file). So `create_app` opens nothing, `wsgi.py` starts threads and opens files in the
worker, the start of the service closes its connections, and the thread that writes the log ends.
"""

import gc
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import gevent
import psycopg2

from auth.core import event_lines, logs
from auth.core.keys import fingerprints, key_ring
from auth.core.settings import Settings, SettingsError, load, running, served, state
from auth.ops.connections import single
from auth.ops.processes import backlog, open_files, start_checks, starting
from auth.ops.processes.delivery_process import DeliveryProcess
from auth.ops.processes.embedded_postgres import EmbeddedPostgresError
from auth.ops.processes.master import Master, StartedWorker
from sql.pool import unusable

# Concurrent lookups of names in the delivery process. gevent has ten, which silent name servers would fill: a
# lookup goes on after its delivery was given up.
_LOOKUPS = 200


def settings() -> Settings:
    """Return the settings of the master. Load them at the first call; exit if they cannot be used."""
    if served.current is None:
        try:
            served.current = _load()
        except (SettingsError, OSError) as error:
            _fail(state.directory_of(os.environ), str(error))
    return served.current


def on_starting(server: Master) -> None:
    """Start Postgres, apply the schema and create the application, or exit with one line for the operator."""
    # Until gunicorn installs its handlers, SystemExit stops a Postgres that has just started.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    config = settings()
    served.inbox_key = state.new_secret()
    for warning in config.warnings:
        _say(warning, "warning")
    # nohup ignores the signal of a closed terminal.
    server.ends_with_terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    server.embedded_postgres = None
    server.delivery = DeliveryProcess(partial(_say, level="warning"), _deliver)
    try:
        starting.start(server, config)
    except state.InUseError as error:
        print(event_lines.before_settings(f"{error}. Stop it before you start another."), file=sys.stderr)
        sys.exit(2)
    except (EmbeddedPostgresError, fingerprints.OtherKeys, SettingsError) as error:
        _fail(config.state_dir, str(error))
    except OSError as error:
        _fail(config.state_dir, state.unusable(config.state_dir, error))
    except psycopg2.Error as error:
        _fail(config.state_dir, unusable("DATABASE_URL", error))
    if redis_problem := start_checks.redis_problem(config):
        _say(redis_problem, "warning")


def _fail(state_dir: Path, problem: str) -> NoReturn:
    running.keep_error(state_dir, problem)
    sys.exit(event_lines.before_settings(problem))


def when_ready(server: Master) -> None:
    """Announce the address, and change gunicorn's handling of signals and its main loop."""
    # At Ctrl-C, gunicorn would cut off requests.
    signal.signal(signal.SIGINT, lambda _number, frame: server.signal(signal.SIGTERM, frame))
    # gunicorn's main loop calls these. Unlike a signal handler, they may wait and start processes.
    server.handle_term = partial(_end, server)
    server.handle_hup = partial(_hang_up, server, server.handle_hup)
    server.manage_workers = partial(_watch, server, server.manage_workers)
    server.looked_at = server.judges_from = time.monotonic()
    server.murder_workers = partial(_end_frozen_processes, server, server.murder_workers)
    config = settings()
    nworkers_changed(server, server.num_workers, None)
    running.announce(config)
    _start_delivery(server, config)
    contents = "secrets and signing keys" + (", database" if server.embedded_postgres else "")
    _say(f"State: {config.state_dir} ({contents}). Back it up.")
    if passkey_notice := start_checks.passkey_notice(config):
        _say(passkey_notice, "warning")
    for notice in start_checks.notices(config):
        _say(notice, "warning")
    if shortage := open_files.shortage(server.cfg.worker_connections):
        _say(shortage, "warning")
    if config.metrics_bind:
        _say(f"Metrics: http://{config.metrics_bind}/metrics")
    _say(f"Serving {config.base_url}, listening on {starting.address(config)}. Press Ctrl-C to stop.")
    _announce_inbox(config)


def on_reload(server: Master) -> None:
    running.announce(settings())
    server.delivery.terminate()  # it finishes its messages beside the new one
    _start_delivery(server, settings())
    _announce_inbox(settings())


def nworkers_changed(server: Master, number: int, _before: int | None) -> None:
    """Called at a reload, and by the signals TTIN and TTOU."""
    with suppress(OSError):  # the master continues with a full disk
        state.keep_wanted_workers(number)


def pre_fork(server: Master, worker: StartedWorker) -> None:
    """Give the worker the first slot for metrics that no worker has."""
    slots = {other.slot for other in server.WORKERS.values()}
    worker.slot = next(slot for slot in itertools.count() if slot not in slots)
    os.environ[state.METRICS_SLOT] = str(worker.slot)


def post_fork(server: Master, worker: StartedWorker) -> None:
    if server.embedded_postgres:
        server.embedded_postgres.release_lock()


def post_worker_init(worker: StartedWorker) -> None:
    gc.freeze()  # the loaded objects stay
    # A terminal sends these to every process; the master decides when a worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def child_exit(server: Master, worker: StartedWorker) -> None:
    state.discard_gauges(worker.slot)


def on_exit(server: Master) -> None:
    """Stop the embedded Postgres last. Fail if it died, so that a supervisor restarts the service."""
    server.delivery.stop()
    if server.embedded_postgres:
        has_died = server.embedded_postgres.has_died()
        server.embedded_postgres.stop()
        if has_died:
            sys.exit(1)
    _say("Stopped.")


def _announce_inbox(config: Settings) -> None:
    if config.dev_inbox:  # the log holds no secrets
        print(f"Messages: {config.base_url}/dev/inbox?key={served.inbox_key}", flush=True)


def _start_delivery(server: Master, config: Settings) -> None:
    if served.delivery:
        server.delivery.start()


def _deliver() -> None:
    """Run in the delivery process."""
    # A silent name server occupies a thread for longer than a delivery waits. They start when needed.
    gevent.get_hub().threadpool.maxsize = _LOOKUPS
    try:
        served.delivery.run(settings())
    except (SettingsError, fingerprints.OtherKeys, OSError) as error:
        print(event_lines.before_settings(str(error)), file=sys.stderr)


def _end(server: Master) -> NoReturn:
    server.delivery.begin_stop()  # it finishes its messages while the workers finish their requests
    if not (server.systemd or server.master_pid or server.reexec_pid):
        backlog.note_stop()
    raise StopIteration  # as gunicorn does


def _hang_up(server: Master, replace_workers: Callable[[], None]) -> None:
    """Reload, or end if the signal means that the terminal was closed."""
    if server.ends_with_terminal and not _has_terminal():
        _end(server)
    if problem := _reload(server):
        _say(f"Not reloaded; the workers keep running: {problem}", "error")
    else:
        replace_workers()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _reload(server: Master) -> str | None:
    """Make a new application, or return why its workers could not start with it."""
    try:
        loaded = _load()
        if server.embedded_postgres:
            # `starting` has set DATABASE_URL, not the operator.
            origins = {name: origin for name, origin in loaded.origins.items() if name != "DATABASE_URL"}
            loaded = replace(loaded, origins=origins)
        with single(loaded.database_url) as db:
            loaded = fingerprints.keep(db, loaded)
        starting.make_application(loaded)
    except (SettingsError, fingerprints.OtherKeys, OSError) as error:
        return str(error)
    except psycopg2.Error as error:
        return unusable("DATABASE_URL", error)
    except Exception as error:  # it would end the master
        return f"{type(error).__name__}: {error}"
    return None


def _load() -> Settings:
    loaded = load(missing_secrets="ignore")
    start_checks.check_files(loaded)
    return loaded


def _end_frozen_processes(server: Master, murder_workers: Callable[[], None]) -> None:
    """Kill workers without a heartbeat, as gunicorn does, and the delivery process.

    If all processes were paused, as in a container, they get the full time again.
    """
    now = time.monotonic()
    if now - server.looked_at > server.timeout / 2:
        server.judges_from = now + server.timeout
    server.looked_at = now
    if server.timeout and now >= server.judges_from:
        murder_workers()
        server.delivery.kill_if_frozen(server.timeout)


def _watch(server: Master, manage_workers: Callable[[], None]) -> None:
    """Replace ended workers, as gunicorn does, and the delivery process; refresh the keys."""
    manage_workers()
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
