"""The reports of `make bench`, and the figures in docs/performance.md."""

import re
from pathlib import Path

import pytest

from bench import figures
from bench.figures import alone, table


def rows_of(report: Path) -> list[list[str]]:
    """Return the cells of a report's table: figure, value, limit, ratio, target, and whether it holds."""
    lines = [line for line in report.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("report", sorted(figures.DIRECTORY.glob("report*.md")), ids=lambda path: path.stem)
def test_report_marks_what_its_own_figures_say(report):
    marks = {
        name: (mark, table([alone(name, float((ratio or value).replace(",", "")), target or None)]))
        for name, value, _, ratio, target, mark in rows_of(report)
    }
    assert marks
    assert [name for name, (mark, again) in marks.items() if not again.endswith(f" {mark} |")] == []


def test_page_begins_with_the_machine_and_the_figures_of_the_report():
    report = figures.DIRECTORY / "report.md"
    values = {name: value for name, value, *_ in rows_of(report)}
    expected = {words: f"{values[name]}{unit}" for name, (words, unit) in figures.HEADLINES.items()}
    page = figures.PAGE.read_text()
    headlines, _, _ = page.partition("<!-- end of headlines -->")
    assert headlines.startswith(
        f"# Performance\n\n<!-- headlines -->\n{report.read_text().splitlines()[0]}\n"
    )
    assert dict(re.findall(r"^\| (\S.*?) +\| +(\S.*?) \|$", headlines, re.MULTILINE)) == expected
