"""Builds the wheel, as `python -m build --wheel` does."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.processes import CHECKOUT


def build_wheel(
    folder: Path, change: Callable[[Path], object] = lambda _: None, source: Path = CHECKOUT
) -> Path:
    """Build the wheel from a changed copy of the checkout, or of another release's source."""
    hidden = (".git", ".venv", ".env", ".ci", ".*_cache", ".hypothesis")
    ignored = shutil.ignore_patterns(
        *hidden, "build", "var", "tests", "node_modules", "__pycache__", "*.egg-info"
    )
    shutil.copytree(source, folder / "checkout", ignore=ignored)
    change(folder / "checkout")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist")]
    result = subprocess.run([*command, str(folder / "checkout")], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return next((folder / "dist").glob("latchkey*.whl"))
