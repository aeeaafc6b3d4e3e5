"""Which Python, and how it was built."""

import subprocess
import sys

_ASK = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_config_var('CONFIG_ARGS') or '')"
# Of the distribution.
SYSTEM = "/usr/bin/python3"


def described(python: str = sys.executable) -> str:
    """Return the version of an interpreter and how it was built, as far as it says."""
    asked = subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True)
    version, _, configured = asked.stdout.strip().partition(" ")
    return f"Python {version} ({_build(configured)})"


def _build(configured: str) -> str:
    if "--enable-optimizations" in configured:
        return "optimised" + (" with LTO" if "--with-lto" in configured else "")
    if "'--prefix=/usr'" in configured:
        return "of the distribution"
    return "built plainly" if configured else "unknown build"
