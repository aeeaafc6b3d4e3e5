"""The senders that the settings choose."""

from email.headerregistry import Address
from urllib.parse import urlsplit

from auth.senders.message_hooks import HookSender
from auth.senders.sender import ConsoleSender, Sender
from auth.senders.sms import TwilioSender
from auth.senders.smtp import SmtpSender, hostname_for
from auth.settings import Settings
from auth.settings.values import targets
from sql import Database


def senders(settings: Settings, db: Database | None = None) -> dict[str, Sender]:
    """Return the senders by channel. Messages of a channel without a sender wait, and expire."""
    found = {"email": _mail(settings, db), "sms": _sms(settings, db)}
    return {channel: sender for channel, sender in found.items() if sender}


def notices(settings: Settings) -> list[str]:
    lines = []
    if _mail(settings) is None:
        lines.append(
            "AUTH_SMTP_URL is not set, and AUTH_BASE_URL is not this machine: emails wait until they expire."
        )
    if settings.phone_enabled and settings.sms_provider is None and _sms(settings) is None:
        lines.append(
            "AUTH_SMS_PROVIDER is not set, and AUTH_BASE_URL is not this machine: phone sign-ins are refused."
            " Set it to a provider, or to none."
        )
    return lines


def mail_server(settings: Settings, **timeouts: float) -> SmtpSender:
    """Return the sender of AUTH_SMTP_URL."""
    server, sender = targets.smtp_server(settings.smtp_url or ""), mail_from(settings)
    hostname = hostname_for(urlsplit(settings.base_url).hostname or "localhost")
    return SmtpSender(server, sender, hostname, **timeouts)


def mail_from(settings: Settings) -> Address:
    """Return the sender of emails, with the name of the brand unless it has its own."""
    return targets.mail_address(settings.mail_from, settings.brand_name)


def _mail(settings: Settings, db: Database | None = None) -> Sender | None:
    if hook := settings.hook("send_email"):
        return HookSender(hook, settings, db)
    if settings.smtp_url and settings.smtp_url != targets.CONSOLE:
        return mail_server(settings)
    return _substitute(settings, is_chosen=settings.smtp_url == targets.CONSOLE)


def _sms(settings: Settings, db: Database | None = None) -> Sender | None:
    if hook := settings.hook("send_sms"):
        return HookSender(hook, settings, db)
    if settings.sms_provider == "twilio":
        account = settings.twilio_account_sid, settings.twilio_auth_token
        return TwilioSender(settings.twilio_api_url, *account, settings.twilio_from)
    if settings.sms_provider == "none":
        return None
    return _substitute(settings, is_chosen=settings.sms_provider == targets.CONSOLE)


def _substitute(settings: Settings, is_chosen: bool) -> Sender | None:
    return ConsoleSender() if is_chosen or settings.is_local else None
