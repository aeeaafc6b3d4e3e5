"""Which sender takes the messages of a channel, as the settings say."""

from urllib.parse import urlsplit

from auth.delivery.senders import ConsoleSender, DiscardingSender, Sender
from auth.delivery.sms import TwilioSender, WebhookSender
from auth.delivery.smtp import SmtpSender, hostname_for
from auth.settings import Settings, targets


def senders(settings: Settings) -> dict[str, Sender]:
    """Return a sender for each channel that has one. The messages of others wait until there is one, or they expire."""
    found = {"email": _mail(settings), "sms": _sms(settings)}
    return {channel: sender for channel, sender in found.items() if sender}


def notices(settings: Settings) -> list[str]:
    """Return what whoever starts the service should know, a line each."""
    names = {"email": "AUTH_SMTP_URL", "sms": "AUTH_SMS_PROVIDER"}
    missing = [name for channel, name in names.items() if channel not in senders(settings)]
    lines = [f"{name} is not set, and AUTH_BASE_URL is not this machine: messages wait, and expire." for name in missing]
    if settings.dev_inbox:
        who = "programs on this machine and " if settings.is_local else ""
        lines.append(f"AUTH_DEV_INBOX is on: {who}whoever has the service role key can read all messages.")
    return lines


def _mail(settings: Settings) -> Sender | None:
    if settings.smtp_url and settings.smtp_url != targets.CONSOLE:
        server, sender = targets.smtp_server(settings.smtp_url), targets.mail_address(settings.mail_from)
        return SmtpSender(server, sender, hostname_for(urlsplit(settings.base_url).hostname or "localhost"))
    return _unsent(settings, is_chosen=settings.smtp_url == targets.CONSOLE)


def _sms(settings: Settings) -> Sender | None:
    if settings.sms_provider == "twilio":
        return TwilioSender(settings.twilio_api_url, settings.twilio_account_sid, settings.twilio_auth_token, settings.twilio_from)
    if settings.sms_provider == "webhook":
        return WebhookSender(settings.sms_webhook_url, settings.sms_webhook_secret)
    return _unsent(settings, is_chosen=settings.sms_provider == targets.CONSOLE)


def _unsent(settings: Settings, is_chosen: bool) -> Sender | None:
    """Return where messages go that nobody sends: they are for whoever runs the service on their own machine."""
    if is_chosen or settings.is_local:
        return ConsoleSender()
    return DiscardingSender() if settings.dev_inbox else None
