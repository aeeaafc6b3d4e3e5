import click
import psycopg2

from auth.commands import load_settings
from auth.operations import fingerprints
from auth.operations.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from auth.settings import Settings, state
from sql import Database, schema


@click.group("keys")
def command() -> None:
    """Manage the keys of the service."""


@command.command("accept")
def accept() -> None:
    """Accept the keys of these settings for a database that was used with others, which are lost.

    Stop all nodes first. What the lost keys protected stays invalid: refresh tokens, codes, waiting messages
    and the secrets of webhooks.

    \b
    Example: latchkey keys accept
    """
    settings = load_settings()
    if settings.database_url:
        _accept(settings.database_url, settings)
    else:
        _accept_in_embedded_postgres(settings)
    click.echo("The keys are accepted. Start the service.")


def _accept(url: str, settings: Settings) -> None:
    try:
        schema.apply(url)
        db = Database(url, size=1, prepare=False)
        fingerprints.keep(db, settings, even_others=True)
    except psycopg2.Error as error:
        raise click.ClickException(f"DATABASE_URL: {' '.join(str(error).split())}") from None
    db.close()


def _accept_in_embedded_postgres(settings: Settings) -> None:
    # The service, which would start it, refuses to.
    postgres = EmbeddedPostgres(settings.state_dir)
    try:
        _accept(postgres.start(), settings)
    except EmbeddedPostgresError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(state.unusable(settings.state_dir, error)) from None
    finally:
        postgres.stop()
