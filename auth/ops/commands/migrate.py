from functools import partial

import click
import psycopg2

from auth.cli import json_option, load_settings, show
from auth.core import logs
from auth.core.settings.state import NotRunningError
from auth.ops.commands.common import progress_of
from sql import schema
from sql.pool import unusable


@click.command("migrate", short_help="Create the schema, or bring it up to date.")
@json_option
def command() -> None:
    """Create the database schema, or bring it up to date. The service does the same when it starts.

    An embedded Postgres that does not run is left to that start.

    \b
    Example: DATABASE_URL=postgresql://auth@db/auth latchkey migrate
    """
    settings = load_settings(missing_secrets="ignore")
    try:
        owner_url, requests_url = settings.find_owner(), settings.find_requests()
    except NotRunningError:
        text = (
            f"The service creates or migrates its database in {settings.state_dir.resolve()} when it starts."
        )
        show({"steps": []}, f"{text} For another database, set DATABASE_URL.")
        return
    try:
        with progress_of("Upgrading the schema", len(schema.pending(owner_url, requests_url))) as progress:
            notice = partial(logs.say, settings, level="warning")
            steps = schema.apply(owner_url, progress, notice, requests_url=requests_url)
    except psycopg2.Error as error:
        raise click.ClickException(unusable(settings.owner_setting, error)) from None
    show({"steps": steps}, *(steps or ["The schema is up to date."]))
