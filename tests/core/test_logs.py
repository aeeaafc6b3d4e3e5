"""Throttled log lines, and lines that a pipe takes at once."""

import json

import pytest
from structlog.testing import capture_logs

from auth.core.event_lines import as_json
from auth.core.logs import ThrottledLog

PIPE = 4096 - len("<6>\n")  # bytes


def test_throttled_log_counts_the_events_since_its_last_line():
    throttled = ThrottledLog("it_happened")
    throttled.interval = 1
    with capture_logs() as logs:
        for _ in range(6):
            throttled.count()
        throttled._logged_at -= 1
        for _ in range(300):
            throttled.count()
        throttled._logged_at -= 1
        throttled.count()
    assert [(line["event"], line["log_level"], line["times"]) for line in logs] == [
        ("it_happened", "warning", times) for times in (1, 6, 300)
    ]


@pytest.mark.parametrize("letter", ["x", "\n", "ü", "\udc80"])
def test_long_traceback_keeps_its_begin_and_its_end(letter):
    exception = f"Traceback: {letter * 9_000} ValueError: no"
    line = as_json({"event": "exception", "exception": exception, "level": "error"})
    assert len(line.encode()) <= PIPE
    event = json.loads(line)
    begin, _, end = event.pop("exception").partition(" [...] ")
    assert begin.startswith("Traceback: ")
    assert end.endswith(" ValueError: no")
    assert event == {"event": "exception", "level": "error"}


def test_line_is_cut_only_beyond_what_a_pipe_takes():
    rest = len(json.dumps({"event": ""}))
    whole = {"event": "x" * (PIPE - rest)}
    assert as_json(whole) == json.dumps(whole)
    line = as_json({"event": "x" * (PIPE - rest + 1)})
    assert len(line) <= PIPE
    assert " [...] " in line


def test_all_long_members_of_a_line_are_cut_and_no_short_one():
    line = as_json({"event": "it", "path": "p" * 5_000, "agents": ["a" * 5_000], "level": "info"})
    assert len(line) <= PIPE
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("it", "info")
    assert event["path"].startswith("ppp")
    assert event["agents"].startswith("['aaa")


def test_line_of_many_short_members_is_whole():
    event = {f"member{number}": "x" * 50 for number in range(200)}
    assert json.loads(as_json(event)) == event


def test_many_members_of_characters_that_json_writes_long_are_cut_to_short_ones():
    event = json.loads(as_json({f"member{number}": "\U0001f600" * 400 for number in range(20)}))
    assert len(event) == 20
    assert {len(text) < 100 for text in event.values()} == {True}
