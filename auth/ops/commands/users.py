import gzip
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import click
import psycopg2

from auth.cli import INPUT_FILE, json_option, open_parts, printable, prints_json, show
from auth.core import files
from auth.core.tokens.derived_keys import CannotOpen
from auth.ops.backups import age, archive
from auth.ops.commands import user_actions
from auth.ops.commands.common import existing_file, failures, new_file, open_database, progress_of
from auth.ops.transfer import reading, records
from auth.ops.transfer.importing import Import, ImportOutcome
from auth.ops.transfer.records import Choices
from sql import queries
from sql.pool import reason

_GZIP = b"\x1f\x8b"
_HASH_CONFIG = re.compile(r"^\s*(base64_signer_key|base64_salt_separator|rounds|mem_cost): *([^\s,]+)", re.M)
_ADD_KEY = "Add the key to AUTH_SECRET_KEY, or remove that factor by: latchkey users remove-factors"


@click.group(
    "users",
    short_help="Find, show, ban, unlock, delete, import and export users.",
    commands=user_actions.COMMANDS,
)
def command() -> None:
    """Act on users as in the console, and import and export them."""


@command.command("import", short_help="Create users from a file or another product's export.")
@existing_file
@click.option("--dry-run", is_flag=True, help="Report what would happen, and change nothing.")
@click.option("--verbose", is_flag=True, help="Report each row, not only those that are refused.")
@click.option("--trust-addresses", is_flag=True, help="Treat addresses as proved unless FILE says otherwise.")
@click.option("--allow-admins", is_flag=True, help="Also import administrators, which are otherwise refused.")
@click.option("--without-passwords", is_flag=True, help="Leave out the password hashes.")
@click.option("--without-factors", is_flag=True, help="Leave out second factors and passkeys.")
@click.option(
    "--firebase-hash-config",
    "hash_config",
    metavar="CONFIG",
    type=INPUT_FILE,
    help="Read hash_config, which the Firebase console shows, from the file CONFIG.",
)
@click.option("--identity", metavar="KEY", type=INPUT_FILE, help="Decrypt FILE with the key file KEY.")
@json_option
def import_(
    file: Path,
    dry_run: bool,
    verbose: bool,
    hash_config: Path | None,
    identity: Path | None,
    **choices: bool,
) -> None:
    """Create users from FILE: JSON lines, CSV, or an export of Auth0, Firebase, Supabase, Keycloak, Django or
    WordPress.

    Keeps password hashes. Never changes existing users, so you can run it again. Sends no messages or events.
    Exits with 3 if rows were refused or FILE cannot be used, and 1 on any other failure.

    \b
    Example: latchkey users import auth0.ndjson --trust-addresses --dry-run
    """
    work = Import(
        open_database(),
        open_parts(),
        Choices(**choices),
        hash_config=_read_hash_config(hash_config),
        is_dry_run=dry_run,
    )
    try:
        with failures(file), _decrypted(file, identity) as readable:
            entries, total = reading.read(readable)
            counts = _report(work.run(entries), total, reports_all=verbose or prints_json())
    except psycopg2.Error as error:
        text = f"{reason(error)} Run it again: existing users won't change."
        raise click.ClickException(text) from None
    sums = {status: counts[status] for status in ("created", "exists", "refused")}
    created = "that would be created" if dry_run else "created"
    rest = f"Already existed: {sums['exists']:,}. Rows refused: {sums['refused']:,}."
    show({"dry_run": dry_run, **sums}, f"Users {created}: {sums['created']:,}. {rest}")
    if sums["refused"]:
        raise click.exceptions.Exit(3)


@command.command("export", short_help="Write all users to an encrypted file.")
@new_file
@click.option("--plaintext", is_flag=True, help="Do not encrypt FILE.")
@json_option
def export(file: Path, plaintext: bool) -> None:
    """Write all users with their password hashes, identities and factors to FILE, as JSON lines.

    FILE is compressed and encrypted to AUTH_BACKUP_RECIPIENTS, like a backup. Only its owner can read it.
    Replaces an existing FILE.

    \b
    Example: latchkey users export users.age
    """
    total = 0
    with failures(file):
        database = open_database()
        with progress_of("Exporting", queries.estimate_users(database).total) as progress:

            def count(users: int) -> None:
                nonlocal total
                total += users
                progress(users)

            lines = records.export(database, open_parts(), count)
            try:
                with files.replacing(file) as draft:
                    if plaintext:
                        draft.writelines(lines)
                    else:
                        recipients = open_parts().settings.backup_recipients
                        with age.encrypting(draft, recipients) as sink, gzip.open(sink, "wb", 1) as packed:
                            packed.writelines(lines)
            except CannotOpen as error:
                raise click.ClickException(f"Nothing was exported: {error}. {_ADD_KEY}") from None
    show({"users": total, "file": str(file)}, f"Users exported to {file}: {total:,}.")


@contextmanager
def _decrypted(path: Path, identity: Path | None) -> Iterator[Path]:
    """Return a file itself, or a temporary one with its plaintext that only this user can read."""
    with path.open("rb") as file:
        if file.read(len(age.HEAD)) != age.HEAD:
            yield path
            return
        if identity is None:
            raise age.UnusableKey(f"{path} is encrypted. Name its key file by --identity.")
        file.seek(0)
        with tempfile.NamedTemporaryFile() as plaintext:
            pieces = age.decrypt(file, age.read_key(identity))
            first = next(pieces, b"")
            content = chain([first], pieces)
            # Exports are compressed, but an operator may have encrypted any other file.
            plaintext.writelines(archive.decompressed(content) if first.startswith(_GZIP) else content)
            plaintext.flush()
            yield Path(plaintext.name)


def _report(outcomes: Iterator[ImportOutcome], total: int, reports_all: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    # The lines of the report would break up the bar.
    with progress_of("Importing", total, is_hidden=reports_all) as progress:
        for outcome in outcomes:
            progress(1)
            counts[outcome.status] += 1
            if reports_all or outcome.status == "refused" or outcome.signs_in_with:
                ways = ", ".join(outcome.signs_in_with or ())
                admin = f"an administrator, who signs in with {ways}" if ways else ""
                parts = (outcome.place, outcome.name, outcome.status, outcome.reason or admin)
                show(asdict(outcome), ": ".join(printable(part) for part in parts if part))
    return counts


def _read_hash_config(path: Path | None) -> Mapping[str, str]:
    if path is None:
        return {}
    config = dict(_HASH_CONFIG.findall(path.read_text(encoding="utf-8", errors="replace")))
    if missing := {"base64_signer_key", "rounds", "mem_cost"} - config.keys():
        raise click.BadParameter(f"{path} lacks {', '.join(sorted(missing))}. Copy the whole hash_config.")
    return config
