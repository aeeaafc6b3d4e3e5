import json
import sys
from pathlib import Path

import click
import psycopg2
from click import progressbar

from auth.commands import open_database
from auth.commands.users_import import read_passphrase
from auth.operations import age, backups
from auth.transfer import exporting


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the passphrase from this file instead of AUTH_BACKUP_PASSPHRASE.",
)
@click.option("--plaintext", is_flag=True, help="Do not encrypt FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def export(file: Path, passphrase_file: Path | None, plaintext: bool, as_json: bool) -> None:
    """Write all users with their password hashes and identities to FILE, as JSON lines.

    FILE is encrypted under a passphrase like a backup, which `users import` and `age -d` can read. Only its
    owner can read it. Replaces an existing FILE.

    \b
    Example: latchkey users export users.age --passphrase-file /etc/latchkey.passphrase
    """
    passphrase = None if plaintext else read_passphrase(passphrase_file)
    if passphrase and len(passphrase) < backups.SHORTEST_PASSPHRASE:
        raise click.ClickException(
            f"The passphrase must have at least {backups.SHORTEST_PASSPHRASE} characters."
        )
    database = open_database()
    stderr = sys.stderr
    try:
        total = database.one("count_users", email=None, role=None, q=None, most=None).total
        with progressbar(length=total, label="Exporting", file=stderr, hidden=not stderr.isatty()) as bar:
            lines = exporting.lines(database, bar.update)
            exporting.write(file, age.encrypt(lines, passphrase) if passphrase else lines)
    except psycopg2.Error as error:
        raise click.ClickException(" ".join(str(error).split())) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    click.echo(
        json.dumps({"users": total, "file": str(file)}) if as_json else f"Exported {total:,} users to {file}."
    )
