"""Programs for operators: commands, processes, the doctor, backups, transfer, the test server."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
# Python runs gunicorn with these arguments and the name of an application.
GUNICORN = ["-m", "gunicorn", "-c", str(CHECKOUT / "gunicorn.conf.py")]


class UnusableFile(Exception):
    """A line for the operator: a file is damaged, of another program or release, or needs another key."""
