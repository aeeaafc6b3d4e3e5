"""`make bench`: measure and write the report; `make bench-large`: the same with a large database, in two reports."""

import signal
import sys
import time
from collections.abc import Iterator

from bench import console, crowds, figures, flood, large, load, memory, starts, statements, throughput
from bench.figures import Figure

REPORTS = {
    "report": (starts, statements, throughput, flood, crowds, memory),
    "report-large": (large,),
    "report-console": (console,),
}


def main(name: str) -> None:
    """Write one of the reports."""
    # As for Ctrl-C: stop the processes that were started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    load.require_wrk()
    began = time.monotonic()
    taken = list(_measure(name))
    if name == "report":
        taken.append(figures.alone("minutes that all this takes", (time.monotonic() - began) / 60, "≤ 10"))
    print(f"\n{figures.table(taken)}")
    figures.write(taken, name)


def _measure(name: str) -> Iterator[Figure]:
    for module in REPORTS[name]:
        print(f"{module.__doc__}", flush=True)
        for figure in module.measure():
            print(
                f"  {figure.name}: {figure.value:.4g}"
                + (f", ratio {figure.ratio:.3f}" if figure.ratio is not None else ""),
                flush=True,
            )
            yield figure


if __name__ == "__main__":
    main(sys.argv[1])
