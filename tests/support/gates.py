"""Gates, their proxies and tools, in this process: for what a proxy adds, see tests/system/browser/deploy/test_gate_proxies.py."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from werkzeug.test import Client, TestResponse
from werkzeug.wrappers import Response

from auth.openid.gates import registered
from auth.web import g
from tests.support.links import SITE
from tests.support.pages import Visitor
from tests.support.user_agent import Page

PATHS = ("/.latchkey/start", "/.latchkey/callback", "/.latchkey/sign-out")
ORIGIN = "https://docs.example.com"


@dataclass
class Proxy:
    """What deploy/gates tells a proxy to do. The tool answers with its name, and keeps what it got."""

    client: Any
    origin: str
    seen: list[dict[str, str]] = field(default_factory=list)

    def open(self, path: str, **request: Any) -> TestResponse:
        request["base_url"] = self.origin
        if path.partition("?")[0] in PATHS:
            return self.client.open(path, **request)
        answer = self.ask(path, request["headers"])
        if answer.status_code != 204:
            return answer
        self.seen.append({name: answer.headers[name] for name in answer.headers.keys()})  # noqa: SIM118
        tool = Client(Response(f"{urlsplit(self.origin).netloc}{path}"))
        return tool.get(path)

    def ask(self, path: str = "/", headers: Any = None, query: str = "") -> TestResponse:
        """Return the answer of GET /gate about a request."""
        forwarded = {"X-Forwarded-Host": urlsplit(self.origin).netloc, "X-Forwarded-Uri": path}
        return self.client.get(f"/gate{query}", headers={**(headers or {}), **forwarded})


def create(app: Any, origin: str = ORIGIN, *roles: str, name: str = "docs") -> str:
    """Create a gate as the command does, and return its id."""
    with app.app_context():
        g.actor = "service_role"
        g.client = dict.fromkeys(("ip", "network", "user_agent"))
        return registered.create(name, origin, list(roles))["client_id"]


class GateVisitor(Visitor):
    """A browser at the service, and at gates. Paths stand for URLs of the service."""

    def __init__(self, app: Any, *origins: str) -> None:
        super().__init__(app)
        self.proxies = {origin: Proxy(self.client, origin) for origin in origins or (ORIGIN,)}
        self._sites = {**self._sites, **self.proxies}

    def at(self, path: str = "/", origin: str = ORIGIN) -> Page:
        """Open a path of a tool as if typed in."""
        return self.visit(origin + path)

    def cookie_of(self, origin: str = ORIGIN) -> str:
        """Return the value of the cookie that this browser has for a gate, or nothing."""
        name, host = ("__Host-latchkey-gate", urlsplit(origin).hostname)
        return next((each.value for each in self.cookies if (each.name, each.host) == (name, host)), "")

    @property
    def tool(self) -> dict[str, str]:
        """What the tool of the first gate got last."""
        return next(iter(self.proxies.values())).seen[-1]


def shown(page: Page) -> str:
    """Return where a page is: the tool's, or the path of the service."""
    return page.text if page.status == 200 and page.url.startswith("https:") else page.url.removeprefix(SITE)
