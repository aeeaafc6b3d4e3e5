"""Signing in to a mail server with access tokens, with real mail and token servers on loopback."""

import base64
import dataclasses
import datetime
import json
import threading
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc import jwk, jwt
from structlog.testing import capture_logs

from auth.core.sender import TryLater
from auth.core.settings import SettingsError
from auth.delivery.deliverer import GRACE, Deliverer
from auth.delivery.senders import channels
from auth.delivery.senders.smtp_tokens import SmtpTokens
from auth.ops.processes.start_checks import check_files
from tests.support.cases import cases
from tests.support.deliverers import RunningDeliverer
from tests.support.http_target import HttpTarget
from tests.support.outbox import Outbox, message
from tests.support.processes import free_port, wait_until
from tests.support.server import at_once
from tests.support.smtp_server import MailServer, TokenMailServer, sender
from tests.support.users import ALICE

USER = "no-reply@example.com"
SECRET = "hunter2-of-the-client"
SCOPE = "https://outlook.office365.com/.default"
# Tokens as long as Microsoft's.
FIRST, SECOND = ("e" + letter * 2000 for letter in "ab")


class TokenServer(HttpTarget):
    """A server that issues `tokens` one after the other, valid for `lifetime` seconds each."""

    def __init__(self, *tokens, lifetime=3600):
        super().__init__()
        self.tokens = list(tokens)
        self.lifetime = lifetime
        self._issuing = threading.Lock()
        # Requests for a token wait until this event is set.
        self.is_open = threading.Event()
        self.is_open.set()
        self.give({})

    def give(self, answer, status=200):
        """Answer with this object or these bytes instead of a token, unless they are empty."""
        self.other_answer, self.status = answer, status

    @property
    def body(self):
        if self.other_answer:
            return (
                self.other_answer
                if isinstance(self.other_answer, bytes)
                else json.dumps(self.other_answer).encode()
            )
        assert self.is_open.wait(20)
        with self._issuing:
            token = self.tokens.pop(0)
        return json.dumps(
            {"token_type": "Bearer", "expires_in": self.lifetime, "access_token": token}
        ).encode()

    @body.setter
    def body(self, _):
        pass

    @property
    def forms(self):
        return [
            {name: value for name, (value,) in parse_qs(request.body.decode()).items()}
            for request in self.requests
        ]


@pytest.fixture
def issuer():
    with TokenServer(FIRST, SECOND) as server:
        yield server


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def server():
    with TokenMailServer(FIRST) as server:
        yield server


def tokens_of(issuer, timeout=60, **changes):
    values: dict[str, Any] = {
        "token_url": f"{issuer.url}/token",
        "client_id": "c1",
        "client_secret": SECRET,
        "scope": SCOPE,
    }
    values |= {"client_key": None} | changes
    settings: Any = SimpleNamespace(**{f"smtp_{name}": value for name, value in values.items()})
    return SmtpTokens(settings, timeout)


def url(server):
    return server.url(credentials="no-reply%40example.com@")


@pytest.fixture
def smtp(server, issuer):
    smtp = sender(url(server), tokens_of(issuer))
    yield smtp
    smtp.close()


def reason_of(smtp):
    with pytest.raises(TryLater) as raised:
        smtp.send(ALICE, message())
    smtp.close()
    assert raised.value.is_down
    assert SECRET not in raised.value.reason
    assert FIRST not in raised.value.reason
    return str(raised.value)


class TestToken:
    def test_mail_is_sent_with_a_token_that_the_client_secret_buys(self, smtp, server, issuer):
        assert smtp.send(ALICE, message()) == "127.0.0.1: 250 2.0.0 Ok: queued as 1"
        assert server.credentials == [(USER, FIRST)]
        (request,) = issuer.requests
        assert (request.path, "authorization" in request.headers) == ("/token", False)
        expected = {"grant_type": "client_credentials", "client_id": "c1", "client_secret": SECRET}
        assert issuer.forms == [expected | {"scope": SCOPE}]

    def test_senders_that_wait_for_a_slow_token_server_share_its_token(self, server, issuer):
        smtp = sender(url(server), tokens_of(issuer))
        issuer.is_open.clear()

        def send_or_release(number):
            if number == 8:
                assert issuer.reached.wait(20)
                issuer.is_open.set()
            else:
                smtp.send(ALICE, message())

        at_once(9, send_or_release)
        smtp.close()
        assert (len(server.mails), len(issuer.requests)) == (8, 1)

    def test_token_is_kept_until_a_minute_before_its_end(self, issuer, monkeypatch):
        tokens, before = tokens_of(issuer), time.monotonic()
        assert (tokens.get(), tokens.get()) == (FIRST, FIRST)
        after = time.monotonic()
        # The database does not hold the token's end, so the test moves the clock.
        monkeypatch.setattr(time, "monotonic", lambda: before + 3600 - 70)
        assert tokens.get() == FIRST
        monkeypatch.setattr(time, "monotonic", lambda: after + 3600 - 50)
        assert tokens.get() == SECOND

    @cases("lifetime", [None, "soon", -1, 60, "60", True, 1e999, [3600], 10**30])
    def test_token_without_a_usable_lifetime_is_used_once(self, lifetime):
        with TokenServer(FIRST, SECOND, lifetime=lifetime) as issuer:
            tokens = tokens_of(issuer)
            assert (tokens.get(), tokens.get()) == (FIRST, SECOND)


class TestRefusedToken:
    def test_refused_token_is_replaced_once_and_the_mail_is_sent(self, smtp, server, issuer):
        server.accepted = {SECOND}
        smtp.send(ALICE, message())
        assert server.credentials == [(USER, FIRST), (USER, SECOND)]
        smtp.close()
        smtp.send(ALICE, message())
        assert (server.credentials[2:], len(issuer.requests)) == ([(USER, SECOND)], 2)

    def test_second_refusal_is_reported_with_the_answer_of_the_server(self, smtp, server, issuer):
        server.accepted.clear()
        assert reason_of(smtp) == "can't sign in to the mail server: 535 5.7.3 Authentication unsuccessful"
        assert (len(server.credentials), len(issuer.requests), server.mails) == (2, 2, [])

    def test_answer_that_repeats_the_token_is_reported_without_it(self, smtp, server):
        credentials = base64.b64encode(f"user={USER}\1auth=Bearer {FIRST}\1\1".encode()).decode()
        server.refusals = [f"454 saw {FIRST}", f"454 saw {credentials}"]
        for _ in range(2):
            assert reason_of(smtp) == "can't sign in to the mail server: 454 saw …"


LEAKING = {"error": "invalid_client", "error_description": f"AADSTS7000215: Bad secret '{SECRET}'.\r\nX"}
UNUSABLE = [b"<html>Sign in", b"\xff", b"[" * 100_000, b"[1]", {"token_type": "Bearer"}]
UNUSABLE += [{"access_token": token} for token in (None, "", 5, ["a"], "a b", "a\1b", "é", "a" * 8193)]


class TestSteps:
    """A failure names its step."""

    @cases(
        ("status", "answer", "reason"),
        [
            (401, LEAKING, "401 Unauthorized: invalid_client: AADSTS7000215: Bad secret '…'. X"),
            (400, {"error": {"message": "x"}}, "400 Bad Request"),
            (503, b"<html>Down", "503 Service Unavailable"),
            (200, {"error": "invalid_grant"}, "200 OK: invalid_grant"),
            *(
                (200, answer, "200 OK: the answer has no access_token that can be used")
                for answer in UNUSABLE
            ),
        ],
    )
    def test_refusal_of_the_token_server_is_reported(self, server, issuer, status, answer, reason):
        issuer.give(answer, status)
        address = issuer.url.removeprefix("http://")
        error = reason_of(sender(url(server), tokens_of(issuer)))
        assert error == f"can't get an access token from {address}: {reason}"
        assert server.credentials == []

    def test_redirect_is_not_followed(self, smtp, issuer):
        with HttpTarget() as elsewhere:
            issuer.give(b"moved", 307)
            issuer.headers = {"Location": f"{elsewhere.url}/token"}
            assert reason_of(smtp).endswith(": 307 Temporary Redirect")
            assert elsewhere.requests == []

    @cases("behaviour", ["close", "hang", "drip", "drip body", "endless"])
    def test_broken_token_server_is_left_at_the_deadline(self, behaviour):
        with TokenServer() as issuer, TokenMailServer() as server:
            issuer.behaviour = behaviour
            error = reason_of(sender(url(server), tokens_of(issuer, timeout=0.5)))
            assert error.startswith(f"can't get an access token from {issuer.url.removeprefix('http://')}: ")
            assert server.credentials == []

    def test_mail_server_without_tokens_is_reported(self, issuer):
        with MailServer() as server:
            smtp = sender(url(server), tokens_of(issuer))
            assert reason_of(smtp) == "the mail server offers no XOAUTH2"

    def test_malformed_challenge_of_the_mail_server_is_reported(self, smtp, server):
        server.refusals = ["334 x"]
        assert reason_of(smtp) == "can't sign in to the mail server: its challenge is malformed"


def test_message_waits_while_the_token_server_is_away_and_the_log_names_it(server, issuer, database, parts):
    outbox, port = Outbox(database, parts), free_port()
    tokens = tokens_of(issuer, token_url=f"http://127.0.0.1:{port}/token")
    smtp = sender(url(server), tokens)
    id = outbox.write()
    reason = f"can't get an access token from 127.0.0.1:{port}: no answer: connection refused"
    with capture_logs() as logs:
        running = RunningDeliverer(Deliverer(parts.settings, parts.db, parts.sealer, {"email": smtp}), GRACE)
        wait_until(lambda: outbox.row(id).last_error)
        row = outbox.row(id)
        assert (row.outcome, row.attempts, row.last_error) == (None, 1, reason)
        assert outbox.waits_for(id, since=database.value("SELECT created_at FROM outbox")) >= 2
        tokens.url = f"{issuer.url}/token"
        outbox.end_pauses()
        wait_until(lambda: outbox.outcome(id) == "sent")
        running.stop()
    (entry,) = [entry for entry in logs if entry["event"] == "delivery_fails"]
    assert (entry["what"], entry["reason"]) == ("email", reason)
    assert SECRET not in str(logs)


class TestClientKey:
    def test_key_signs_a_fresh_assertion_for_each_token(self, issuer, key, tmp_path):
        tokens = tokens_of(issuer, client_secret="", client_key=write_pem(tmp_path, pem_of(key)))
        started_at = int(time.time())
        tokens.get()
        tokens.get(FIRST)
        first, second = issuer.forms
        assert "client_secret" not in first
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        assert first["client_assertion_type"] == kind
        assertion = verify(first["client_assertion"], key)
        assert assertion.header == {"typ": "JWT", "alg": "RS256"}
        claims = assertion.claims
        assert (claims["iss"], claims["sub"], claims["aud"]) == ("c1", "c1", f"{issuer.url}/token")
        assert started_at <= claims["iat"] == claims["nbf"] == claims["exp"] - 240
        assert claims["jti"] != verify(second["client_assertion"], key).claims["jti"]

    def test_certificate_in_the_file_is_named_as_microsoft_demands(self, issuer, key, tmp_path):
        certificate = certificate_of(key)
        pem = pem_of(key) + certificate.public_bytes(serialization.Encoding.PEM)
        tokens_of(issuer, client_secret="", client_key=write_pem(tmp_path, pem)).get()
        assertion = verify(issuer.forms[0]["client_assertion"], key)
        digest = base64.urlsafe_b64encode(certificate.fingerprint(hashes.SHA256())).decode().rstrip("=")
        assert assertion.header == {"typ": "JWT", "alg": "PS256", "x5t#S256": digest}

    def test_unusable_key_stops_the_start_with_one_line(self, load, key, tmp_path):
        problem = "Must be the path of a PEM file with an RSA private key without a passphrase"
        other = certificate_of(rsa.generate_private_key(65537, 2048)).public_bytes(serialization.Encoding.PEM)
        foreign = "Has the certificate of another key. Put that of the key there, or none"
        for pem, reason in (
            (b"hunter2", problem),
            (pem_of(ec.generate_private_key(ec.SECP256R1())), problem),
            (pem_of(key, serialization.BestAvailableEncryption(b"hunter2")), problem),
            (pem_of(key) + other, foreign),
        ):
            settings = load(**OAUTH, AUTH_SMTP_CLIENT_KEY=str(write_pem(tmp_path, pem)))
            with pytest.raises(SettingsError) as error:
                check_files(settings)
            assert str(error.value) == f"AUTH_SMTP_CLIENT_KEY: {reason}."
        settings = dataclasses.replace(settings, smtp_client_key=tmp_path / "missing")
        with pytest.raises(SettingsError, match=rf"No such file or directory\. {problem}\.$"):
            check_files(settings)


OAUTH = {
    "AUTH_SMTP_URL": "smtp://no-reply%40example.com@smtp.office365.com",
    "AUTH_SMTP_TOKEN_URL": "https://login.microsoftonline.com/t/oauth2/v2.0/token",
    "AUTH_SMTP_CLIENT_ID": "c1",
}


class TestSettings:
    def test_settings_make_a_sender_with_tokens(self, load):
        smtp = channels.mail_server(load(**OAUTH, AUTH_SMTP_CLIENT_SECRET=SECRET, AUTH_SMTP_SCOPE=SCOPE))
        assert (smtp.server.user, smtp.server.password) == (USER, "")
        assert smtp.tokens
        assert SECRET not in repr(smtp.tokens)

    @pytest.mark.parametrize(
        ("changes", "line"),
        [
            (
                {"CLIENT_KEY": "/k"},
                "CLIENT_KEY: Is set beside AUTH_SMTP_CLIENT_SECRET. Unset one of the two.",
            ),
            *(
                ({"URL": url}, "URL: Must be a mail server with a user and without a password when")
                for url in ("smtp://smtp.office365.com", "smtp://u:hunter2@smtp.office365.com", "console")
            ),
            ({"TOKEN_URL": "http://login.example.com/token"}, "TOKEN_URL: Must be an https URL, unless"),
            ({"TOKEN_URL": "https://u:hunter2@login.example.com"}, "TOKEN_URL: Must be a URL such as"),
        ],
    )
    def test_contradiction_is_refused_with_one_line(self, load, changes, line):
        variables = {
            f"AUTH_SMTP_{name}": value for name, value in ({"CLIENT_SECRET": SECRET} | changes).items()
        }
        with pytest.raises(SettingsError) as error:
            load(**OAUTH | variables)
        (problem,) = str(error.value).splitlines()
        assert problem.startswith(f"AUTH_SMTP_{line}")
        assert "hunter2" not in problem


def write_pem(folder, pem):
    path = folder / "client.pem"
    path.write_bytes(pem)
    return path


def pem_of(key, encryption=None):
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, encryption or serialization.NoEncryption())


def certificate_of(key):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "latchkey")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
    return builder.sign(key, hashes.SHA256())


def verify(assertion, key):
    return jwt.decode(assertion, jwk.RSAKey.import_key(pem_of(key)), algorithms=["RS256", "PS256"])
