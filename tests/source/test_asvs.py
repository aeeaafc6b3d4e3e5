"""tests/asvs.md: all rows, evidence that exists, and totals.

test_structure.py checks that each named test and document exists. `pytest -s` prints the totals.
"""

import re
from collections import Counter

from auth.core import settings
from tests.support.contract import OPENAPI

PAGE = (OPENAPI.parent / "tests" / "asvs.md").read_text()
# The chapter, the rest of the number, the level, whether it holds, and why.
ROWS = [
    (chapter, rest, level, holds or "yes", reason)
    for chapter, rest, level, holds, reason in re.findall(
        r"^- \*\*(\d+)(\.[0-9.]+)\*\* \(([12])(?:, (setting|pages|no))?\) [^:]+: (.+)$",
        PAGE.replace("\n  ", " "),
        re.MULTILINE,
    )
]
# The chapter, the rest and the level of each row that does not apply.
NOT_APPLICABLE = [
    (chapter, rest, level)
    for numbers in re.findall(r"^\| [^|]+ \|([0-9., ]*)\|([0-9., ]*)\|$", PAGE, re.MULTILINE)
    for level, text in zip("12", numbers, strict=True)
    for chapter, rest in re.findall(r"(\d+)(\.\d+\.\d+)", text)
]
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
UNMET_OF_LEVEL_1 = {"6.2.3", "6.2.5", "6.2.8", "7.2.4", "10.4.1", "10.4.4", "14.2.1"}


def test_table_has_all_rows_of_levels_1_and_2_once():
    assert (
        len(
            {number + rest for number, rest, *_ in ROWS}
            | {number + rest for number, rest, _ in NOT_APPLICABLE}
        )
        == 253
    )
    counts = Counter((number, level) for number, _, level, *_ in [*ROWS, *NOT_APPLICABLE])
    assert counts.total() == 253
    assert {chapter: (counts[chapter, "1"], counts[chapter, "2"]) for chapter in CHAPTERS} == CHAPTERS


def test_totals_are_those_of_the_rows():
    for chapter in CHAPTERS:
        print(f"V{chapter}", dict(Counter(holds for number, _, _, holds, _ in ROWS if number == chapter)))
    holds = Counter(holds for *_, holds, _ in ROWS)
    stated = re.search(
        r"Of the (\d+) that .+?, (\d+) hold .+, \[(\d+) with a setting, (\d+) on our pages only, and (\d+) do not\]",
        " ".join(PAGE.split()),
    )
    assert stated
    assert [int(number) for number in stated.groups()] == [
        len(ROWS),
        *(holds[answer] for answer in ("yes", "setting", "pages", "no")),
    ]


def test_yes_has_a_test_or_a_document_and_everything_else_a_reason():
    for chapter, rest, _, holds, reason in ROWS:
        number = chapter + rest
        names = re.findall(r"`(AUTH_\w+)[=`]", reason)
        assert set(names) <= set(settings.names()), number
        assert holds != "setting" or names, number
        assert holds == "no" or "](" in reason or reason.startswith("As "), number


def test_row_that_is_as_another_names_one_that_has_evidence():
    evidence = {number + rest: reason for number, rest, _, _, reason in ROWS if "](" in reason}
    for number, rest, _, holds, reason in ROWS:
        if holds != "no" and "](" not in reason:
            numbers = re.findall(r"\d+\.\d+\.\d+", reason)
            assert numbers, number + rest
            assert set(numbers) <= evidence.keys(), number + rest


def test_level_1_is_met_but_for_what_is_known():
    unmet = {number + rest for number, rest, level, holds, _ in ROWS if level == "1" and holds != "yes"}
    assert unmet == UNMET_OF_LEVEL_1
