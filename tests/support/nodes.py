"""Nodes of several releases on one database, for tests that are written for an application in this process."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
from werkzeug.datastructures import Headers

from auth.web.context import EXTENSION


class Turns:
    """The nodes behind one origin, as a browser sees them. Requests go to `node`."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def open(self, path: str, *, method: str, headers: Any, data: str | None, base_url: str) -> Any:
        headers |= {"Host": urlsplit(base_url).netloc, "Connection": "close"}
        url = f"http://127.0.0.1:{self.node.port}{path}"
        answer = httpx.request(method, url, headers=headers, content=data, trust_env=False, timeout=60)
        response_headers = Headers(answer.headers.multi_items())
        return SimpleNamespace(status_code=answer.status_code, headers=response_headers, text=answer.text)


class NodeApp:
    """A node in the place of a Flask application: its clients, and the database for what tests insert."""

    def __init__(self, client: Any, db: Any) -> None:
        self._client = client
        self.extensions = {EXTENSION: SimpleNamespace(db=db)}

    def test_client(self, *, use_cookies: bool = True) -> Any:
        return self._client if use_cookies else Turns(self._client)
