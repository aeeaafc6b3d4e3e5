"""`latchkey migrate`."""

import click
import psycopg2

from auth.commands import load_settings
from auth.settings.state import NotRunningError, running_postgres_url
from sql import schema


@click.command("migrate")
def command() -> None:
    """Make the schema of the database, or bring it up to date. The service does the same when it starts.

    \b
    Example: DATABASE_URL=postgresql://auth@db/auth latchkey migrate
    """
    settings = load_settings()
    try:
        steps = schema.apply(settings.database_url or running_postgres_url(settings.state_dir))
    except NotRunningError as error:
        raise click.ClickException(str(error)) from None
    except psycopg2.Error as error:
        raise click.ClickException(f"DATABASE_URL: {' '.join(str(error).split())}") from None
    for step in steps or ["The schema is up to date."]:
        click.echo(step)
