"""Checks of the mail server, of the sender's domain in DNS, and of SMS."""

import dns.exception
import dns.resolver

from auth.cli.checks import NOT_PUBLIC, Check, Context, Failure, NotChecked
from auth.core.net.networks import is_loopback
from auth.core.net.sockets import NO_ANSWER
from auth.core.settings.values import urls
from auth.delivery.senders import channels
from auth.delivery.senders.sender import TryLater

_REMEDY_OF_PASSWORDS = (
    "AUTH_SMTP_URL=smtp://user:password@host:587 with the right user and password, percent-encoded"
)
_REMEDY_OF_TOKENS = (
    "the mailbox's permission for the application, such as SMTP.SendAsApp; see docs/messages.md"
)
# By what the failure says; the first that fits.
_REMEDIES = {
    "can't get an access token": "AUTH_SMTP_TOKEN_URL, AUTH_SMTP_CLIENT_… and AUTH_SMTP_SCOPE; see"
    " docs/messages.md",
    "MAIL FROM": "AUTH_MAIL_FROM=Example <no-reply@…>, an address that the server lets this user send from",
    "mismatch": "AUTH_SMTP_URL with the host name that the server's certificate has",
    "certificate has expired": "a new certificate on the mail server",
    "certificate": "SSL_CERT_FILE=/path/to/the-authority.pem in the service's environment, which signed the"
    " server's certificate; or one of a public authority on the server",
    "TLS:": "AUTH_SMTP_URL=smtp://… for a port without TLS or with STARTTLS, smtps://… for one with TLS",
    "STARTTLS": "AUTH_SMTP_URL=smtps://user:password@host:465, or with the port that offers STARTTLS",
    **dict.fromkeys(("can't sign in", "535", "534", "530", "authentication"), _REMEDY_OF_PASSWORDS),
    "": "AUTH_SMTP_URL with the host and port of the server, and a network that leads there",
}


def _server(context: Context) -> Failure | None:
    settings = context.settings
    if not settings.email_enabled:
        raise NotChecked("AUTH_EMAIL_ENABLED is false")
    if settings.hook_send_email:
        raise NotChecked("a hook sends emails")
    if settings.smtp_url in (None, urls.CONSOLE):
        if settings.is_local:
            raise NotChecked("emails are printed")
        return Failure(
            "There is no mail server: no emails are sent.", "AUTH_SMTP_URL=smtp://user:password@host:587"
        )
    timeouts = dict.fromkeys(("reply_timeout", "message_timeout"), context.seconds_left)
    sender = channels.mail_server(settings, **timeouts)
    try:
        sender.check()
    except TryLater as error:
        said = str(error)
        remedies = _REMEDIES | ({"can't sign in": _REMEDY_OF_TOKENS} if sender.tokens else {})
        remedy = next(remedy for sign, remedy in remedies.items() if sign in said)
        timed_out = any(sign in said for sign in (NO_ANSWER, "not done within"))
        return Failure(f"The mail server cannot be used, so emails wait: {said}.", remedy, timed_out)
    return None


def _sender(context: Context) -> Failure | None:
    settings = context.settings
    if settings.is_local:
        raise NotChecked(NOT_PUBLIC)
    if settings.hook_send_email or not settings.email_enabled or settings.smtp_url in (None, urls.CONSOLE):
        raise NotChecked("no emails are sent")
    domain = urls.mail_address(settings.mail_from).domain
    if is_loopback(domain) or "." not in domain:
        return Failure(
            f"Emails come from {domain}: other servers refuse them.",
            "AUTH_MAIL_FROM=Example <no-reply@example.com>",
        )
    missing = []
    if not _declares(context.resolver, domain, "v=spf1"):
        missing.append(f'{domain} TXT "v=spf1 … -all" (SPF)')
    # The selector, which is a name below, is not known.
    if _texts(context.resolver, f"_domainkey.{domain}") is None:
        missing.append(f"the DKIM key of your mail provider below _domainkey.{domain}")
    parents = filter(None, (domain, _parent(domain)))
    if not any(_declares(context.resolver, f"_dmarc.{name}", "v=DMARC1") for name in parents):
        missing.append(f'_dmarc.{domain} TXT "v=DMARC1; p=reject" (DMARC)')
    if not missing:
        return None
    return Failure(
        f"The domain {domain} does not declare who may send its email.", f"DNS: {'; '.join(missing)}"
    )


def _parent(domain: str) -> str:
    """Return the parent domain, whose DMARC record counts too (RFC 7489), or an empty string."""
    parent = domain.partition(".")[2]
    return parent if "." in parent else ""


def _declares(resolver: dns.resolver.Resolver, name: str, beginning: str) -> bool:
    return any(text.startswith(beginning) for text in _texts(resolver, name) or ())


def _texts(resolver: dns.resolver.Resolver, name: str) -> list[str] | None:
    """Return the TXT records of a name, or None if neither it nor a name below it exists (RFC 8020)."""
    try:
        answer = resolver.resolve(name, "TXT")
    except dns.resolver.NXDOMAIN:
        return None
    except dns.resolver.NoAnswer:
        return []
    except dns.exception.DNSException:
        raise NotChecked("DNS is not available here") from None
    return [b"".join(record.strings).decode(errors="replace") for record in answer]


def _sms(context: Context) -> Failure | None:
    settings = context.settings
    if not settings.phone_enabled or (settings.sms_provider == "none" and not settings.offers_phone):
        raise NotChecked("phones are not used")
    if settings.offers_phone:
        return None
    remedy = "AUTH_SMS_PROVIDER=twilio or none, or AUTH_HOOK_SEND_SMS"
    return Failure("There is no SMS provider: phone sign-ins are refused.", remedy)


CHECKS = (
    Check("mail-server", "The mail server accepts email", _server),
    Check("sender", "DNS declares who sends email", _sender),
    Check("sms", "SMS can be sent", _sms),
)
