"""Attributes of a process that only Linux has."""

import ctypes
import sys

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def signal_when_parent_dies(number: int) -> None:
    """Ask Linux to signal this process when the thread that started it ends."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_PDEATHSIG, number)


def name_process(name: str) -> None:
    """Set what `top`, `pgrep` and `ps -o comm` show: at most 15 characters."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_NAME, name.encode())
