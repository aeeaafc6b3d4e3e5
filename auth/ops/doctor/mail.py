"""Checks of the mail server, and of the sender's domain in DNS."""

import dns.exception
import dns.resolver

from auth.core.checks import NOT_PUBLIC, Context, Failure, NotChecked, check
from auth.core.net.networks import is_loopback
from auth.core.net.sockets import NO_ANSWER
from auth.core.sender import TryLater
from auth.core.settings.values import urls
from auth.delivery.senders import channels
from auth.ops.doctor import mail_steps


@check("mail-server", "The mail server accepts email")
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
            "There is no mail server, so no emails are sent.",
            "Set the server: AUTH_SMTP_URL=smtp://user:password@host:587",
        )
    timeouts = dict.fromkeys(("reply_timeout", "message_timeout"), context.seconds_left)
    sender = channels.mail_server(settings, **timeouts)
    try:
        sender.check()
    except TryLater as error:
        reason, remedy = str(error), mail_steps.remedy(error, settings.smtp_token_url)
        timed_out = any(sign in reason for sign in (NO_ANSWER, "not done within"))
        return Failure(
            f"The mail server cannot be used, so emails wait: {reason.rstrip('.')}.", remedy, timed_out
        )
    return None


@check("sender", "DNS declares who sends email")
def _sender(context: Context) -> Failure | None:
    settings = context.settings
    if settings.is_local:
        raise NotChecked(NOT_PUBLIC)
    if settings.hook_send_email or not settings.email_enabled or settings.smtp_url in (None, urls.CONSOLE):
        raise NotChecked("no emails are sent")
    domain = urls.mail_address(settings.mail_from).domain
    if is_loopback(domain) or "." not in domain:
        return Failure(
            f"Emails come from {domain}, so other servers refuse them.",
            "Set AUTH_MAIL_FROM to an address in a domain of yours, such as Example <no-reply@example.com>.",
        )
    missing = []
    if not _declares(context.resolver, domain, "v=spf1"):
        missing.append(f'{domain} TXT "v=spf1 … -all" (SPF)')
    # The selector, a name below this one, is not known.
    if _texts(context.resolver, f"_domainkey.{domain}") is None:
        missing.append(f"the DKIM key of your mail provider below _domainkey.{domain}")
    # The DMARC record of the parent domain counts too (RFC 7489).
    parent = domain.partition(".")[2]
    parents = (domain, parent) if "." in parent else (domain,)
    if not any(_declares(context.resolver, f"_dmarc.{name}", "v=DMARC1") for name in parents):
        missing.append(f'_dmarc.{domain} TXT "v=DMARC1; p=reject" (DMARC)')
    if not missing:
        return None
    return Failure(
        f"DNS does not say which servers send the emails of {domain}, so other servers may refuse them.",
        f"Add to DNS: {'; '.join(missing)}",
    )


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


CHECKS = (_server, _sender)
