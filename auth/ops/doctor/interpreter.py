"""Checks how the interpreter was built."""

import platform
import sys
import sysconfig

from auth.core.checks import Check, Context, Note


def built_plainly(configured: str) -> bool:
    """Whether Python was built without profile-guided optimisation, according to its `CONFIG_ARGS`.

    Distributions configure `/usr` and may optimise in other ways, as Debian does with `make profile-opt`.
    """
    return (
        bool(configured)
        and "'--prefix=/usr'" not in configured
        and "--enable-optimizations" not in configured
    )


def _build(_context: Context) -> Note | None:
    if not built_plainly(sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return None
    return Note(
        f"Python {platform.python_version()} of {sys.base_prefix} was built without --enable-optimizations:"
        " requests take up to a sixth more processor time.",
        "Use the python3 of your distribution, or of the image python:3.13, as docs/performance.md says.",
    )


CHECKS = (Check("python", "Python was built to be fast, as far as it says", _build),)
