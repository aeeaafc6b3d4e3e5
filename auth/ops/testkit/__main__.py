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
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import psycopg2
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from auth.ops.processes.embedded_postgres import EmbeddedPostgresError
from auth.ops.testkit import Refused, databases
from auth.ops.testkit.running_service import Service
from auth.web.errors import ApiError

_ACTS = {
    "user", "users", "organization", "member", "token", "cookies", "totp", "inbox", "webhooks", "hooks",
    "answer", "fail", "age", "reset",
}  # fmt: skip


class Server:
    def __init__(self, directory: Path, kit_databases: databases.Databases) -> None:
        self.key, self._capture_key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._directory, self._databases = directory, kit_databases
        self._services: dict[str, Service] = {}
        self._numbers = itertools.count()
        # The next tasks of the main thread; None ends it.
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        respond = Request.application(self._respond)
        self._http = make_server("127.0.0.1", 0, respond, threaded=True, request_handler=_Handler)
        self.url = f"http://127.0.0.1:{self._http.port}"
        # When it is set, the requests to /stop are answered, unless the process ends first.
        self.has_ended = threading.Event()

    def run(self) -> None:
        """Serve until `stop`."""
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        while job := self._jobs.get():
            job()
        for service in self._services.values():
            service.process.end()
        for service in self._services.values():
            service.process.join()

    def stop(self) -> None:
        """Safe in signal handlers."""
        self._jobs.put(None)

    def _respond(self, request: Request) -> Response:
        key, headers = request.headers.get("Authorization", ""), request.environ["latchkey.headers"]
        try:
            status, body = self._answer(request.path, key, headers, request.get_data().decode())
        except (Refused, TypeError, ValueError) as error:
            status, body = 400, {"error": str(error)}
        except ApiError as error:  # raised by a hook
            status, body = 400, {"error": error.msg}
        except Exception as error:
            traceback.print_exc()
            status, body = 500, {"error": f"{type(error).__name__}: {error}"}
        return Response(json.dumps(body), status, content_type="application/json")

    def _answer(self, path: str, key: str, headers: dict[str, str], text: str) -> tuple[int, Any]:
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
            self.has_ended.wait()
            return 200, {}
        if number not in self._services or rest not in _ACTS:
            return 404, {"error": f"There is no {path}"}
        return 200, getattr(self._services[number], rest)(**arguments)

    def _start(self, settings: dict[str, str] | None = None) -> dict[str, Any]:
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


class _Handler(WSGIRequestHandler):
    wbufsize = -1  # a response is one segment

    def make_environ(self) -> dict[str, Any]:
        # WSGI does not keep how the names of headers were written.
        return super().make_environ() | {"latchkey.headers": dict(self.headers)}

    def log_request(self, *_: object) -> None:
        pass


def main() -> None:
    as_json = sys.argv[1:] == ["json"]
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="latchkey-test-"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
        try:
            kit_databases = stack.enter_context(databases.opened(Path(directory).resolve() / "state"))
        except (Refused, EmbeddedPostgresError, psycopg2.Error) as error:
            sys.exit(str(error))
        server = Server(Path(directory).resolve(), kit_databases)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: server.stop())
        _end_with_standard_input(server)
        control = {"control": server.url, "key": server.key}
        print(json.dumps(control) if as_json else f"Control: {server.url}\nKey: {server.key}", flush=True)
        server.run()
    server.has_ended.set()


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
