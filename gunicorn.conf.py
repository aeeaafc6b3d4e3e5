"""Configuration of gunicorn. Names without an underscore are its settings and hooks."""

# Before all other imports, which would keep blocking sockets and locks. Processes and signals are left alone:
# gunicorn handles the ends of processes itself.
from gevent import monkey as _monkey

_monkey.patch_all(os=False, subprocess=False, signal=False)

import sys as _sys
from pathlib import Path as _Path

# Before the current directory, whose modules gunicorn prefers.
_sys.path.insert(0, str(_Path(__file__).resolve().parent))

from auth.core.log_writer import writer as _writer

# Before the imports that may fail.
_writer.start()

from auth.ops.processes import starting as _starting
from auth.ops.processes import supervisor as _supervisor

_settings = _supervisor.settings()

bind = _starting.address(_settings)
workers = _settings.workers
worker_class = "auth.ops.processes.gunicorn_worker.Worker"
# Below the usual limit of 1,024 open files of a process. Further connections wait in the backlog.
worker_connections = 800
# Longer than the 60 s of nginx and cloud load balancers: a request sent while we close the connection would
# be lost.
keepalive = 75
worker_tmp_dir = _starting.directory_of_heartbeats()
# A frozen worker, or delivery process, is replaced. A healthy one gives a sign of life every second.
timeout = 10
graceful_timeout = 8  # Docker allows 10 s, in which Postgres stops too
# An access token with 16 KiB of metadata is 24 KiB long. The number of fields bounds a connection's memory.
limit_request_field_size = 32_768
limit_request_fields = 50
limit_request_line = 8190  # a percent-encoded URL of 2,048 characters in a query, and a token
# No peer may set the scheme or address of a request; the application reads AUTH_TRUSTED_PROXIES.
forwarded_allow_ips = ""
# With "auto", gunicorn would take the C parser of a gunicorn_h1c that is installed, which no test has tried.
http_parser = "python"
sendfile = False  # it would bypass Connection.sendall
reuse_port = False  # a second service would share the port unnoticed
control_socket_disable = True  # all services of a system user would share it
errorlog = "-"
logger_class = "auth.ops.processes.gunicorn_logger.Logger"
loglevel = "warning"  # debug lines would quote requests, with their tokens

on_starting = _supervisor.on_starting
when_ready = _supervisor.when_ready
on_reload = _supervisor.on_reload
nworkers_changed = _supervisor.nworkers_changed
pre_fork = _supervisor.pre_fork
post_fork = _supervisor.post_fork
post_worker_init = _supervisor.post_worker_init
child_exit = _supervisor.child_exit
on_exit = _supervisor.on_exit
