"""The reports of `make bench`, and the figures in docs/performance.md."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import figures, load
from bench.__main__ import measure
from bench.figures import Figure, Pace, against, alone, table
from bench.processor import Spent, spent
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


def test_table_marks_missed_targets():
    assert table([against("slow", [1], [4], "≥ 0.5"), alone("start, in s", 1.25)]).splitlines() == [
        "| figure      | value | limit | ratio | target |            |",
        "|-------------|------:|------:|------:|-------:|------------|",
        "| slow        |     1 |     4 |  0.25 |  ≥ 0.5 | **missed** |",
        "| start, in s |  1.25 |       |       |        |            |",
    ]


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


def test_headlines_are_written_into_the_page_without_targets(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- headlines -->\nold\n<!-- end of headlines -->\nAfter.\n")
    idle = alone("memory of the whole service, idle, in MiB", 1250.4, "≤ 145")
    figures.write_headlines([alone("start again, in s", 1, "≤ 2"), alone("x", 1), idle], page)
    before, _, machine, _, *rows, _, after = page.read_text().splitlines()
    assert (before, after) == ("Before.", "After.")
    assert " cores, " in machine
    assert rows == [
        "| this machine carries        |           |",
        "|-----------------------------|----------:|",
        "| memory, with Postgres, idle | 1,250 MiB |",
        "| start                       |       1 s |",
    ]


def test_page_begins_with_the_machine_and_the_figures_of_the_report():
    report = figures.DIRECTORY / "report.md"
    values = {name: value for name, value, *_ in rows_of(report)}
    expected = {words: f"{values[name]}{unit}" for name, (words, unit) in figures.HEADLINES.items()}
    page = figures.PAGE.read_text()
    shown, _, _ = page.partition("<!-- end of headlines -->")
    assert shown.startswith(f"# Performance\n\n<!-- headlines -->\n{report.read_text().splitlines()[0]}\n")
    assert dict(re.findall(r"^\| (\S.*?) +\| +(\S.*?) \|$", shown, re.MULTILINE)) == expected


def test_pages_do_not_call_a_target_missed():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 20
    assert [page.name for page in pages if "**missed**" in page.read_text()] == []


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


def test_clients_send_exactly_the_number_of_requests_and_say_how_each_ended():
    with LocalServer(Unreliable) as server:
        port = int(server.url.rpartition(":")[2])
        with load.connected(port, [load.get("/")], connections=2, number=20) as clients:
            taken = clients.run()
    assert sum(map(len, taken.milliseconds.values())) == 20
    assert len(taken.requests_left) == 2


# Burns a processor in its main thread, in another one, and in a child that ends.
_BURNING = """
import subprocess, sys, threading, time
code = "import time\\nwhile time.process_time() < 0.2: pass"
def burn():
    while time.thread_time() < 0.2: pass
subprocess.run([sys.executable, "-c", code])
thread = threading.Thread(target=burn)
thread.start()
thread.join()
burn()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processor_time_counts_threads_and_processes_that_have_ended():
    command = [sys.executable, "-c", _BURNING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        took = spent(process.pid)
        process.communicate()
    assert took.total >= 0.57
    assert took.threads >= 0.18
    assert took.user + took.system >= 0.37
    assert took.per_request(Spent(), 10).total == pytest.approx(100 * took.total)
