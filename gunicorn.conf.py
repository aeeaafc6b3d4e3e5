"""How gunicorn runs the service: processes and signals; the embedded Postgres begins and ends with them.

gunicorn takes every name in this module that is also the name of one of its settings. What isn't meant for it
begins with an underscore: it prints a value that it doesn't like, and these hold secrets.
"""

# First of all: what is imported before it keeps blocking sockets and locks. Processes and signals stay as
# they are: the master starts processes in signal handlers, where a greenlet cannot wait.
from gevent import monkey as _monkey

_monkey.patch_all(os=False, subprocess=False, signal=False)

import atexit
import errno
import gc
import os
import signal
import socket
import sys
import time

import psycopg2

from auth import settings as _settings
from auth.delivery import channels
from auth.delivery import messages as _messages
from auth.operations.delivery_process import DeliveryProcess
from auth.operations.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError, StateInUseError
from sql import schema
from sql.pool import SIZE as _POOL_SIZE

try:
    _loaded = _settings.load()
    _messages.load_templates(_loaded)
except (_settings.SettingsError, OSError) as _error:
    sys.exit(str(_error))

bind = f"[{_loaded.bind}]:{_loaded.port}" if ":" in _loaded.bind else f"{_loaded.bind}:{_loaded.port}"
workers = _loaded.workers
worker_class = "auth.web.gunicorn_worker.Worker"
# In each process; more connections wait in the backlog. Below 1,024, the usual limit of open files.
worker_connections = 800
# Longer than proxies keep idle connections to us (nginx and the clouds' load balancers: 60 s), so that it is
# they who close one: a request that crosses with our closing would be lost.
keepalive = 75
# Requests and Postgres are over within the 10 s that Docker allows.
graceful_timeout = 8
# An access token carries both metadata objects, 8 KiB each; in base64, with the other claims and headers
# around it, that is 24 KiB. The number of fields bounds what a connection may hold.
limit_request_field_size = 32_768
limit_request_fields = 50
# A URL of 2,048 characters, percent-encoded in a query beside a token, is longer than the 4,094 of the
# default.
limit_request_line = 8190
# No peer may set the scheme or the address of a request. AUTH_TRUSTED_PROXIES decides that, in the
# application.
forwarded_allow_ips = ""
# A second service would share the port unnoticed.
reuse_port = False
# Its place is the same for all services of a user.
control_socket_disable = True
# To standard error, what needs attention: the application logs the requests, and below it says when it starts
# and ends.
errorlog = "-"
# Its debug lines quote requests, with the tokens in them.
loglevel = "warning"


def on_starting(server) -> None:
    """Bring up what the workers need, or end with one line that says what is missing."""
    # gunicorn's own handlers come later. Exit by exception, so that a Postgres which has just been started is
    # stopped.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    server.embedded_postgres = None
    server.delivery = DeliveryProcess()
    database_url = _loaded.database_url or _start_embedded_postgres(server)
    _refuse_taken_address()
    try:
        schema.apply(database_url)
    except psycopg2.OperationalError as error:
        sys.exit(f"DATABASE_URL: can't use the database: {_one_line(error)}")
    except psycopg2.Error as error:
        sys.exit(f"DATABASE_URL: can't apply the schema: {_one_line(error)}")


def when_ready(server) -> None:
    """Say where, and turn Ctrl-C into an end that lets requests finish: gunicorn's own would cut them off."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, frame: _end(server, frame))
    if sys.stderr.isatty():
        # The terminal has been closed: end, rather than reload and stay without one.
        signal.signal(signal.SIGHUP, lambda _number, frame: _end(server, frame))
    if _loaded.deliver:
        server.delivery.start()
    signal.signal(signal.SIGALRM, lambda _number, _frame: _watch(server))
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    _say(
        f"State: {_loaded.state_dir} (secrets and signing keys{', database' if server.embedded_postgres else ''}). A backup needs all of it."
    )
    for notice in channels.notices(_loaded):
        _say(notice)
    _say(f"Serving {_loaded.base_url}, listening on {bind}. Ctrl-C stops it.")


def on_reload(server) -> None:
    """Deliver with the new code and settings."""
    server.delivery.reload(is_wanted=_loaded.deliver)


def post_fork(server, worker) -> None:
    """Leave what is the master's alone."""
    if server.embedded_postgres:
        server.embedded_postgres.close_in_child()


def post_worker_init(worker) -> None:
    """Let the master decide when the worker ends."""
    # What is loaded now stays: the garbage collector need not look at it again and again while requests are
    # served.
    gc.freeze()
    # The terminal sends these to every process at once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def on_exit(server) -> None:
    """Stop the embedded Postgres after the last worker; fail if it was gone before, so that a supervisor
    starts anew.
    """
    signal.setitimer(
        signal.ITIMER_REAL, 0
    )  # the end that comes now is wanted; and Python forgets handlers before it ends
    server.delivery.stop()
    if server.embedded_postgres:
        died = server.embedded_postgres.has_died()
        server.embedded_postgres.stop()
        if died:
            sys.exit(1)
    _say("Stopped.")


def _start_embedded_postgres(server) -> str:
    # The rest is for people and their tools.
    connections = max(100, workers * _POOL_SIZE + 20)
    server.embedded_postgres = EmbeddedPostgres(_loaded.state_dir, {"max_connections": str(connections)})
    # on_exit isn't called when the port is taken or the schema can't be applied. In workers, which inherit
    # this, it does nothing.
    atexit.register(server.embedded_postgres.stop)
    try:
        database_url = server.embedded_postgres.start()
    except StateInUseError as error:
        _say(str(error))
        sys.exit(2)
    except (EmbeddedPostgresError, OSError) as error:
        sys.exit(str(error))
    for directory in server.embedded_postgres.opened:
        _say(
            f"Opened {directory} for passing through (o+x): Postgres doesn't run as root, and must reach its files."
        )
    os.environ["DATABASE_URL"] = database_url  # for the workers
    return database_url


def _refuse_taken_address() -> None:
    """Try the address: gunicorn would retry for five seconds, with two lines for each, before it gave up."""
    if "LISTEN_FDS" in os.environ or "GUNICORN_FD" in os.environ:
        return  # the socket is handed to us, already bound
    # The workers of a service that was killed a moment ago may still be about to end.
    deadline = time.monotonic() + 3
    while True:
        try:
            socket.create_server(
                (_loaded.bind, _loaded.port),
                family=socket.AF_INET6 if ":" in _loaded.bind else socket.AF_INET,
            ).close()
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                reason = (
                    error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
                )
                sys.exit(f"Can't listen on {bind}: {reason}. PORT and AUTH_BIND choose another address.")
            time.sleep(0.1)


def _end(server, frame) -> None:
    # The delivery process finishes its messages while the workers finish their requests.
    server.delivery.end()
    server.signal(signal.SIGTERM, frame)


def _watch(server) -> None:
    """Look after the delivery process and the embedded Postgres, every second."""
    server.delivery.watch()
    if not server.embedded_postgres:
        return
    if server.embedded_postgres.has_died():
        # A supervisor that starts the whole service anew does it from a known state; here we could only guess
        # at the cause.
        signal.setitimer(signal.ITIMER_REAL, 0)
        _say(
            f"The embedded Postgres has ended by itself, see {_loaded.state_dir / 'postgres.log'}. Stopping."
        )
        server.signal(signal.SIGTERM, None)
    else:
        server.embedded_postgres.bound_log()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
