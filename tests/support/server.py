"""A client of the real server, with the manners of Flask's test client, and a way to ask many things at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from tests.support.contract import check

T = TypeVar("T")


class ServerClient:
    """Asks over a new connection each time, so that any worker may answer."""

    def __init__(self, port: int) -> None:
        self.port = port
        # Not by a limit of connections kept alive: under it, httpx may close one that it has just given to
        # another thread.
        self._http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            timeout=20,
            trust_env=False,
            headers={"Connection": "close"},
            limits=httpx.Limits(max_connections=None),
        )

    def open(self, path: str, method: str = "GET", **options: Any) -> Any:
        """Take a path or a link; return the response, held to openapi.yaml."""
        parts = urlsplit(path)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        answer = self._http.request(method, target, **options)
        # Content-Length and the like are this connection's affair.
        response = Response(answer.content, answer.status_code, list(answer.headers.multi_items()))
        check(EnvironBuilder(target, method=method).get_request(), response)
        return response

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **options: Any) -> Any:
        return self.open(path, "GET", **options)

    def post(self, path: str, **options: Any) -> Any:
        return self.open(path, "POST", **options)

    def put(self, path: str, **options: Any) -> Any:
        return self.open(path, "PUT", **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.open(path, "DELETE", **options)


def at_once(count: int, act: Callable[[int], T]) -> list[T]:
    """Return what `act(0)` … `act(count - 1)` return, begun at the same moment in as many threads."""
    start = Barrier(count)

    def begin(number: int) -> T:
        start.wait()
        return act(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def until_served(act: Callable[[], Any]) -> Any:
    """Return the answer of a server that was not too busy: a 503 asks for another try."""
    while (response := act()).status_code == 503:
        assert response.headers["Retry-After"]
    return response
