import os
import sys

import click

from auth.commands import load_settings
from auth.delivery import channels


@click.command("deliver")
def command() -> None:
    """Deliver the messages and events of the outbox until SIGTERM or Ctrl-C, then finish what is being sent.

    Run it beside services with AUTH_DELIVER=false.

    \b
    Example: AUTH_DELIVER=false make run & latchkey deliver
    """
    settings = load_settings()
    environment = os.environ | {"DATABASE_URL": settings.find_database()}
    for notice in channels.notices(settings):
        click.echo(notice, err=True)
    click.echo("Delivering. Ctrl-C stops it.", err=True)
    # This process has loaded more than delivery needs.
    os.execve(sys.executable, [sys.executable, "-W", "ignore", "-m", "auth.delivery"], environment)  # noqa: S606
