import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import click

from auth.cli import json_option, load_settings, printable, prints_json, show
from auth.ops.backups import age, archive, restores
from auth.ops.backups.restored_secrets import RestoredSecrets
from auth.ops.commands.common import existing_file, failures, identity_option, progress_of, stopped_database

# Lines of each kind in the text of the outcome; the JSON has all.
_NAMED = 20
_LONGEST_NAME = 70
_KINDS = {
    "organization": "organizations",
    "user": "users",
    "membership": "memberships",
    "invitation": "invitations",
    "domain": "domains",
    "provider": "providers",
    "client": "applications",
    "webhook": "webhooks",
    "admin_key": "administrative keys",
    "openid_key": "OpenID keys",
    "key": "keys",
}


def _undo(context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted:
        return
    settings = load_settings(missing_secrets="ignore")
    with failures(settings.state_dir), stopped_database(settings) as url:
        restores.undo(url, settings)
    click.echo("The database and the secrets are those from before the last restore.")
    context.exit()


@click.command("restore", short_help="Replace the database and the secrets with a backup.")
@existing_file
@identity_option
@click.option("--keep-sessions", is_flag=True, help="Keep the sessions, API keys and grants of the backup.")
@click.option("--resend", is_flag=True, help="Send the messages and events in the backup.")
@click.option(
    "--undo",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_undo,
    help="Return to the database and secrets from before the last restore, without FILE and KEY.",
)
@json_option
def command(file: Path, identity: Path, keep_sessions: bool, resend: bool) -> None:
    """Replace the database and the secrets with those in FILE. Stop all nodes first.

    Verifies FILE before changing anything. An interrupted restore leaves everything as it was. Links and
    codes in messages become invalid.

    Exits with 3 if FILE is damaged or KEY doesn't match, 2 if either is missing, and 1 on any other failure.

    \b
    Example: latchkey restore latchkey-20261122T031700Z.age --identity latchkey.key
    """
    begin = time.monotonic()
    with failures(file):
        settings = load_settings(missing_secrets="ignore")
        key, size = age.read_key(identity), file.stat().st_size
        with progress_of(f"Verifying {file}", size) as progress:
            manifest = archive.verify(file, key, progress)
        secrets = RestoredSecrets.of_backup(settings, manifest)
        with stopped_database(settings) as url, progress_of("Restoring", size) as progress:
            options = restores.Options(keep_sessions, resend, settings.find_requests())
            restored = restores.restore(url, archive.read(file, key, progress), secrets, options)
    outcome = {
        "file": str(file),
        "seconds": round(time.monotonic() - begin, 1),
        "former_database": restored.former,
        "compared": restored.is_compared,
        # It may be a line for each of a million users.
        "returned": [*map(dataclasses.asdict, restored.returned)] if prints_json() else [],
        "admin_keys": [each.name for each in restored.returned if each.kind == "admin_key"],
        "memberships": [each.name for each in restored.returned if each.kind == "membership"],
        "environment_file": str(secrets.environment_file) if secrets.environment_file else None,
        "kept_variables": secrets.kept_variables,
    }
    lines = [f"Restored the backup of {manifest.created_at} ({manifest.size}) in {outcome['seconds']} s."]
    lines += _lines_of(restored)
    if restored.former:
        lines.append(
            f"The old database is now called {restored.former}. The next restore or backup deletes it;"
        )
        lines.append("until then, latchkey restore --undo returns to it.")
    if secrets.environment_file:
        lines.append(f"{secrets.environment_file} has the settings of the backed-up service.")
    lines += [
        f"{name} is set, so the value in the backup was not restored." for name in secrets.kept_variables
    ]
    show(outcome | manifest.summary(), *lines)


def _lines_of(restored: restores.Restored) -> Iterator[str]:
    """Yield what the backup brings back, and the commands that end it."""
    if not restored.is_compared:
        reason = "The old database cannot be read" if restored.former else "There was no database here"
        yield f"{reason} to compare with: docs/backup.md says what to end by hand."
        if restored.returned:
            yield "Once the service runs, end those that had ended after the backup:"
    elif restored.returned:
        yield "Once the service runs, end what is back, but had ended or changed after the backup:"
    for kind, plural in _KINDS.items():
        some = [each for each in restored.returned if each.kind == kind]
        for each in some[:_NAMED]:
            # Users choose names, which must not look like a command.
            name = " ".join(each.name.split())
            name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
            yield printable(f"  {name} {each.change}")
            yield printable(f"    {each.command}")
        if len(some) > _NAMED:
            yield f"  And {len(some) - _NAMED:,} more {plural}: --json names all."
