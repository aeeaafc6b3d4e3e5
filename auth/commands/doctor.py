import dataclasses
import json
import sys

import click

from auth.commands import load_settings
from auth.commands.common import json_option
from auth.operations.doctor.examination import CHECKS, Result, examine
from auth.operations.start_checks import check_files
from auth.settings import SettingsError
from auth.settings.state import NotRunningError

_NAMES = [check.name for check in CHECKS]
_MARKS = {"ok": "✓", "failed": "✗", "skipped": "-"}
_FAILED = 3


@click.command("doctor", short_help="Check the deployment for common problems.")
@click.option(
    "--skip",
    multiple=True,
    metavar="NAME",
    type=click.Choice(_NAMES),
    help="Skip the check with this name (see --json). Can be repeated.",
)
@json_option
def command(skip: tuple[str, ...], as_json: bool) -> None:
    """Check for common problems, and print the setting to change for each.

    Takes at most five seconds. Run it on the service's machine, with its settings.

    Exits with 3 if a check failed.

    \b
    Example: latchkey doctor --skip backup
    """
    results = _results(skip)
    for result in results:
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(result)))
            continue
        click.echo(f"{_MARKS[result.status]} {result.text}")
        if result.setting:
            click.echo(f"  {result.setting}")
    if any(result.status == "failed" for result in results):
        sys.exit(_FAILED)


def _results(skip: tuple[str, ...]) -> list[Result]:
    try:
        settings = load_settings()
        check_files(settings)
    except SettingsError as error:
        return [_of_setting(line) for line in str(error).splitlines()]
    named = [_of_setting(line) for line in settings.warnings]
    named = named or [Result("settings", "ok", "All settings are valid")]
    try:
        return named + examine(settings, skip)
    except NotRunningError as error:
        return [*named, Result("database", "failed", str(error), "systemctl start latchkey")]


def _of_setting(line: str) -> Result:
    name = line.partition(":")[0].partition(" ")[0]
    # For a file, the line says what to do.
    setting = None if name.startswith("/") else f"{name}=…; see docs/settings.md"
    return Result("settings", "failed", line, setting)
