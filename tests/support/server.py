"""A client of the real server with the interface of Flask's test client, and concurrent requests."""

import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from tests.support.contract import check

T = TypeVar("T")


class Methods(ABC):
    """A client's methods of HTTP."""

    @abstractmethod
    def open(self, path: str, method: str = "GET", **options: Any) -> Any:
        """Send a request, and return the response."""

    def get(self, path: str, **options: Any) -> Any:
        return self.open(path, "GET", **options)

    def post(self, path: str, **options: Any) -> Any:
        return self.open(path, "POST", **options)

    def put(self, path: str, **options: Any) -> Any:
        return self.open(path, "PUT", **options)

    def patch(self, path: str, **options: Any) -> Any:
        return self.open(path, "PATCH", **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.open(path, "DELETE", **options)


class ServerClient(Methods):
    """Opens a new connection for each request, so that any worker may answer."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.port = port
        host = f"[{address}]" if ":" in address else address
        # Close connections by the header and not by a limit of keep-alive connections: with that, httpx may close one
        # that it has just given to another thread.
        self._http = httpx.Client(
            base_url=f"http://{host}:{port}",
            timeout=60,
            trust_env=False,
            # Without certificate authorities, which take 30 ms to read.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            headers={"Connection": "close"},
            limits=httpx.Limits(max_connections=None),
        )

    def open(self, path: str, method: str = "GET", **options: Any) -> Any:
        """Open a path or link; return the response, checked against openapi.yaml."""
        parts = urlsplit(path)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        answer = self._http.request(method, target, **options)
        # Drop headers of this connection, such as Content-Length.
        response = Response(answer.content, answer.status_code, list(answer.headers.multi_items()))
        check(EnvironBuilder(target, method=method).get_request(), response, is_of_api=False)
        return response

    def set_cookie(self, name: str, value: str) -> None:
        # Replace the cookie that the server has set: of two with one name, neither counts.
        self._http.cookies.set(name, value, domain="127.0.0.1")

    def forget_cookies(self) -> None:
        self._http.cookies.clear()

    def close(self) -> None:
        self._http.close()


@contextmanager
def served(app: Any, port: int = 0) -> Iterator[ServerClient]:
    """Serve an application from threads of this process: to start gunicorn takes two seconds of CPU."""
    server = make_server("127.0.0.1", port, app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    client = ServerClient(server.port)
    yield client
    client.close()
    server.shutdown()
    thread.join()
    server.server_close()


class _Silent(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


def at_once(count: int, call: Callable[[int], T]) -> list[T]:
    """Call `call(0)` … `call(count - 1)` in as many threads, started at the same moment, and return the
    results.
    """
    start = Barrier(count)

    def run(number: int) -> T:
        start.wait()
        return call(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


@contextmanager
def repeated(*calls: Callable[[], Any]) -> Iterator[list[list[Any]]]:
    """Repeat calls, each in its own thread, and yield their growing lists of results."""
    is_over = threading.Event()
    results: list[list[Any]] = [[] for _ in calls]

    def repeat(number: int) -> None:
        while not is_over.wait(0.02):
            results[number].append(calls[number]())

    with ThreadPoolExecutor(len(calls)) as threads:
        running = [threads.submit(repeat, number) for number in range(len(calls))]
        try:
            yield results
        finally:
            is_over.set()
        for each in running:
            each.result()


def until_served(send: Callable[[], Any]) -> Any:
    """Send a request until the response is not 503, and return that."""
    while (response := send()).status_code == 503:
        assert response.headers["Retry-After"]
    return response
