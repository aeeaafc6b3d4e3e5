"""The number of processor cores that this process may use."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the cores of the affinity, or fewer if the quota of a container is less: `docker run --cpus` and
    the limits of Kubernetes leave all cores of the machine in the affinity.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([affinity, *map(math.ceil, _quotas())])


def _quotas() -> Iterator[float]:
    """Yield the quotas, in cores, of the groups of this process."""
    try:
        # Names of groups are bytes, with any but a line feed.
        lines = _OWN_GROUPS.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return  # not Linux
    for line in lines:
        if line.count(":") < 2:
            continue
        _, controllers, path = line.split(":", 2)
        group = Path(path.lstrip("/"))
        # Inside a container, the group may be mounted as the root.
        places = [*dict.fromkeys([group, *group.parents, Path()])]
        if not controllers:
            yield from (quota for place in places if (quota := _quota(_GROUPS / place / "cpu.max")))
        elif "cpu" in controllers.split(","):
            for place in places:
                directory = _GROUPS / "cpu" / place
                if quota := _quota(directory / "cpu.cfs_quota_us", directory / "cpu.cfs_period_us"):
                    yield quota


def _quota(*files: Path) -> float | None:
    """Return the quota that the files of a group contain, with its period, in microseconds."""
    with suppress(OSError, ValueError, ArithmeticError):  # "max" means none
        quota, period = map(int, " ".join(file.read_text(encoding="utf-8") for file in files).split())
        return quota / period if quota > 0 and period > 0 else None
    return None
