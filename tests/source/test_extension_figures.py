"""The table of sizes in docs/architecture.md, which `python -m tests.support.extension_figures` prints."""

import re

from auth.registry import EXTENSIONS
from tests.support.extension_figures import ROOT, row_of


def test_architecture_has_the_size_of_each_extension():
    text = (ROOT / "docs/architecture.md").read_text()
    (table,) = re.findall(r"^\| extension \|.*?\n\n", text, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (\w+) \|(?: [\d,]+ \|){5}$", table, re.MULTILINE)
    assert rows == sorted(EXTENSIONS)


def test_size_of_an_extension_counts_its_code_and_its_tests():
    figures = [int(figure.replace(",", "")) for figure in re.findall(r"[\d,]+", row_of("openid"))]
    assert len(figures) == 5
    assert min(figures) > 0
