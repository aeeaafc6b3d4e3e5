import json
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import click
import psycopg2

from auth.commands import load_settings
from auth.commands.common import (
    INPUT_FILE,
    NumberRange,
    failures,
    json_option,
    new_file,
    passphrase_option,
    progress_of,
)
from auth.operations import backup_files, backups, rehearsals
from sql import Database


@click.command("backup", short_help="Back up the database and the secrets, or verify a backup.")
@new_file
@passphrase_option
@click.option("--verify", is_flag=True, help="Check the existing FILE instead of writing one.")
@click.option(
    "--keep",
    metavar="N",
    type=NumberRange(1, 1000),
    default=1,
    show_default=True,
    help="Keep N backups: FILE becomes FILE.1, which becomes FILE.2.",
)
@json_option
def command(file: Path, passphrase_file: Path | None, verify: bool, keep: int, as_json: bool) -> None:
    """Back up the database and the secrets to FILE, encrypted under a passphrase, while the service runs.

    With --verify, restores FILE into a temporary Postgres, starts a service there and signs a user in.

    Exits with 3 if FILE is damaged or the passphrase is wrong, with 2 if FILE or the passphrase is missing,
    and with 1 after any other failure.

    \b
    Example: latchkey backup /backups/latchkey.age --passphrase-file /etc/latchkey.passphrase --keep 7
    """
    begin = time.monotonic()
    if verify:
        INPUT_FILE.convert(file, None, None)
    with failures(file):
        settings = None if verify else load_settings()
        passphrase = backup_files.read_passphrase(passphrase_file)
        if settings is None:
            size = file.stat().st_size
            with progress_of(f"Reading {file}", size) as progress:
                manifest = backup_files.verify(file, passphrase, progress)
            with progress_of("Restoring into a temporary Postgres", size) as progress:
                rehearsals.rehearse(file, passphrase, manifest, progress)
        else:
            url = settings.find_database()
            manifest = backups.write(
                settings, url, file, passphrase, keep, partial(progress_of, "Backing up")
            )
            _note(url)
    outcome = {"file": str(file), "bytes": file.stat().st_size, "seconds": round(time.monotonic() - begin, 1)}
    if as_json:
        click.echo(json.dumps(outcome | manifest.summary()))
        return
    rows = f"users: {manifest.tables['users']:,}, rows: {sum(manifest.tables.values()):,}"
    if verify:
        text = (
            f"{file} is good ({rows}, backed up at {manifest.created_at}). Restored it and signed a user in"
        )
    else:
        text = f"Backed up the database ({rows}) and the secrets to {file}: {outcome['bytes']:,} bytes"
    click.echo(f"{text}, in {outcome['seconds']} s.")


def _note(url: str) -> None:
    """Record the backup for `latchkey doctor`."""
    # The table is missing in a database that has not been upgraded.
    with closing(Database(url, size=1, prepare=False)) as db, suppress(psycopg2.Error):
        db.run("note_done", task="backup")
