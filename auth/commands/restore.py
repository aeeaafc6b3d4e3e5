import json
import time
from pathlib import Path

import click

from auth.commands import load_settings
from auth.commands.common import (
    existing_file,
    failures,
    in_use,
    json_option,
    passphrase_option,
    progress_of,
)
from auth.operations import backup_files, restores
from auth.operations.embedded_postgres import EmbeddedPostgres
from auth.operations.restored_secrets import RestoredSecrets
from auth.settings import state


@click.command("restore", short_help="Replace the database and the secrets with a backup.")
@existing_file
@passphrase_option
@click.option("--keep-sessions", is_flag=True, help="Keep the sessions that were live at the backup.")
@click.option("--resend", is_flag=True, help="Send the messages and events that the backup holds.")
@json_option
def command(
    file: Path, passphrase_file: Path | None, keep_sessions: bool, resend: bool, as_json: bool
) -> None:
    """Replace the database and the secrets with those of the backup FILE. First stop all nodes.

    Verifies all of FILE before it changes anything. An interrupted restore leaves everything as it was. Links
    and codes in messages become invalid.

    Exits with 3 if FILE is damaged or the passphrase is wrong, with 2 if FILE or the passphrase is missing,
    and with 1 after any other failure.

    \b
    Example: latchkey restore /backups/latchkey.age --passphrase-file /etc/latchkey.passphrase
    """
    begin = time.monotonic()
    options = restores.Options(keep_sessions=keep_sessions, resend=resend)
    with failures(file):
        settings = load_settings(missing_secrets="ignore")
        passphrase = backup_files.read_passphrase(passphrase_file)
        size = file.stat().st_size
        with progress_of(f"Verifying {file}", size) as progress:
            manifest = backup_files.verify(file, passphrase, progress)
        secrets = RestoredSecrets(settings, manifest)
        postgres = None if settings.database_url else EmbeddedPostgres(settings.state_dir)
        try:
            url = _start(postgres) if postgres else settings.database_url
            with progress_of("Restoring", size) as progress:
                former = restores.restore(url, file, passphrase, secrets, options, progress)
        finally:
            if postgres:
                postgres.stop()
    outcome = {
        "file": str(file),
        "seconds": round(time.monotonic() - begin, 1),
        "former_database": former,
        "environment_file": str(secrets.environment_file) if secrets.environment_file else None,
        "kept_variables": secrets.kept_variables,
    }
    if as_json:
        click.echo(json.dumps(outcome | manifest.summary()))
        return
    rows = f"users: {manifest.tables['users']:,}, rows: {sum(manifest.tables.values()):,}"
    click.echo(f"Restored the backup of {manifest.created_at} ({rows}) in {outcome['seconds']} s.")
    if former:
        click.echo(f"The former database is now called {former}. The next restore deletes it.")
    if secrets.environment_file:
        click.echo(f"{secrets.environment_file} has the settings of the service that was backed up.")
    for variable in secrets.kept_variables:
        click.echo(f"{variable} is set, so the value in the backup was not restored.")


def _start(postgres: EmbeddedPostgres) -> str:
    try:
        return postgres.start()
    except state.InUseError:
        raise in_use(postgres.state_dir) from None
