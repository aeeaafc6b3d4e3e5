"""The counts of record_verdict and take_from_windows (rules 28, 29 and 31)."""

import json

import pytest

# Two tries of an address here, and five of it everywhere.
LIMITS = "ARRAY[('login', 'alice', '203.0.113.7', 2, 60), ('account', 'alice', NULL, 5, 60)]::failure_limit[]"


@pytest.fixture
def record(database):
    def record_verdict(is_right: bool):
        row = database.one(f"SELECT * FROM record_verdict({LIMITS}, 1, %(is_right)s)", is_right=is_right)
        rows = database.all("SELECT kind, count FROM failure_counts")
        return row.refused_by, row.count, {each.kind: each.count for each in rows}

    return record_verdict


def test_wrong_verdict_counts_in_each_limit(record):
    assert [record(False), record(False)] == [
        (None, 1, {"login": 1, "account": 1}),
        (None, 2, {"login": 2, "account": 2}),
    ]


def test_right_verdict_is_taken_from_the_counts_again(record):
    record(False)
    assert record(True) == (None, 2, {"login": 1, "account": 1})


def test_beyond_a_limit_a_right_verdict_is_not_told_and_counts_as_wrong(record, database):
    record(False), record(False)
    assert record(True) == ("login", 3, {"login": 3, "account": 2})
    database.run("UPDATE failure_counts SET count = 5 WHERE kind = 'account'")
    database.run("UPDATE failure_counts SET count = 0 WHERE kind = 'login'")
    assert record(True) == ("account", 1, {"login": 1, "account": 6})


def test_window_begins_with_its_first_verdict_and_ends(record, database):
    for _ in range(3):
        record(False)
    database.run("UPDATE failure_counts SET expires_at = now() - interval '1 microsecond'")
    assert record(False) == (None, 1, {"login": 1, "account": 1})


@pytest.mark.parametrize(
    ("amounts", "tightest", "counted"),
    [
        ([3, 2, 4], (2, 1), 3),  # the least left
        ([3, 3, 3], (3, 2), 3),  # the first of equal ones
        ([2, 0, 4], (0, -1), 2),  # the first that refuses, and none after it
    ],
)
def test_tightest_window_is_told(database, amounts, tightest, counted):
    windows = [
        {"kind": "nobody", "subject": f"window {place}", "amount": amount, "seconds": 60}
        for place, amount in enumerate(amounts)
    ]
    row = database.one("SELECT * FROM take_from_windows(%(windows)s::jsonb)", windows=json.dumps(windows))
    assert (row.amount, row.remaining) == tightest
    assert database.count("failure_counts") == counted
