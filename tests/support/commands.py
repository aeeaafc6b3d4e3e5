"""Run `latchkey` in this process: with the parts of a test's application, or with settings alone."""

from typing import Any

import pytest
import structlog
from click.testing import CliRunner, Result
from flask import Flask

from auth.commands import main
from auth.context import EXTENSION
from tests.conftest import clear_settings


def run_command(app: Flask, *arguments: str, **options: Any) -> Result:
    """Run one command line; `options` go to click's `CliRunner.invoke`, such as `input`."""
    return CliRunner().invoke(main, list(arguments), obj=app.extensions[EXTENSION], **options)


def run_with_settings(environment: dict[str, str], *arguments: str, **options: Any) -> Result:
    """Run one command line with no settings but those of an environment."""
    log = structlog.get_config()
    with pytest.MonkeyPatch.context() as patch:
        clear_settings(patch)
        result = CliRunner().invoke(main, list(arguments), env=environment, **options)
    structlog.configure(**log)
    return result
