import os
import sys

import click

from auth.flows.commands import json_option, prints_json


@click.command("test-server", short_help="Start services for tests of applications.")
@json_option
def command() -> None:
    """Start services for the tests of an application, until SIGTERM, Ctrl-C or the end of the input.

    Prints the address and the key of the interface that docs/testing.md describes. Settings in the
    environment and in .env are ignored. LATCHKEY_TEST_DATABASE_URL names a Postgres of this machine.

    \b
    Example: latchkey test-server --json
    """
    arguments = ["-m", "auth.ops.testkit", *(["json"] if prints_json() else [])]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606
