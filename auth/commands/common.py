"""Arguments, options, progress bars and failures that commands share."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from auth.operations.backup_files import BackupError, UnusableFileError
from auth.operations.embedded_postgres import EmbeddedPostgresError
from auth.operations.postgres_programs import NoProgramError

existing_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
new_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
passphrase_option = click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the passphrase of FILE from this file instead of AUTH_BACKUP_PASSPHRASE.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")


@contextmanager
def progress_of(label: str, length: int, *, is_hidden: bool = False) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal, unless it is hidden."""
    is_hidden = is_hidden or not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=is_hidden) as bar:
        yield bar.update


class _Unusable(click.ClickException):
    exit_code = 3


@contextmanager
def failures(file: Path) -> Iterator[None]:
    """Exit with one line."""
    try:
        yield
    except UnusableFileError as error:
        raise _Unusable(f"{file} cannot be used: {error}.") from None
    except (BackupError, NoProgramError, EmbeddedPostgresError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        # A draft next to FILE has its name.
        name = str(error.filename or file)
        raise click.ClickException(f"{file if file.name in name else name}: {error.strerror}") from None
