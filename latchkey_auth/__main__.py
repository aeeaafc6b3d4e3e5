"""Starts the command line in a process that finds the service's modules before all others.

An application beside which this package is installed may have its own `app`, `auth` and `sql`.
"""

import os
import sys
import time
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
# The wheel has the tree in this package; in a checkout, it is beside it.
_TREE = _PACKAGE if (_PACKAGE / "app.py").exists() else _PACKAGE.parent


def main() -> None:
    path = [str(_TREE), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Its processes inherit both. Without the second, modules of the current directory come first.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}
    environment["LATCHKEY_STARTED"] = str(time.monotonic())  # for the doctor
    # An upgrade changes the link to the virtual environment while this release runs.
    python = str(Path(sys.prefix).resolve() / "bin" / Path(sys.executable).name)
    os.execve(python, [python, "-m", "auth.ops.commands", *sys.argv[1:]], environment)  # noqa: S606


if __name__ == "__main__":
    main()
