"""Real processes for the tests: the service as `make run` starts it, and its remaining processes."""

import atexit
import http.client
import itertools
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.support.awake import awake
from tests.support.environment import CLOCK, SIGN_INS_LEAD_ON

CHECKOUT = Path(__file__).resolve().parents[2]
GUNICORN = ["-m", "gunicorn", "wsgi:app"]
PATIENT_GUNICORN = [sys.executable, *GUNICORN, "--config", "tests/support/long_timeouts.conf.py"]
BRIEF_GUNICORN = [sys.executable, *GUNICORN, "--config", "tests/support/brief_id_tokens.conf.py"]
T = TypeVar("T")


@contextmanager
def short_directory() -> Iterator[Path]:
    """Yield a directory with a path as short as a socket's must be, through which any user may pass."""
    with tempfile.TemporaryDirectory(prefix="latchkey-tests-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@contextmanager
def hangups() -> Iterator[None]:
    """Let SIGHUP end programs that start here, also if nohup runs the tests: they inherit that it is ignored."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, former)


def wait_until(condition: Callable[[], T], seconds: float = 60) -> T:
    """Return the condition's value as soon as it is true; fail after some seconds in which the machine ran."""
    deadline = awake() + seconds
    while not (result := condition()):
        assert awake() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(0.02)
    return result


def _claim_block() -> tuple[socket.socket, int]:
    """Return a socket that claims a block of ports among the test processes, and the block's first port.

    The blocks are below the ports of outgoing connections: one of those could be taken before it is bound.
    """
    for number in range(120):
        port = 20_000 + (os.getpid() + number) % 120 * 100
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port)), port
    raise OSError("another process uses each block of ports")


_claim, _block = _claim_block()
# Without this, Python warns of an open socket when it ends.
atexit.register(_claim.close)
_ports = itertools.cycle(range(_block + 1, _block + 100))


def free_port() -> int:
    """Return an unused port from a block of this process's own."""
    return next(filter(_is_free, _ports))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def processes_of(state_dir: Path) -> dict[int, str]:
    """Return the live processes of a state directory, with their command lines. Linux only."""
    commands = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            environment = (directory / "environ").read_bytes().split(b"\0")
            place = os.readlink(directory / "cwd")
        except OSError:
            continue  # gone, or a zombie
        if (
            str(state_dir) in command
            or place.startswith(str(state_dir))
            or f"AUTH_STATE_DIR={state_dir}".encode() in environment
        ):
            commands[int(directory.name)] = command
    return commands


def children_of(pid: int) -> list[int]:
    """Return the children of a process, including zombies. Linux only."""
    try:
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []  # gone


def name_of(pid: int) -> str:
    """Return the name that `top` shows for a process. Linux only."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""  # gone


def user_of(pid: int) -> int | None:
    """Return the id of the user as whom a process runs. Linux only."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None  # gone


def send(pid: int, number: int) -> None:
    """Send a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie. Linux only."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def serves(pid: int) -> bool:
    """Return whether a worker has loaded the application: from then on it ignores SIGINT. Linux only."""
    try:
        ignored = re.search(r"^SigIgn:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return False  # gone
    return bool(ignored and int(ignored[1], 16) & 1 << signal.SIGINT - 1)


def sockets_of(pid: int) -> set[str]:
    """Return the open sockets of a process, as named in /proc. Linux only."""
    names = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            names.add(os.readlink(descriptor))
    return {name for name in names if name.startswith("socket:")}


def as_user(name: str | None) -> dict[str, Any]:
    """Return the options to start a process as another user, if one is given."""
    if name is None:
        return {}
    account = pwd.getpwnam(name)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _settings_of_tests(directory: Path) -> dict[str, str]:
    """Return the settings of services that the release in a directory knows."""
    settings = directory / "auth/core/settings/__init__.py"
    knows = settings.exists() and "passkey_offer" in settings.read_text()
    return SIGN_INS_LEAD_ON if knows else {}


class Service:
    """The service in its own processes, on a free port, with a clean environment. It is healthy inside the
    context, and stopped at its end.
    """

    # Seconds within which the service must be healthy.
    PATIENCE = 90

    def __init__(
        self,
        state_dir: Path,
        *,
        command: list[str] | None = None,
        directory: str | Path = CHECKOUT,
        user: str | None = None,
        log_to: Any = None,
        **environment: str,
    ) -> None:
        """`log_to` is a descriptor for the log and the output, which are then not read here."""
        self.state_dir = state_dir
        self._directory = directory
        self.port = int(environment.get("PORT") or free_port())
        self.address = "::1" if environment.get("AUTH_BIND") == "::1" else "127.0.0.1"
        self._output, self._log = (state_dir.parent / f"{kind} of {id(self)}" for kind in ("output", "log"))
        self.environment = {
            "HOME": "/",
            "PATH": os.environ["PATH"],
            "PORT": str(self.port),
            "AUTH_STATE_DIR": str(state_dir),
            "AUTH_WORKERS": "2",
            "AUTH_BCRYPT_COST": "4",
            **CLOCK,
            **_settings_of_tests(Path(directory)),
            **environment,
        }
        self._command = command or [sys.executable, *GUNICORN]
        self._user = user
        self._log_to = log_to

    def __enter__(self) -> Self:
        self._start()
        try:
            self.wait_until_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        # A separate session, as in a terminal, so that a signal can go to the whole group.
        with self._output.open("wb") as output, self._log.open("wb") as log:
            options: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": output if self._log_to is None else self._log_to,
                "stderr": log if self._log_to is None else self._log_to,
                "start_new_session": True,
                **as_user(self._user),
            }
            self.process = subprocess.Popen(
                self._command, cwd=self._directory, env=self.environment, **options
            )

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def start_again(self) -> None:
        """Start the service again on the same port, after it has ended."""
        self._start()
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        wait_until(self._is_healthy, self.PATIENCE)

    def get(self, path: str, timeout: float = 30, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address, self.port, timeout=timeout)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def text(self) -> str:
        """Return its output."""
        return self._output.read_text() + self.log()

    def written(self) -> int:
        """Return the length of its output once that has the lines of all requests so far: a thread writes them."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=30)
        try:
            connection.request("GET", "/settings")
            response = connection.getresponse()
            response.read()
        finally:
            connection.close()
        id = response.getheader("X-Request-Id") or ""
        wait_until(lambda: id in self.text())
        return len(self.text())

    def log(self) -> str:
        """Return its log (standard error), without the messages that it prints when there is no mail server."""
        return self._log.read_text()

    def said(self) -> list[str]:
        """Return the lines for the operator, which are events where the log is JSON."""
        return [
            json.loads(line)["event"] if line.startswith("{") else line for line in self.log().splitlines()
        ]

    def delivery_processes(self) -> list[int]:
        """Return the delivery processes of the master. Linux only."""
        return [pid for pid in children_of(self.process.pid) if name_of(pid) == "auth.delivery"]

    def refuses_to_start(self) -> tuple[int, str]:
        """Return the exit status and the output of a failed start."""
        self._start()
        try:
            return self.process.wait(self.PATIENCE), self.text()
        finally:
            self.__exit__()

    def _is_healthy(self) -> bool:
        assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.text()}"
        try:
            # Workers of a killed service may still answer on this port.
            started = self._log_to is not None or any(line.startswith("Serving ") for line in self.said())
            return started and self.get("/health")[0] == 200
        except (OSError, http.client.HTTPException):
            return False


class UnfinishedRequest:
    """A request whose rest the application waits for, until `finish`."""

    BODY = b'{"email": "alice@example.com"}'

    def __init__(self, service: Service, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(self.BODY)}\r\nExpect: 100-continue\r\n\r\n"
        self._socket.sendall(head.encode() + self.BODY[:5])
        # gunicorn logs this when the application has the request.
        answer = self._socket.recv(100)
        assert answer.startswith(b"HTTP/1.1 100 "), answer

    def finish(self) -> bytes:
        """Send the rest, and return the status line."""
        self._socket.sendall(self.BODY[5:])
        with self._socket, self._socket.makefile("rb") as answer:
            return answer.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def python_for(user: str) -> tuple[list[str], dict[str, str]] | None:
    """Find a Python of this version that another user may run, and an environment in which it finds our
    packages.
    """
    environment = {"PYTHONPATH": sysconfig.get_path("purelib")}
    for python in (sys.executable, "/usr/bin/python3", f"/usr/bin/python3.{sys.version_info.minor}"):
        command = [
            python,
            "-c",
            f"import sys, gunicorn, psycopg2; assert sys.version_info[:2] == {sys.version_info[:2]}",
        ]
        try:
            result = subprocess.run(
                command, **as_user(user), cwd=CHECKOUT, env=environment, capture_output=True, check=False
            )
        except OSError:
            continue
        if result.returncode == 0:
            return [python, *GUNICORN], environment
    return None
