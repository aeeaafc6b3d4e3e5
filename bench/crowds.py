"""Latency of other requests with slow clients, idle connections and more log-ins than the cores can hash,
with gunicorn alone and behind nginx.
"""

import resource
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench import load
from bench.figures import ROUNDS, Figure, against, alone
from bench.flood import seconds_until_calm
from bench.flooder import flood
from bench.load import Load
from bench.memory import proportional_mebibytes
from bench.people import People
from bench.service import RAISED, BenchService, new_state_dir
from tests.support.processes import CHECKOUT, free_port, wait_until

SLOW, IDLE, TOO_MANY = 1000, 5000, 400
# Longer than the deadline of gunicorn, so that slow clients reconnect.
SECONDS = 11
_OVERLOAD_SECONDS = 4
_DRIP = 5
_HEAD = b"GET /settings HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def measure() -> Iterator[Figure]:
    """Yield the figures."""
    _allow_open_files(2 * IDLE)
    with _service() as (service, tokens):
        yield from _measure(service.port, "gunicorn alone", tokens)
        if shutil.which("nginx"):
            with nginx(service.port) as port:
                yield from _measure(port, "behind nginx", tokens)
    with _service() as (service, tokens):
        yield from _overload(service, tokens)


def _allow_open_files(number: int) -> None:
    """Raise the limit of open files for this process and its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, max(number, hard)))


@contextmanager
def _service() -> Iterator[tuple[BenchService, list[str]]]:
    arguments = {"GUNICORN_CMD_ARGS": f"--worker-connections {IDLE}"}
    with new_state_dir() as state_dir, BenchService(state_dir, **RAISED, **arguments) as service:
        people = People(service, 1000)
        people.insert()
        yield service, people.access_tokens(people.refresh_tokens(64))


def _measure(port: int, where: str, tokens: list[str]) -> Iterator[Figure]:
    crowds: dict[str, AbstractContextManager[None]] = {
        "no other clients": nullcontext(),
        f"{SLOW:,} slow clients": slow_clients(port, SLOW),
        f"{IDLE:,} idle connections": idle_connections(port, IDLE),
    }
    for name, crowd in crowds.items():
        with crowd:
            answered = load.run(port, "get_as", "/user", tokens, seconds=SECONDS, connections=4, pause=20)
        yield alone(f"p99 of GET /user with {name}, {where}, in ms", answered.p99)
        yield alone(f"failed GET /user with {name}, {where}", answered.failures, "≤ 0")


def _overload(service: BenchService, tokens: list[str]) -> Iterator[Figure]:
    def reader(seconds: int) -> Load:
        return load.run(service.port, "get_as", "/user", tokens, seconds=seconds, connections=4, pause=20)

    before, during, after, refused, calm, failures = [], [], [], [], [], 0
    idle = peak = proportional_mebibytes(service.process.pid)
    for _ in range(ROUNDS):
        before.append(reader(2).p99)
        with flood(service.port, TOO_MANY) as result, ThreadPoolExecutor(1) as threads:
            reading = threads.submit(reader, _OVERLOAD_SECONDS)
            # Summing up the memory takes milliseconds of a core, so do it rarely.
            while wait([reading], 0.5).not_done:
                peak = max(peak, proportional_mebibytes(service.process.pid))
        during.append(reading.result().p99)
        failures += reading.result().failures
        assert result.refused_p99 is not None, result
        refused.append(result.refused_p99)
        calm.append(seconds_until_calm(service))
        after.append(reader(2).p99)
    yield against(
        f"p99 of GET /user while {TOO_MANY} clients log in at once, in ms, against before", during, before
    )
    yield alone(f"failed GET /user while {TOO_MANY} clients log in at once, turned away too", failures)
    yield alone("p99 of the first answers of 503, in ms", median(refused))
    yield alone(f"memory of the whole service while {TOO_MANY} clients log in at once, in MiB", peak, "≤ 280")
    yield alone("memory added by that, in MiB", peak - idle)
    yield alone("seconds until a log-in is as quick as before, when they have gone", median(calm))
    yield against("p99 of GET /user then, in ms, against before", after, before)


@contextmanager
def slow_clients(port: int, number: int) -> Iterator[None]:
    """Send a byte of a head every few seconds over `number` connections, reconnecting closed ones."""
    connections = [_connect(port, _HEAD) for _ in range(number)]
    is_over = threading.Event()

    def drip() -> None:
        while not is_over.wait(_DRIP):
            for place, connection in enumerate(connections):
                try:
                    connection.send(b"x")
                except OSError:
                    connection.close()
                    connections[place] = _connect(port, _HEAD)

    with ThreadPoolExecutor(1) as threads:
        dripping = threads.submit(drip)
        try:
            yield
        finally:
            is_over.set()
            dripping.result()
            for connection in connections:
                connection.close()


@contextmanager
def idle_connections(port: int, number: int) -> Iterator[None]:
    """Open `number` connections and send nothing."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(_connect(port, b""))
        yield


def _is_taken(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def _connect(port: int, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(sent)
    return connection


@contextmanager
def nginx(port: int) -> Iterator[int]:
    """Run nginx in front of the service, as in deploy/nginx.conf but without TLS; yield its port."""
    own_port = free_port()
    text = (CHECKOUT / "deploy" / "nginx.conf").read_text()
    upstream = text[text.index("upstream") : text.index("server {\n    listen 80")].replace(
        "127.0.0.1:8000", f"127.0.0.1:{port}"
    )
    server = text[text.index("    server_tokens") :]
    with TemporaryDirectory(prefix="latchkey-bench-") as directory:
        places = "".join(
            f"{kind}_temp_path {directory}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        events = f"pid {directory}/pid; error_log {directory}/error.log; worker_processes auto; worker_rlimit_nofile 20000; events {{ worker_connections 8000; }}"
        path = Path(directory, "nginx.conf")
        path.write_text(
            f"{events} http {{ {places} {upstream} server {{ listen 127.0.0.1:{own_port};\n{server} }}"
        )
        process = subprocess.Popen(
            ["nginx", "-c", str(path), "-e", f"{directory}/error.log", "-g", "daemon off;"]
        )
        try:
            wait_until(lambda: _is_taken(own_port))
            yield own_port
        finally:
            process.terminate()
            process.wait()
