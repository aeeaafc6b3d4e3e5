"""The figures of a report, and how they are written down."""

import json
import os
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROUNDS = 5
_DIRECTORY = Path(__file__).parent
_PAGE = _DIRECTORY.parent / "docs" / "performance.md"


@dataclass(frozen=True)
class Figure:
    """One line: a value, what it is measured against, and what was to be reached (`≥ 0.65`, `≤ 250`), or
    nothing of it.
    """

    name: str
    value: float
    limit: float | None = None
    ratio: float | None = None
    reach: str | None = None
    holds: bool | None = None


def against(name: str, values: Sequence[float], limits: Sequence[float], reach: str | None = None) -> Figure:
    """Return the medians of some rounds, and of the ratios that each round had."""
    ratio = statistics.median(value / limit for value, limit in zip(values, limits, strict=True))
    return Figure(
        name, statistics.median(values), statistics.median(limits), ratio, reach, _holds(ratio, reach)
    )


def alone(name: str, value: float, reach: str | None = None) -> Figure:
    """Return a value that is measured against nothing."""
    return Figure(name, value, reach=reach, holds=_holds(value, reach))


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a table in Markdown."""
    rows = [("figure", "value", "limit", "ratio", "reach", "")]
    for figure in figures:
        mark = {None: "", True: "holds", False: "**missed**"}[figure.holds]
        rows.append(
            (
                figure.name,
                _number(figure.value),
                _number(figure.limit),
                _number(figure.ratio),
                figure.reach or "",
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


def write(figures: Sequence[Figure], name: str) -> None:
    """Write `bench/<name>.md` and `.json`, and the table into docs/performance.md, between the marks of that
    name.
    """
    text = f"{_machine()}\n\n{table(figures)}\n"
    (_DIRECTORY / f"{name}.md").write_text(text)
    (_DIRECTORY / f"{name}.json").write_text(
        json.dumps({"figures": [asdict(figure) for figure in figures]}, indent=1, ensure_ascii=False) + "\n"
    )
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    _PAGE.write_text(
        re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", _PAGE.read_text(), flags=re.DOTALL)
    )


def _holds(value: float, reach: str | None) -> bool | None:
    if reach is None:
        return None
    sign, bound = reach.split()
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
