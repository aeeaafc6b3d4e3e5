"""The site of Apache in docs/deployment.md, run by the real program in front of a recorder."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.reverse_proxies import Apache


@pytest.fixture
def proxy(tmp_path, target) -> Iterator[Apache]:
    with Apache(tmp_path, target.url.removeprefix("http://")) as proxy:
        yield proxy


@pytest.fixture
def https(proxy) -> Iterator[httpx.Client]:
    with proxy.client() as client:
        yield client


def test_longest_token_and_redirect_pass_through(https, target):
    https.post("/user", headers={"Authorization": "Bearer " + "a" * 30_000}, content=b"x" * 65_536)
    (request,) = target.requests
    assert (len(request.body), len(request.headers["authorization"])) == (65_536, 30_007)
    target.status, target.headers = 303, {"Location": "https://app.example.com/#access_token=" + "a" * 40_000}
    assert len(https.get("/verify").headers["Location"]) > 40_000


def test_claimed_addresses_are_replaced_and_the_response_has_hsts(https, target):
    claimed = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    response = https.get("/user", headers=claimed)
    (request,) = target.requests
    assert request.headers["x-forwarded-for"] == "127.0.0.1"
    assert request.headers["x-forwarded-proto"] == "https"
    assert response.headers["Strict-Transport-Security"] == "max-age=63072000; includeSubDomains"


def test_encoded_path_is_the_services_and_no_query_is_logged(proxy, https, target):
    https.get("/organizations/a%2Fb", headers={"apikey": "topsecret"})
    https.get("/verify?token=topsecret")
    assert [request.path for request in target.requests] == [
        "/organizations/a%2Fb",
        "/verify?token=topsecret",
    ]
    logs = [path.read_text() for path in proxy.directory.glob("*.log")]
    assert any("/verify" in log for log in logs)
    assert not [log for log in logs if "topsecret" in log]
