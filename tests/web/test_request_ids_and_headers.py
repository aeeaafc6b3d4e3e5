"""The request id and the security headers of every response."""

import socket

import pytest

from tests.support.answers import A_UUID, assert_error
from tests.support.cases import cases
from tests.support.cast import PASSWORD

SECURITY = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


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
        "413": client.post("/signup", data=b" " * (1024 * 1024 + 1), content_type="application/json"),
        "415": client.post("/signup", data="x", content_type="text/plain"),
        "422": client.post("/signup", json={"email": "dave@example.com", "password": "weak"}),
        "OPTIONS": client.options("/token"),
        "HEAD": client.head("/health"),
        "page": client.get("/"),
    }


class TestHeaders:
    def test_every_response_has_the_headers(self, client, alice):
        for name, response in one_of_each(client, alice.sign_in()).items():
            assert name.startswith(str(response.status_code)) or not name[0].isdigit(), (name, response)
            assert {header: response.headers.get(header) for header in SECURITY} == SECURITY, name
            assert response.headers["X-Request-Id"] == A_UUID, name
            assert response.headers["Cache-Control"] == "no-store", name

    @pytest.mark.parametrize("path", ["/openapi.yaml", "/.well-known/jwks.json"])
    def test_public_responses_may_be_cached(self, client, path):
        response = client.get(path)
        assert response.headers["Cache-Control"] == "public, max-age=300"
        assert {header: response.headers.get(header) for header in SECURITY} == SECURITY

    def test_server_header_has_no_version(self, server):
        for path in ("/health", "/nothing", "/"):
            assert not any(digit in server.get(path).headers.get("Server", "") for digit in "0123456789")

    def test_only_pages_set_cookies(self, client, alice):
        responses = one_of_each(client, alice.open_session())
        assert {name for name, response in responses.items() if "Set-Cookie" in response.headers} == {"page"}


class TestRequestIds:
    @pytest.mark.parametrize(
        "id", ["12345678", "a" * 128, "A.b-c_d.1", "0190a5b4-6d7e-7c3a-9f00-0123456789ab"]
    )
    def test_valid_request_id_is_kept(self, client, id):
        assert client.get("/health", headers={"X-Request-Id": id}).headers["X-Request-Id"] == id

    @cases(
        "id",
        [
            "",
            "short",
            "a" * 129,
            "with space",
            "<script>alert(1)</script>",
            "a;b=c;d=ef",
            "\xfcmlaut--",
            "12345678,12345678",
        ],
    )
    def test_invalid_request_id_is_replaced(self, client, id):
        assert client.get("/health", headers={"X-Request-Id": id}).headers["X-Request-Id"] == A_UUID

    def test_each_request_has_its_own_id(self, client):
        assert len({client.get("/health").headers["X-Request-Id"] for _ in range(20)}) == 20

    def test_errors_have_a_request_id(self, client):
        response = client.get("/nothing", headers={"X-Request-Id": "my-request-1"})
        assert_error(response, 404, "not_found")
        assert response.headers["X-Request-Id"] == "my-request-1"


class TestUnexpectedFailures:
    """A 500 reveals nothing but the request id."""

    @pytest.fixture
    def broken(self, database):
        database.run("ALTER TABLE sessions RENAME TO sessions_of_before")
        yield
        database.run("ALTER TABLE sessions_of_before RENAME TO sessions")

    def test_response_is_the_envelope_with_the_request_id(self, client, alice, broken, capfd):
        response = client.post(
            "/token?grant_type=password",
            json={"email": alice.email, "password": PASSWORD},
            headers={"X-Request-Id": "my-request-1"},
        )
        assert_error(
            response,
            500,
            "unexpected_failure",
            "Something went wrong on our side; the request id is my-request-1",
        )
        assert "sessions" not in response.text

    def test_log_names_the_failure(self, make_app, alice, broken, capfd):
        client = make_app().test_client()
        client.post(
            "/token?grant_type=password",
            json={"email": alice.email, "password": PASSWORD},
            headers={"X-Request-Id": "my-request-1"},
        )
        log = capfd.readouterr().err
        assert "my-request-1" in log
        assert "sessions" in log
        assert PASSWORD not in log


class TestResponsesOfTheServer:
    """Responses that gunicorn makes itself."""

    def ask(self, server, request):
        """Send bytes, and return the status and the rest of the response."""
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/1.") else b""
        return status.decode(), answer.decode("latin-1")

    @pytest.mark.parametrize(
        ("request_bytes", "statuses"),
        [
            (b"nonsense\r\n\r\n", {"400"}),
            (b"GET /health HTTP/9.9\r\n\r\n", {"400", "505"}),
            (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {"400", "414"}),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n", {"400", "431"}),
            (
                b"GET /health HTTP/1.1\r\nHost: x\r\n"
                + b"".join(b"X-%d: x\r\n" % n for n in range(200))
                + b"\r\n",
                {"400", "431"},
            ),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n", {"400"}),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", {"400"}),
            (
                b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: x\r\n\r\n",
                {"400"},
            ),
            (
                b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                {"400"},
            ),
            (
                b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
                {"400"},
            ),
            (
                b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
                {"400"},
            ),
            (
                b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1048577\r\n\r\n{",
                {"413"},
            ),
        ],
        ids=[
            "no HTTP",
            "another HTTP",
            "a long path",
            "a long header",
            "many headers",
            "a bad header",
            "a NUL",
            "a bad length",
            "two lengths",
            "a bad chunk",
            "a short body",
            "too long",
        ],
    )
    def test_malformed_request_gets_the_envelope(self, server, request_bytes, statuses):
        status, answer = self.ask(server, request_bytes)
        assert status in statuses, answer[:300]
        head, _, body = answer.partition("\r\n\r\n")
        assert "content-type: application/json" in head.lower()
        assert "x-content-type-options: nosniff" in head.lower()
        assert "cache-control: no-store" in head.lower()
        assert "x-request-id: " in head.lower()
        assert f'"code": {status}' in body or f'"code":{status}' in body
        assert "error_code" in body

    def test_chunked_body_is_read(self, server):
        body = b'{"email": "dave@example.com", "password": "Correct-Horse-1"}'
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        head = b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        status, _ = self.ask(server, head + chunked)
        assert status == "201"

    def test_chunked_body_over_a_mebibyte_is_413(self, server):
        head = b"POST /signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        status, answer = self.ask(
            server,
            head
            + b"10000\r\n"
            + b" " * 0x10000
            + b"\r\n"
            + (b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 16
            + b"0\r\n\r\n",
        )
        assert status == "413"
        assert "request_entity_too_large" in answer

    def test_body_over_a_mebibyte_is_413(self, server):
        response = server.post(
            "/signup", content=b" " * (1024 * 1024 + 1), headers={"Content-Type": "application/json"}
        )
        assert_error(response, 413, "request_entity_too_large", "The body is larger than 1 MiB")

    def test_body_of_a_mebibyte_is_read(self, server):
        response = server.post(
            "/magiclink", content=b" " * 1024 * 1024, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 400
        assert response.json["error_code"] == "validation_failed"
