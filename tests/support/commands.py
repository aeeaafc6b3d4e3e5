"""Run `latchkey`: with the parts of a test's application, with only settings, or in a separate process."""

import os
import pwd
import subprocess
import sys
from typing import Any

import pytest
import structlog
from click.testing import CliRunner, Result
from flask import Flask

from auth.ops.commands import main
from auth.web.context import EXTENSION
from tests.support.environment import clear_settings
from tests.support.processes import CHECKOUT

# The user in the audit log.
SYSTEM_USER = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name


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


def start_process(environment: dict[str, str], *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start one command line in a process, without a terminal; `options` go to `Popen`."""
    variables = {"PATH": os.environ["PATH"], "HOME": "/", **environment}
    command = [sys.executable, "-m", "auth.ops.commands", *map(str, arguments)]
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=variables, text=True, **{"cwd": CHECKOUT, **pipes, **options})


def run_process(
    environment: dict[str, str], *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    process = start_process(environment, *arguments, **options)
    stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
