"""The figures of a report, and the report itself."""

import math
import os
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The figures that docs/performance.md begins with.
HEADLINES = {
    "GET /user/s, against the constant answer",
    "refresh/s, against the constant answer",
    "POST /oauth/token (refresh)/s, against refresh",
    "GET /oauth/userinfo/s, against GET /user",
    "log-ins/s, against what the cores can hash",
    "memory of the whole service after 100,000 requests, in MiB",
    "start again, in s",
    "memory of the whole service, idle, in MiB",
}
DIRECTORY = Path(__file__).parent
PAGE = DIRECTORY.parent / "docs" / "performance.md"


@dataclass(frozen=True)
class Pace:
    """How often each measurement is repeated, and for how many seconds it lasts at most. A `brief` one proves that
    the bench works, with few users; its figures say nothing.
    """

    rounds: int = 5
    longest: float = math.inf

    @property
    def is_brief(self) -> bool:
        return self.longest < math.inf

    @property
    def warm_ups(self) -> int:
        """The number of rounds before those that count."""
        return 0 if self.is_brief else 1

    def seconds(self, usual: float) -> float:
        return min(usual, self.longest)

    def number(self, usual: int, brief: int) -> int:
        """Return a number of users or requests."""
        return brief if self.is_brief else usual


@dataclass(frozen=True)
class Figure:
    """A line of the report: a value, perhaps with a limit to compare it with, and a target such as `≤ 250`."""

    name: str
    value: float
    limit: float | None = None
    ratio: float | None = None
    target: str | None = None
    holds: bool | None = None


def against(name: str, values: Sequence[float], limits: Sequence[float], target: str | None = None) -> Figure:
    """Return the medians of the values, of the limits, and of the ratio of each round."""
    ratio = statistics.median(
        value / limit if limit else math.nan for value, limit in zip(values, limits, strict=True)
    )
    return Figure(
        name, statistics.median(values), statistics.median(limits), ratio, target, _holds(ratio, target)
    )


def alone(name: str, value: float, target: str | None = None) -> Figure:
    """Return a value without a limit."""
    return Figure(name, value, target=target, holds=_holds(value, target))


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    rows = [("figure", "value", "limit", "ratio", "target", "")]
    for figure in figures:
        mark = {None: "", True: "holds", False: "**missed**"}[figure.holds]
        rows.append(
            (
                figure.name,
                _number(figure.value),
                _number(figure.limit),
                _number(figure.ratio),
                figure.target or "",
                mark,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = [
        " | ".join(
            cell.ljust(width) if column in (0, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    rule = "|".join(
        "-" * (width + 2) if column in (0, 5) else "-" * (width + 1) + ":"
        for column, width in enumerate(widths)
    )
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def write(figures: Sequence[Figure], name: str, directory: Path = DIRECTORY) -> None:
    """Write `<name>.md`."""
    (directory / f"{name}.md").write_text(f"{_machine()}\n\n{table(figures)}\n")


def write_headlines(figures: Sequence[Figure], page: Path = PAGE) -> None:
    """Replace the table that the page begins with."""
    headlines = table([figure for figure in figures if figure.name in HEADLINES])
    text = f"<!-- headlines -->\n{headlines}\n<!-- end of headlines -->"
    old = re.compile("<!-- headlines -->.*<!-- end of headlines -->", re.DOTALL)
    page.write_text(old.sub(lambda _: text, page.read_text()))


def _holds(value: float, target: str | None) -> bool | None:
    if target is None:
        return None
    sign, bound = target.split()
    return value >= float(bound) if sign == "≥" else value <= float(bound)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {_processor()}; {platform.system()} {platform.release()}, Python {platform.python_version()}."


def _processor() -> str:
    try:
        match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.machine()
