"""Each block of code and each command of a guide is played by a test: the lists come from the guides and the tests."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.guides import PAGES, Guide
from tests.support.processes import CHECKOUT


class Played(NamedTuple):
    """What a module's test plays of a page: `blocks`, `commands`, or the one `block` or `command` with a part."""

    kind: str
    part: str


def _page(node: ast.AST) -> str | None:
    """Return the page of a call `Guide("…")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Guide":
        (argument,) = node.args
        assert isinstance(argument, ast.Constant), "tests name their guide"
        return str(argument.value)
    return None


def _played_by(tree: ast.Module) -> Iterator[tuple[str, Played]]:
    names = {
        target.id: page
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and (page := _page(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = {node.func: node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            part = calls[node].args[0] if node in calls else ast.Constant("")
            if isinstance(part, ast.Constant):
                yield names[node.value.id], Played(node.attr, str(part.value))
        # A function of the module plays all that it gets.
        for argument in node.args if isinstance(node, ast.Call) else ():
            if isinstance(argument, ast.Name) and argument.id in names:
                yield names[argument.id], Played("blocks", "")


@pytest.fixture(scope="module")
def played() -> dict[str, set[Played]]:
    """What tests play of each page."""
    pages = defaultdict(set)
    for path in (CHECKOUT / "tests" / "system").rglob("test_*.py"):
        if "node_modules" in path.parts or "Guide" not in (text := path.read_text()):
            continue
        for page, what in _played_by(ast.parse(text)):
            pages[page].add(what)
    return pages


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_guide_begins_its_line_with_its_language(page):
    """Otherwise the tests of the guides do not see it."""
    text = (CHECKOUT / "docs" / page).read_text()
    assert text.count("```") == 2 * len(Guide(page).blocks)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_guide_is_played(page, played):
    parts = [what.part for what in played[page] if what.kind in ("block", "blocks")]
    left = [
        f"docs/{page}:{block.line}" for block in Guide(page).blocks if not any(p in block.text for p in parts)
    ]
    assert left == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_in_a_sentence_of_a_guide_is_played(page, played):
    parts = [what.part for what in played[page] if what.kind in ("command", "commands")]
    left = [
        command
        for command in Guide(page).commands
        # `make_run` plays this one for all.
        if not command.endswith("make run") and not any(part in command for part in parts)
    ]
    assert left == []
