"""The test server: an HTTP interface on loopback that starts services and acts on them; docs/testing.md.

It ends when its standard input closes, if that is a pipe: so it always ends with the process that started it.
"""

import hmac
import itertools
import json
import os
import secrets
import signal
import stat
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import psycopg2

from auth.ops.processes.embedded_postgres import EmbeddedPostgresError
from auth.ops.testkit import Refused, databases
from auth.ops.testkit.running_service import Service
from auth.web.errors import ApiError

_ACTS = {
    "user", "users", "token", "cookies", "totp", "inbox", "webhooks", "hooks", "answer",
    "fail", "age", "reset",
}  # fmt: skip
_LONGEST_BODY = 16 * 1024 * 1024


class Server:
    def __init__(self, directory: Path, made: databases.Databases) -> None:
        self.key, self._capture_key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._directory, self._databases = directory, made
        self._services: dict[str, Service] = {}
        self._numbers = itertools.count()
        # The next tasks of the main thread; None ends it.
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._has_ended = threading.Event()

    def run(self) -> None:
        """Serve until `stop`."""
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        while job := self._jobs.get():
            job()
        for service in self._services.values():
            service.end()
        for service in self._services.values():
            service.join()

    def stop(self) -> None:
        """Safe in signal handlers."""
        self._jobs.put(None)

    def announce_end(self) -> None:
        """Answer the requests to /stop, unless the process ends first."""
        self._has_ended.set()

    def answer(self, path: str, key: str, headers: dict[str, str], text: str) -> tuple[int, Any]:
        number, _, rest = path.strip("/").partition("/")
        if rest.startswith(f"{self._capture_key}/"):
            return self._services[number].capture(rest.partition("/")[2], headers, text)
        if not hmac.compare_digest(key.encode(), f"Bearer {self.key}".encode()):
            return 401, {"error": "The key is missing or wrong"}
        arguments = json.loads(text or "{}")
        if path == "/start":
            return 200, self._start(**arguments)
        if path == "/stop":
            self.stop()
            self._has_ended.wait()
            return 200, {}
        if number not in self._services or rest not in _ACTS:
            return 404, {"error": f"There is no {path}"}
        return 200, getattr(self._services[number], rest)(**arguments)

    def _start(self, settings: dict[str, str] | None = None) -> dict[str, Any]:
        """Start a service, and return the data for its client."""
        started: Future[Service] = Future()
        number = str(next(self._numbers))

        def start() -> None:
            try:
                captures = f"{self.url}/{number}/{self._capture_key}"
                database = self._databases.make()
                service = Service(self._directory / number, database, settings or {}, captures)
                self._services[number] = service
                started.set_result(service)
            except Exception as error:
                started.set_exception(error)

        self._jobs.put(start)
        return started.result().wait() | {"control": f"{self.url}/{number}"}


class _Http(ThreadingHTTPServer):
    daemon_threads = True  # requests do not keep the process from ending
    request_queue_size = 64
    owner: Server


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    wbufsize = -1

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _LONGEST_BODY:
            self.send_error(413)
            return
        key = self.headers.get("Authorization", "")
        try:
            content = self._chunks() if "Transfer-Encoding" in self.headers else self.rfile.read(length)
            status, body = self.server.owner.answer(self.path, key, dict(self.headers), content.decode())
        except (Refused, TypeError, ValueError) as error:
            status, body = 400, {"error": str(error)}
        except ApiError as error:  # raised by a hook
            status, body = 400, {"error": error.msg}
        except Exception as error:
            traceback.print_exc()
            status, body = 500, {"error": f"{type(error).__name__}: {error}"}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        # Otherwise Java's client keeps the connection alive, despite HTTP/1.0.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _chunks(self) -> bytes:
        """Read a chunked body (RFC 9112, section 7.1), which some clients send."""
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    as_json = sys.argv[1:] == ["json"]
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-test-"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
        try:
            made = stack.enter_context(databases.opened(Path(directory).resolve() / "state"))
        except (Refused, EmbeddedPostgresError, psycopg2.Error) as error:
            sys.exit(str(error))
        server = Server(Path(directory).resolve(), made)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: server.stop())
        _end_with_standard_input(server)
        control = {"control": server.url, "key": server.key}
        print(json.dumps(control) if as_json else f"Control: {server.url}\nKey: {server.key}", flush=True)
        server.run()
    server.announce_end()


def _end_with_standard_input(server: Server) -> None:
    mode = os.fstat(0).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):

        def watch() -> None:
            while os.read(0, 4096):
                pass
            server.stop()

        threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
