import json
from pathlib import Path

import click

from auth.commands import open_database, open_parts
from auth.commands.common import failures, json_option, new_file, passphrase_option, progress_of
from auth.operations import age, backup_files
from auth.tokens.keys import CannotOpen
from auth.transfer import exporting


@click.command("export", short_help="Write all users to an encrypted file.")
@new_file
@passphrase_option
@click.option("--plaintext", is_flag=True, help="Do not encrypt FILE.")
@json_option
def export(file: Path, passphrase_file: Path | None, plaintext: bool, as_json: bool) -> None:
    """Write all users with their password hashes, identities and factors to FILE, as JSON lines.

    FILE is encrypted under a passphrase like a backup, which `users import` and `age -d` can read. Only its
    owner can read it. Replaces an existing FILE.

    \b
    Example: latchkey users export users.age --passphrase-file /etc/latchkey.passphrase
    """
    if plaintext and passphrase_file:
        raise click.UsageError("--plaintext and --passphrase-file exclude each other.")
    with failures(file):
        passphrase = None if plaintext else backup_files.read_passphrase(passphrase_file, " or --plaintext")
        if passphrase:
            backup_files.check_new(passphrase)
        database = open_database()
        everybody = {"email": None, "role": None, "q": None, "is_anonymous": False, "most": None}
        total = database.one("count_users", **everybody).total
        with progress_of("Exporting", total) as progress:
            lines = exporting.lines(database, open_parts(), progress)
            try:
                with backup_files.replacing(file) as draft:
                    draft.writelines(age.encrypt(lines, passphrase) if passphrase else lines)
            except CannotOpen as error:
                raise click.ClickException(f"Nothing was exported: {error}.") from None
    click.echo(
        json.dumps({"users": total, "file": str(file)})
        if as_json
        else f"Users exported to {file}: {total:,}."
    )
