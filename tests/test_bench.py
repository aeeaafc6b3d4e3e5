"""What the benchmark reports: `make bench` writes it, and docs/performance.md shows it."""

import json
import re
from pathlib import Path

import pytest

from bench import figures
from bench.figures import Figure, against, alone, table

ROOT = Path(__file__).resolve().parents[1]


def test_a_ratio_is_the_median_of_those_of_the_rounds():
    figure = against("x", [1, 20, 3], [2, 10, 3], "≥ 0.9")
    assert figure == Figure("x", 3, 3, 1.0, "≥ 0.9", True)


@pytest.mark.parametrize(
    ("value", "reach", "holds"),
    [(250, "≤ 250", True), (251, "≤ 250", False), (0.9, "≥ 0.93", False), (1, None, None)],
)
def test_a_figure_says_whether_it_reaches_what_it_must(value, reach, holds):
    assert alone("x", value, reach).holds is holds


def test_the_table_shows_what_was_missed():
    assert table([against("slow", [1], [4], "≥ 0.5"), alone("start, in s", 1.25)]).splitlines() == [
        "| figure      | value | limit | ratio | reach |            |",
        "|-------------|------:|------:|------:|------:|------------|",
        "| slow        |     1 |     4 |  0.25 | ≥ 0.5 | **missed** |",
        "| start, in s |  1.25 |       |       |       |            |",
    ]


def test_a_report_is_written_where_it_is_shown(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- report -->\nold\n<!-- end of report -->\nAfter.\n")
    monkeypatch.setattr(figures, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(figures, "_PAGE", page)

    figures.write([alone("x", 1, "≤ 2")], "report")

    assert json.loads((tmp_path / "report.json").read_text()) == {
        "figures": [{"name": "x", "value": 1, "limit": None, "ratio": None, "reach": "≤ 2", "holds": True}]
    }
    report = (tmp_path / "report.md").read_text()
    assert page.read_text() == f"Before.\n<!-- report -->\n{report}\n<!-- end of report -->\nAfter.\n"


def test_the_page_has_a_place_for_each_report():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert re.findall(r"<!-- (?:end of )?([a-z-]+) -->", page) == [
        "report",
        "report",
        "report-large",
        "report-large",
    ]
