import json
from pathlib import Path

import click

from auth import files
from auth.backups import age
from auth.commands import open_database, open_parts
from auth.commands.common import failures, json_option, new_file, progress_of
from auth.tokens.keys import CannotOpen
from auth.transfer import exporting


@click.command("export", short_help="Write all users to an encrypted file.")
@new_file
@click.option("--plaintext", is_flag=True, help="Do not encrypt FILE.")
@json_option
def export(file: Path, plaintext: bool, as_json: bool) -> None:
    """Write all users with their password hashes, identities and factors to FILE, as JSON lines.

    FILE is encrypted to AUTH_BACKUP_RECIPIENTS, like a backup. Only its owner can read it. Replaces an
    existing FILE.

    \b
    Example: latchkey users export users.age
    """
    with failures(file):
        database = open_database()
        everybody = {"email": None, "role": None, "q": None, "is_anonymous": False, "most": None}
        total = database.one("count_users", **everybody).total
        with progress_of("Exporting", total) as progress:
            lines = exporting.lines(database, open_parts(), progress)
            try:
                with files.replacing(file) as draft:
                    if plaintext:
                        draft.writelines(lines)
                    else:
                        with age.encrypting(draft, open_parts().settings.backup_recipients) as sink:
                            sink.writelines(lines)
            except CannotOpen as error:
                raise click.ClickException(f"Nothing was exported: {error}.") from None
    click.echo(
        json.dumps({"users": total, "file": str(file)})
        if as_json
        else f"Users exported to {file}: {total:,}."
    )
