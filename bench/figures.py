"""The figures of a report, and the report itself."""

import math
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from auth.core.cores import cores
from bench.interpreter import described

# The name in docs/performance.md of each figure that it begins with, and the unit.
HEADLINES = {
    "log-in/s, against what the cores can hash": ("log-ins a second", ""),
    "GET /user, new tokens/s, against what the cores can hash": (
        "GET /user a second, with tokens that no worker has seen",
        "",
    ),
    "GET /user/s, against what the cores can hash": ("GET /user a second, with tokens in the cache", ""),
    "refresh/s, against what the cores can hash": ("refreshes a second", ""),
    "GET /oauth/userinfo/s, against what the cores can hash": (
        "GET /oauth/userinfo a second, with tokens in the cache",
        "",
    ),
    "POST /oauth/token (refresh)/s, against what the cores can hash": (
        "refreshes of OpenID clients a second",
        "",
    ),
    "active users at a third of the load": (
        "users with ten requests an hour each, at a third of that load",
        "",
    ),
    "memory of the whole service, idle, in MiB": ("memory, with Postgres, idle", " MiB"),
    "memory of the whole service after 100,000 requests, in MiB": (
        "memory, with Postgres, after 100,000 requests",
        " MiB",
    ),
    "start again, in s": ("start", " s"),
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
    return _markdown(rows, words={0, 5})


def _markdown(rows: Sequence[Sequence[str]], words: set[int]) -> str:
    """Return a table. Columns that are not `words` are numbers, which are aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        " | ".join(
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    rule = "|".join(
        "-" * (width + 2) if column in words else "-" * (width + 1) + ":"
        for column, width in enumerate(widths)
    )
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def write(figures: Sequence[Figure], name: str, directory: Path = DIRECTORY) -> None:
    """Write `<name>.md`."""
    (directory / f"{name}.md").write_text(f"{_machine()}\n\n{table(figures)}\n")


def write_headlines(figures: Sequence[Figure], page: Path = PAGE) -> None:
    """Replace what the page begins with: the machine, and a table of what it carries."""
    values = {figure.name: figure.value for figure in figures}
    rows = [("this machine carries", "")]
    rows += [
        (words, f"{_number(values[name])}{unit}")
        for name, (words, unit) in HEADLINES.items()
        if name in values
    ]
    headlines = f"{_machine()}\n\n{_markdown(rows, words={0})}"
    text = f"<!-- headlines -->\n{headlines}\n<!-- end of headlines -->"
    old = re.compile("<!-- headlines -->.*<!-- end of headlines -->", re.DOTALL)
    page.write_text(old.sub(lambda _: text, page.read_text()))


def _holds(value: float, target: str | None) -> bool | None:
    """Compare what the report shows: 145.2, which it shows as 145, is `≤ 145`."""
    if target is None:
        return None
    sign, bound = target.split()
    shown = float(_number(value).replace(",", ""))
    return shown >= float(bound) if sign == "≥" else shown <= float(bound)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _machine() -> str:
    return f"{cores()} cores, {_processor()}; {platform.system()} {platform.release()}, {described()}."


def _processor() -> str:
    try:
        match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.machine()
