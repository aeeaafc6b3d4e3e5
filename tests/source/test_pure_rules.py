"""auth/rules decides from facts alone: it reads no row, request or clock, and refuses by the table of errors."""

import ast
import re
import sys
from typing import get_args

import pytest

from auth.rules.refusals import Refusal
from auth.web.errors import ERRORS
from tests.source.test_structure import SOURCES, imports, nodes, strings
from tests.support.contract import OPENAPI

RULES = [source for source in SOURCES if source.startswith("auth/rules/")]
CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter", "random", "environ"}


def test_rules_import_only_each_other_and_the_standard_library():
    assert len(RULES) > 10
    assert {package for source in RULES for package in imports(source)} - sys.stdlib_module_names == {"auth"}
    modules = [
        node.module
        for source in RULES
        for node in nodes(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("auth")
    ]
    assert [module for module in modules if not (module or "").startswith("auth.rules.")] == []


def test_architecture_page_lists_each_file_of_the_rules():
    page = (OPENAPI.parent / "docs" / "architecture.md").read_text()
    text = page.partition("The files in `auth/rules`, and what each decides:\n\n")[2].partition("\n\n")[0]
    files = {source.rpartition("/")[2] for source in RULES} - {"__init__.py"}
    assert set(re.findall(r"`(\w+\.py)`", text)) == files


def test_architecture_page_shows_an_act_of_the_code():
    page = (OPENAPI.parent / "docs" / "architecture.md").read_text()
    ((path, text),) = re.findall(r"^```python (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert text in (OPENAPI.parent / path).read_text()


def test_rules_have_no_clock():
    """The `now` of a fact is their only time."""
    uses = [
        (source, ast.unparse(node))
        for source in RULES
        for node in nodes(source)
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS
        if node.attr != "now" or ast.unparse(node.value) == "datetime"
    ]
    assert uses == []


def test_nobody_hands_over_a_fact_and_its_own_now():
    calls = []
    for source in SOURCES:
        for call in [node for node in nodes(source) if isinstance(node, ast.Call)]:
            arguments = [
                ast.unparse(each) for each in (*call.args, *(keyword.value for keyword in call.keywords))
            ]
            calls += [(source, each) for each in arguments if f"{each}.now" in arguments]
    assert calls == []


def test_every_refusal_of_a_rule_is_in_the_table_of_errors():
    assert set(get_args(Refusal)) - set(ERRORS) == set()


@pytest.mark.parametrize("refusal", get_args(Refusal))
def test_each_refusal_is_one_that_a_rule_gives(refusal):
    others = [source for source in RULES if source != "auth/rules/refusals.py"]
    assert [source for source in others if refusal in strings(source)] != []
