"""What the benchmark reports: `make bench` writes it, and docs/performance.md shows it."""

import json
from pathlib import Path

import pytest

from bench import figures
from bench.figures import Figure, against, alone, table

ROOT = Path(__file__).resolve().parents[1]


def test_a_ratio_is_the_median_of_those_of_the_rounds():
    figure = against("x", [1, 20, 3], [2, 10, 3], "≥ 0.9")
    assert figure == Figure("x", 3, 3, 1.0, "≥ 0.9", True)


@pytest.mark.parametrize(
    ("value", "target", "holds"),
    [(250, "≤ 250", True), (251, "≤ 250", False), (0.9, "≥ 0.93", False), (1, None, None)],
)
def test_a_figure_says_whether_it_reaches_what_it_must(value, target, holds):
    assert alone("x", value, target).holds is holds


def test_the_table_shows_what_was_missed():
    assert table([against("slow", [1], [4], "≥ 0.5"), alone("start, in s", 1.25)]).splitlines() == [
        "| figure      | value | limit | ratio | target |            |",
        "|-------------|------:|------:|------:|-------:|------------|",
        "| slow        |     1 |     4 |  0.25 |  ≥ 0.5 | **missed** |",
        "| start, in s |  1.25 |       |       |        |            |",
    ]


def test_headlines_of_a_report_are_written_into_the_page(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- headlines -->\nold\n<!-- end of headlines -->\nAfter.\n")
    monkeypatch.setattr(figures, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(figures, "_PAGE", page)
    headline, other = alone("start again, in s", 1, "≤ 2"), alone("x", 1)

    figures.write([headline, other], "report")

    assert json.loads((tmp_path / "report.json").read_text())["figures"][0] == {
        "name": "start again, in s", "value": 1, "limit": None, "ratio": None, "target": "≤ 2", "holds": True,
    }  # fmt: skip
    assert table([headline, other]) in (tmp_path / "report.md").read_text()
    assert page.read_text() == (
        f"Before.\n<!-- headlines -->\n{table([headline])}\n<!-- end of headlines -->\nAfter.\n"
    )


def test_the_page_shows_each_headline():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in figures.HEADLINES if f"| {name}" not in page] == []
