"""Commands for the operator: `flask deliver` and `flask mail-test ADDRESS`."""

import os
import sys
import uuid
from datetime import UTC, datetime

import click
from flask import Flask
from flask.cli import with_appcontext

from auth import addresses
from auth.context import latchkey
from auth.delivery import channels
from auth.delivery.messages import Message
from auth.delivery.senders import Refused, TryLater
from auth.operations.embedded_postgres import running_url


def register(app: Flask) -> None:
    """Add the commands."""
    app.cli.add_command(deliver)
    app.cli.add_command(mail_test)


@click.command("deliver")
@with_appcontext
def deliver() -> None:
    """Send what waits in the outbox until SIGTERM or SIGINT; then finish what is in flight.

    For processes that do nothing else, beside services with AUTH_DELIVER=false.
    """
    for notice in channels.notices(latchkey.settings):
        click.echo(notice, err=True)
    click.echo("Delivering. Ctrl-C stops it.", err=True)
    # The delivery process takes the place of this one, which has loaded more than it needs.
    os.environ["DATABASE_URL"] = latchkey.settings.database_url or running_url(latchkey.settings.state_dir)
    os.execv(sys.executable, [sys.executable, "-W", "ignore", "-m", "auth.delivery"])  # noqa: S606


@click.command("mail-test")
@click.argument("address")
@with_appcontext
def mail_test(address: str) -> None:
    """Send one mail to ADDRESS, without the outbox, and say what the mail server said."""
    try:
        address = addresses.canonical_email(address)
    except addresses.InvalidAddress as error:
        raise click.BadParameter(str(error)) from None
    sender = channels.senders(latchkey.settings).get("email")
    if sender is None:
        raise click.ClickException("AUTH_SMTP_URL is not set: there is no mail server to send by.")
    site = latchkey.settings.site_url
    text = f"This mail shows that {site} can send mail.\n\nNobody needs to do anything.\n"
    message = Message(str(uuid.uuid4()), "test", datetime.now(UTC), f"Test mail from {site}", text)
    try:
        response = sender.send(address, message)
    except (Refused, TryLater) as error:
        raise click.ClickException(f"Not sent to {address}: {error}") from None
    finally:
        sender.close()
    click.echo(f"Sent to {address}: {response}")
