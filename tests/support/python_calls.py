"""Counts the Python calls of requests to an application in this process, libraries included."""

import sys
from collections import defaultdict
from types import FrameType
from typing import Any

from flask import Flask
from werkzeug.test import EnvironBuilder

from tests.support import budgets


class Counter:
    """Sends requests to an application, and keeps the calls of each. Those of other threads do not count."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._calls: dict[str, list[int]] = defaultdict(list)

    def send(self, name: str, status: str = "200 OK", **options: Any) -> bytes:
        """Send a request, named by its method, route and perhaps more words, and return the body of the answer."""
        method, route, *_ = name.split()
        environ = EnvironBuilder(route, method=method, **options).get_environ()
        statuses, calls = [], 0

        def note(_frame: FrameType, event: str, _arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        def start(status: str, *_rest: object) -> Any:
            statuses.append(status)
            return lambda _data: None

        sys.setprofile(note)
        try:
            data = b"".join(self._app(environ, start))
        finally:
            sys.setprofile(None)
        assert statuses == [status], data
        self._calls[name].append(calls)
        return data

    def check(self) -> None:
        """Fail if a request exceeds its budget. Its first runs fill caches, or prepare their statements on another
        connection, so the fewest calls count.
        """
        measured = {name: {"Python calls": min(calls)} for name, calls in self._calls.items()}
        print(measured)
        budgets.check(measured)
