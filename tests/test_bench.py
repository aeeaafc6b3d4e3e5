"""The reports of `make bench`, and the figures in docs/performance.md."""

import json
from pathlib import Path

import pytest

from bench import figures
from bench.figures import Figure, against, alone, table

ROOT = Path(__file__).resolve().parents[1]


def test_ratio_is_the_median_of_the_ratios_of_the_rounds():
    figure = against("x", [1, 20, 3], [2, 10, 3], "≥ 0.9")
    assert figure == Figure("x", 3, 3, 1.0, "≥ 0.9", True)


@pytest.mark.parametrize(
    ("value", "target", "holds"),
    [(250, "≤ 250", True), (251, "≤ 250", False), (0.9, "≥ 0.93", False), (1, None, None)],
)
def test_figure_holds_when_it_reaches_its_target(value, target, holds):
    assert alone("x", value, target).holds is holds


def test_table_marks_missed_targets():
    assert table([against("slow", [1], [4], "≥ 0.5"), alone("start, in s", 1.25)]).splitlines() == [
        "| figure      | value | limit | ratio | target |            |",
        "|-------------|------:|------:|------:|-------:|------------|",
        "| slow        |     1 |     4 |  0.25 |  ≥ 0.5 | **missed** |",
        "| start, in s |  1.25 |       |       |        |            |",
    ]


def test_headlines_are_written_into_the_report_and_the_page(tmp_path, monkeypatch):
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


def test_page_shows_every_headline():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in figures.HEADLINES if f"| {name}" not in page] == []
