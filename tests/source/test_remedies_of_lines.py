"""Every mistake in a setting, and every failure of a start or a command, has a remedy."""

import ast
import re
from collections.abc import Iterator

import pytest

from auth.core.settings.values.validators import sentence
from tests.source.test_structure import SOURCES, nodes
from tests.support import sentences

# The modules in which each `ValueError` is a mistake in a setting.
SETTINGS_MODULES = re.compile(r"auth/core/(settings/.*|tokens/claim_rules)\.py")
# The exceptions whose text operators read, at a start or in a command.
FAILURES = {"SettingsError", "ProgrammingError", "ClickException", "UsageError", "BadParameter"}


def name_of(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def templates(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may be, with {} for values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            getattr(part, "value", "") if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    elif isinstance(node, ast.IfExp):
        yield from (*templates(node.body), *templates(node.orelse))


def lines(source: str) -> Iterator[str]:
    """Yield the lines of a module that operators read."""
    for node in nodes(source):
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and name_of(node.exc.func) in FAILURES
        ):
            yield from (text for argument in node.exc.args[:1] for text in templates(argument))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.exit":
            yield from (text for argument in node.args for text in templates(argument))
        elif isinstance(node, ast.Call) and SETTINGS_MODULES.fullmatch(source):
            yield from mistakes(node)


def mistakes(call: ast.Call) -> Iterator[str]:
    """Yield the mistakes in a setting that a call raises or declares."""
    arguments = [keyword.value for keyword in call.keywords if keyword.arg == "error"]
    if name_of(call.func) in ("ValueError", "matching", "_refusal"):
        arguments += call.args[-1:]
    for text in (text for argument in arguments for text in templates(argument)):
        yield sentence(ValueError(text.rstrip(".")))


# Lines that end with a named remedy are left out.
LINES = [
    (source, line)
    for source in SOURCES
    for line in lines(source)
    if re.search("[a-z]{3}", line) and not line.endswith((" {}", " {}.", "\n{}"))
]


def test_failure_is_printed_with_its_remedy():
    assert len(LINES) > 60
    problems = {place: sentences.problem_of_failure(place[1]) for place in LINES}
    assert {place: problem for place, problem in problems.items() if problem} == {}


@pytest.mark.parametrize(
    "text", ["AUTH_X: Is empty.", "{} failed: {}", "The file {} has a wrong key, which is old."]
)
def test_line_without_a_remedy_is_found(text):
    assert sentences.problem_of_failure(text) == "has no remedy"
