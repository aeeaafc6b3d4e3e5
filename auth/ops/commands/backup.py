import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
import psycopg2

from auth.cli import NumberRange, json_option, load_settings, show
from auth.ops.backups import age, archive, rehearsals, restores, writing
from auth.ops.backups.archive import Manifest
from auth.ops.commands.common import existing_file, failures, identity_option, new_file, progress_of
from auth.ops.connections import single
from sql import queries


class _Backup(click.Group):
    """Takes `backup FILE` for `backup create FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_known = bool(args) and args[0] in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if is_known else ["create", *args])


@click.group("backup", cls=_Backup)
def command() -> None:
    """Back up the database and the secrets, or verify a backup.

    `latchkey backup FILE` is short for `latchkey backup create FILE`.
    """


@command.command("create", short_help="Back up the database and the secrets.")
@new_file
@click.option(
    "--keep",
    metavar="N",
    type=NumberRange(1, 1000),
    default=1,
    show_default=True,
    help="Keep the N newest backups and remove older ones.",
)
@click.option("--no-rehearsal", is_flag=True, help="Do not restore the backup into a temporary Postgres.")
@json_option
def create(file: Path, keep: int, no_rehearsal: bool) -> None:
    """Back up the database and the secrets while the service runs, encrypted to AUTH_BACKUP_RECIPIENTS.

    Adds the time to FILE's name. Also restores the backup into a temporary Postgres, starts a service there
    and signs in a user. If any of this fails, older backups stay.

    Exits with 2 if there are no recipients, and 1 on any other failure.

    \b
    Example: latchkey backup create /backups/latchkey.age --keep 7
    """
    begin = time.monotonic()
    rehearse = None if no_rehearsal else rehearsals.rehearse
    with failures(file):
        settings = load_settings()
        url = settings.find_owner()
        progress = partial(progress_of, "Backing up")
        written, manifest = writing.write(settings, url, file, rehearse, progress)
        archive.remove_older(file, written, keep)
        restores.forget_former(url, settings)
        # The table is missing in a database that has not been upgraded.
        with single(url) as db, suppress(psycopg2.Error):
            for task in ["backup"] if no_rehearsal else ["backup", "verified_backup"]:
                queries.record_done(db, task=task)
    size = written.stat().st_size
    text = f"Backed up the database ({manifest.size}) and the secrets to {written}: {size:,} bytes"
    _report(written, manifest, begin, text)


@command.command("verify", short_help="Restore a backup into a temporary Postgres.")
@existing_file
@identity_option
@json_option
def verify(file: Path, identity: Path) -> None:
    """Restore FILE into a temporary Postgres, start a service there and sign in a user.

    Run it on the machine that would take over.

    Exits with 3 if FILE is damaged or KEY doesn't match, 2 if either is missing, and 1 on any other failure.

    \b
    Example: latchkey backup verify latchkey-20261122T031700Z.age --identity latchkey.key
    """
    begin = time.monotonic()
    with failures(file), progress_of("Restoring into a temporary Postgres", file.stat().st_size) as progress:
        manifest = rehearsals.rehearse(archive.read(file, age.read_key(identity), progress))
    text = f"{file} is good ({manifest.size}, backed up at {manifest.created_at})."
    _report(file, manifest, begin, f"{text} Restored it and signed in a user")


def _report(file: Path, manifest: Manifest, begin: float, text: str) -> None:
    seconds = round(time.monotonic() - begin, 1)
    outcome = {"file": str(file), "bytes": file.stat().st_size, "seconds": seconds}
    show(outcome | manifest.summary(), f"{text}, in {seconds} s.")
