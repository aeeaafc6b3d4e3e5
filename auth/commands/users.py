import click

from auth.commands.users_export import export
from auth.commands.users_import import import_


@click.group("users", short_help="Move users in and out.")
def command() -> None:
    """Move users in from other products and files, and out to a file."""


command.add_command(import_)
command.add_command(export)
