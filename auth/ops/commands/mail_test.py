import socket
import uuid
from datetime import UTC, datetime

import click

from auth.cli import Unusable, json_option, load_service_settings, load_settings, show
from auth.core import addresses
from auth.core.sender import DeliveryFailure, RenderedMessage
from auth.delivery.rendering import load_templates
from auth.delivery.senders import channels
from auth.ops.doctor import mail_steps

_SET_IT = "  Set the server: AUTH_SMTP_URL=smtp://user:password@host:587"


@click.command("mail-test", short_help="Send a test email and print the server's reply.")
@click.argument("address", metavar="EMAIL")
@click.option("--all", "sends_all", is_flag=True, help="Send a sample of each kind of email instead.")
@click.option("--unit", metavar="UNIT", help="Say that the systemd unit UNIT has failed on this machine.")
@click.option(
    "--language", metavar="LANGUAGE", default="en", show_default=True, help="Write the samples in LANGUAGE."
)
@json_option
def command(address: str, sends_all: bool, unit: str | None, language: str) -> None:
    """Send a test email to EMAIL directly, not through the outbox, and print the mail server's reply.

    On failure, prints the step (token, resolve, connect, tls, starttls, login, sender, recipient, data), the
    reply, and the remedy.

    \b
    Example: latchkey mail-test ops@example.com
    """
    address = addresses.canonical_typed_email(address)
    # Report a failure with any settings: those of the service may have changed since its start.
    load = load_settings if unit else load_service_settings
    settings = load(missing_secrets="ignore")
    sender = channels.senders(settings).get("email")
    if sender is None:
        raise click.ClickException(f"There is no mail server, so nothing was sent.\n{_SET_IT}")
    text = f"This email shows that {settings.brand_name} can send email.\n\nYou don't need to do anything.\n"
    subject = f"Test email from {settings.brand_name}"
    if unit:
        subject = f"{unit} has failed on {socket.gethostname()}"
        text = f"{subject}. To see why: journalctl -u {unit}\n"
    test = RenderedMessage(str(uuid.uuid4()), "test", datetime.now(UTC), subject, text)
    templates = load_templates(settings)
    if language not in templates.languages:
        raise click.BadParameter(f"There are no emails in {language}. Use {', '.join(templates.languages)}.")
    samples = templates.samples(address, language) if sends_all else [test]
    try:
        for message in samples:
            response = sender.send(address, message)
    except DeliveryFailure as error:
        step = f" (failed step: {error.step})" if error.step else ""
        remedy = mail_steps.remedy(error, settings.smtp_token_url)
        problem = f"Not sent to {address}{step}: {str(error).rstrip('.')}."
        raise click.ClickException(f"{problem}\n  {remedy}") from None
    finally:
        sender.close()
    if isinstance(sender, channels.ConsoleSender) and settings.smtp_url is None:
        raise Unusable(f"There is no mail server, so the email was printed, not sent.\n{_SET_IT}")
    show({"to": address, "response": response}, f"Sent to {address}: {response}")
