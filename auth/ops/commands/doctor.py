import dataclasses
import os
import re
import sys
import time
from functools import partial

import click

from auth.cli import json_option, load_settings, printable, show
from auth.core import logs
from auth.core.settings import Settings, SettingsError, load, running
from auth.ops.doctor.examination import CHECKS, Result, examine
from auth.ops.processes.start_checks import check_files

_NAMES = [check.name for check in CHECKS]
_MARKS = {"ok": "✓", "note": "i", "failed": "✗", "skipped": "-", "unknown": "?"}
# When `latchkey_auth/__main__.py` began, a time of `time.monotonic`: a slow start counts.
_STARTED = "LATCHKEY_STARTED"


@click.command("doctor", short_help="Check the deployment for common problems.")
@click.option(
    "--skip",
    multiple=True,
    metavar="NAME",
    type=click.Choice(_NAMES),
    help="Skip the check with this name (see --json). Can be repeated.",
)
@json_option
def command(skip: tuple[str, ...]) -> None:
    """Check for common problems, and print the setting to change for each.

    Takes five seconds at most, unless this machine is overloaded. Run it on the service's machine, with its
    settings.

    Exits with 3 if a check failed, and 2 if an overloaded machine left one undone.

    \b
    Example: latchkey doctor --skip backup
    """
    results = _results(skip)
    for result in results:
        remedy = [printable(f"  {result.remedy}")] if result.remedy else []
        members = dataclasses.asdict(result)
        members["setting"] = members.pop("remedy")  # the name in the output of --json
        show(members, printable(f"{_MARKS[result.status]} {result.text}"), *remedy)
    statuses = {result.status for result in results}
    sys.exit(3 if "failed" in statuses else 2 if "unknown" in statuses else 0)


def _results(skip: tuple[str, ...]) -> list[Result]:
    results: list[Result] = []
    settings: Settings | None = None
    # If the keys and secrets are lost, the other checks work without them.
    for load_any in (load_settings, partial(load, missing_secrets="ignore")):
        try:
            settings = load_any()
            logs.configure(settings)
            check_files(settings)
            break
        except SettingsError as error:
            results = results or [_of_setting(line) for line in str(error).splitlines()]
    if settings is None:
        return results
    results = results or [_of_setting(line) for line in settings.warnings]
    if problem := running.difference(settings):
        results.append(Result("settings", "failed", problem))
    results = results or [Result("settings", "ok", "All settings are valid")]
    return results + examine(settings, skip, started=float(os.environ.get(_STARTED) or time.monotonic()))


def _of_setting(line: str) -> Result:
    name = line.partition(":")[0].partition(" ")[0]
    remedy: str | None = f"Correct it as docs/settings.md says: {name}=…"
    if line.startswith(f"{name} is not a setting"):
        setting = re.search(r"(?:Did you mean|Set) (\w+)", line)
        remedy = f"Correct its name: {setting[1]}=…" if setting else None
    elif name.startswith("/") or line.startswith(f"{name}: Refers to"):
        remedy = None  # the line includes it
    return Result("settings", "failed", line, remedy)
