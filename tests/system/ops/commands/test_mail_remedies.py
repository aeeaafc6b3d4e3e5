"""Each step of sending an email fails once: `mail-test` prints it with its remedy, which then fixes it.

The doctor prints the same remedies, but stops after the step of the sender.
"""

from typing import Any

import pytest

from tests.support import sentences
from tests.support.commands import run_command
from tests.support.http_target import HttpTarget
from tests.support.smtp_server import (
    ENCODED_PASSWORD,
    PASSWORD,
    USER,
    BadMailServer,
    Certificate,
    MailServer,
    TokenMailServer,
)

# How the remedies begin.
CREDENTIALS = "Correct the user and password, percent-encoded: AUTH_SMTP_URL="
TOKEN = "Correct AUTH_SMTP_TOKEN_URL, AUTH_SMTP_CLIENT_… and AUTH_SMTP_SCOPE"
PERMISSION = "Give the application the mailbox's permission, such as SMTP.SendAsApp"
LATER = "Try again in some minutes"
AUTHORITY = "Get the server a certificate of a public authority, or trust its own"
ALICE = "alice@example.com"


@pytest.fixture
def mail_test(make_app):
    """Return a function that runs the command with settings, and asserts the failure with its remedy; without a remedy,
    that the mail was sent.
    """

    def mail_test(step: str, problem: str, remedy: str, address: str = ALICE, **changes: str) -> None:
        result = run_command(make_app(**changes), "mail-test", address)
        if not remedy:
            assert (result.exit_code, result.stdout.partition(": ")[0]) == (0, f"Sent to {address}")
            return
        named = f" (failed step: {step})" if step else ""
        assert (result.exit_code, result.stdout) == (1, "")
        # The mail server of the test may log.
        line, _, printed = result.stderr[result.stderr.rindex("Error: ") :].partition("\n")
        assert line.startswith(f"Error: Not sent to {address}{named}: {problem}")
        assert printed.startswith(f"  {remedy}")
        assert sentences.problem(line) is None
        assert sentences.problem_of_remedy(printed.strip()) is None

    return mail_test


@pytest.fixture
def sends(mail_test):
    return lambda url, **changes: mail_test("", "", "", AUTH_SMTP_URL=url, **changes)


@pytest.mark.parametrize(
    ("step", "url", "problem", "remedy"),
    [
        (
            "resolve",
            "smtp://nowhere.invalid:25",
            "its name can't be resolved",
            "Correct the host of AUTH_SMTP_URL",
        ),
        ("connect", "smtp://127.0.0.1:1", "connection refused", "Correct the host and port"),
    ],
)
def test_server_that_cannot_be_reached_is_reported_with_a_remedy(mail_test, step, url, problem, remedy):
    mail_test(step, f"can't connect to the mail server: {problem}", remedy, AUTH_SMTP_URL=url)


def test_connection_that_the_server_closes_in_the_middle_is_reported_with_a_remedy(mail_test, sends):
    with BadMailServer("DATA", "close") as server:
        problem = "lost the mail server: the connection was closed"
        mail_test("data", problem, "Try again. If that fails too", AUTH_SMTP_URL=server.url)
        server.recover()
        sends(server.url)


def test_port_without_tls_and_untrusted_certificates_are_reported_with_a_remedy(
    mail_test, sends, tmp_path, monkeypatch
):
    certificate, expired = Certificate(tmp_path), Certificate(tmp_path, "expired", hours=-1)
    refused = "can't connect to the mail server: TLS: "
    with MailServer() as plain, MailServer(tls=certificate) as server, MailServer(tls=expired) as late:
        mail_test("tls", refused, "In AUTH_SMTP_URL, use smtps://", AUTH_SMTP_URL=plain.url("smtps"))
        sends(plain.url())
        problem = f"{refused}self-signed certificate"
        mail_test("tls", problem, AUTHORITY, AUTH_SMTP_URL=server.url("smtps"))
        with expired.trusted(monkeypatch):
            problem = f"{refused}certificate has expired"
            mail_test("tls", problem, "Renew the certificate", AUTH_SMTP_URL=late.url("smtps"))
        with certificate.trusted(monkeypatch), MailServer(tls=certificate, host="127.0.0.2") as other:
            problem = f"{refused}IP address mismatch, certificate is not valid for '127.0.0.2'"
            mail_test(
                "tls",
                problem,
                "In AUTH_SMTP_URL, use the host name",
                AUTH_SMTP_URL=other.url("smtps", "127.0.0.2"),
            )
            sends(server.url("smtps"))


def test_starttls_that_is_not_offered_or_not_trusted_is_reported_with_a_remedy(
    mail_test, sends, tmp_path, monkeypatch
):
    certificate = Certificate(tmp_path)
    with MailServer() as plain, MailServer(starttls=certificate) as server:
        problem = (
            "the mail server offers no STARTTLS; if the network to it is yours alone, add ?starttls=never to"
            " AUTH_SMTP_URL"
        )
        mail_test(
            "starttls",
            problem,
            "Use the port that offers STARTTLS",
            AUTH_SMTP_URL=plain.url(options="?starttls=required"),
        )
        problem = "STARTTLS fails: TLS: self-signed certificate"
        mail_test("starttls", problem, AUTHORITY, AUTH_SMTP_URL=server.url())
        with certificate.trusted(monkeypatch):
            sends(server.url(options="?starttls=required"))


def test_password_that_is_wrong_or_not_accepted_is_reported_with_a_remedy(
    mail_test, sends, tmp_path, monkeypatch
):
    certificate = Certificate(tmp_path)
    with (
        certificate.trusted(monkeypatch),
        MailServer(starttls=certificate, password=PASSWORD) as server,
        MailServer() as open_server,
    ):
        problem = "can't sign in to the mail server: 535 5.7.8 Authentication credentials invalid"
        mail_test("login", problem, CREDENTIALS, AUTH_SMTP_URL=server.url(credentials=f"{USER}:wrong@"))
        problem = "MAIL FROM 530 5.7.0 Authentication required"
        mail_test("sender", problem, CREDENTIALS, AUTH_SMTP_URL=server.url())
        sends(server.url(credentials=f"{USER}:{ENCODED_PASSWORD}@"))
        problem = "can't sign in to the mail server: SMTP AUTH extension not supported by server"
        mail_test(
            "login",
            problem,
            "Use the port that offers AUTH",
            AUTH_SMTP_URL=open_server.url(credentials=f"{USER}:x@"),
        )
        sends(open_server.url())


def test_access_token_that_is_not_issued_or_not_accepted_is_reported_with_a_remedy(mail_test):
    with TokenMailServer("good") as server, MailServer() as other, HttpTarget() as issuer:
        settings = {
            "AUTH_SMTP_URL": server.url(credentials="no-reply@"),
            "AUTH_SMTP_TOKEN_URL": issuer.url,
            "AUTH_SMTP_CLIENT_ID": "c1",
            "AUTH_SMTP_CLIENT_SECRET": "s1",
        }
        issuer.status, issuer.body = 401, b'{"error": "invalid_client", "error_description": "No s1"}'
        place = issuer.url.removeprefix("http://")
        problem = f"can't get an access token from {place}: 401 Unauthorized: invalid_client: No …"
        mail_test("token", problem, TOKEN, **settings)
        issuer.status, issuer.body = 200, b'{"access_token": "bad"}'
        problem = "can't sign in to the mail server: 535 5.7.3 Authentication unsuccessful"
        mail_test("login", problem, PERMISSION, **settings)
        issuer.body = b'{"access_token": "good"}'
        problem = "can't sign in to the mail server: 454 4.7.0 Temporary failure"
        server.refusals = ["454 4.7.0 Temporary failure"]
        mail_test("login", problem, LATER, **settings)
        mail_test("", "", "", **settings)
        other_server = {"AUTH_SMTP_URL": other.url(credentials="no-reply@")}
        mail_test(
            "login",
            "the mail server offers no XOAUTH2",
            "Use a server that offers XOAUTH2",
            **settings | other_server,
        )


@pytest.mark.parametrize(
    ("stage", "reply", "step", "problem", "remedy"),
    [
        ("MAIL", "550 5.7.1 not yours", "sender", "MAIL FROM 550 5.7.1 not yours", "Set AUTH_MAIL_FROM"),
        (
            "RCPT",
            "550 5.1.1 No such user",
            "recipient",
            "RCPT TO 550 5.1.1 No such user",
            "Correct the address",
        ),
        ("RCPT", "450 4.2.0 Greylisted.", "recipient", "RCPT TO 450 4.2.0 Greylisted", LATER),
        (
            "DATA",
            "554 5.2.252 SendAsDenied",
            "data",
            "DATA 554 5.2.252 SendAsDenied",
            "Fix what the server names",
        ),
    ],
)
def test_reply_that_refuses_a_step_is_reported_with_a_remedy(
    mail_test, sends, stage, reply, step, problem, remedy
):
    with MailServer() as server:
        server.replies[stage] = reply
        mail_test(step, problem, remedy, AUTH_SMTP_URL=server.url())
        del server.replies[stage]
        sends(server.url())


def test_address_that_the_server_cannot_accept_is_reported_with_a_remedy(mail_test):
    address = "dörte@example.com"
    with MailServer(enable_SMTPUTF8=False) as old_server, MailServer() as server:
        problem = "the mail server has no SMTPUTF8, which a non-ASCII address needs"
        mail_test(
            "recipient",
            problem,
            "Use a mail server that offers SMTPUTF8",
            address,
            AUTH_SMTP_URL=old_server.url(),
        )
        mail_test("", "", "", address, AUTH_SMTP_URL=server.url())


def test_hook_that_fails_is_reported_with_a_remedy(make_app, mail_test, target):
    hook: dict[str, Any] = {
        "AUTH_HOOK_SEND_EMAIL": target.url,
        "AUTH_HOOK_SEND_EMAIL_SECRETS": "whsec_" + "MDEy" * 8,
        "AUTH_WEBHOOK_PRIVATE_NETWORKS": "true",
    }
    target.status = 500
    mail_test("", "", "Fix the server of AUTH_HOOK_SEND_EMAIL", **hook)
    target.status, target.answer = 200, lambda _event: {}
    mail_test("", "", "", **hook)
