"""docs/asvs.md: all rows, evidence that exists, and totals.

That each named test and document exists is checked in test_structure.py. `pytest -s` prints the totals.
"""

import re
from collections import Counter

import pytest

from auth.core import settings
from tests.support.contract import OPENAPI

PAGE = (OPENAPI.parent / "docs" / "asvs.md").read_text()
ROWS = re.findall(
    r"^\| (\d+)(\.[0-9.]+) \| ([12]) \| .+ \| (yes|setting|pages|no|n/a) \| (.+) \|$", PAGE, re.MULTILINE
)
# The rows of levels 1 and 2 in each chapter of ASVS 5.0.0.
CHAPTERS = {
    "1": (8, 19),
    "2": (4, 7),
    "3": (8, 11),
    "4": (2, 8),
    "5": (4, 5),
    "6": (13, 22),
    "7": (6, 12),
    "8": (4, 3),
    "9": (4, 3),
    "10": (5, 24),
    "11": (3, 11),
    "12": (3, 6),
    "13": (1, 12),
    "14": (2, 7),
    "15": (3, 10),
    "16": (0, 16),
    "17": (0, 7),
}
# The table gives the reason of each. Remove a row that has become true.
NOT_MET_OF_LEVEL_1 = {"6.2.3", "6.2.5", "6.2.8", "7.2.4", "10.4.1", "10.4.4", "14.2.1"}


def totals_of(chapter: str | None = None) -> list[int]:
    """Return the numbers of rows, of those that apply, and of those of each answer."""
    holds = Counter(answer for number, _, _, answer, _ in ROWS if chapter in (number, None))
    rows = holds.total()
    return [rows, rows - holds["n/a"], *(holds[answer] for answer in ("yes", "setting", "pages", "no"))]


def test_table_has_all_rows_of_levels_1_and_2_once():
    assert len({number + rest for number, rest, *_ in ROWS}) == len(ROWS) == 253
    found = Counter((number, level) for number, _, level, *_ in ROWS)
    assert {chapter: (found[chapter, "1"], found[chapter, "2"]) for chapter in CHAPTERS} == CHAPTERS


@pytest.mark.parametrize("chapter", [*CHAPTERS, None])
def test_totals_are_those_of_the_rows(chapter):
    name = rf"V{chapter} [^|]+" if chapter else "All"
    (stated,) = re.findall(rf"^\| {name} \| ([0-9 |]+) \|$", PAGE, re.MULTILINE)
    totals = totals_of(chapter)
    print(
        name.removesuffix(" [^|]+"),
        dict(zip(("rows", "apply", "yes", "setting", "pages", "no"), totals, strict=True)),
    )
    assert [int(number) for number in stated.split(" | ")] == totals


def test_yes_has_a_test_or_a_document_and_everything_else_a_reason():
    for chapter, rest, _, holds, reason in ROWS:
        number = chapter + rest
        named = re.findall(r"`(AUTH_\w+)[=`]", reason)
        assert set(named) <= set(settings.names()), number
        assert holds != "setting" or named, number
        assert holds in ("no", "n/a") or "](" in reason or reason.startswith("As "), number


def test_row_that_is_as_another_names_one_that_has_evidence():
    evidence = {number + rest: reason for number, rest, _, _, reason in ROWS if "](" in reason}
    for number, rest, _, holds, reason in ROWS:
        if holds not in ("no", "n/a") and "](" not in reason:
            named = re.findall(r"\d+\.\d+\.\d+", reason)
            assert named, number + rest
            assert set(named) <= evidence.keys(), number + rest


def test_level_1_is_met_but_for_what_is_known():
    unmet = {
        number + rest
        for number, rest, level, holds, _ in ROWS
        if level == "1" and holds not in ("yes", "n/a")
    }
    assert unmet == NOT_MET_OF_LEVEL_1
