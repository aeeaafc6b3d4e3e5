"""nginx, Caddy and Traefik with a given text in front of a tool on another port, and a tool that records."""

import os
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.local_server import Handler, LocalServer
from tests.support.processes import free_port, wait_until
from tests.support.programs import find_program


class Tool(LocalServer):
    """A tool without a login. It opens each requested tunnel, and reads further requests from it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        tool = self

        class Pages(Handler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                tool.requests.append((self.path, headers))
                if "upgrade" in headers:
                    self.reply(101, {"Upgrade": headers["upgrade"], "Connection": "Upgrade"})
                else:
                    self.reply(200, {"Content-Type": "text/html"}, b"<link rel=icon href=data:,>The tool")

            do_POST = do_GET

        super().__init__(Pages)
        self.address = urlsplit(self.url).netloc


class ToolProxy:
    """A proxy, which serves inside the context. `replaced` maps addresses of the text to those of the test."""

    program: str
    package: str | None
    kind: str
    """The language of its blocks in documents."""

    def __init__(self, directory: Path, text: str, host: str, replaced: Mapping[str, str]) -> None:
        self.port, self.log, self.directory = free_port(), directory / "proxy.log", directory
        for documented, actual in replaced.items():
            assert documented in text
            text = text.replace(documented, actual)
        self.host, self.netloc = host, f"{host}:{self.port}"
        program = find_program(self.program, self.package, f"NOT TESTED WITH {self.program.upper()}")
        self.command = self._configure(program, text)

    def _configure(self, program: str, text: str) -> list[str]:
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
            return self.ask("/starts").status_code != 404
        except httpx.TransportError:
            return False

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> httpx.Response:
        """Send a request for the tool. Names of headers have `__` for `-`."""
        all_headers = {"Host": self.netloc} | {
            name.replace("__", "-"): value for name, value in headers.items()
        }
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx.request(method, url, headers=all_headers, timeout=60, trust_env=False)

    def ask_raw(self, head: str) -> str:
        """Send the head of a request as it is, and return the status line."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(f"{head}\r\n\r\n".encode())
            with connection.makefile("rb") as answer:
                return answer.readline().decode()


class NginxProxy(ToolProxy):
    program, package, kind = "nginx", "nginx", "nginx"

    def _configure(self, program: str, text: str) -> list[str]:
        text = text.replace("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port};")
        text = re.sub(r"\n *(listen \[::\]|ssl_certificate).*", "", text)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {self.directory}/{kind};" for kind in kinds)
        user = "user root;" if os.geteuid() == 0 else ""
        (self.directory / "nginx.conf").write_text(
            f"{user} daemon off; worker_processes 1; pid {self.directory}/pid; error_log {self.log} warn;\n"
            f"events {{}} http {{ access_log off; {paths}\n{text}}}\n"
        )
        return [program, "-e", str(self.log), "-c", str(self.directory / "nginx.conf")]


class CaddyProxy(ToolProxy):
    program, package, kind = "caddy", "caddy", "caddyfile"

    def _configure(self, program: str, text: str) -> list[str]:
        file = self.directory / "Caddyfile"
        text = text.replace(f"{self.host} {{", f"http://{self.netloc} {{")
        file.write_text("{\nadmin off\nauto_https off\n}\n" + text)
        return [program, "run", "--config", str(file), "--adapter", "caddyfile"]


class TraefikProxy(ToolProxy):
    program, package, kind = "traefik", None, "yaml"

    def _configure(self, program: str, text: str) -> list[str]:
        files = self.directory / "files"
        files.mkdir()
        text = text.replace("      tls: {}\n", "").replace(" tls: {},", "")
        (files / "tool.yml").write_text(text)
        return [
            program,
            f"--entryPoints.websecure.address=127.0.0.1:{self.port}",
            f"--providers.file.directory={files}",
            "--global.checkNewVersion=false",
            "--global.sendAnonymousUsage=false",
        ]


PROXIES = {each.program: each for each in (NginxProxy, CaddyProxy, TraefikProxy)}
