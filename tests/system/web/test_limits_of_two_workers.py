"""Attempts to evade the rate limits of a service with two workers."""

from tests.support.cases import cases
from tests.support.raw_http import ask, exchange
from tests.support.server import at_once, until_served
from tests.support.users import PASSWORD, WRONG_PASSWORD, sign_in
from tests.web.test_limits_evasion import LOG_IN

SPELLINGS = (
    "/token?grant_type=password /auth/v1/token?grant_type=password ///token?grant_type=password"
    " /auth/v1/%74%6f%6b%65%6e?grant_type=password /auth%2fv1/token?grant_type=password"
    " /x/../token?grant_type=password /token;x=1?grant_type=password /TOKEN?grant_type=password"
    " /token?grant_type=%70assword /token?grant_type=password#x /token?grant_type=pass%00word"
    " /token?Grant_Type=password /token?grant_type[]=password http://evil.example/token?grant_type=password"
    " /token?grant_type=refresh_token&grant_type=password //login-admin"
)


class TestSpellingsOfARoute:
    @cases("target", SPELLINGS.split())
    def test_other_spelling_is_limited_or_not_found(self, limited_server, alice, database, target):
        # The limit is used up, so that an evasion would show as another response.
        database.run(
            "INSERT INTO request_counts VALUES ('LIMITER/127.0.0.1/sign_in_with_password/20/5/minute', 20, now() + interval '5 minutes')"
            " ON CONFLICT DO NOTHING"
        )
        reply = ask(limited_server.port, target, "POST", {"email": alice.email, "password": WRONG_PASSWORD})
        assert (reply.status, reply.json["error_code"]) in (
            (429, "over_request_rate_limit"),
            (404, "not_found"),
            (400, "validation_failed"),
            (400, "unsupported_grant_type"),
        )
        assert database.count("failure_counts") == 0

    @cases("method", ["GET", "OPTIONS", "Post", "XPOST"])
    def test_other_method_does_nothing(self, limited_server, alice, database, method):
        reply = ask(limited_server.port, LOG_IN, method, {"email": alice.email, "password": PASSWORD})
        assert reply.status in ((200,) if method == "OPTIONS" else (400, 405))
        assert database.count("sessions") == 0


class TestWaysOfSending:
    def test_concurrent_requests_to_two_workers_count(self, limited_server):
        answers = at_once(60, lambda _: until_served(lambda: limited_server.post("/login-admin", json={})))
        assert sorted(answer.status_code for answer in answers) == [400] * 20 + [429] * 40

    def test_concurrent_failed_passwords_at_two_workers_count(self, limited_server, alice):
        # A network is allowed 20 log-ins, of which 10 may fail.
        answers = at_once(
            20, lambda _: until_served(lambda: sign_in(limited_server, alice.email, WRONG_PASSWORD))
        )
        assert sorted(answer.status_code for answer in answers) == [401] * 10 + [429] * 10

    def test_pipelined_requests_count(self, limited_server):
        request = b"POST /login-admin HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        replies = exchange(limited_server.port, request * 30)
        assert [reply.status for reply in replies] == [400] * 20 + [429] * 10
