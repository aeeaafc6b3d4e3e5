import json
import sys
from pathlib import Path

import click
import psycopg2
from click import progressbar

from auth.commands import open_database
from auth.transfer import exporting


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--plaintext", is_flag=True, required=True, help="Do not encrypt FILE, which contains password hashes."
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def export(file: Path, plaintext: bool, as_json: bool) -> None:
    """Write all users with their password hashes and identities to FILE, as JSON lines.

    Only the owner of FILE can read it. Replaces an existing FILE.

    \b
    Example: latchkey users export users.jsonl --plaintext
    """
    database = open_database()
    stderr = sys.stderr
    try:
        total = database.one("count_users", email=None, role=None, q=None, most=None).total
        with progressbar(length=total, label="Exporting", file=stderr, hidden=not stderr.isatty()) as bar:
            exporting.write(file, exporting.lines(database, bar.update))
    except psycopg2.Error as error:
        raise click.ClickException(" ".join(str(error).split())) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    click.echo(
        json.dumps({"users": total, "file": str(file)}) if as_json else f"Exported {total:,} users to {file}."
    )
