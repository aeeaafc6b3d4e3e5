"""docs/rules.md: each rule names a home that exists, and a test that does."""

import re

from tests.support.cases import cases
from tests.support.contract import OPENAPI

DOCS = OPENAPI.parent / "docs"
LINK = r"\[([\w./]+)\]\(([^)]+)\)"
# A rule may have two homes: the function that decides, and what carries that out.
TEXT = (DOCS / "rules.md").read_text().replace("\n  ", " ")
ROWS = re.findall(rf"^- \*\*(\d+)\*\* (.+?) \({LINK}(?:, {LINK})?; {LINK}\)$", TEXT, re.MULTILINE)
_DEFINED = r"^ *(?:def |class |CREATE OR REPLACE FUNCTION |-- name: |){name}\b"


def test_rules_are_numbered_and_three_sentences_long_at_most():
    assert len(ROWS) == len(re.findall(r"^- ", TEXT, re.MULTILINE)) > 40
    assert [int(number) for number, *_ in ROWS] == sorted({int(number) for number, *_ in ROWS})
    assert [number for number, rule, *_ in ROWS if len(re.findall(r"[.?](?: |$)", rule)) > 3] == []


@cases(
    ("name", "target"),
    [link for _, _, *links in ROWS for link in (links[:2], links[2:4], links[4:]) if link[0]],
)
def test_home_and_test_of_a_rule_exist(name, target):
    place = DOCS / target
    assert place.exists()
    if name != place.name and name != place.stem and place.is_file() and place.suffix != ".md":
        assert re.search(_DEFINED.format(name=name), place.read_text(), re.MULTILINE)
