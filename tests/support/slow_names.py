"""A name server that answers when a test lets it, for a service with tests/support/slow_names.conf.py."""

import sys
import threading
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Self

from tests.support.processes import GUNICORN

SLOW = ".slow.example"


class SlowNames(ThreadingTCPServer):
    """`looked_up` are the names in order, and `over` ends all lookups."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Lookup)
        self.looked_up: list[str] = []
        self.over = threading.Event()
        self.command = [sys.executable, *GUNICORN, "--config", "tests/support/slow_names.conf.py"]
        self.settings = {"SLOW_NAMES_PORT": str(self.server_address[1])}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Lookup(StreamRequestHandler):
    server: SlowNames

    def handle(self) -> None:
        self.server.looked_up.append(self.rfile.readline().decode().strip())
        self.server.over.wait()
