"""Which core a thread runs on, and before whom. Linux alone can be told this of each thread; elsewhere nothing is said."""

import contextlib
import os
import threading
from collections.abc import Iterable

# Looked up when the service starts: later, each of its processes keeps to one of them. A container may be given fewer than there are.
CORES = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else tuple(range(os.cpu_count() or 1))
_SCHEDULES_THREADS = hasattr(os, "sched_setaffinity")
# Two threads of this niceness have about the weight of one at 10: a tenth of a core that others want too.
_NICENESS = 13


def least_used(taken: Iterable[int | None]) -> int:
    """Return the core that the fewest others keep to."""
    taken = list(taken)
    return min(CORES, key=taken.count)


def keep_to(core: int) -> None:
    """Have this thread, and those that it starts, run on one core.

    Python lets one thread of a process run at a time. Where they run on several cores, each that has its turn must be woken on
    another one, which costs more than what many a request does between two turns.
    """
    _run_on({core})


def let_others_run() -> None:
    """Let those run that are waiting for the core, before this thread goes on."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def give_way() -> None:
    """Have this thread run wherever there is time left that others don't want."""
    _run_on(CORES)
    if _SCHEDULES_THREADS:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _run_on(cores: Iterable[int]) -> None:
    if _SCHEDULES_THREADS:
        # A core may have been taken from us since, or a sandbox may not let us: then it runs where it is.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)
