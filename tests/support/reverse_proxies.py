"""The proxies of deploy/, run with the shipped files: only names, addresses and paths are replaced."""

import os
import re
import shutil
import socket
import ssl
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

import httpx
import pytest

from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.programs import find_program
from tests.support.smtp_server import Certificate


def blocks_of_guide(language: str) -> list[str]:
    text = (CHECKOUT / "docs" / "deployment.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class ReverseProxy(ABC):
    """Runs inside the context, in front of `upstreams`, with a certificate that `tls` trusts.

    The lines of docs/deployment.md allow only the networks in `operators` to the console.
    """

    name: str  # of the server

    def __init__(
        self, directory: Path, *upstreams: str, operators: str | None = None, is_rsa: bool = False
    ) -> None:
        self._operators = operators
        self.directory = directory
        self.log = directory / "latchkey.log"
        self.port, self.plain_port = free_port(), free_port()
        self.certificate = Certificate(directory, is_rsa=is_rsa).path
        self.tls = ssl.create_default_context(cafile=self.certificate)
        self.url = f"https://localhost:{self.port}"
        self.environment: dict[str, str] = {}
        self.command = self._configure(upstreams)

    @abstractmethod
    def _configure(self, upstreams: tuple[str, ...]) -> list[str]:
        """Write the configuration and return the command line."""

    def _shipped(self, name: str, replacements: dict[str, str]) -> str:
        text = (CHECKOUT / "deploy" / name).read_text()
        for shipped, replacement in replacements.items():
            assert shipped in text
            text = text.replace(shipped, replacement)
        return text

    def _documented(self, language: str) -> list[str]:
        """Return the lines for the console, or nothing if there are no `operators`."""
        blocks = blocks_of_guide(language)
        return [block.replace("10.8.0.0/16", self._operators) if self._operators else "" for block in blocks]

    def __enter__(self) -> Self:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), **self.environment}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log, env=environment)
        wait_until(self._listens)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _listens(self) -> bool:
        if self._process.poll() is not None:
            pytest.fail(f"{self.command[0]} refuses the file: {self.log.read_text()[-2000:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self.tls, timeout=60)

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return self.tls.wrap_socket(plain, server_hostname="localhost")


class Nginx(ReverseProxy):
    """The rate is raised, so that no test depends on the speed of the machine."""

    name = "auth.example.com"

    def __init__(
        self,
        directory: Path,
        *upstreams: str,
        rate: str = "1000000r/s",
        operators: str | None = None,
        is_rsa: bool = False,
    ) -> None:
        self._rate = rate
        super().__init__(directory, *upstreams, operators=operators, is_rsa=is_rsa)

    def _configure(self, upstreams: tuple[str, ...]) -> list[str]:
        program = find_program("nginx", "nginx", "DEPLOY/NGINX.CONF IS NOT TESTED")
        before_server, in_server = self._documented("nginx")
        for name in ("fullchain.pem", "privkey.pem"):
            shutil.copy(self.certificate, self.directory / name)
        text = self._shipped(
            "nginx.conf",
            {
                "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
                "listen 443 ": f"listen 127.0.0.1:{self.port} ",
                "server 127.0.0.1:8000 max_fails=0;": " ".join(
                    f"server {upstream} max_fails=0;" for upstream in upstreams
                ),
                "/etc/letsencrypt/live/auth.example.com": str(self.directory),
                "root /var/www/html": f"root {self.directory}",
                "/var/log/nginx/latchkey.log": str(self.log),
                "rate=20r/s": f"rate={self._rate}",
            },
        )
        text = re.sub(r"listen \[::\].*\n", "", text)
        before, anchor, after = text.rpartition("server_tokens off;\n")
        text = before_server + before + anchor + in_server + after
        paths = "".join(
            f"{name}_temp_path {self.directory}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        (self.directory / "nginx.conf").write_text(
            f"{user} daemon off; worker_processes 1; pid {self.directory}/pid; error_log {self.log} crit;\n"
            f"events {{}} http {{ access_log off; {paths}\n{text}}}\n"
        )
        return [program, "-e", str(self.log), "-c", str(self.directory / "nginx.conf")]


class Caddy(ReverseProxy):
    name = "localhost"

    def _configure(self, upstreams: tuple[str, ...]) -> list[str]:
        program = find_program("caddy", "caddy", "DEPLOY/CADDYFILE IS NOT TESTED")
        self.environment = {"LATCHKEY_HOST": "localhost", "LATCHKEY_UPSTREAMS": " ".join(upstreams)}
        options = f"admin off\nskip_install_trust\nhttp_port {self.plain_port}\nhttps_port {self.port}"
        text = self._shipped(
            "Caddyfile",
            {
                "\n{\n": f"\n{{\n{options}\n",
                "http://{$LATCHKEY_HOST:auth.example.com} {": "http://{$LATCHKEY_HOST} {",
                "\n{$LATCHKEY_HOST:auth.example.com} {": f"\n{{$LATCHKEY_HOST}} {{\ntls {self.certificate} {self.certificate}",
            },
        )
        (lines,) = self._documented("caddy")
        text = text.replace("\treverse_proxy", f"{lines}\treverse_proxy", 1)
        if len(upstreams) > 1:
            text = text.replace("# health_", "health_")
        version = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
        if not re.match(r"v?2\.6\.[0-2]\b", version):
            self.environment |= {
                "LATCHKEY_REQUEST_BUFFERS": "request_buffers 2MB",
                "LATCHKEY_RESPONSE_BUFFERS": "response_buffers 2MB",
                "LATCHKEY_BUFFER_SIZE": "#",
            }
        file = self.directory / "Caddyfile"
        file.write_text(text)
        return [program, "run", "--config", str(file), "--adapter", "caddyfile"]


class Apache(ReverseProxy):
    """The site of docs/deployment.md."""

    name = "auth.example.com"
    MODULES = ("mpm_event", "authz_core", "headers", "proxy", "proxy_http", "ssl")

    def _configure(self, upstreams: tuple[str, ...]) -> list[str]:
        program = find_program("apache2", "apache2", "THE SITE OF APACHE IS NOT TESTED")
        (site,) = blocks_of_guide("apache")
        (upstream,) = upstreams
        replacements = {
            "*:443": f"127.0.0.1:{self.port}",
            "http://127.0.0.1:8000/": f"http://{upstream}/",
            "/etc/letsencrypt/live/auth.example.com/fullchain.pem": str(self.certificate),
            "/etc/letsencrypt/live/auth.example.com/privkey.pem": str(self.certificate),
            "/var/log/apache2/latchkey.log": str(self.directory / "access.log"),
        }
        for documented, replacement in replacements.items():
            assert documented in site
            site = site.replace(documented, replacement)
        modules = "".join(
            f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in self.MODULES
        )
        self.directory.chmod(0o755)
        file = self.directory / "apache.conf"
        file.write_text(
            f"ServerRoot {self.directory}\nPidFile {self.directory}/pid\nListen 127.0.0.1:{self.port}\n"
            f"ServerName localhost\nErrorLog {self.log}\n{modules}User www-data\nGroup www-data\n{site}"
        )
        return [program, "-f", str(file), "-D", "FOREGROUND"]
