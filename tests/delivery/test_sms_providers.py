"""SMS by Twilio."""

import base64
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest

from auth.core.sender import RefusedByServer, TryLater
from auth.delivery.senders.sms import TwilioSender
from tests.support.cases import cases
from tests.support.deliverers import deliver_due
from tests.support.http_target import HttpTarget
from tests.support.outbox import CODE, Outbox, message
from tests.support.smtp_server import Certificate

DAVE = "+4915112345678"
TEXT = f"{CODE} is your code to sign in to app.example.com. Never share it.\n\n@app.example.com #{CODE}"


@pytest.fixture
def sms():
    return message("sms", subject="", text=TEXT + "\n", html=None)


def twilio(target, sender="+15555550100", **options):
    account = {"twilio_account_sid": "AC123", "twilio_auth_token": "the-token"}
    settings: Any = SimpleNamespace(twilio_api_url=target.url, twilio_from=sender, **account)
    return TwilioSender(settings, **options)


class TestTwilio:
    @pytest.mark.parametrize(
        ("sender", "name"), [("+15555550100", "From"), ("MG0123456789", "MessagingServiceSid")]
    )
    def test_request_follows_the_api(self, target, sms, sender, name):
        target.status = 201
        target.body = b'{"sid": "SM42", "status": "queued", "body": "123456 is your code"}'
        assert twilio(target, sender=sender).send(DAVE, sms) == "201 SM42 queued"
        (posted,) = target.requests
        assert posted.path == "/2010-04-01/Accounts/AC123/Messages.json"
        assert posted.headers["authorization"] == "Basic " + base64.b64encode(b"AC123:the-token").decode()
        assert posted.headers["content-type"] == "application/x-www-form-urlencoded"
        assert parse_qs(posted.body.decode()) == {"To": [DAVE], name: [sender], "Body": [TEXT]}

    def test_refused_number_is_not_retried_and_the_response_is_kept_without_the_message(self, target, sms):
        target.status = 400
        target.body = b'{"code": 21211, "message": "Invalid \'To\' 123456", "status": 400}'
        with pytest.raises(RefusedByServer) as error:
            twilio(target).send(DAVE, sms)
        assert sms.masked(error.value.reason) == "400 Bad Request 21211 Invalid 'To' …"

    @cases("status", [401, 403, 404, 429, 500, 503])
    def test_errors_of_account_and_server_are_retried(self, target, sms, status):
        target.status, target.body = status, b'{"code": 20003, "message": "Authenticate"}'
        with pytest.raises(TryLater, match=f"^{status} .*20003 Authenticate$") as error:
            twilio(target).send(DAVE, sms)
        assert error.value.is_down

    @cases("body", [b"", b"<html>", b"[]", b'{"sid": null}', b"\xff", b"[" * 10_000])
    def test_any_2xx_is_a_success(self, target, sms, body):
        target.status, target.body = 201, body
        assert twilio(target).send(DAVE, sms).startswith("201")


class TestResponses:
    def test_redirect_is_not_followed_and_does_not_count_as_success(self, target, sms):
        with HttpTarget() as redirect_target:
            for status in (301, 302, 307, 308):
                target.status, target.headers = status, {"Location": f"{redirect_target.url}/sms"}
                with pytest.raises(TryLater, match=str(status)):
                    twilio(target).send(DAVE, sms)
            assert (redirect_target.requests, len(target.requests)) == ([], 4)

    @cases(
        ("header", "seconds"),
        [
            *[("120", 120), ("0", 0), ("99999999", 3600), ("soon", 0), ("-5", 0), (None, 0)],
            ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ],
    )
    def test_retry_after_is_respected(self, target, sms, header, seconds):
        target.status, target.headers = 429, {"Retry-After": header} if header else {}
        with pytest.raises(TryLater) as error:
            twilio(target).send(DAVE, sms)
        assert error.value.retry_after == seconds

    @pytest.mark.parametrize("behaviour", ["hang", "drip", "close"])
    def test_broken_server_is_left_at_the_deadline(self, target, sms, behaviour):
        target.behaviour = behaviour
        timeout, reason = 0.5, "no answer in time|not done within 0.5 s"
        if behaviour == "close":
            timeout, reason = 10, "the connection was closed"
        with pytest.raises(TryLater, match=f"^no answer: ({reason})$") as error:
            twilio(target, timeout=timeout).send(DAVE, sms)
        assert error.value.is_down

    def test_success_counts_even_if_the_body_never_ends_or_is_huge(self, target, sms):
        for behaviour, body in (("drip body", b""), ("", b"x" * 50_000_000)):
            target.behaviour, target.body = behaviour, body
            assert twilio(target, timeout=2.5).send(DAVE, sms).startswith("200")

    def test_certificates_are_verified(self, sms, tmp_path, monkeypatch):
        certificate = Certificate(tmp_path)
        with HttpTarget(tls=certificate) as target:
            with pytest.raises(TryLater, match=r"^no answer: TLS: self-signed certificate$"):
                twilio(target).send(DAVE, sms)
            assert target.requests == []
            with certificate.trusted(monkeypatch):
                twilio(target).send(DAVE, sms)
            assert len(target.requests) == 1


def test_twilio_sends_waiting_messages(make_app, database, target):
    account = {
        "ACCOUNT_SID": "AC123",
        "AUTH_TOKEN": "the-token",
        "FROM": "+15555550100",
        "API_URL": target.url,
    }
    settings = {f"AUTH_TWILIO_{name}": value for name, value in account.items()}
    app = make_app(AUTH_SMS_PROVIDER="twilio", AUTH_SITE_URL="https://app.example.com", **settings)
    target.status, target.body = 201, b'{"sid": "SM42", "status": "queued"}'
    outbox = Outbox(database, app.extensions["latchkey"])
    id = outbox.sms()
    assert deliver_due(app.extensions["latchkey"]) == 1
    assert parse_qs(target.requests[0].body.decode())["Body"][0].endswith(f"@app.example.com #{CODE}")
    assert (outbox.outcome(id), outbox.row(id).response) == ("sent", "201 SM42 queued")
