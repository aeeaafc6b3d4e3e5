import os
import sys

import click

from auth.ops import GUNICORN


@click.command("serve", short_help="Run the service in the foreground.")
def command() -> None:
    """Run the service in the foreground until SIGTERM or Ctrl-C, as `make run` does.

    Uses the state and the `.env` of the current directory. Exits with 2 if another service uses the state
    directory, and with 1 if the service cannot start for another reason, or if its embedded Postgres dies.

    \b
    Example: PORT=8001 latchkey serve
    """
    os.execv(sys.executable, [sys.executable, *GUNICORN, "wsgi:app"])  # noqa: S606
