"""deploy/nginx.conf, run by the real nginx in front of a service that is not there, or a recorder."""

import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.programs import find_program
from tests.support.smtp_server import Certificate

HSTS = "max-age=63072000"


class Nginx:
    """nginx with the shipped file: its addresses, paths and upstream are replaced, and the rate, so that no test
    depends on the speed of the machine.
    """

    def __init__(self, directory: Path, upstream: str, rate: str = "1000r/s") -> None:
        program = find_program("nginx", "nginx", "DEPLOY/NGINX.CONF IS NOT TESTED")
        self.port, self.plain_port = free_port(), free_port()
        self.webroot = directory
        self.log = directory / "latchkey.log"
        certificate = Certificate(directory).path
        self.tls = ssl.create_default_context(cafile=certificate)
        for name in ("fullchain.pem", "privkey.pem"):
            shutil.copy(certificate, directory / name)
        text = re.sub(r"listen \[::\].*\n", "", (CHECKOUT / "deploy" / "nginx.conf").read_text())
        for shipped, replacement in {
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ": f"listen 127.0.0.1:{self.port} ",
            "server 127.0.0.1:8000;": f"server {upstream};",
            "/etc/letsencrypt/live/auth.example.com": str(directory),
            "root /var/www/html": f"root {directory}",
            "/var/log/nginx/latchkey.log": str(self.log),
            "rate=20r/s": f"rate={rate}",
        }.items():
            assert shipped in text
            text = text.replace(shipped, replacement)
        paths = "".join(
            f"{name}_temp_path {directory}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        (directory / "nginx.conf").write_text(
            f"{user} daemon off; worker_processes 1; pid {directory}/pid; error_log {self.log} crit;\n"
            f"events {{}} http {{ {paths}\n{text}}}\n"
        )
        self._command = [program, "-e", str(self.log), "-c", str(directory / "nginx.conf")]

    def __enter__(self) -> "Nginx":
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        wait_until(self._listens)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=20)

    def _listens(self) -> bool:
        if self._process.poll() is not None:
            pytest.fail(f"nginx refuses the file: {self._process.communicate()[1]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return self.tls.wrap_socket(plain, server_hostname="localhost")


@pytest.fixture
def nginx(tmp_path, target) -> Iterator[Nginx]:
    with Nginx(tmp_path, target.url.removeprefix("http://")) as nginx:
        yield nginx


@pytest.fixture
def https(nginx) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"https://127.0.0.1:{nginx.port}", verify=nginx.tls) as client:
        yield client


def assert_limited(response):
    assert response.status_code == 429
    assert response.json()["error_code"] == "over_request_rate_limit"
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Retry-After"] == "1"
    assert response.headers["Strict-Transport-Security"] == HSTS


def test_plain_http_is_redirected_to_https(nginx, target):
    response = httpx.get(
        f"http://127.0.0.1:{nginx.plain_port}/verify?token=x", headers={"Host": "auth.example.com"}
    )
    location = "https://auth.example.com/verify?token=x"
    assert (response.status_code, response.headers["Location"]) == (301, location)
    assert target.requests == []


def test_acme_challenge_is_served_over_plain_http(nginx):
    challenges = nginx.webroot / ".well-known" / "acme-challenge"
    challenges.mkdir(parents=True)
    (challenges / "token").write_text("key authorization")
    response = httpx.get(f"http://127.0.0.1:{nginx.plain_port}/.well-known/acme-challenge/token")
    assert (response.status_code, response.text) == (200, "key authorization")


def test_response_has_hsts_and_no_version_of_nginx(https):
    response = https.get("/health")
    assert response.headers["Strict-Transport-Security"] == HSTS
    assert response.headers["Server"] == "nginx"


def test_addresses_that_the_client_claims_are_replaced(https, target):
    https.get("/user", headers={"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"})
    (request,) = target.requests
    assert request.headers["x-forwarded-for"] == "127.0.0.1"
    assert request.headers["x-forwarded-proto"] == "https"


def test_longest_token_and_a_body_over_1_mib_reach_the_service(https, target):
    https.post("/user", headers={"Authorization": "Bearer " + "a" * 30_000}, content=b"x" * 1_500_000)
    (request,) = target.requests
    assert len(request.body) == 1_500_000
    assert len(request.headers["authorization"]) > 30_000


def test_long_redirect_of_the_service_reaches_the_client(https, target):
    target.status, target.headers = 303, {"Location": "https://app.example.com/#access_token=" + "a" * 40_000}
    assert len(https.get("/verify").headers["Location"]) > 40_000


def test_refusal_of_the_service_is_passed_on(https, target):
    target.status, target.body = 429, b'{"error_code": "over_email_send_rate_limit"}'
    assert https.get("/recover").json() == {"error_code": "over_email_send_rate_limit"}


def test_flood_of_requests_is_refused_with_json(tmp_path, target):
    with (
        Nginx(tmp_path, target.url.removeprefix("http://"), rate="1r/m") as nginx,
        httpx.Client(base_url=f"https://127.0.0.1:{nginx.port}", verify=nginx.tls) as client,
    ):
        responses = [client.get("/health") for _ in range(120)]
    assert [response.status_code for response in responses[:101]] == [200] * 101
    refused = [response for response in responses if response.status_code != 200]
    assert refused
    for response in refused:
        assert_limited(response)
    assert len(target.requests) == len(responses) - len(refused)


def test_connections_beyond_a_hundred_of_an_address_are_refused(nginx, https):
    head = b"POST /signup HTTP/1.1\r\nHost: auth.example.com\r\nContent-Length: 10\r\n\r\n"
    connections = [nginx.connect() for _ in range(100)]
    try:
        for connection in connections:
            connection.sendall(head)
        response = wait_until(lambda: (found := https.get("/health")).status_code == 429 and found)
        assert_limited(response)
    finally:
        for connection in connections:
            connection.close()


def test_tokens_of_links_are_not_logged(tmp_path):
    # The node is down, which nginx would log with the request.
    with Nginx(tmp_path, f"127.0.0.1:{free_port()}") as nginx:
        url = f"https://127.0.0.1:{nginx.port}/verify?token=topsecret"
        statuses = {httpx.get(url, verify=nginx.tls).status_code for _ in range(3)}
    assert statuses <= {502, 504}
    logs = [path.read_bytes() for path in tmp_path.rglob("*.log")]
    assert logs
    assert not [log for log in logs if b"topsecret" in log]
