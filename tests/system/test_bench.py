"""The reports of `make bench`, and the figures in docs/performance.md."""

import math
import re
from pathlib import Path

import pytest

from bench import figures, load
from bench.__main__ import measure
from bench.figures import Figure, Pace, against, alone, table
from tests.support.local_server import Handler, LocalServer

ROOT = Path(__file__).resolve().parents[2]


def test_ratio_is_the_median_of_the_ratios_of_the_rounds():
    figure = against("x", [1, 20, 3], [2, 10, 3], "≥ 0.9")
    assert figure == Figure("x", 3, 3, 1.0, "≥ 0.9", True)


@pytest.mark.parametrize(
    ("value", "target", "holds"),
    [
        *((250, "≤ 250", True), (251, "≤ 250", False), (0.9, "≥ 0.93", False), (1, None, None)),
        # The report shows three digits.
        *(
            (250.4, "≤ 250", True),
            (250.6, "≤ 250", False),
            (0.9296, "≥ 0.93", True),
            (1499.6, "≥ 1500", True),
        ),
        (math.nan, "≤ 250", False),
    ],
)
def test_figure_holds_when_it_reaches_its_target_as_it_is_shown(value, target, holds):
    assert alone("x", value, target).holds is holds


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
    shown, _, _ = page.partition("<!-- end of headlines -->")
    assert shown.startswith(f"# Performance\n\n<!-- headlines -->\n{report.read_text().splitlines()[0]}\n")
    assert dict(re.findall(r"^\| (\S.*?) +\| +(\S.*?) \|$", shown, re.MULTILINE)) == expected


def test_report_goes_on_after_a_part_that_fails(tmp_path):
    def broken(_pace):
        yield alone("before", 1)
        raise OSError("no such program")

    taken = list(measure([broken, lambda _pace: iter([alone("next part", 2)])], Pace()))
    figures.write(taken, "report", tmp_path)
    values = {figure.name: figure.value for figure in taken}
    assert values == {"before": 1, "next part": 2, "parts that ended in an error": 1}
    assert "next part" in (tmp_path / "report.md").read_text()


class Unreliable(Handler):
    protocol_version = "HTTP/1.1"
    answered = 0

    def do_GET(self):
        type(self).answered += 1
        if self.answered % 3 == 0:
            self.close_connection = True
            return
        self.reply(200 if self.answered % 3 == 1 else 503, {})


def test_failed_requests_are_counted_and_do_not_end_the_load():
    with LocalServer(Unreliable) as server:
        taken = load.run(int(server.url.rpartition(":")[2]), [load.get("/")], seconds=0.5, connections=2)
    assert set(taken.milliseconds) == {"200", "503", "lost"}
    assert taken.requests == len(taken.milliseconds["200"]) > 1
    assert taken.failures == len(taken.milliseconds["503"]) + len(taken.milliseconds["lost"])
    assert taken.percentile(99) > 0
    assert math.isnan(taken.percentile(99, "404"))
