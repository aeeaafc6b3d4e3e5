"""`latchkey deliver`."""

import os
import sys

import click

from auth.commands import load_settings
from auth.delivery import channels
from auth.settings.state import NotRunningError, running_postgres_url


@click.command("deliver")
def command() -> None:
    """Deliver the messages and events of the outbox until SIGTERM or Ctrl-C, then finish what is being sent.

    Run it beside services with AUTH_DELIVER=false.

    \b
    Example: AUTH_DELIVER=false make run & latchkey deliver
    """
    settings = load_settings()
    try:
        database_url = settings.database_url or running_postgres_url(settings.state_dir)
    except NotRunningError as error:
        raise click.ClickException(str(error)) from None
    for notice in channels.notices(settings):
        click.echo(notice, err=True)
    click.echo("Delivering. Ctrl-C stops it.", err=True)
    # The delivery process replaces this one, which has loaded more than it needs.
    environment = os.environ | {"DATABASE_URL": database_url}
    os.execve(sys.executable, [sys.executable, "-W", "ignore", "-m", "auth.delivery"], environment)  # noqa: S606
