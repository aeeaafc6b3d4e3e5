"""This checkout under the distribution's Python, where there is one, against the Python of this environment."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.compare import contend, environment
from bench.figures import Figure, Pace, against
from bench.interpreter import SYSTEM, described
from make_venv import NEWEST, OLDEST
from tests.support.processes import CHECKOUT


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    if not _is_usable():
        return
    places = {"ours": (CHECKOUT, sys.executable), "distribution": (CHECKOUT, environment(SYSTEM))}
    taken, _ = contend(pace, places, ("GET /user", "refresh"))
    for name in ("GET /user", "refresh"):
        ours, theirs = ([one.spent.total for one in taken[each][name]] for each in places)
        yield against(
            f"{name}, processor time in ms under {described(SYSTEM)}, against this Python", theirs, ours
        )


def _is_usable() -> bool:
    """Say whether there is another Python, of a version that has wheels of the packages."""
    if not Path(SYSTEM).exists() or Path(SYSTEM).resolve() == Path(sys.executable).resolve():
        return False
    asked = subprocess.run(
        [SYSTEM, "-c", "import sys; print(list(sys.version_info[:2]))"], capture_output=True, check=True
    )
    return [3, min(OLDEST.values())] <= json.loads(asked.stdout) <= [3, NEWEST]
