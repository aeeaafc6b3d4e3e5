"""The command line of an operator, `latchkey COMMAND`: one file per command, imported when the command is
run.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import click

import auth
from auth import logs, settings
from auth.context import Latchkey, make_parts
from auth.settings import SettingsError
from auth.settings.state import NotRunningError

# The file of each command, which holds it under the name `command`.
_FILES = {
    "create-admin": "create_admin",
    "deliver": "deliver",
    "explain": "explain",
    "mail-test": "mail_test",
    "migrate": "migrate",
    "webhooks": "webhooks",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_FILES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _FILES:
            return None
        return importlib.import_module(f"auth.commands.{_FILES[cmd_name]}").command


@click.command("latchkey", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(auth.__version__, prog_name="latchkey")
def main() -> None:
    """Run the authentication service. Settings are environment variables, or lines in .env."""


def with_parts(command: Callable[..., None]) -> Callable[..., None]:
    """Pass a command the parts of the service (`auth.context.Latchkey`), made from the settings, as its first
    argument.
    """

    @click.pass_context
    @functools.wraps(command)
    def invoked(context: click.Context, *args: Any, **kwargs: Any) -> None:
        parts = context.find_object(Latchkey)
        if parts is None:
            parts = _open_parts()
            context.call_on_close(parts.db.close)
        command(parts, *args, **kwargs)

    return invoked


def load_settings() -> settings.Settings:
    """Return the settings, and configure the log. Raises `click.ClickException`."""
    if parts := click.get_current_context().find_object(Latchkey):
        return parts.settings
    try:
        loaded = settings.load()
    except SettingsError as error:
        raise click.ClickException(str(error)) from None
    logs.configure(loaded)
    return loaded


def _open_parts() -> Latchkey:
    try:
        return make_parts(load_settings(), lambda: {"actor": "command"})
    except NotRunningError as error:
        raise click.ClickException(str(error)) from None
