"""Invalid HTTP: refused with our envelope and headers, and neither repeated nor logged."""

import json
import re
import socket

import pytest

from tests.support.answers import A_SENTENCE, A_UUID
from tests.support.cases import cases
from tests.support.processes import Service, wait_until
from tests.support.raw_http import Reply, connect, exchange, read

TEXT = "Secret-Of-This-Test-1"
SECRET = TEXT.encode()
BODY = json.dumps({"email": "alice@example.com", "password": TEXT}).encode()
CLOSE = b"Connection: close"
CHUNKED = b"Transfer-Encoding: chunked"


def get(*headers: bytes, body: bytes = b"", line: bytes = b"GET /health HTTP/1.1") -> bytes:
    """Return a request with header lines below that of its host."""
    return b"\r\n".join([line, b"Host: localhost", *headers, b"", body])


def post(*headers: bytes, body: bytes = b"") -> bytes:
    return get(b"Content-Type: application/json", *headers, body=body, line=b"POST /login-admin HTTP/1.1")


SETTINGS = get(line=b"GET /settings HTTP/1.1")


def assert_envelope(reply: Reply, status: int, error_code: str = "validation_failed") -> None:
    """Check that a response is an error envelope, with the headers of every response."""
    details = {"details": reply.json["details"]} if "details" in reply.json else {}
    expected = {"code": status, "msg": A_SENTENCE, "error_code": error_code} | details
    assert (reply.status, reply.json) == (status, expected)
    assert reply.headers.items() >= {
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(reply.body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        ("Connection", "close"),
    }
    assert reply.headers["X-Request-Id"] == A_UUID
    assert not re.search(r"\d", reply.headers.get("Server", "")), "shows a version"
    assert SECRET not in reply.body


@pytest.fixture
def port(running_service: Service, database) -> int:
    return running_service.port


NOT_HTTP = {
    "a word": b"GARBAGE\r\n\r\n",
    "empty lines": b"\r\n\r\n\r\n\r\n",
    "spaces": b" \r\n\r\n",
    "zeros": b"\0" * 100 + b"\r\n\r\n",
    "a TLS handshake": bytes.fromhex("16030100750100007103035d2b1a") + b"\0" * 30 + b"\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9,
    "an unknown version": get(line=b"GET /health HTTP/9.9"),
    "another protocol": get(line=b"GET /health FTP/1.1"),
    "SIP": b"OPTIONS sip:nm SIP/2.0\r\nVia: SIP/2.0/TCP nm\r\n\r\n",
    "two spaces": get(line=b"GET  /health HTTP/1.1"),
    "a tab": get(line=b"GET\t/health\tHTTP/1.1"),
    "a lower-case method": get(line=b"get /health HTTP/1.1"),
    "a method with brackets": get(line=b"GET{} /health HTTP/1.1"),
    "the PROXY protocol": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n" + get(),
    "a header without a colon": get(b"Authorization Bearer " + SECRET),
    "a space before the colon": get(b"X-Secret : " + SECRET),
    "a folded header": get(b"X-Secret: a", b" " + SECRET),
    "a header that begins with a space": b"GET /health HTTP/1.1\r\n Host: x\r\n\r\n",
    "a name with invalid characters": get(b"X(Secret): " + SECRET),
    "an empty name": get(b": " + SECRET),
    "NUL in a header": get(b"X-Secret: a\0" + SECRET),
    "a bare CR in a header": get(b"X-Secret: a\rb"),
}
LENGTHS = ["-1", "abc", "+2", "0x2", "1e2", "2.0", "2 2", "2, 2", "2,3", "", "\u0662", "2\t3", "\u00b2"]
VERSION = b"x-supabase-api-version: 2024-01-01"
LONG_TARGET = get(line=b"GET /verify?token=" + SECRET * 500 + b" HTTP/1.1")


class TestHead:
    @cases("raw_request", NOT_HTTP.values())
    def test_invalid_request_is_400(self, port, raw_request):
        (reply,) = exchange(port, raw_request)
        assert_envelope(reply, 400)

    @cases(
        ("raw_request", "status", "code"),
        [
            (get(VERSION, b"X-Secret : x"), 400, "validation_failed"),
            (get(VERSION, line=b"GET /" + b"x" * 9000 + b" HTTP/1.1"), 414, "request_entity_too_large"),
            (get(VERSION, b"X: " + b"x" * 33_000), 431, "request_entity_too_large"),
        ],
    )
    def test_client_that_sends_a_version_gets_a_text_as_code(self, port, raw_request, status, code):
        (reply,) = exchange(port, raw_request)
        assert (reply.status, reply.headers["X-Supabase-Api-Version"]) == (status, "2024-01-01")
        assert (reply.json["code"], reply.json["error_code"]) == (code, code)
        assert reply.json["message"] == reply.json["msg"]
        for older in (b"2023-12-31", b"x"):
            (reply,) = exchange(port, raw_request.replace(b"2024-01-01", older))
            assert_envelope(reply, status, code)
            assert "X-Supabase-Api-Version" not in reply.headers

    @cases("length", [9000, 14_000, 30_000])
    def test_browser_with_a_url_that_is_too_long_gets_a_page(self, port, length):
        line = b"GET /oauth/logout?id_token_hint=" + SECRET * (length // len(SECRET)) + b" HTTP/1.1"
        accepts = b"Accept: text/html,application/xhtml+xml,*/*;q=0.8"
        (reply,) = exchange(port, get(accepts, b"Accept-Language: de", line=line))
        assert (reply.status, reply.headers["Content-Type"]) == (414, "text/html; charset=utf-8")
        page = reply.body.decode()
        assert ('<html lang="de">' in page, "<h1>Das hat nicht geklappt</h1>" in page) == (True, True)
        assert reply.headers["Content-Length"] == str(len(reply.body))
        assert reply.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert SECRET not in reply.body
        (reply,) = exchange(port, get(b"Accept: application/json", line=line))
        assert_envelope(reply, 414, "request_entity_too_large")

    @cases("length", [33_000, 60_000, 120_000])
    def test_browser_with_too_many_cookies_gets_a_page(self, port, length):
        accepts, cookies = b"Accept: text/html,*/*;q=0.8", b"Cookie: x=" + SECRET * (length // len(SECRET))
        (reply,) = exchange(
            port, get(accepts, b"Accept-Language: de", cookies, line=b"GET /sign-in HTTP/1.1")
        )
        assert (reply.status, reply.headers["Content-Type"]) == (431, "text/html; charset=utf-8")
        assert "mehr Cookies gesendet" in reply.body.decode()
        assert SECRET not in reply.body
        (reply,) = exchange(port, get(b"Accept: */*", cookies))
        assert_envelope(reply, 431, "request_entity_too_large")

    @cases(
        ("raw_request", "status"),
        [
            (LONG_TARGET, 414),
            (get(b"Authorization: Bearer " + SECRET * 2000), 431),
            (get(CLOSE, line=b"GET /settings?" + b"x" * (8190 - 23) + b" HTTP/1.1"), 200),
            (get(CLOSE, line=b"GET /settings?" + b"x" * (8191 - 23) + b" HTTP/1.1"), 414),
            (get(CLOSE, b"X: " + b"x" * (32_766 - 3), line=b"GET /settings HTTP/1.1"), 200),
            (get(CLOSE, b"X: " + b"x" * (32_767 - 3), line=b"GET /settings HTTP/1.1"), 431),
            (get(CLOSE, *48 * [b"X: x"], line=b"GET /settings HTTP/1.1"), 200),
            (get(CLOSE, *49 * [b"X: x"], line=b"GET /settings HTTP/1.1"), 431),
        ],
    )
    def test_request_line_field_and_number_of_fields_are_read_up_to_their_limits(
        self, port, raw_request, status
    ):
        (reply,) = exchange(port, raw_request)
        assert reply.status == status
        if status != 200:
            assert_envelope(reply, status, "request_entity_too_large")

    @cases(
        "raw_request",
        [
            get(CLOSE, line=b"DELETE /user HTTP/1.1").replace(b"\r\n", b"\n"),
            get(CLOSE, line=b"DELETE /user HTTP/1.1").replace(b"\r\n", b"\n", 1),
            get(CLOSE, b"X: 1\nY: 2", line=b"DELETE /user HTTP/1.1"),
            get(CLOSE, b"X: a", b"\tfolded", line=b"DELETE /user HTTP/1.1"),
            get(CLOSE, b"Content-Length: 2\nContent-Length: 3", body=b"{}", line=b"DELETE /user HTTP/1.1"),
            get(CLOSE, b"Content-Length: 2", b"Content-Length: 3", body=b"{}", line=b"DELETE /user HTTP/1.1"),
            get(CLOSE, b"Content-Length: 2", CHUNKED, body=b"{}", line=b"DELETE /user HTTP/1.1"),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n" + get(CLOSE, line=b"DELETE /user HTTP/1.1"),
        ],
    )
    def test_ambiguous_request_changes_nothing(self, port, alice, raw_request):
        session = alice.open_session()
        token = b"Authorization: Bearer " + session.access_token.encode()
        assert [reply.status for reply in exchange(port, raw_request.replace(CLOSE, token))] in ([], [400])
        assert session.get("/user").status_code == 200

    def test_endless_headers_are_431_or_cut_off(self, port):
        headers = (b"X-%d: %s" % (number, b"x" * 30_000) for number in range(200))
        for reply in exchange(port, get(*headers).removesuffix(b"\r\n"))[:1]:
            assert_envelope(reply, 431, "request_entity_too_large")

    @cases(
        "target",
        [
            *(b"/\x01", b"/\x7f", b"/\xff\xfe", b"/%00", b"/%", b"/%zz", b"/\\..\\", b"/a b", "/ü".encode()),
            *(b"//", b"/?\0", b"?", b"*", b"health", b"http://", b"http://[::1"),
        ],
    )
    def test_unusual_target_is_not_a_500(self, port, target):
        for reply in exchange(port, get(CLOSE, line=b"GET " + target + b" HTTP/1.1")):
            # A URL without a path is that of the page at /.
            assert reply.status in (200, 308, 400, 404)
            if reply.status >= 400:
                assert_envelope(
                    reply, reply.status, {404: "not_found", 400: "validation_failed"}[reply.status]
                )

    @cases("method", [b"CONNECT", b"TRACE", b"PROPFIND", b"M-SEARCH", b"X" * 20, b"DEBUG", b"TRACK"])
    def test_unknown_method_is_refused(self, port, method):
        (reply,) = exchange(port, get(b"X-Secret: " + SECRET, CLOSE, line=method + b" /health HTTP/1.1"))
        code = {405: "method_not_allowed", 400: "validation_failed"}[reply.status]
        assert_envelope(reply, reply.status, code)

    @cases(
        "hosts", [b"", b"Host:\r\n", b"Host: a b\r\n", b"Host: a,b\r\n", b"Host: a/b\r\n", b"Host: a\r\n" * 2]
    )
    def test_missing_invalid_or_repeated_host_is_400(self, port, hosts):
        (reply,) = exchange(port, b"GET /health HTTP/1.1\r\n" + hosts + CLOSE + b"\r\n\r\n")
        assert_envelope(reply, 400)
        if hosts.count(b"Host") < 2:
            assert reply.json["details"] == "Host: must be one host"

    @cases(
        "head",
        [
            get(b"Authorization: Bearer " + b"x" * 32_000, CLOSE),
            b"GET /settings HTTP/1.0\r\n\r\n",
            *(
                b"GET /settings HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
                for host in (b"localhost", b"127.0.0.1:8000", b"[::1]:8000", b"app.example.com")
            ),
        ],
    )
    def test_header_of_32_kib_http_1_0_without_a_host_and_any_valid_host_are_accepted(self, port, head):
        (reply,) = exchange(port, head)
        assert reply.status == 200

    @cases(
        "headers",
        [
            (b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABkAAQAAP__"),
            (b"Upgrade: websocket", b"Connection: Upgrade"),
        ],
    )
    def test_upgrade_to_another_protocol_is_ignored_or_refused(self, port, headers):
        with connect(port, get(*headers)) as connection:
            assert connection.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 400")

    def test_unknown_expectation_is_refused(self, port):
        (reply,) = exchange(port, post(b"Expect: " + SECRET, b"Content-Length: 2", CLOSE, body=b"{}"))
        assert reply.status in (400, 417)
        assert_envelope(reply, reply.status)


class TestBody:
    @cases("length", LENGTHS)
    def test_invalid_content_length_is_400(self, port, length):
        (reply, *others) = exchange(port, post(b"Content-Length: " + length.encode(), body=BODY))
        assert_envelope(reply, 400)
        assert others == []

    @pytest.mark.parametrize(
        "headers",
        [
            (b"Content-Length: 5", b"Content-Length: 6"),
            (b"Content-Length: 5", CHUNKED),
            (CHUNKED, b"Content-Length: 5"),
            (b"Transfer-Encoding: xchunked",),
            (b"Transfer-Encoding: chunked, chunked",),
            (CHUNKED, CHUNKED),
            (b"Transfer-Encoding: chunked, identity",),
            (b"Transfer-Encoding: gzip, chunked",),
            (b"Transfer-Encoding:",),
            (b"Transfer-Encoding: \x0bchunked",),
            (b"Transfer-Encoding : chunked",),
        ],
    )
    def test_ambiguous_length_does_not_smuggle_a_request(self, port, headers):
        replies = exchange(port, post(*headers, body=b"0\r\n\r\n" + SETTINGS))
        assert [reply.status for reply in replies] in ([400], [501])
        assert_envelope(replies[0], replies[0].status)

    @cases(
        "chunks",
        [
            *(
                size + b"\r\n{}\r\n0\r\n\r\n"
                for size in (b"zz", b"-2", b"+2", b"0x2", b"2 ", b"", b"1", b"f" * 40)
            ),
            *(b"2\n{}\n0\n\n", b"2\r\n{}0\r\n\r\n", b"2;a\nb\r\n{}\r\n0\r\n\r\n", b"2\r\n{}\r\nzz"),
        ],
    )
    def test_invalid_chunk_is_400(self, port, running_service, chunks):
        logged = running_service.written()
        (reply, *others) = exchange(port, post(CHUNKED, body=chunks + SETTINGS))
        assert (reply.status, others) == (400, [])
        assert reply.json["error_code"] in ("bad_json", "validation_failed")
        assert "unexpected_failure" not in running_service.text()[logged:]

    @pytest.mark.parametrize(
        "chunks", [b"zz\r\n", b"0\r\nAuthorization: x\r\n\r\n", b"1;a b\r\nx\r\n0\r\n\r\n"]
    )
    def test_invalid_chunk_after_the_response_gets_no_second_response(self, port, chunks):
        # A proxy would take a second response for that to the request of another client.
        with connect(port, get(CHUNKED, line=b"GET /settings HTTP/1.1")) as connection:
            assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
            connection.sendall(chunks)
            assert [reply.status for reply in read(connection)] == [200]

    @cases(
        ("headers", "body"),
        [
            (b"Content-Length: 500", BODY[:20]),
            (CHUNKED, b"50\r\n" + BODY[:20]),
            (CHUNKED, b"5\r\n" + BODY[:5]),
            (CHUNKED, b"5"),
            (CHUNKED, b""),
        ],
    )
    def test_client_that_disconnects_during_the_body_is_not_logged_as_a_failure(
        self, port, running_service, headers, body
    ):
        logged = running_service.written()
        assert [reply.status for reply in exchange(port, post(headers, body=body))] in ([], [400])
        # After another request, the log of the first one is complete.
        exchange(port, get(CLOSE, line=b"GET /settings HTTP/1.1"))
        wait_until(lambda: '"route": "/settings"' in running_service.text()[logged:])
        assert "unexpected_failure" not in running_service.text()[logged:]
        assert "Traceback" not in running_service.text()[logged:]

    def test_incomplete_body_has_no_effect(self, port, alice):
        # RFC 9112, section 8. The client or a proxy may send the request again.
        session = alice.open_session()
        authorization = b"Authorization: Bearer " + session.access_token.encode()
        headers = (b"Content-Type: application/json", authorization, b"Content-Length: 50")
        for body in (b"", b"   ", b"{}"):
            raw_request = get(*headers, body=body, line=b"DELETE /user HTTP/1.1")
            assert [reply.status for reply in exchange(port, raw_request)] in ([], [400])
        assert session.get("/user").status_code == 200

    @cases(
        "raw_request",
        [
            post(b"Content-Length: 3000000", body=b'{"x": "' + b"x" * 2_999_991 + b'"}'),
            post(CHUNKED, body=(b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 20 + b"0\r\n\r\n"),
            post(CLOSE, b"Content-Length: " + b"9" * 400, body=BODY),
        ],
    )
    def test_client_still_sending_a_large_body_reads_the_413(self, port, raw_request):
        (reply,) = exchange(port, raw_request)
        assert (reply.status, reply.json["error_code"]) == (413, "request_entity_too_large")

    def test_largest_body_and_one_with_extension_and_trailer_are_read(self, port):
        body = b'{"email": "alice@example.com", "password": 1, "x": "' + b"x" * (16 * 1024 - 54) + b'"}'
        assert len(body) == 16 * 1024
        for raw_request in (
            post(b"Content-Length: %d" % len(body), CLOSE, body=body),
            post(CHUNKED, CLOSE, body=b"2;name=value\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n"),
        ):
            (reply,) = exchange(port, raw_request)
            assert (reply.status, reply.json["error_code"]) == (400, "validation_failed")

    @cases("method", [b"GET", b"HEAD", b"OPTIONS"])
    def test_body_of_a_method_without_one_does_not_become_a_request(self, port, method):
        smuggled = get(CLOSE, line=b"GET /settings HTTP/1.1")
        length = b"Content-Length: %d" % len(smuggled)
        raw_request = get(length, body=smuggled, line=method + b" /health HTTP/1.1")
        raw_request += get(line=b"GET /.well-known/jwks.json HTTP/1.0")
        with connect(port, raw_request) as connection, connection.makefile("rb") as stream:
            data = stream.read()
        assert data.count(b" 200 OK\r\n") == 2
        assert b"rate_limits" not in data


class TestAfterInvalidRequests:
    def test_connection_is_closed_and_later_requests_on_it_are_ignored(self, port):
        replies = exchange(port, SETTINGS + b"GARBAGE\r\n\r\n" + SETTINGS)
        assert [reply.status for reply in replies] == [200, 400]
        with connect(port, SETTINGS + b"GARBAGE\r\n\r\n") as connection:
            assert [reply.status for reply in read(connection)] == [200, 400]

    def test_log_has_reason_and_request_id_but_nothing_of_the_request(self, running_service, port):
        logged = running_service.written()

        def log() -> str:
            text = running_service.text()[logged:]
            return text if text.count('"invalid_request"') >= len(NOT_HTTP) + 2 else ""

        replies = [reply for raw_request in NOT_HTTP.values() for reply in exchange(port, raw_request)]
        exchange(port, post(b"Content-Length: x", body=BODY))
        exchange(port, LONG_TARGET)
        exchange(port, b"GET /verify?token=" + SECRET)
        exchange(port, get(b"Authorization: Bearer " + SECRET).removesuffix(b"\r\n\r\n"))
        text = wait_until(log)
        assert TEXT not in text
        events = [json.loads(line) for line in text.splitlines() if '"invalid_request"' in line]
        assert {(event["level"], event["ip"]) for event in events} == {("warning", "127.0.0.1")}
        assert {event["status"] for event in events} == {400, 414}
        ids = {event["request_id"] for event in events}
        assert ids >= {reply.headers["X-Request-Id"] for reply in replies}
        assert all(id == A_UUID for id in ids)
        assert running_service.get("/health")[0] == 200
