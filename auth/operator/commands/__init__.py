"""The operator's command line, `latchkey COMMAND`: one file per command.

What only some commands need is imported in functions, which saves the others 0.2 s.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

import click
import psycopg2

import auth
from auth.core import logs, settings
from auth.core.addresses import InvalidAddress
from auth.core.keys import fingerprints
from auth.core.settings import SettingsError, running
from auth.core.settings.kept_secrets import Missing
from auth.core.settings.state import NotRunningError
from sql import Database
from sql.pool import reason

if TYPE_CHECKING:
    from auth.web.context import Latchkey

_NAMES = ["backup", "backup-key", "clients", "create-admin", "deliver", "doctor", "explain", "hooks", "keys"]
_NAMES += ["mail-test", "migrate", "restore", "serve", "test-server", "users", "webhooks"]


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return _NAMES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _NAMES:
            return None
        return importlib.import_module(f"auth.operator.commands.{cmd_name.replace('-', '_')}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            # click knows only the commands that have been imported.
            raise type(error)(error.command_name, possibilities=_NAMES, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, NotRunningError, fingerprints.OtherKeys) as error:
            raise click.ClickException(str(error)) from None
        except psycopg2.Error as error:
            raise click.ClickException(f"DATABASE_URL: can't use the database: {reason(error)}") from None
        except InvalidAddress as error:
            raise click.BadParameter(str(error)) from None


@click.command("latchkey", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(auth.__version__, prog_name="latchkey")
def main() -> None:
    """Run the authentication service with the settings in the environment and .env.

    `latchkey COMMAND --help` shows a command's options and an example.
    """


def load_settings(*, missing_secrets: Missing = "refuse") -> settings.Settings:
    if parts := _given_parts():
        return parts.settings
    loaded = settings.load(missing_secrets=missing_secrets)
    port = None if "PORT" in loaded.origins else running.port(loaded.state_dir)
    if port:
        # Else the URLs that commands print would not be the service's.
        os.environ["PORT"] = port
        try:
            loaded = settings.load(missing_secrets=missing_secrets)
        finally:
            del os.environ["PORT"]
    logs.configure(loaded)
    for warning in loaded.warnings:
        click.echo(warning, err=True)
    return loaded


def load_service_settings(*, missing_secrets: Missing = "refuse") -> settings.Settings:
    """Refuse to act with other settings than the service that runs with this state directory."""
    loaded = load_settings(missing_secrets=missing_secrets)
    if problem := running.difference(loaded):
        raise click.ClickException(problem)
    return loaded


def open_parts() -> "Latchkey":
    """Return the parts of the service. Its database is closed when the command ends."""
    from auth.web import audit
    from auth.web.context import make_parts

    parts = _given_parts()
    if parts is None:
        parts = make_parts(load_service_settings(), audit.of_command)
        click.get_current_context().call_on_close(parts.db.close)
        fingerprints.check(parts.db, parts.settings)
    return parts


def _given_parts() -> "Latchkey | None":
    """Return what a test gives to a command."""
    return click.get_current_context().obj


def open_database() -> Database:
    """Return the database without timeouts, for long work. It is closed when the command ends."""
    from auth.web import audit
    from auth.web.context import make_database

    database = make_database(open_parts().settings, audit.of_command, has_timeouts=False)
    click.get_current_context().call_on_close(database.close)
    return database
