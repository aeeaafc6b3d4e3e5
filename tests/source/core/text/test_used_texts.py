"""Every text of the catalogues is shown by a template or by code, and each that they name exists."""

import ast
import functools
import re
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from jinja2 import nodes as jinja

import sql
from auth.core.text.catalogues import built_in
from sql import schema

PACKAGE = Path(sql.DIRECTORY).parent / "auth"
UNKNOWN = "(.*)"
# In audit logs that they wrote.
OF_EARLIER_VERSIONS = {"email_change_undone", "signed_up_again"}


def resolved(node: jinja.Node | ast.AST | None) -> set[str]:
    """Return the strings that an expression may be, as regular expressions."""
    match node:
        case jinja.Const(value=str(value)) | ast.Constant(value=str(value)):
            return {re.escape(value)}
        case jinja.CondExpr():
            return resolved(node.expr1) | resolved(node.expr2)
        case ast.IfExp():
            return resolved(node.body) | resolved(node.orelse)
        case jinja.Concat():
            return {"".join(parts) for parts in product(*map(resolved, node.nodes))}
        case ast.JoinedStr():
            return {"".join(parts) for parts in product(*map(resolved, node.values))}
    return {UNKNOWN}


@functools.cache
def trees() -> tuple[list[jinja.Node], list[ast.AST]]:
    """Return what the templates and the modules consist of."""
    templates = [
        path.read_text() for path in PACKAGE.rglob("templates/**/*.*") if path.suffix in (".html", ".txt")
    ]
    modules = [path.read_text() for path in PACKAGE.rglob("*.py")]
    assert len(templates) > 90
    return (
        [
            node
            for text in templates
            for node in Environment(autoescape=True).parse(text).find_all(jinja.Node)
        ],
        [node for text in modules for node in ast.walk(ast.parse(text))],
    )


def pairs(expressions: Iterable[Sequence[Any]]) -> set[tuple[str, str]]:
    """Return what two expressions each may be."""
    return {
        pair
        for each in expressions
        if len(each) == 2
        for pair in product(resolved(each[0]), resolved(each[1]))
    }


@functools.cache
def said() -> set[tuple[str, str]]:
    """Return the tables and names with which templates and modules say texts of the pages."""
    of_templates, of_modules = trees()
    by_templates = [node for node in of_templates if isinstance(node, jinja.Call)]
    by_modules = [node for node in of_modules if isinstance(node, ast.Call)]
    return pairs(call.args for call in by_templates if getattr(call.node, "name", "") == "say") | pairs(
        call.args for call in by_modules if getattr(call.func, "id", "") == "text"
    )


@functools.cache
def kept() -> set[tuple[str, str]]:
    """Return the pairs in tuples and dictionaries, from which other lines take a table and a name."""
    nodes = trees()[1]
    rows = [node.elts for node in nodes if isinstance(node, ast.Tuple)]
    items = [
        item
        for node in nodes
        if isinstance(node, ast.Dict)
        for item in zip(node.keys, node.values, strict=True)
    ]
    return pairs([*rows, *items])


@functools.cache
def words() -> set[str]:
    """Return all strings of modules, and all words of templates and SQL."""
    paths = [schema.SCHEMA, *sql.DIRECTORY.rglob("*.sql"), *PACKAGE.rglob("templates/**/*.*")]
    texts = " ".join(path.read_text() for path in paths if path.suffix != ".svg")
    strings = {node.value for node in trees()[1] if isinstance(node, ast.Constant)}
    return {each for each in strings if isinstance(each, str)} | set(re.findall(r"[\w.]+", texts))


def is_word(text: str) -> bool:
    """Whether the sources have a word, perhaps in halves: the name of a field, and `_invalid`."""
    halves = ((text[: at.start()], text[at.start() :]) for at in re.finditer("_", text))
    return text in words() or any(words().issuperset(each) for each in halves)


def fits(text: str, pattern: str) -> bool:
    found = re.fullmatch(pattern, text)
    return found is not None and all(map(is_word, found.groups()))


def is_said(text: str) -> bool:
    table, _, name = text.partition(".")
    patterns = said() - {(UNKNOWN, UNKNOWN)}
    return (table, name) in kept() or any(fits(table, said) and fits(name, as_) for said, as_ in patterns)


def test_every_text_of_pages_is_said():
    # A function chooses the unit of a time.
    chosen = re.compile(r"time\.of_day|(ago|wait)\.\w+")
    assert [name for name in built_in("pages")["en"] if not is_said(name) and not chosen.match(name)] == []


def test_every_text_of_pages_that_is_said_exists():
    named = {f"{table}.{name}" for table, name in said() if re.fullmatch(r"\w+", f"{table}{name}")}
    assert len(named) > 200
    assert named - built_in("pages")["en"].keys() == set()


@pytest.mark.parametrize("subject", ["messages", "console"])
def test_every_text_of_messages_and_the_console_is_named(subject):
    parts = {name: name.split(".", 2 if subject == "messages" else 1) for name in built_in(subject)["en"]}
    named = words() | {part for word in words() for part in word.split(".")} | OF_EARLIER_VERSIONS
    assert {name for name, each in parts.items() if not named.issuperset(each)} == set()
