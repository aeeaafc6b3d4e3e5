"""The reports of `make bench`, and the figures in docs/performance.md."""

import math
from pathlib import Path

import pytest

from bench import figures, load
from bench.__main__ import measure
from bench.figures import Figure, Pace, against, alone, table
from tests.support.local_server import Handler, LocalServer

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


def test_headlines_are_written_into_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- headlines -->\nold\n<!-- end of headlines -->\nAfter.\n")
    headline, other = alone("start again, in s", 1, "≤ 2"), alone("x", 1)
    figures.write_headlines([headline, other], page)
    assert page.read_text() == (
        f"Before.\n<!-- headlines -->\n{table([headline])}\n<!-- end of headlines -->\nAfter.\n"
    )


def test_page_shows_every_headline():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in figures.HEADLINES if f"| {name}" not in page] == []


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
