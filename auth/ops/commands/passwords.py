from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from auth.cli import INPUT_FILE_OR_STDIN, Unreadable, json_option, load_settings, show
from auth.core.passwords import leaked_file
from auth.core.passwords.leaked_ranges import PREFIXES, RangeApi, Unfetched


@click.group("passwords")
def command() -> None:
    """Make the file of leaked passwords, which are refused."""


_least_option = click.option(
    "--min-count",
    "least",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    help="Leave out passwords that were found fewer than N times. Defaults to 1.",
)


@command.command("build", short_help="Make the file from a downloaded list.")
@click.argument("list", type=INPUT_FILE_OR_STDIN)
@_least_option
@json_option
def build(list: Path, least: int) -> None:
    """Make AUTH_PASSWORD_LEAKED_FILE from LIST, which has SHA1:COUNT in each line.

    If LIST is -, reads standard input.
    Replaces the file once it is complete. Running services read it when they are reloaded.

    \b
    Example: latchkey passwords build pwned-passwords-sha1.txt --min-count 10
    """
    with click.open_file(str(list), encoding="ascii", errors="replace") as lines:
        _write(_numbers(lines, least))


@command.command("fetch", short_help="Make the file from the range API.")
@_least_option
@json_option
def fetch(least: int) -> None:
    """Make AUTH_PASSWORD_LEAKED_FILE from the range API, or from the mirror that AUTH_PASSWORD_LEAKED names.

    Downloads a million ranges, 35 GB together. Replaces the file once it is complete.
    Running services read it when they are reloaded.

    \b
    Example: latchkey passwords fetch --min-count 10
    """
    settings = load_settings(missing_secrets="ignore")
    api = RangeApi(settings)
    try:
        _write(api.fetch(range(PREFIXES), least))
    except Unfetched as error:
        raise click.ClickException(f"{error}. The file is as before. Try again.") from None


def _numbers(lines: Iterable[str], least: int) -> Iterator[int]:
    for position, line in enumerate(lines, start=1):
        sha1, _, count = line.rstrip().partition(":")
        try:
            if len(sha1) != 40 or not count.isdecimal():
                raise ValueError
            number = leaked_file.number_of(sha1)
        except ValueError:
            raise Unreadable(
                f"LIST: Line {position} must be SHA1:COUNT. Name a list of SHA-1 hashes."
            ) from None
        if int(count) >= least:
            yield number


def _write(numbers: Iterable[int]) -> None:
    path = load_settings(missing_secrets="ignore").password_leaked_file
    try:
        count = leaked_file.write(path, numbers)
    except leaked_file.NoHashes:
        problem = "No password was found as often as --min-count says, and the file is as before."
        raise click.ClickException(f"{problem} Choose a smaller number.") from None
    members = {"path": str(path), "count": count}
    show(members, f"{count} hashes are in {path}. Reload the service: it reads them then.")
