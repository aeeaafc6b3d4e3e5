"""`make bench`: measure and write the report; `make bench-large`: the same with a large database, in two reports.

`python -m bench compare REVISION` compares this checkout with another one in turn, and writes no report;
`compare --python /usr/bin/python3` with itself under another Python.
"""

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial

from bench import (
    compare,
    console,
    extensions,
    figures,
    interpreters,
    large,
    memory,
    overload,
    starts,
    statements,
    throughput,
)
from bench.figures import Figure, Pace

Part = Callable[[Pace], Iterator[Figure]]
REPORTS: dict[str, list[Part]] = {
    "report": [
        each.measure for each in (starts, extensions, statements, throughput, interpreters, overload, memory)
    ],
    "report-large": [large.measure],
    "report-console": [console.measure],
}


def main(arguments: list[str] | None = None) -> int:
    """Write a report, also if a part of it fails. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("report", choices=[*REPORTS, "compare"])
    parser.add_argument("revision", nargs="?", default="", help="to compare with")
    parser.add_argument("--python", action="append", default=[], metavar="EXECUTABLE", help="to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--brief", type=float, metavar="SECONDS", help="per measurement; writes no report")
    options = parser.parse_args(arguments)
    # As for Ctrl-C: stop the processes that were started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    pace = Pace(options.rounds, options.brief or float("inf"))
    compares = options.report == "compare"
    compared: Part = partial(compare.measure, revision=options.revision, pythons=options.python)
    parts = [compared] if compares else REPORTS[options.report]
    began = time.monotonic()
    taken = list(measure(parts, pace))
    if options.report == "report":
        taken.append(figures.alone("minutes that all this takes", (time.monotonic() - began) / 60, "≤ 15"))
    print(f"\n{figures.table(taken)}")
    if not compares and not pace.is_brief:
        figures.write(taken, options.report)
        if options.report == "report":
            figures.write_headlines(taken)
    return int(any(figure.name in _PROBLEMS and figure.value for figure in taken))


_PROBLEMS = ("failed requests", "parts that ended in an error")


def measure(parts: list[Part], pace: Pace) -> Iterator[Figure]:
    """Yield the figures of all parts. A part that raises an exception does not end the others."""
    errors = 0
    for part in parts:
        try:
            for figure in part(pace):
                ratio = "" if figure.ratio is None else f", ratio {figure.ratio:.3f}"
                print(f"  {figure.name}: {figure.value:.4g}{ratio}", flush=True)
                yield figure
        except Exception:
            traceback.print_exc()
            errors += 1
    yield figures.alone("parts that ended in an error", errors, "≤ 0")


if __name__ == "__main__":
    sys.exit(main())
