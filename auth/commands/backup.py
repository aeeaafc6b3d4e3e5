import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import psycopg2

from auth.commands import load_settings
from auth.operations import backups, rehearsals
from auth.operations.backups import BackupError, Progress, UnusableFileError
from auth.operations.embedded_postgres import EmbeddedPostgresError
from auth.operations.postgres_programs import NoProgramError


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the passphrase from this file instead of AUTH_BACKUP_PASSPHRASE.",
)
@click.option("--verify", is_flag=True, help="Prove the existing FILE instead of writing one.")
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Keep N backups: FILE becomes FILE.1, which becomes FILE.2.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(file: Path, passphrase_file: Path | None, verify: bool, keep: int, as_json: bool) -> None:
    """Back up the database and the secrets to FILE, encrypted under a passphrase, while the service runs.

    With --verify, restores FILE into a temporary Postgres, starts a service there and signs a user in.

    Exits with 3 if FILE is damaged or the passphrase is wrong, and with 1 after any other failure.

    \b
    Example: latchkey backup /backups/latchkey.age --passphrase-file /etc/latchkey.passphrase --keep 7
    """
    begin = time.monotonic()
    with failures(file):
        settings = None if verify else load_settings()
        passphrase = backups.read_passphrase(passphrase_file)
        if settings is None:
            size = file.stat().st_size
            with progress_of(f"Reading {file}", size) as progress:
                manifest = backups.verify(file, passphrase, progress)
            with progress_of("Restoring into a temporary Postgres", size) as progress:
                rehearsals.rehearse(file, passphrase, manifest, progress)
        else:
            manifest = backups.write(settings, settings.find_database(), file, passphrase, keep)
    outcome = {"file": str(file), "bytes": file.stat().st_size, "seconds": round(time.monotonic() - begin, 1)}
    if as_json:
        click.echo(json.dumps(outcome | manifest.summary()))
        return
    rows = f"{manifest.tables['users']:,} users, {sum(manifest.tables.values()):,} rows"
    if verify:
        text = f"{file} is good: {rows}, backed up at {manifest.created_at}. Restored it and signed a user in"
    else:
        text = f"Backed up {rows} and the secrets to {file}: {outcome['bytes']:,} bytes"
    click.echo(f"{text}, in {outcome['seconds']} s.")


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
    except psycopg2.Error as error:
        raise click.ClickException(
            f"DATABASE_URL: can't use the database: {' '.join(str(error).split())}"
        ) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or file}: {error.strerror}") from None


@contextmanager
def progress_of(label: str, size: int) -> Iterator[Progress]:
    """Show a progress bar on a terminal."""
    is_hidden = not sys.stderr.isatty()
    with click.progressbar(length=size, label=label, file=sys.stderr, hidden=is_hidden) as bar:
        yield bar.update
