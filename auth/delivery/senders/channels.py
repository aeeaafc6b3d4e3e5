"""The senders that the settings choose, and the one that needs no server."""

from collections.abc import Callable
from email.headerregistry import Address
from urllib.parse import urlsplit

from auth import registry
from auth.core.sender import RenderedMessage, Sender
from auth.core.settings import Settings
from auth.core.settings.values import urls
from auth.core.tokens.derived_keys import Sealer
from auth.delivery.senders.sms import TwilioSender
from auth.delivery.senders.smtp import REPLY_TIMEOUT, SmtpSender, hostname_for
from auth.delivery.senders.smtp_tokens import SmtpTokens
from sql import Database


class ConsoleSender(Sender):
    """Prints messages on standard output, for development. The log, which is kept and shipped, gets none."""

    def send(self, recipient: str, message: RenderedMessage) -> str:
        # The rule separates it from the lines of the log.
        rule = "=" * 72
        subject = f"Subject: {message.subject}\n" if message.subject else ""
        print(f"\n{rule}\nTo: {recipient}\n{subject}\n{message.text}{rule}\n\n", end="", flush=True)
        return "standard output"


def senders(
    settings: Settings, db: Database | None = None, sealer: Sealer | None = None
) -> dict[str, Sender]:
    """Return the senders by channel. Messages of a channel without a sender wait, and expire."""
    by_channel: dict[str, Sender] = {}
    services: list[tuple[str, str | None, Callable[[Settings], Sender]]] = [
        ("email", settings.smtp_url, mail_server),
        ("sms", settings.sms_provider, TwilioSender),
    ]
    for channel, service, sender_of in services:
        if service == urls.CONSOLE or (service is None and settings.is_local):
            by_channel[channel] = ConsoleSender()
        elif service not in (None, "none"):
            by_channel[channel] = sender_of(settings)
    for extension in registry.on(settings):
        by_channel |= extension.senders(db, sealer)
    return by_channel


def notices(settings: Settings) -> list[str]:
    """Return what the start prints about channels without a sender."""
    lines, by_channel = [], senders(settings)
    if "email" not in by_channel:
        lines.append(
            "AUTH_SMTP_URL is not set, and AUTH_BASE_URL is not this machine: emails wait until they expire."
            " Set it to a mail server."
        )
    if settings.phone_enabled and settings.sms_provider is None and "sms" not in by_channel:
        lines.append(
            "AUTH_SMS_PROVIDER is not set, and AUTH_BASE_URL is not this machine: phone sign-ins are refused."
            " Set it to a provider, or to none."
        )
    return lines


def mail_server(settings: Settings, **timeouts: float) -> SmtpSender:
    """Return the sender of AUTH_SMTP_URL."""
    server, sender = urls.smtp_server(settings.smtp_url or ""), mail_from(settings)
    hostname = hostname_for(urlsplit(settings.base_url).hostname or "localhost")
    token_timeout = timeouts.get("reply_timeout", REPLY_TIMEOUT)
    tokens = SmtpTokens(settings, token_timeout) if settings.smtp_token_url else None
    return SmtpSender(server, sender, hostname, tokens, **timeouts)


def mail_from(settings: Settings) -> Address:
    """Return the sender of emails, with the name of the brand unless it has its own."""
    return urls.mail_address(settings.mail_from, settings.brand_name)
