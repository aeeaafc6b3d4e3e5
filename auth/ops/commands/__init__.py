"""The operator's command line, `latchkey COMMAND`: one file per command.

Functions import the dependencies of single commands, which saves the other commands 0.2 s.
"""

import importlib
import os
import sys
from contextlib import suppress
from typing import Any

import click
import psycopg2

import auth
from auth import registry
from auth.core.addresses import InvalidAddress
from auth.core.keys import fingerprints
from auth.core.settings import SettingsError, running, state
from auth.core.settings.state import NotRunningError
from auth.core.settings.values.validators import sentence
from sql.pool import unusable

_OWN = (
    "backup backup-key create-admin deliver doctor explain keys mail-test migrate passwords restore serve"
    " test-server users"
)
_MODULES = {name: f"auth.ops.commands.{name.replace('-', '_')}" for name in _OWN.split()}
_MODULES |= registry.commands()


class _Commands(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        return importlib.import_module(_MODULES[cmd_name]).command

    def main(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            place = error.filename or "The directory or the output of this command"
            problem = state.unusable_place(place, error, "Change that, and run the command again.")
            click.echo(f"Error: {problem}", err=True)
            with suppress(OSError):  # Python would try to write the rest at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (SettingsError, NotRunningError, fingerprints.OtherKeys, running.OtherUserError) as error:
            raise click.ClickException(str(error)) from None
        except psycopg2.Error as error:
            raise click.ClickException(unusable("DATABASE_URL", error)) from None
        except InvalidAddress as error:
            raise click.BadParameter(sentence(error)) from None
        except UnicodeEncodeError as error:
            # Python passes on the bytes of an argument that are not UTF-8, which a file's name may have.
            if error.reason != "surrogates not allowed":
                raise
            raise click.UsageError("An argument is not text in UTF-8. Correct its encoding.") from None


# click takes the names from `commands`, for its list and its suggestions.
@click.command(
    "latchkey",
    cls=_Commands,
    commands=dict.fromkeys(_MODULES),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(auth.__version__, prog_name="latchkey")
def main() -> None:
    """Run the authentication service with the settings in the environment and .env.

    `latchkey COMMAND --help` shows a command's options and an example.
    """
