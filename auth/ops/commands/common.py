"""Files, databases, progress and failures of the commands of operation."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from auth.cli import INPUT_FILE, Unreadable, Unusable, open_parts
from auth.core.files import DRAFT
from auth.core.settings import Settings, state
from auth.core.settings.state import InUseError
from auth.ops import UnusableFile
from sql import Database

existing_file = click.argument("file", type=INPUT_FILE)
new_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
identity_option = click.option(
    "--identity",
    metavar="KEY",
    type=INPUT_FILE,
    required=True,
    help="Decrypt FILE with the file KEY, which has a key of latchkey backup-key.",
)


def open_database() -> Database:
    """Return the database without timeouts, for long work. It is closed when the command ends."""
    from auth.web import audit
    from auth.web.context import make_database

    database = make_database(open_parts().settings, audit.command_origin, has_timeouts=False)
    click.get_current_context().call_on_close(database.close)
    return database


@contextmanager
def progress_of(label: str, length: int, *, is_hidden: bool = False) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal, unless it is hidden."""
    is_hidden = is_hidden or not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=is_hidden) as bar:
        yield bar.update


@contextmanager
def stopped_database(settings: Settings) -> Iterator[str]:
    """Yield the owner's URL of a database whose service is stopped. Start an embedded Postgres."""
    from auth.ops.processes import embedded_postgres

    try:
        embedded = embedded_postgres.running(settings.state_dir)
        with nullcontext(settings.find_owner()) if settings.database_url else embedded as url:
            yield url
    except InUseError as error:
        raise click.ClickException(f"{error}. Stop the service on all nodes first.") from None


@contextmanager
def failures(file: Path) -> Iterator[None]:
    """Exit with one line."""
    from auth.ops.backups.age import UnusableKey
    from auth.ops.backups.archive import BackupError
    from auth.ops.processes.embedded_postgres import EmbeddedPostgresError

    try:
        yield
    except UnusableFile as error:
        raise Unusable(f"{file} cannot be used: {error}") from None
    except UnusableKey as error:
        raise Unreadable(str(error)) from None
    except (BackupError, EmbeddedPostgresError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        name = str(error.filename or file)
        # If a draft fails, its directory cannot be written to.
        place = Path(name).parent if name.endswith(DRAFT) else name
        remedy = "Name a place that this user can read and write."
        raise click.ClickException(state.unusable_place(place, error, remedy)) from None
