import contextlib
import os
import sys

import click
import psycopg2

from auth.cli import load_settings
from auth.core import logs
from auth.core.keys import fingerprints
from auth.core.log_writer import writer
from auth.core.settings import state
from auth.ops.processes import start_checks
from sql import Database


@click.command("deliver", short_help="Deliver messages and events, alongside the service.")
def command() -> None:
    """Deliver the messages and events in the outbox until SIGTERM or Ctrl-C, then finish those in progress.

    Run it alongside services with AUTH_DELIVER=false.

    \b
    Example: AUTH_DELIVER=false make run & latchkey deliver
    """
    writer.start()
    settings = load_settings()
    database_url = settings.find_database()
    with contextlib.suppress(psycopg2.Error):  # the delivery process waits for the database
        fingerprints.check(Database(database_url, size=1, prepare=False), settings)
        if settings.db_prepare and (problem := start_checks.pooler_problem(database_url)):
            raise click.ClickException(problem)
    if settings.metrics_bind:
        state.begin_metrics(settings.state_dir, "deliver")
    environment = os.environ | {"DATABASE_URL": database_url}
    for notice in start_checks.notices(settings):
        logs.say(settings, notice, "warning")
    logs.say(settings, "Delivering. Press Ctrl-C to stop.")
    writer.finish()
    # Exec, because this process has loaded more than delivery needs.
    os.execve(sys.executable, [sys.executable, "-W", "ignore", "-m", "auth.delivery"], environment)  # noqa: S606
