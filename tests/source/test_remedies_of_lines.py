"""Every mistake in a setting, and every failure of a start or a command, has a remedy."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from auth.core.settings.values.validators import sentence
from tests.support import sentences
from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
MODULES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
    for folder in ("auth", "sql")
    for path in (ROOT / folder).rglob("*.py")
    if "testkit" not in path.parts  # which tells tests
}
# Where each `ValueError` is a mistake in a setting, and where lines begin with the name of one.
OF_SETTINGS = re.compile(r"auth/core/(settings/.*|tokens/claim_rules)\.py")
OF_STARTS = re.compile(
    r"auth/(core/(settings|keys)|ops/processes)/.*|auth/delivery/senders/channels\.py|sql/pool\.py"
)
NAMED = re.compile(r"(([A-Z][A-Z_]+|AUTH_{}\w*|{}):|[A-Z][A-Z_]+ (is|has)) .+")
# The functions that turn exceptions into failures of commands.
OF_COMMANDS = re.compile(
    r"auth/ops/(?!transfer|testkit).*|auth/flows/(commands|checks)\.py|auth/extensions/\w+/command\.py"
)
FAILURES = {"SettingsError", "ProgrammingError", "ClickException", "UsageError", "BadParameter"}
# What it quotes is a `ProgrammingError`.
QUOTES = "{}: The schema cannot be applied: {}"


def name_of(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def scopes() -> dict[ast.AST, tuple[str, ast.AST]]:
    """Return the path, and the function or module, that each node is in."""
    found: dict[ast.AST, tuple[str, ast.AST]] = {}
    for path, module in MODULES.items():
        functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
        for scope in (module, *functions):  # the innermost comes last
            found |= dict.fromkeys(ast.walk(scope), (path, scope))
    return found


def assigned() -> dict[tuple[ast.AST | None, str], list[ast.expr]]:
    """Return the values of names by their scope, which is None for constants."""
    found: dict[tuple[ast.AST | None, str], list[ast.expr]] = defaultdict(list)
    for node, (_, scope) in SCOPES.items():
        if isinstance(node, ast.Assign):
            name = name_of(node.targets[0])
            found[scope, name].append(node.value)
            if isinstance(scope, ast.Module) and name.isupper():
                found[None, name].append(node.value)
    return found


SCOPES = scopes()
ASSIGNED = assigned()


def templates(node: ast.expr, depth: int = 3) -> Iterator[str]:
    """Yield the texts that an expression may be, with {} for values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        texts = [""]
        for part in node.values:
            texts = [text + piece for text in texts for piece in pieces(part, depth)]
        yield from texts
    elif isinstance(node, ast.IfExp):
        yield from (*templates(node.body, depth), *templates(node.orelse, depth))
    elif isinstance(node, ast.Name | ast.Attribute) and depth:
        path, scope = SCOPES[node]
        name = name_of(node)
        found = ASSIGNED[scope, name] or ASSIGNED[MODULES[path], name] or ASSIGNED[None, name]
        for value in found:
            yield from templates(value, depth - 1)


def pieces(part: ast.expr, depth: int) -> set[str]:
    """Return what a part of an f-string may be: a text of ours, or {}."""
    if not isinstance(part, ast.FormattedValue):
        return set(templates(part))
    value = part.value
    if isinstance(value, ast.Call) and len(value.args) == 1:  # with a capital, for instance
        value = value.args[0]
    return (set(templates(value, depth)) if isinstance(value, ast.Name | ast.IfExp) else set()) or {"{}"}


def failures() -> set[str]:
    """Return the exceptions whose texts operators read: those of click, and those that commands quote."""
    found, before = set(FAILURES), set[str]()
    while found != before:
        before = set(found)
        for node, (path, _) in SCOPES.items():
            if isinstance(node, ast.ClassDef) and {*map(name_of, node.bases)} & found:
                found.add(node.name)
            if isinstance(node, ast.ExceptHandler) and OF_COMMANDS.fullmatch(path) and quotes(node, found):
                types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                found |= {name_of(each) for each in types if each} - vars(builtins).keys()
    return found - {"Error", "ApiError", "Failure"}


def quotes(handler: ast.ExceptHandler, found: set[str]) -> bool:
    """Whether a handler fails with the text of its exception, and adds no remedy."""
    for call in (node for node in ast.walk(handler) if isinstance(node, ast.Call) and node.args):
        text = ast.unparse(call.args[0])
        fails = name_of(call.func) in found or ast.unparse(call.func) == "sys.exit"
        if fails and (f"str({handler.name})" in text or f"{{{handler.name}}}" in text):
            return all(map(sentences.problem_of_failure, templates(call.args[0])))
    return False


def lines() -> Iterator[tuple[str, str]]:
    """Yield paths and the operator messages of their modules."""
    told = failures()
    quoting = [node for node in SCOPES if isinstance(node, ast.ExceptHandler) and quotes(node, told)]
    quoted = {node for handler in quoting for node in ast.walk(handler)}
    joined = [node for node in SCOPES if isinstance(node, ast.JoinedStr)]
    parts = {part for node in joined for value in node.values for part in ast.walk(value)}
    for node, (path, _) in SCOPES.items():
        found: list[ast.expr] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node not in quoted:
            found = node.exc.args[:1] if name_of(node.exc.func) in told else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.exit":
            found = node.args
        yield from ((path, text) for argument in found for text in templates(argument))
        if isinstance(node, ast.Call) and OF_SETTINGS.fullmatch(path):
            yield from ((path, text) for text in mistakes(node))
        if isinstance(node, ast.Constant | ast.JoinedStr) and OF_STARTS.fullmatch(path) and node not in parts:
            yield from ((path, text) for text in templates(node) if NAMED.fullmatch(text) and text != QUOTES)


def mistakes(call: ast.Call) -> Iterator[str]:
    """Yield the mistakes in a setting that a call raises or declares."""
    told = [keyword.value for keyword in call.keywords if keyword.arg == "error"]
    if name_of(call.func) in ("ValueError", "matching", "_refusal"):
        told += call.args[-1:]
    for text in (text for argument in told for text in templates(argument)):
        yield sentence(ValueError(text.rstrip(".")))


LINES = sorted({(path, text) for path, text in lines() if re.search("[a-z]{3}", text)})


def test_lines_are_found_where_settings_are_refused_and_commands_fail():
    assert len(LINES) > 130
    assert {path for path, _ in LINES} >= {
        "auth/core/keys/rotation.py",
        "auth/core/settings/kept_secrets.py",
        "auth/core/settings/values/combined.py",
        "auth/core/settings/values/validators.py",
        "auth/extensions/hooks/command.py",
        "auth/ops/backups/archive.py",
        "auth/ops/processes/starting.py",
        "sql/schema.py",
    }


@pytest.mark.parametrize("path", sorted({path for path, _ in LINES}))
def test_failure_is_printed_with_its_remedy(path):
    problems = {text: sentences.problem_of_failure(text) for place, text in LINES if place == path}
    assert {text: problem for text, problem in problems.items() if problem} == {}


@pytest.mark.parametrize(
    "text", ["AUTH_X: Is empty.", "{} failed: {}", "The file {} has a wrong key, which is old."]
)
def test_line_without_a_remedy_is_found(text):
    assert sentences.problem_of_failure(text) == "has no remedy"
