"""The settings of a configuration of gunicorn, for one that changes something else."""

import runpy
from typing import Any


def settings_of(path: str = "gunicorn.conf.py") -> dict[str, Any]:
    return {name: value for name, value in runpy.run_path(path).items() if name[0] != "_"}
