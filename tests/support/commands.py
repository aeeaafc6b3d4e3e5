"""Run `latchkey` in this process, with the parts of a test's application."""

from typing import Any

from click.testing import CliRunner, Result
from flask import Flask

from auth.commands import main
from auth.context import EXTENSION


def run_command(app: Flask, *arguments: str, **options: Any) -> Result:
    """Run one command line; `options` go to click's `CliRunner.invoke`, such as `input`."""
    return CliRunner().invoke(main, list(arguments), obj=app.extensions[EXTENSION], **options)
