"""Invalid HTTP: refused with our envelope and headers, and neither repeated nor logged."""

import json
import re
import socket

import pytest

from tests.support.answers import A_SENTENCE, A_UUID
from tests.support.cases import cases
from tests.support.processes import Service, wait_until
from tests.support.wire import HOST, Reply, connect, exchange, read

SECRET = "Secret-Of-This-Test-1"
JSON = b"Content-Type: application/json\r\n"
BODY = json.dumps({"email": "alice@example.com", "password": SECRET}).encode()
POST = b"POST /login-admin HTTP/1.1\r\n" + HOST + JSON


def assert_envelope(reply: Reply, status: int, error_code: str, secret: str = SECRET) -> None:
    """Check that a response is an error envelope, with the headers of every response."""
    assert (reply.status, reply.json) == (
        status,
        {"code": status, "msg": A_SENTENCE, "error_code": error_code} | _details(reply),
    )
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Content-Length"] == str(len(reply.body))
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    assert reply.headers["X-Request-Id"] == A_UUID
    assert reply.headers["Connection"] == "close"
    assert not re.search(r"\d", reply.headers.get("Server", "")), "shows a version"
    assert secret.encode() not in reply.body


def _details(reply: Reply) -> dict[str, str]:
    return {"details": reply.json["details"]} if "details" in reply.json else {}


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
    "an unknown version": b"GET /health HTTP/9.9\r\n" + HOST + b"\r\n",
    "another protocol": b"GET /health FTP/1.1\r\n" + HOST + b"\r\n",
    "SIP": b"OPTIONS sip:nm SIP/2.0\r\nVia: SIP/2.0/TCP nm\r\n\r\n",
    "two spaces": b"GET  /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tab": b"GET\t/health\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "a lower-case method": b"get /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a method with brackets": b"GET{} /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "the PROXY protocol": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\nGET /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a header without a colon": b"GET /health HTTP/1.1\r\n"
    + HOST
    + b"Authorization Bearer "
    + SECRET.encode()
    + b"\r\n\r\n",
    "a space before the colon": b"GET /health HTTP/1.1\r\n"
    + HOST
    + b"X-Secret : "
    + SECRET.encode()
    + b"\r\n\r\n",
    "a folded header": b"GET /health HTTP/1.1\r\n"
    + HOST
    + b"X-Secret: a\r\n "
    + SECRET.encode()
    + b"\r\n\r\n",
    "a header that begins with a space": b"GET /health HTTP/1.1\r\n Host: x\r\n\r\n",
    "a name with invalid characters": b"GET /health HTTP/1.1\r\n"
    + HOST
    + b"X(Secret): "
    + SECRET.encode()
    + b"\r\n\r\n",
    "an empty name": b"GET /health HTTP/1.1\r\n" + HOST + b": " + SECRET.encode() + b"\r\n\r\n",
    "NUL in a header": b"GET /health HTTP/1.1\r\n" + HOST + b"X-Secret: a\0" + SECRET.encode() + b"\r\n\r\n",
    "a bare CR in a header": b"GET /health HTTP/1.1\r\n" + HOST + b"X-Secret: a\rb\r\n\r\n",
}
LENGTHS = ["-1", "abc", "+2", "0x2", "1e2", "2.0", "2 2", "2, 2", "2,3", "", "\u0662", "2\t3", "\u00b2"]


class TestHead:
    @cases("sent", NOT_HTTP.values())
    def test_invalid_request_is_400(self, port, sent):
        (reply,) = exchange(port, sent)
        assert_envelope(reply, 400, "validation_failed")

    def test_long_target_is_414(self, port):
        (reply,) = exchange(
            port, b"GET /verify?token=" + SECRET.encode() * 500 + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        )
        assert_envelope(reply, 414, "request_entity_too_large")

    def test_endless_request_line_is_414(self, port):
        (reply,) = exchange(port, b"GET /" + b"x" * 200_000)
        assert_envelope(reply, 414, "request_entity_too_large")

    def test_large_header_is_431(self, port):
        (reply,) = exchange(
            port,
            b"GET /health HTTP/1.1\r\n"
            + HOST
            + b"Authorization: Bearer "
            + SECRET.encode() * 2000
            + b"\r\n\r\n",
        )
        assert_envelope(reply, 431, "request_entity_too_large")

    def test_too_many_headers_are_431(self, port):
        headers = b"".join(b"X-%d: %s\r\n" % (number, SECRET.encode()) for number in range(100))
        (reply,) = exchange(port, b"GET /health HTTP/1.1\r\n" + HOST + headers + b"\r\n")
        assert_envelope(reply, 431, "request_entity_too_large")

    def test_endless_headers_are_431_or_cut_off(self, port):
        replies = exchange(
            port,
            b"GET /health HTTP/1.1\r\n"
            + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 30_000) for number in range(200)),
        )
        if replies:
            assert_envelope(replies[0], 431, "request_entity_too_large")

    def test_header_of_32_kib_is_accepted(self, port):
        (reply,) = exchange(
            port,
            b"GET /health HTTP/1.1\r\n"
            + HOST
            + b"Authorization: Bearer "
            + b"x" * 32_000
            + b"\r\nConnection: close\r\n\r\n",
        )
        assert reply.status == 200

    @pytest.mark.parametrize(
        "target",
        [
            b"/\x01",
            b"/\x7f",
            b"/\xff\xfe",
            b"/%00",
            b"/%",
            b"/%zz",
            b"/\\..\\",
            b"/a b",
            "/ü".encode(),
            b"//",
            b"/?\0",
            b"?",
            b"*",
            b"health",
            b"http://",
            b"http://[::1",
        ],
    )
    def test_unusual_target_is_not_a_500(self, port, target):
        replies = exchange(port, b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        for reply in replies:
            # A URL without a path is that of the page at /.
            assert reply.status in (200, 308, 400, 404)
            if reply.status >= 400:
                assert_envelope(
                    reply, reply.status, "not_found" if reply.status == 404 else "validation_failed"
                )

    @cases("method", [b"CONNECT", b"TRACE", b"PROPFIND", b"M-SEARCH", b"X" * 20, b"DEBUG", b"TRACK"])
    def test_unknown_method_is_refused(self, port, method):
        (reply,) = exchange(
            port,
            method
            + b" /health HTTP/1.1\r\n"
            + HOST
            + b"X-Secret: "
            + SECRET.encode()
            + b"\r\nConnection: close\r\n\r\n",
        )
        assert_envelope(
            reply, reply.status, {405: "method_not_allowed", 400: "validation_failed"}[reply.status]
        )

    @pytest.mark.parametrize(
        "headers",
        [b"", b"Host:\r\n", b"Host: a b\r\n", b"Host: a,b\r\n", b"Host: a/b\r\n"],
    )
    def test_missing_or_invalid_host_is_400(self, port, headers):
        (reply,) = exchange(port, b"GET /health HTTP/1.1\r\n" + headers + b"Connection: close\r\n\r\n")
        assert_envelope(reply, 400, "validation_failed")
        assert reply.json["details"] == "Host: must be one host"

    def test_repeated_host_is_400(self, port):
        head = b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n"
        (reply,) = exchange(port, head + b"Connection: close\r\n\r\n")
        assert_envelope(reply, 400, "validation_failed")

    @pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:8000", b"[::1]:8000", b"app.example.com"])
    def test_valid_host_is_accepted(self, port, host):
        head = b"GET /settings HTTP/1.1\r\nHost: " + host
        (reply,) = exchange(port, head + b"\r\nConnection: close\r\n\r\n")
        assert reply.status == 200

    def test_http_1_0_needs_no_host(self, port):
        (reply,) = exchange(port, b"GET /settings HTTP/1.0\r\n\r\n")
        assert reply.status == 200

    @pytest.mark.parametrize(
        "headers",
        [
            b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
            b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
        ],
    )
    def test_upgrade_to_another_protocol_is_ignored_or_refused(self, port, headers):
        with connect(port, b"GET /health HTTP/1.1\r\n" + HOST + headers + b"\r\n") as connection:
            assert connection.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 400")

    def test_unknown_expectation_is_refused(self, port):
        (reply,) = exchange(
            port,
            POST + b"Expect: " + SECRET.encode() + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        )
        assert reply.status in (400, 417)
        assert_envelope(reply, reply.status, "validation_failed")


class TestBody:
    @cases("length", LENGTHS)
    def test_invalid_content_length_is_400(self, port, length):
        (reply, *others) = exchange(port, POST + b"Content-Length: " + length.encode() + b"\r\n\r\n" + BODY)
        assert_envelope(reply, 400, "validation_failed")
        assert others == []

    def test_content_length_of_400_digits_is_413(self, port):
        (reply,) = exchange(
            port, POST + b"Connection: close\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n" + BODY
        )
        assert_envelope(reply, 413, "request_entity_too_large")

    @pytest.mark.parametrize(
        "headers",
        [
            b"Content-Length: 5\r\nContent-Length: 6\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            b"Transfer-Encoding: xchunked\r\n",
            b"Transfer-Encoding: chunked, chunked\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: chunked, identity\r\n",
            b"Transfer-Encoding: gzip, chunked\r\n",
            b"Transfer-Encoding:\r\n",
            b"Transfer-Encoding: \x0bchunked\r\n",
            b"Transfer-Encoding : chunked\r\n",
        ],
    )
    def test_ambiguous_length_does_not_smuggle_a_request(self, port, headers):
        smuggled = b"0\r\n\r\nGET /settings HTTP/1.1\r\n" + HOST + b"\r\n"
        replies = exchange(port, POST + headers + b"\r\n" + smuggled)
        assert [reply.status for reply in replies] in ([400], [501])
        assert_envelope(replies[0], replies[0].status, "validation_failed")

    @cases(
        "chunks",
        [
            b"zz\r\n{}\r\n0\r\n\r\n",
            b"-2\r\n{}\r\n0\r\n\r\n",
            b"+2\r\n{}\r\n0\r\n\r\n",
            b"0x2\r\n{}\r\n0\r\n\r\n",
            b"2 \r\n{}\r\n0\r\n\r\n",
            b"2\n{}\n0\n\n",
            b"\r\n{}\r\n0\r\n\r\n",
            b"2\r\n{}0\r\n\r\n",
            b"1\r\n{}\r\n0\r\n\r\n",
            b"2;a\nb\r\n{}\r\n0\r\n\r\n",
            b"f" * 40 + b"\r\n{}\r\n0\r\n\r\n",
            b"2\r\n{}\r\nzz",
        ],
    )
    def test_invalid_chunk_is_400(self, port, running_service, chunks):
        logged = len(running_service.text())
        (reply, *others) = exchange(
            port,
            POST
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + chunks
            + b"GET /settings HTTP/1.1\r\n"
            + HOST
            + b"\r\n",
        )
        assert reply.status == 400
        assert reply.json["error_code"] in ("bad_json", "validation_failed")
        assert others == []
        assert "unexpected_failure" not in running_service.text()[logged:]

    @pytest.mark.parametrize(
        "chunks", [b"zz\r\n", b"0\r\nAuthorization: x\r\n\r\n", b"1;a b\r\nx\r\n0\r\n\r\n"]
    )
    def test_invalid_chunk_after_the_response_gets_no_second_response(self, port, chunks):
        # A proxy would take a second response for that to the request of another client.
        with connect(
            port, b"GET /settings HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        ) as connection:
            assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
            connection.sendall(chunks)
            assert [reply.status for reply in read(connection)] == [200]

    @pytest.mark.parametrize(
        "sent",
        [
            b"Content-Length: 500\r\n\r\n" + BODY[:20],
            b"Transfer-Encoding: chunked\r\n\r\n50\r\n" + BODY[:20],
            b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + BODY[:5],
            b"Transfer-Encoding: chunked\r\n\r\n5",
            b"Transfer-Encoding: chunked\r\n\r\n",
        ],
        ids=["length", "chunk", "between chunks", "chunk size", "nothing"],
    )
    def test_client_that_disconnects_during_the_body_is_not_logged_as_a_failure(
        self, port, running_service, sent
    ):
        logged = len(running_service.text())
        replies = exchange(port, POST + sent)
        assert [reply.status for reply in replies] in ([], [400])
        # After another request, the log of the first one is complete.
        exchange(port, b"GET /settings HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        wait_until(lambda: '"route": "/settings"' in running_service.text()[logged:])
        assert "unexpected_failure" not in running_service.text()[logged:]
        assert "Traceback" not in running_service.text()[logged:]

    def test_incomplete_body_has_no_effect(self, port, alice):
        # RFC 9112, section 8. The client or a proxy may send the request again.
        session = alice.open_session()
        head = (
            b"DELETE /user HTTP/1.1\r\n"
            + HOST
            + JSON
            + b"Authorization: Bearer "
            + session.access_token.encode()
            + b"\r\n"
        )
        for sent in (
            b"Content-Length: 50\r\n\r\n",
            b"Content-Length: 50\r\n\r\n   ",
            b"Content-Length: 50\r\n\r\n{}",
        ):
            assert [reply.status for reply in exchange(port, head + sent)] in ([], [400])
        assert session.get("/user").status_code == 200

    def test_client_still_sending_a_large_body_reads_the_413(self, port):
        replies = exchange(
            port, POST + b"Content-Length: 3000000\r\n\r\n" + b'{"x": "' + b"x" * 2_999_991 + b'"}'
        )
        assert [reply.status for reply in replies] == [413]
        assert replies[0].json["error_code"] == "request_entity_too_large"

    def test_large_announced_body_is_not_waited_for(self, port):
        with connect(
            port,
            POST + b"Content-Length: 3000000\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
            timeout=8,
        ) as connection:
            assert connection.recv(12) in (b"HTTP/1.1 413", b"HTTP/1.1 100")

    def test_large_chunked_body_is_413(self, port):
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        replies = exchange(port, POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 20 + b"0\r\n\r\n")
        assert [reply.status for reply in replies] == [413]
        assert replies[0].json["error_code"] == "request_entity_too_large"

    def test_body_of_a_mebibyte_is_read(self, port):
        body = b'{"email": "alice@example.com", "password": 1, "x": "' + b"x" * (1024 * 1024 - 54) + b'"}'
        assert len(body) == 1024 * 1024
        (reply,) = exchange(
            port, POST + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        )
        assert (reply.status, reply.json["error_code"]) == (400, "validation_failed")

    def test_chunked_body_with_extension_and_trailer_is_read(self, port):
        (reply,) = exchange(
            port,
            POST
            + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;name=value\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n",
        )
        assert (reply.status, reply.json["error_code"]) == (400, "validation_failed")

    @pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS"])
    def test_body_of_a_request_without_one_does_not_become_a_request(self, port, method):
        smuggled = b"GET /settings HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        request = (
            method
            + b" /health HTTP/1.1\r\n"
            + HOST
            + b"Content-Length: %d\r\n\r\n" % len(smuggled)
            + smuggled
        )
        with (
            connect(
                port, request + b"GET /.well-known/jwks.json HTTP/1.0\r\n" + HOST + b"\r\n"
            ) as connection,
            connection.makefile("rb") as stream,
        ):
            data = stream.read()
        assert data.count(b" 200 OK\r\n") == 2
        assert b"rate_limits" not in data


class TestAfterInvalidRequests:
    def test_requests_after_an_invalid_one_are_ignored(self, port):
        replies = exchange(port, b"GARBAGE\r\n\r\n" + b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n")
        assert [reply.status for reply in replies] == [400]

    def test_connection_is_closed_after_an_invalid_request(self, port):
        with connect(port, b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\nGARBAGE\r\n\r\n") as connection:
            replies = read(connection)
        assert [reply.status for reply in replies] == [200, 400]

    def test_service_stays_healthy(self, running_service, port):
        for sent in list(NOT_HTTP.values()) * 2:
            exchange(port, sent)
        assert running_service.get("/health")[0] == 200

    def test_log_has_the_reason_but_nothing_of_the_request(self, running_service, port):
        logged = len(running_service.text())
        for sent in NOT_HTTP.values():
            exchange(port, sent)
        exchange(port, POST + b"Content-Length: x\r\n\r\n" + BODY)
        exchange(port, b"GET /verify?token=" + SECRET.encode() * 500 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        exchange(port, b"GET /verify?token=" + SECRET.encode())
        exchange(port, b"GET /health HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + SECRET.encode())
        text = wait_until(
            lambda: (
                log
                if (log := running_service.text()[logged:]).count('"invalid_request"') >= len(NOT_HTTP) + 2
                else ""
            )
        )
        assert SECRET not in text
        events = [json.loads(line) for line in text.splitlines() if '"invalid_request"' in line]
        assert {(event["level"], event["ip"]) for event in events} == {("warning", "127.0.0.1")}
        assert {event["status"] for event in events} == {400, 414}
        assert all(event["request_id"] == A_UUID for event in events)

    def test_log_has_the_request_id_of_the_response(self, running_service, port):
        (reply,) = exchange(port, b"GARBAGE\r\n\r\n")
        wait_until(lambda: reply.headers["X-Request-Id"] in running_service.text())
