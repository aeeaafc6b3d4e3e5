"""The remedies for each step of sending an email, for the doctor and `latchkey mail-test`."""

import re

from auth.core.sender import DeliveryFailure

_REMEDY_OF_PASSWORDS = (
    "Correct the user and password, percent-encoded: AUTH_SMTP_URL=smtp://user:password@host:587"
)
_REMEDY_OF_TOKENS = (
    "Give the application the mailbox's permission, such as SMTP.SendAsApp, as docs/messages.md says."
)
_WITHOUT_ANSWER = r"no answer in time|not done within|the connection was closed"
# Remedies by step and a pattern of the failure. The first match counts.
_REMEDIES = {
    ("token", ""): "Correct AUTH_SMTP_TOKEN_URL, AUTH_SMTP_CLIENT_… and AUTH_SMTP_SCOPE, as"
    " docs/messages.md says.",
    ("resolve", ""): "Correct the host of AUTH_SMTP_URL, or the DNS of this machine.",
    ("connect", ""): "Correct the host and port of AUTH_SMTP_URL (smtps:// if the port begins with TLS),"
    " or check that no firewall blocks the connection.",
    ("tls starttls login sender recipient data", _WITHOUT_ANSWER): "Try again. If that fails too, fix the"
    " mail server or the network, which fails in the middle.",
    ("tls starttls", "mismatch"): "In AUTH_SMTP_URL, use the host name that the server's certificate has.",
    ("tls starttls", "certificate has expired"): "Renew the certificate of the mail server.",
    ("tls starttls", "certificate"): "Get the server a certificate of a public authority, or trust its own"
    " in the service's environment: SSL_CERT_FILE=/path/to/the-authority.pem",
    ("tls", ""): "In AUTH_SMTP_URL, use smtps:// for a port that begins with TLS, and smtp:// for any other.",
    ("starttls", ""): "Use the port that offers STARTTLS, or one that begins with TLS:"
    " AUTH_SMTP_URL=smtps://user:password@host:465",
    ("login sender recipient data", r"(server:|FROM|TO|DATA) 4\d\d\b"): "Try again in some minutes: the"
    " server refuses this only for now.",
    ("login", "XOAUTH2"): "Use a server that offers XOAUTH2, or unset AUTH_SMTP_TOKEN_URL and use a"
    " password.",
    ("login", "not supported"): "Use the port that offers AUTH, or remove user and password from"
    " AUTH_SMTP_URL.",
    ("sender recipient", r"(FROM|TO) 53[058]\b"): _REMEDY_OF_PASSWORDS,
    ("sender", ""): "Set AUTH_MAIL_FROM to an address that the server lets this user send from.",
    ("recipient", "SMTPUTF8"): "Use a mail server that offers SMTPUTF8, or an address in ASCII.",
    ("recipient", ""): "Correct the address. If the server accepts no address elsewhere, it must let this"
    " machine or user relay.",
    ("data", ""): "Fix what the server names: often AUTH_MAIL_FROM, or the content that"
    " AUTH_MAIL_TEMPLATES gives.",
    ("", ""): "Fix the server of AUTH_HOOK_SEND_EMAIL, and try it by: latchkey hooks test send-email"
    " --user EMAIL",
}  # fmt: skip


def remedy(failure: DeliveryFailure, token_url: str) -> str:
    """Return the remedy for a failure. With a `token_url`, the sender signs in with access tokens."""
    remedies = _REMEDIES | {("login", ""): _REMEDY_OF_TOKENS if token_url else _REMEDY_OF_PASSWORDS}
    return next(
        remedy
        for (steps, pattern), remedy in remedies.items()
        if failure.step in steps.split(" ") and re.search(pattern, str(failure))
    )
