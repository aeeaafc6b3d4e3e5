"""Arguments, options, progress bars and failures that commands share."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auth.core import addresses
from auth.core.files import DRAFT
from auth.core.settings import Settings
from auth.core.settings.state import InUseError
from auth.operator.commands import open_parts
from sql import queries

if TYPE_CHECKING:
    from auth.web.context import Latchkey


class _Unreadable(click.ClickException):
    """An input that cannot be read, or a key that cannot be used: 2, as for any wrong argument."""

    exit_code = 2


@contextmanager
def stopped_database(settings: Settings) -> Iterator[str]:
    """Yield the URL of the database of a service that does not run, and start the embedded one."""
    from auth.operator.processes import embedded_postgres

    try:
        embedded = embedded_postgres.running(settings.state_dir)
        with nullcontext(settings.database_url) if settings.database_url else embedded as url:
            yield url
    except InUseError:
        raise click.ClickException(
            f"{settings.state_dir} is in use by a running service. Stop the service on all nodes first."
        ) from None


class _InputFile(click.Path):
    """Reports a missing file by one line, like all failures, without click's lines about usage."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise _Unreadable(error.message) from None


class NumberRange(click.IntRange):
    # In errors: 'x' is not a valid number.
    name = "number"


INPUT_FILE = _InputFile(exists=True, dir_okay=False, path_type=Path)
INPUT_FILE_OR_STDIN = _InputFile(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
existing_file = click.argument("file", type=INPUT_FILE)
new_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
identity_option = click.option(
    "--identity",
    metavar="KEY",
    type=INPUT_FILE,
    required=True,
    help="The key file from latchkey backup-key, or a file with the passphrase of a 0.2.0 backup.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
yes_option = click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")


@contextmanager
def progress_of(label: str, length: int, *, is_hidden: bool = False) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal, unless it is hidden."""
    is_hidden = is_hidden or not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=is_hidden) as bar:
        yield bar.update


class Unusable(click.ClickException):
    exit_code = 3


@contextmanager
def acting() -> Iterator["Latchkey"]:
    """Allow what the service role key may do, outside of a request."""
    from auth.web import g
    from auth.web.application import Application
    from auth.web.context import EXTENSION
    from auth.web.errors import ApiError

    app, parts = Application("auth"), open_parts()
    app.extensions[EXTENSION] = parts
    with app.app_context():
        g.actor = "service_role"
        g.client = dict.fromkeys(("ip", "network", "user_agent"))
        try:
            yield parts
        except ApiError as error:
            kind = click.BadParameter if error.status == 400 else Unusable
            raise kind(error.details or error.msg) from None


def ask(question: str, *, is_sure: bool) -> None:
    """Ask before an act for which the console asks for a factor, unless `--yes` was given."""
    try:
        agreed = is_sure or click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.ClickException("Nothing was changed. Without a terminal, add --yes.") from None
    if not agreed:
        raise click.ClickException("Nothing was changed.")


def printable(text: str) -> str:
    """Return text from users, files or servers without control characters for the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def address_of(text: str) -> dict[str, str | None] | None:
    if addresses.is_email(text):
        return {"email": addresses.canonical_email(text), "phone": None}
    # Digits with hyphens may be a request id.
    return {"email": None, "phone": addresses.canonical_phone(text)} if text.startswith("+") else None


def known_user(latchkey: "Latchkey", subject: str) -> "queries.SelectSummary | None":
    """Return the row of `select_summary` of the user with an address or id, or None."""
    from auth.web.fields import is_uuid

    address = address_of(subject)
    if address is None and not is_uuid(subject):
        return None
    known = address or {"email": None, "phone": None}
    return queries.select_summary(latchkey.db, id=None if address else subject, **known)


@contextmanager
def failures(file: Path) -> Iterator[None]:
    """Exit with one line. A signal to end is an exception too, so that drafts are removed."""
    from auth.operator.backups.age import CannotDecrypt, UnusableKey
    from auth.operator.backups.archive import BackupError, UnusableFileError
    from auth.operator.processes.embedded_postgres import EmbeddedPostgresError
    from auth.operator.processes.postgres_programs import NoProgramError
    from auth.transfer.reading import UnreadableFile

    try:
        with _signals_as_exits():
            yield
    except (UnusableFileError, CannotDecrypt, UnreadableFile) as error:
        raise Unusable(f"{file} cannot be used: {error}.") from None
    except UnusableKey as error:
        raise _Unreadable(str(error)) from None
    except (BackupError, NoProgramError, EmbeddedPostgresError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        name = str(error.filename or file)
        # If a draft next to FILE fails, the directory cannot be written to.
        place = file.parent if name.endswith(DRAFT) else name
        raise click.ClickException(f"{place}: {error.strerror}.") from None


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    numbers = [signal.SIGTERM, signal.SIGHUP]
    former = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if former[number] is not signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, former[number])
