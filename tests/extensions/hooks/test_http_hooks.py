"""Calls of HTTP hooks: signed requests, what counts as an answer, and hooks that are slow, down or lying."""

import base64
import gzip
import json
import socket
import threading
import uuid

import pytest

from auth.core.settings.values.hooks import Hook
from auth.delivery.senders.http_post import MOST_BYTES
from auth.extensions.hooks.http_hooks import HookFailed, HookRefused, allowed_addresses, ask
from tests.support.cases import cases
from tests.support.hooks import verified
from tests.support.http_target import HttpTarget
from tests.support.smtp_server import Certificate

SECRETS = tuple("whsec_" + base64.b64encode(bytes(range(start, start + 32))).decode() for start in (0, 32))
JSON = {"Content-Type": "application/json; charset=utf-8"}
PAYLOAD = {"user": {"id": "7c4e0a52", "user_metadata": {"name": "Zoë"}}}
REFUSED = {"error": {"http_code": 403, "message": "Not from here"}}
REFUSED_AND_NOT = json.dumps(REFUSED)[:-1].encode() + b', "error": null}'


MALFORMED = [
    *("no", {}, [], False, {"message": ""}, {"message": "\0 "}, {"message": 1}, {"http_code": 403}),
    *({"http_code": code, "message": "No"} for code in (200, 302, 399, 600, True, "403", None, 4e2)),
]


def hook_at(url, *, private_networks=False):
    return Hook("before-user-created", url, SECRETS, private_networks)


def call(hook, payload):
    return ask(hook, f"msg_{uuid.uuid4()}", payload)


@pytest.fixture
def target(target):
    target.headers = JSON
    return target


@pytest.fixture
def hook(target):
    return hook_at(f"{target.url}/hook?key=1")


def test_request_is_signed_with_every_secret(hook, target):
    target.body = b'{"claims": {"plan": "pro"}}'
    assert call(hook, PAYLOAD) == {"claims": {"plan": "pro"}}
    (posted,) = target.requests
    assert posted.path == "/hook?key=1"
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["accept-encoding"] == "identity"
    assert [verified(posted, secret) for secret in SECRETS] == [PAYLOAD, PAYLOAD]


@cases("status", [200, 202, 204])
def test_success_without_an_error_is_agreement(hook, target, status):
    target.status, target.body = status, b"" if status == 204 else b'{"error": null}'
    assert call(hook, PAYLOAD) == ({} if status == 204 else {"error": None})


@cases(
    ("error", "status"),
    [
        ({"http_code": 403, "message": "No"}, 403),
        ({"message": "No"}, 500),
        ({"http_code": 599, "message": "No"}, 599),
    ],
)
def test_error_of_the_hook_is_its_status_and_message(hook, target, error, status):
    target.body = json.dumps({"claims": {}, "error": error}).encode()
    with pytest.raises(HookRefused) as refused:
        call(hook, PAYLOAD)
    assert (refused.value.status, refused.value.message) == (status, "No")


@cases(
    ("status", "headers", "body", "reason"),
    [
        (400, JSON, b"{}", "it answered 400"),
        (500, JSON, b"Oops\x1b[31m", "it answered 500: Oops"),
        (302, JSON | {"Location": "http://127.0.0.1:1/"}, b"{}", "it answered 302"),
        (200, JSON | {"Transfer-Encoding": "chunked"}, b"-5\r\n{}", "no answer: the connection was closed"),
        (200, {}, b"{}", "its answer is not application/json"),
        (200, {"Content-Type": "text/html"}, b"{}", "its answer is not application/json but 'text/html'"),
        (200, JSON, b"", "its answer is not JSON"),
        (200, JSON, b"[" * 100_000, "its answer is not JSON"),
        (200, JSON, b'\xff{"a": 1}', "its answer is not JSON"),
        (200, JSON, REFUSED_AND_NOT, "its answer is not JSON, or repeats a member"),
        (200, JSON, b'{"claims": {"role": "a", "role": "b"}}', "its answer is not JSON, or repeats a member"),
        (200, JSON, b"[]", "its answer is not a JSON object"),
        (200, JSON, b'{"a": "%s"}' % (b"x" * MOST_BYTES), f"its answer has more than {MOST_BYTES} bytes"),
        (200, JSON | {"Content-Length": "100"}, b'{"a": 1}', "no answer: the connection was closed"),
        *(
            (200, JSON, json.dumps({"error": error}).encode(), "its error is malformed")
            for error in MALFORMED
        ),
    ],
)
def test_hook_that_answers_anything_else_has_failed(hook, target, status, headers, body, reason):
    target.status, target.headers, target.body = status, headers, body
    with pytest.raises(HookFailed) as failed:
        call(hook, PAYLOAD)
    assert str(failed.value).startswith(f"before-user-created failed: {reason}")
    assert str(failed.value).isprintable()


def test_answer_is_not_decompressed(hook, target):
    target.headers, target.body = JSON | {"Content-Encoding": "gzip"}, gzip.compress(b"{}")
    with pytest.raises(HookFailed, match="its answer is not JSON"):
        call(hook, PAYLOAD)


def test_request_that_is_too_large_is_not_sent(hook, target):
    with pytest.raises(HookFailed, match="the request has"):
        call(hook, PAYLOAD | {"more": "x" * MOST_BYTES})
    assert target.requests == []


@cases("behaviour", ["hang", "drip", "drip body", "endless"])
def test_slow_hook_fails_in_time(hook, target, behaviour):
    target.behaviour = behaviour
    target.requests.clear()
    with pytest.raises(HookFailed, match=r"no answer|its answer has more than"):
        ask(hook, "msg_1", PAYLOAD, timeout=0.3)
    # Only a failure of the network is tried again.
    assert len(target.requests) <= 1


def test_timeout_covers_the_look_up_of_the_hooks_name(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: answers.wait(60))
    with pytest.raises(HookFailed, match=r"not done within 0\.3 s"):
        ask(hook_at("https://hooks.example.com"), "msg_1", PAYLOAD, timeout=0.3)
    answers.set()


class ClosesOnce(HttpTarget):
    def _misbehave(self, _out):
        self.behaviour = ""


def test_request_that_the_network_fails_is_repeated_once_with_the_same_id():
    with ClosesOnce() as target:
        target.behaviour, target.headers, target.body = "close", JSON, b'{"claims": {}}'
        assert call(hook_at(target.url), PAYLOAD) == {"claims": {}}
        assert len({posted.headers["webhook-id"] for posted in target.requests}) == 1
        assert len(target.requests) == 2


def test_hook_that_always_closes_the_connection_is_called_twice(hook, target):
    target.behaviour = "close"
    with pytest.raises(HookFailed, match="no answer: the connection was closed"):
        call(hook, PAYLOAD)
    assert len(target.requests) == 2


def test_certificate_is_verified(tmp_path):
    with HttpTarget(Certificate(tmp_path)) as target, pytest.raises(HookFailed, match="TLS: self-signed"):
        call(hook_at(target.url), PAYLOAD)
    assert target.requests == []


def test_proxy_variables_and_netrc_are_ignored(hook, target, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    target.body = b"{}"
    with HttpTarget() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        call(hook, PAYLOAD)
        assert proxy.requests == []
    (posted,) = target.requests
    assert "authorization" not in posted.headers


@cases(
    ("url", "private_networks", "allowed"),
    [
        ("http://127.0.0.1:8080", False, ["127.0.0.1", "::1"]),
        ("http://localhost:8080", True, ["127.0.0.1", "::1"]),
        ("https://hooks.example.com", False, ["1.1.1.1"]),
        ("http://hooks.example.com", False, []),
        ("http://hooks.internal", True, ["127.0.0.1", "::1", "10.0.0.1"]),
        ("https://hooks.internal", True, ["127.0.0.1", "::1", "10.0.0.1", "1.1.1.1"]),
    ],
)
def test_hook_is_called_only_at_addresses_of_its_network(url, private_networks, allowed):
    allows = allowed_addresses(hook_at(url, private_networks=private_networks))
    addresses = ["127.0.0.1", "::1", "10.0.0.1", "1.1.1.1", "169.254.169.254", "fd00:ec2::254"]
    assert [address for address in addresses if allows(address)] == allowed


def test_metadata_service_is_never_called():
    with pytest.raises(HookFailed, match="its address is refused"):
        call(hook_at("http://169.254.169.254/latest", private_networks=True), PAYLOAD)
