"""Real proxies in front of tools, run with what `latchkey gates create` prints, and a tool that records."""

import base64
import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx
import pytest

from auth.openid.gates.snippets import snippet
from tests.support.local_server import Handler, LocalServer
from tests.support.processes import free_port, wait_until
from tests.support.programs import find_program

FILE = bytes(range(256)) * 40
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


class Tool(LocalServer):
    """A tool without a login: pages, a form, assets, a file with ranges, a WebSocket that echoes, and tunnels of any
    other protocol, in which it goes on to read requests.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        tool = self

        class Pages(Handler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                tool.requests.append((self.command, self.path, headers, body))
                path = self.path.partition("?")[0]
                if headers.get("upgrade") == "websocket" and "sec-websocket-key" in headers:
                    self._echo(headers["sec-websocket-key"])
                elif headers.get("upgrade", "websocket") != "websocket":
                    self.reply(101, {"Upgrade": headers["upgrade"], "Connection": "Upgrade"}, b"")
                elif path == "/file":
                    self._send_range(headers.get("range"))
                elif path.startswith("/asset/"):
                    self.reply(200, {"Content-Type": "text/javascript"}, b"self.n = (self.n || 0) + 1")
                else:
                    self.reply(200, {"Content-Type": "text/html"}, self._page(path, headers, body).encode())

            do_POST = do_GET

            def _page(self, path: str, headers: dict[str, str], body: bytes) -> str:
                assets = (
                    "".join(f"<script src=/asset/{n}></script>" for n in range(40)) if path == "/many" else ""
                )
                said = (
                    f"{self.command} {self.path} {body.decode()} for {headers.get('remote-user', 'nobody')}"
                )
                form = (
                    "<form method=post action=/form><input name=typed value=text><button>Send</button></form>"
                )
                out = "<form method=post action=/.latchkey/sign-out><button>Sign out</button></form>"
                return f"<!doctype html><link rel=icon href=data:,><p>{said}</p>{form}{out}{assets}"

            def _send_range(self, asked: str | None) -> None:
                first, last = (
                    map(int, asked.removeprefix("bytes=").split("-")) if asked else (0, len(FILE) - 1)
                )
                part = {"Content-Range": f"bytes {first}-{last}/{len(FILE)}"} if asked else {}
                self.reply(206 if asked else 200, part, FILE[first : last + 1])

            def _echo(self, key: str) -> None:
                digest = hashlib.sha1(f"{key}{_MAGIC}".encode(), usedforsecurity=False).digest()
                accepted = base64.b64encode(digest).decode()
                self.send_response(101)
                for name, value in {"Upgrade": "websocket", "Connection": "Upgrade"}.items():
                    self.send_header(name, value)
                self.send_header("Sec-WebSocket-Accept", accepted)
                self.end_headers()
                self.wfile.flush()
                self.close_connection = True
                # One short, masked frame of text.
                _, length, *mask = self.rfile.read(6)
                text = bytes(each ^ mask[n % 4] for n, each in enumerate(self.rfile.read(length & 127)))
                self.wfile.write(bytes([0x81, len(text)]) + text)
                self.wfile.flush()

        super().__init__(Pages)
        self.address = urlsplit(self.url).netloc

    @property
    def last(self) -> dict[str, str]:
        """The headers of the last request."""
        return self.requests[-1][2]


class GateProxy:
    """A proxy in front of tools, by their origins on this machine: inside the context it serves."""

    program: str
    package: str | None
    suffix: str

    def __init__(self, directory: Path, service: str, tools: dict[str, str]) -> None:
        self.port, self.log = free_port(), directory / "proxy.log"
        # Everybody can resolve the last name, and browsers the others.
        hosts = {name: f"{name}.localhost".removeprefix("localhost.") for name in tools}
        self.origins = {name: f"http://{host}:{self.port}" for name, host in hosts.items()}
        self.directory = directory
        texts = [
            snippet(self.suffix, self.origins[name], tool=tool, service=service)
            for name, tool in tools.items()
        ]
        self.command = self._configure(
            find_program(self.program, self.package, "GATES ARE NOT TESTED"), texts
        )

    def _configure(self, program: str, texts: list[str]) -> list[str]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log, env=environment)
        wait_until(self._serves)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _serves(self) -> bool:
        if self._process.poll() is not None:
            pytest.fail(f"{self.program} refuses the file: {self.log.read_text()[-2000:]}")
        try:
            # Traefik knows no host until it has read its files.
            return self.ask(next(iter(self.origins))).status_code != 404
        except httpx.TransportError:
            return False

    def ask(self, name: str, path: str = "/", method: str = "GET", **options: object) -> httpx.Response:
        """Send a request to a tool, whose path is sent as it is."""
        headers = httpx.Headers([*httpx.Headers(options.pop("headers", None)).raw])  # type: ignore[arg-type]
        headers.setdefault("Host", urlsplit(self.origins[name]).netloc)
        url = httpx.URL(f"http://127.0.0.1:{self.port}/").copy_with(raw_path=path.encode())
        return httpx.request(method, url, headers=headers, timeout=60, **options)  # type: ignore[arg-type]


class NginxGate(GateProxy):
    program, package, suffix = "nginx", "nginx", "nginx"

    def _configure(self, program: str, texts: list[str]) -> list[str]:
        servers = "\n".join(texts)
        servers = servers.replace("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port};")
        servers = re.sub(r"\n *(listen \[::\]|ssl_certificate).*", "", servers)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {self.directory}/{kind};" for kind in kinds)
        user = "user root;" if os.geteuid() == 0 else ""
        (self.directory / "nginx.conf").write_text(
            f"{user} daemon off; worker_processes 1; pid {self.directory}/pid; error_log {self.log} warn;\n"
            f"events {{}} http {{ access_log off; {paths}\n{servers}}}\n"
        )
        return [program, "-e", str(self.log), "-c", str(self.directory / "nginx.conf")]


class CaddyGate(GateProxy):
    program, package, suffix = "caddy", "caddy", "caddy"

    def _configure(self, program: str, texts: list[str]) -> list[str]:
        file = self.directory / "Caddyfile"
        file.write_text("\n".join(["{\nadmin off\nauto_https off\n}", *texts]))
        return [program, "run", "--config", str(file), "--adapter", "caddyfile"]


class TraefikGate(GateProxy):
    program, package, suffix = "traefik", None, "traefik"

    def _configure(self, program: str, texts: list[str]) -> list[str]:
        files = self.directory / "files"
        files.mkdir()
        for number, text in enumerate(texts):
            (files / f"{number}.yml").write_text(text.replace("      tls: {}\n", ""))
        return [
            program,
            f"--entryPoints.websecure.address=127.0.0.1:{self.port}",
            f"--providers.file.directory={files}",
            "--global.checkNewVersion=false",
            "--global.sendAnonymousUsage=false",
        ]
