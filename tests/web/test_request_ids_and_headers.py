"""The request id and the security headers of every response."""

import pytest

from tests.support.answers import A_UUID, assert_error
from tests.support.cases import cases
from tests.support.pages import Visitor
from tests.support.raw_http import exchange
from tests.support.users import PASSWORD

SECURITY = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
CHALLENGE = "x" * 43
DATA = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


def one_of_each(client, session):
    """Return a response of each kind."""
    return {
        "200": client.get("/settings"),
        "200 with a token": session.get("/user"),
        "201": client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD}),
        "303": client.get("/verify?token=x&type=signup"),
        "400": client.post("/magiclink", json={}),
        "400 for JSON": client.post("/signup", data="{", content_type="application/json"),
        "401": client.get("/user"),
        "403": session.post("/admin/users", json={"email": "x@example.com"}),
        "404": client.get("/nothing"),
        "405": client.put("/token"),
        "413": client.post("/signup", data=b" " * (64 * 1024 + 1), content_type="application/json"),
        "415": client.post("/signup", data="x", content_type="text/plain"),
        "422": client.post("/signup", json={"email": "dave@example.com", "password": "weak"}),
        "OPTIONS": client.options("/token"),
        "HEAD": client.head("/health"),
        "page": client.get("/"),
    }


class TestHeaders:
    def test_every_response_has_the_headers_and_only_pages_set_cookies(self, client, alice):
        for name, response in one_of_each(client, alice.sign_in()).items():
            assert ("Set-Cookie" in response.headers) == (name == "page"), name
            assert name.startswith(str(response.status_code)) or not name[0].isdigit(), (name, response)
            expected = SECURITY if name == "page" else SECURITY | DATA
            assert {header: response.headers.get(header) for header in expected} == expected, name
            assert response.headers["X-Request-Id"] == A_UUID, name
            assert response.headers["Cache-Control"] == "no-store", name

    @cases("path", ["/openapi.yaml", "/.well-known/jwks.json"])
    def test_public_responses_may_be_cached(self, client, path):
        response = client.get(path)
        assert response.headers["Cache-Control"] == "public, max-age=300"
        assert {header: response.headers.get(header) for header in SECURITY} == SECURITY

    @cases("path", ["/static/page.css", "/static/page.js", "/authorize", "/openapi.yaml"])
    def test_only_pages_load_anything(self, client, path):
        response = client.get(path)
        assert response.headers.getlist("Content-Security-Policy") == [DATA["Content-Security-Policy"]]

    @cases(
        ("path", "policy"),
        [
            ("/docs/api", "same-origin"),
            ("/account/two-step", "same-origin"),
            ("/account/two-step?redirect_to=http://localhost:8000/x", None),
            (f"/account/confirm?next=account/two-step?code_challenge%3D{CHALLENGE}", None),
            (f"/sign-in?code_challenge={CHALLENGE}", None),
            ("/", None),
        ],
    )
    def test_application_may_open_a_page_of_a_sign_in_in_a_window(self, app, alice, path, policy):
        page = Visitor(app).with_session_of(alice).visit(path)
        assert (page.status, page.headers.get("Cross-Origin-Opener-Policy")) == (200, policy)

    def test_server_header_has_no_version(self, server):
        for path in ("/health", "/nothing", "/"):
            assert not any(digit in server.get(path).headers.get("Server", "") for digit in "0123456789")


class TestRequestIds:
    @cases("id", ["12345678", "a" * 128, "A.b-c_d.1", "0190a5b4-6d7e-7c3a-9f00-0123456789ab"])
    def test_valid_request_id_is_kept(self, client, id):
        response = client.get("/nothing", headers={"X-Request-Id": id})
        assert_error(response, 404, "not_found")
        assert response.headers["X-Request-Id"] == id

    @cases(
        "id",
        [
            *("", "short", "a" * 129, "with space", "<script>alert(1)</script>"),
            *("a;b=c;d=ef", "\xfcmlaut--", "12345678,12345678"),
        ],
    )
    def test_invalid_request_id_is_replaced(self, client, id):
        assert client.get("/health", headers={"X-Request-Id": id}).headers["X-Request-Id"] == A_UUID


def get(*headers: bytes, path: bytes = b"/health") -> bytes:
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: x", *headers, b"", b""])


def sign_up(*headers: bytes, body: bytes = b"") -> bytes:
    lines = [b"POST /signup HTTP/1.1", b"Host: x", b"Content-Type: application/json", *headers, b"", body]
    return b"\r\n".join(lines)


CHUNKED = b"Transfer-Encoding: chunked"
# Requests that the server refuses, with the statuses that these may have.
MALFORMED = {
    "no HTTP": (b"nonsense\r\n\r\n", {400}),
    "another HTTP": (b"GET /health HTTP/9.9\r\n\r\n", {400, 505}),
    "a long path": (get(path=b"/" + b"x" * 20_000), {400, 414}),
    "a long header": (get(b"X-Long: " + b"x" * 100_000), {400, 431}),
    "many headers": (get(*(b"X-%d: x" % n for n in range(200))), {400, 431}),
    "a bad header": (get(b"Bad Header: x"), {400}),
    "a NUL": (get(b"X: a\x00b"), {400}),
    "a bad length": (sign_up(b"Content-Length: x"), {400}),
    "two lengths": (sign_up(b"Content-Length: 2", CHUNKED, body=b"{}"), {400}),
    "a bad chunk": (sign_up(CHUNKED, body=b"zz\r\n{}\r\n0\r\n\r\n"), {400}),
    "a short body": (sign_up(b"Content-Length: 99", body=b"{"), {400}),
    "too long": (sign_up(b"Content-Length: 65537", body=b"{"), {413}),
}


class TestResponsesOfTheServer:
    """Responses that gunicorn makes itself."""

    @pytest.mark.parametrize(("request_bytes", "statuses"), MALFORMED.values(), ids=MALFORMED)
    def test_malformed_request_gets_the_envelope(self, server, request_bytes, statuses):
        (reply,) = exchange(server.port, request_bytes)
        assert reply.status in statuses
        headers = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Request-Id": A_UUID}
        expected = SECURITY | DATA | headers
        assert {name: reply.headers.get(name) for name in expected} == expected
        assert reply.json["code"] == reply.status
        assert "error_code" in reply.json

    def test_chunked_body_is_read(self, server):
        body = b'{"email": "dave@example.com", "password": "Correct-Horse-1"}'
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        (reply,) = exchange(server.port, sign_up(CHUNKED, b"Connection: close", body=chunked))
        assert reply.status == 201

    @cases("chunks", [1, 4, 16])
    def test_chunked_body_over_the_bound_of_its_route_is_413(self, server, chunks):
        chunk = b"5000\r\n" + b" " * 0x5000 + b"\r\n"
        head = sign_up(CHUNKED, b"Connection: close").replace(b"/signup", b"/recover")
        (reply,) = exchange(server.port, head + chunk * chunks + b"0\r\n\r\n")
        assert (reply.status, reply.json["error_code"]) == (413, "request_entity_too_large")
