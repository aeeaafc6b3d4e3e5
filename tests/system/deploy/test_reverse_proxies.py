"""deploy/nginx.conf and deploy/Caddyfile, run by the real programs in front of a recorder or of nothing."""

import re
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from tests.support.client_errors import READERS, Read
from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.programs import find_program
from tests.support.reverse_proxies import Caddy, Nginx, ReverseProxy

HSTS = "max-age=63072000; includeSubDomains"
PROXIES = {"nginx": Nginx, "caddy": Caddy}


@pytest.fixture(params=PROXIES)
def proxy(request, tmp_path, target) -> Iterator[ReverseProxy]:
    with PROXIES[request.param](tmp_path, target.url.removeprefix("http://")) as proxy:
        yield proxy


@pytest.fixture
def https(proxy) -> Iterator[httpx.Client]:
    with proxy.client() as client:
        yield client


def assert_limited(response):
    assert response.status_code == 429
    assert response.json()["error_code"] == "over_request_rate_limit"
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Retry-After"] == "1"
    assert_headers(response)


def assert_headers(response):
    assert response.headers["Strict-Transport-Security"] == HSTS
    assert response.headers.get_list("X-Content-Type-Options") == ["nosniff"]
    assert response.headers.get("Server") in ("nginx", None)


def request_plainly(proxy, method, headers):
    plain = f"http://127.0.0.1:{proxy.plain_port}/verify?token=x"
    return httpx.request(method, plain, headers={"Host": proxy.name, **headers}, timeout=20)


def test_page_over_plain_http_is_redirected_to_https(proxy, target):
    response = request_plainly(proxy, "GET", {"Accept": "text/html"})
    assert response.status_code == 301
    assert response.headers["Location"] == f"https://{proxy.name}/verify?token=x"
    assert_answers_plainly(response, target)


@pytest.mark.parametrize(
    ("method", "headers"),
    [("POST", {}), ("GET", {"Authorization": "topsecret"}), ("GET", {"apikey": "topsecret"})],
)
def test_request_over_plain_http_that_may_have_sent_a_secret_is_refused(proxy, target, method, headers):
    response = request_plainly(proxy, method, headers)
    assert (response.status_code, response.headers["Content-Type"]) == (403, "application/json")
    assert response.json() == {
        "code": 403,
        "msg": "Use https: anyone on the way could read this request",
        "error_code": "insufficient_permissions",
    }
    assert_answers_plainly(response, target)


def assert_answers_plainly(response, target):
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    # Browsers ignore HSTS over plain http (RFC 6797, section 7.2).
    assert "Strict-Transport-Security" not in response.headers
    assert response.headers.get("Server") in ("nginx", None)
    assert target.requests == []


def test_claimed_addresses_are_replaced_and_the_response_has_hsts_but_no_version(https, target):
    headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    target.headers = {"X-Content-Type-Options": "nosniff"}
    response = https.get("/user", headers=headers)
    (request,) = target.requests
    assert request.headers["x-forwarded-for"] == "127.0.0.1"
    assert request.headers["x-forwarded-proto"] == "https"
    assert_headers(response)


def test_longest_token_body_and_redirect_and_a_refusal_of_the_service_pass_through(https, target):
    https.post("/user", headers={"Authorization": "Bearer " + "a" * 30_000}, content=b"x" * 1_500_000)
    (request,) = target.requests
    assert (len(request.body), len(request.headers["authorization"])) == (1_500_000, 30_007)
    target.status, target.headers = 303, {"Location": "https://app.example.com/#access_token=" + "a" * 40_000}
    assert len(https.get("/verify").headers["Location"]) > 40_000
    target.status, target.body = 429, b'{"error_code": "over_email_send_rate_limit"}'
    assert https.get("/recover").json() == {"error_code": "over_email_send_rate_limit"}


def test_request_reaches_the_service_when_it_is_complete(proxy, target, https):
    target.headers = {"Connection": "close"}
    head = b"POST /signup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
    with proxy.connect() as slow:
        slow.sendall(head + b"12345")
        https.get("/health")
        assert [request.path for request in target.requests] == ["/health"]
        slow.sendall(b"67890")
        wait_until(lambda: len(target.requests) == 2)
    assert target.requests[1].body == b"1234567890"


@pytest.mark.parametrize("name", PROXIES)
def test_unreachable_service_is_a_json_error_and_no_token_is_logged(tmp_path, name):
    with PROXIES[name](tmp_path, f"127.0.0.1:{free_port()}") as proxy, proxy.client() as client:
        headers = {"apikey": "topsecret", "Authorization": "Bearer topsecret"}
        response = client.get("/verify?token=topsecret", headers=headers)
    assert response.status_code in (502, 503, 504)
    body = response.json()
    assert (body["code"], body["error_code"]) == (response.status_code, "service_unavailable")
    assert response.headers["Retry-After"] == "1"
    assert_headers(response)
    logs = [path.read_bytes() for path in tmp_path.rglob("*.log")]
    assert logs
    assert not [log for log in logs if b"topsecret" in log]


def assert_read(response, reader, code):
    expected = Read("try again") if response.status_code in reader.tries_again else Read("error", code)
    assert reader.read(response.status_code, response.headers, response.json()) == expected


@pytest.mark.parametrize("name", PROXIES)
def test_each_client_of_supabase_reads_that_the_service_is_unreachable(tmp_path, name):
    with PROXIES[name](tmp_path, f"127.0.0.1:{free_port()}") as proxy, proxy.client() as client:
        for reader in READERS.values():
            assert_read(client.get("/auth/v1/user", headers=reader.headers), reader, "service_unavailable")
        response = client.get("/auth/v1/user", headers={"X-Supabase-Api-Version": "2023-12-31"})
        assert response.json()["code"] == response.status_code


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def assert_page(response, status, heading):
    assert (response.status_code, response.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert f"<h1>{heading}</h1>" in response.text
    assert '<a href="">Try again</a>' in response.text
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert (response.headers["Retry-After"], response.headers["Cache-Control"]) == ("1", "no-store")
    assert_headers(response)


@pytest.mark.parametrize("name", PROXIES)
def test_browser_gets_a_page_while_the_service_restarts(tmp_path, name):
    with PROXIES[name](tmp_path, f"127.0.0.1:{free_port()}") as proxy, proxy.client() as client:
        for method, path in (("GET", "/sign-in?next=account"), ("POST", "/sign-in")):
            response = client.request(method, path, headers=BROWSER)
            assert_page(response, 503 if name == "nginx" else 502, "Back in a moment")
        assert client.get("/user", headers={"Accept": "application/json"}).json()["msg"]


def test_caddyfile_is_valid_as_it_is_shipped():
    program = find_program("caddy", "caddy", "DEPLOY/CADDYFILE IS NOT TESTED")
    version = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
    if not re.match(r"v?2\.6\.[0-2]\b", version):
        pytest.skip("the shipped lines on buffers are those of Debian's Caddy 2.6.2")
    command = [program, "validate", "--adapter=caddyfile", f"--config={CHECKOUT}/deploy/Caddyfile"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "Valid configuration"), result.stderr


CONSOLE = ["/console", "//console/users", "/%63onsole", "/auth/v1/console", "/x/..%2fconsole/audit"]


@pytest.mark.parametrize("name", PROXIES)
def test_console_is_open_to_its_network_alone(tmp_path, target, name):
    upstream = target.url.removeprefix("http://")
    headers = {"X-Forwarded-For": "192.0.2.7", "X-Real-IP": "192.0.2.7"}
    with PROXIES[name](tmp_path, upstream, operators="192.0.2.0/24") as proxy, proxy.client() as client:
        assert {client.get(proxy.url + path, headers=headers).status_code for path in CONSOLE} == {404}
        assert target.requests == []
        client.get("/sign-in?next=console")
        client.get("/consoles")
    with PROXIES[name](tmp_path, upstream, operators="127.0.0.0/8") as proxy, proxy.client() as client:
        client.get("/console/users")
    paths = [request.path.partition("?")[0] for request in target.requests]
    assert paths == ["/sign-in", "/consoles", "/console/users"]


@pytest.mark.parametrize("name", PROXIES)
def test_node_that_does_not_answer_is_left_out(tmp_path, target, name):
    upstreams = target.url.removeprefix("http://"), f"127.0.0.1:{free_port()}"
    with PROXIES[name](tmp_path, *upstreams) as proxy, proxy.client() as client:
        wait_until(lambda: [client.get("/user").status_code for _ in range(10)] == [200] * 10)


@pytest.fixture
def nginx(tmp_path, target) -> Iterator[Nginx]:
    with Nginx(tmp_path, target.url.removeprefix("http://")) as nginx:
        yield nginx


def test_acme_challenge_is_served_over_plain_http(nginx):
    challenges = nginx.directory / ".well-known" / "acme-challenge"
    challenges.mkdir(parents=True)
    (challenges / "token").write_text("key authorization")
    plain = f"http://127.0.0.1:{nginx.plain_port}/.well-known/acme-challenge/token"
    response = httpx.get(plain, timeout=20)
    assert (response.status_code, response.text) == (200, "key authorization")


def test_errors_of_nginx_itself_have_the_headers(nginx):
    with nginx.client() as https:
        answers = [
            https.post("/user", content=b"x" * 2_200_000),
            https.get("/user", headers={"Authorization": "a" * 40_000}),
            https.get("/user", headers={"Host": "a b"}),
        ]
    assert [answer.status_code for answer in answers] == [413, 400, 400]
    for answer in answers:
        assert_headers(answer)
    for head in ("GET / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"):
        with nginx.connect() as connection:
            connection.sendall(head.encode())
            received = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        assert received.startswith("HTTP/1.1 400 ")
        assert "\r\nX-Content-Type-Options: nosniff\r\n" in received
        assert "\r\nServer: nginx\r\n" in received


SUITES = {
    kind: (
        f"ECDHE-{kind}-AES128-GCM-SHA256",
        f"ECDHE-{kind}-AES256-GCM-SHA384",
        f"ECDHE-{kind}-CHACHA20-POLY1305",
    )
    for kind in ("ECDSA", "RSA")
}
# OpenSSL's names for the suites that must be refused, by the reason.
REFUSED = {
    "key exchange with RSA": "kRSA",
    "key exchange without elliptic curves": "kDHE",
    "no certificate": "aNULL",
    "CBC": "ECDHE+SHA1:ECDHE+SHA256:ECDHE+SHA384:!AESGCM:!CHACHA20",
    "CCM": "AESCCM",
    "no encryption": "eNULL",
}


def handshake(proxy, *options):
    """Return the status of `openssl s_client`, and the suite or the alert."""
    address = ["-connect", f"127.0.0.1:{proxy.port}", "-servername", "localhost"]
    trust = ["-CAfile", str(proxy.certificate), "-verify_return_error"]
    command = ["openssl", "s_client", *address, *trust, *options]
    result = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    match = re.search(
        r"Cipher is (\S+)" if result.returncode == 0 else r"alert (.*?):", result.stdout + result.stderr
    )
    return result.returncode, match and match[1]


@pytest.mark.parametrize("kind", SUITES)
@pytest.mark.parametrize("name", PROXIES)
def test_tls_has_forward_secrecy_and_authenticated_encryption_alone(tmp_path, target, name, kind):
    upstream = target.url.removeprefix("http://")
    with PROXIES[name](tmp_path, upstream, is_rsa=kind == "RSA") as proxy:
        assert handshake(proxy, "-tls1_3")[0] == 0
        for suite in SUITES[kind]:
            assert handshake(proxy, "-tls1_2", "-cipher", suite) == (0, suite)
        for reason, suites in REFUSED.items():
            answer = handshake(proxy, "-tls1_2", "-cipher", f"{suites}:@SECLEVEL=0")
            assert answer == (1, "handshake failure"), reason
        for version in ("-tls1", "-tls1_1"):
            answer = handshake(proxy, version, "-cipher", "ALL:@SECLEVEL=0")
            assert answer == (1, "protocol version"), version


def test_flood_of_requests_is_refused_with_json(tmp_path, target):
    with Nginx(tmp_path, target.url.removeprefix("http://"), rate="1r/m") as nginx, nginx.client() as client:
        responses = [client.get("/health") for _ in range(120)]
        page = client.get("/sign-in", headers=BROWSER)
        for reader in READERS.values():
            limited = client.get("/auth/v1/user", headers=reader.headers)
            assert_read(limited, reader, "over_request_rate_limit")
    assert_page(page, 429, "Too many requests")
    assert [response.status_code for response in responses[:101]] == [200] * 101
    refused = [response for response in responses if response.status_code != 200]
    assert refused
    for response in refused:
        assert_limited(response)
    assert len(target.requests) == len(responses) - len(refused)


def test_connections_beyond_a_hundred_of_an_address_are_refused(nginx):
    head = b"POST /signup HTTP/1.1\r\nHost: auth.example.com\r\nContent-Length: 10\r\n\r\n"
    connections = [nginx.connect() for _ in range(100)]
    try:
        for connection in connections:
            connection.sendall(head)
        with nginx.client() as https:
            response = wait_until(lambda: (answer := https.get("/health")).status_code == 429 and answer)
        assert_limited(response)
    finally:
        for connection in connections:
            connection.close()
