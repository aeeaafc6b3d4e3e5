import os
import sys
from pathlib import Path

import click

_CHECKOUT = Path(__file__).resolve().parents[3]


@click.command("serve", short_help="Run the service in the foreground.")
def command() -> None:
    """Run the service in the foreground until SIGTERM or Ctrl-C, as `make run` does.

    Uses the state and the `.env` of the current directory. Exits with 2 if another service uses the state
    directory, and with 1 if the service cannot start for another reason, or if its embedded Postgres dies.

    \b
    Example: PORT=8001 latchkey serve
    """
    arguments = ["-m", "gunicorn", "-c", str(_CHECKOUT / "gunicorn.conf.py"), "wsgi:app"]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606
