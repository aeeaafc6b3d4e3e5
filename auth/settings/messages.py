"""The settings of mail and SMS: how each is read, and which need others."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from environs import Env
from marshmallow import ValidationError
from marshmallow.validate import Length, OneOf, Regexp

from auth.settings import targets

_NEEDED = {
    "twilio": ("twilio_account_sid", "twilio_auth_token", "twilio_from"),
    "webhook": ("sms_webhook_url", "sms_webhook_secret"),
}


def read(env: Env) -> dict[str, Any]:
    """Parse the variables; what is wrong is collected in `env`."""
    folder = env.str("AUTH_MAIL_TEMPLATES", None, validate=_folder)
    prefixes: list[str] = (
        env.list("AUTH_SMS_COUNTRIES", [], validate=_each(_checked(targets.country_prefix))) or []
    )
    return {
        "smtp_url": env.str("AUTH_SMTP_URL", None, validate=_smtp_url),
        "mail_from": env.str(
            "AUTH_MAIL_FROM", "Latchkey <no-reply@localhost>", validate=_checked(targets.mail_address)
        ),
        "mail_templates": Path(folder).resolve() if folder else None,
        "sms_provider": env.str(
            "AUTH_SMS_PROVIDER",
            None,
            validate=OneOf([targets.CONSOLE, *_NEEDED], error="Must be one of {choices}."),
        ),
        "sms_countries": tuple(prefixes),
        "twilio_account_sid": env.str(
            "AUTH_TWILIO_ACCOUNT_SID",
            "",
            validate=Regexp(r"[A-Za-z0-9]+\Z", error="Must be an id of letters and digits."),
        ),
        "twilio_auth_token": env.str("AUTH_TWILIO_AUTH_TOKEN", "", validate=Length(min=1)),
        "twilio_from": env.str("AUTH_TWILIO_FROM", "", validate=Length(min=1, max=64)),
        "twilio_api_url": env.str(
            "AUTH_TWILIO_API_URL", "https://api.twilio.com", validate=_checked(targets.http_url)
        ),
        "sms_webhook_url": env.str("AUTH_SMS_WEBHOOK_URL", "", validate=_checked(targets.http_url)),
        "sms_webhook_secret": env.str(
            "AUTH_SMS_WEBHOOK_SECRET", "", validate=_checked(targets.webhook_secret)
        ),
        "dev_inbox": env.bool("AUTH_DEV_INBOX", False),
        "webhook_private_networks": env.bool("AUTH_WEBHOOK_PRIVATE_NETWORKS", None),
    }


def problems(values: Mapping[str, Any], *, is_local: bool) -> list[str]:
    """Return what is wrong with settings that are each good by themselves, a line for each."""
    provider = values["sms_provider"]
    lines = [
        f"AUTH_{name.upper()}: Must be set where AUTH_SMS_PROVIDER is {provider}."
        for name in _NEEDED.get(provider, ())
        if not values[name]
    ]
    # It shows everybody's links to whoever has the service role key, and is for those who try the service
    # out.
    if values["dev_inbox"] and not is_local and values["rate_limits_enabled"]:
        lines.append(
            "AUTH_DEV_INBOX: Must be false unless AUTH_BASE_URL is this machine, or AUTH_RATE_LIMITS_ENABLED=false marks a test environment."
        )
    return lines


def _smtp_url(value: str) -> None:
    if value != targets.CONSOLE:
        _checked(targets.smtp_server)(value)


def _folder(value: str) -> None:
    if not Path(value).is_dir():
        raise ValidationError("Must be a folder.")


def _checked(read_value: Callable[[str], object]) -> Callable[[str], None]:
    def validate(value: str) -> None:
        try:
            read_value(value)
        except ValueError as error:
            text = str(error)
            raise ValidationError(f"{text[0].upper()}{text[1:]}.") from None

    return validate


def _each(check: Callable[[str], None]) -> Callable[[list[str]], None]:
    def validate(values: list[str]) -> None:
        for value in values:
            check(value)

    return validate
