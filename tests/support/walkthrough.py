"""Measures the code that a request runs: functions, their lines and files, statements, and their SQL."""

import ast
import functools
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sql
from sql import Database, schema

ROOT = Path(sql.__file__).parent.parent
PRODUCT = (str(ROOT / "auth") + "/", str(ROOT / "sql") + "/", str(ROOT / "app.py"))
STATEMENTS = sql.load_statements()
_CREATED = re.compile(
    r"^CREATE OR REPLACE (FUNCTION|TRIGGER|VIEW) (\w+)(.*?)(?=^(?:CREATE|INSERT|REVOKE) |\Z)",
    re.MULTILINE | re.DOTALL,
)
_WRITES = r"\b(?:INSERT INTO|UPDATE|DELETE FROM) {}\b"


@dataclass(frozen=True)
class Function:
    """A `def`, with the numbers of its lines that are neither blank, nor a comment, nor of a `def` in it."""

    path: str
    name: str
    lines: frozenset[int]


@dataclass
class Reach:
    """The code that ran."""

    functions: set[Function] = field(default_factory=set)
    statements: set[str] = field(default_factory=set)

    def __or__(self, other: "Reach") -> "Reach":
        return Reach(self.functions | other.functions, self.statements | other.statements)

    def __and__(self, other: "Reach") -> "Reach":
        return Reach(self.functions & other.functions, self.statements & other.statements)

    @property
    def measured(self) -> dict[str, Any]:
        """Return the functions and the SQL, each with the number of its lines."""
        functions: Counter[str] = Counter()
        for each in self.functions:
            functions[f"{each.path}:{each.name}"] += len(each.lines)
        return {
            "functions": functions,
            "SQL": Counter(line.rpartition(":")[0] for line in sql_of(self.statements)),
        }


class Meter:
    """Notes the `def`s of the product that run, in this thread and in those that start under the meter."""

    def __init__(self) -> None:
        self._reach: Reach | None = None
        self._functions: dict[CodeType, Function | None] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        threading.setprofile(self._note)
        try:
            yield
        finally:
            threading.setprofile(None)

    @contextmanager
    def measure(self) -> Iterator[Reach]:
        reach = self._reach = Reach()
        sys.setprofile(self._note)
        try:
            yield reach
        finally:
            sys.setprofile(None)
            self._reach = None

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        reach = self._reach
        if reach is None or event != "call":
            return
        code = frame.f_code
        if code not in self._functions:
            self._functions[code] = function_of(code)
        if function := self._functions[code]:
            reach.functions.add(function)
            if code is Database._execute.__code__:
                reach.statements.update(name for name, _ in frame.f_locals["calls"])


def function_of(code: CodeType) -> Function | None:
    """Return the `def` of a code object, or None for another one and for other people's code."""
    if not (code.co_filename.startswith(PRODUCT) and code.co_filename.endswith(".py")):
        return None
    return _functions_of(code.co_filename).get((code.co_firstlineno, code.co_name))


@functools.cache
def _functions_of(filename: str) -> dict[tuple[int, str], Function]:
    text = Path(filename).read_text()
    filled = {number for number, line in enumerate(text.splitlines(), 1) if line.split("#")[0].strip()}
    path = str(Path(filename).relative_to(ROOT))
    functions = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines = filled & set(range(start, (node.end_lineno or start) + 1))
            inner = {
                line
                for each in ast.walk(node)
                if isinstance(each, ast.FunctionDef) and each is not node
                for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)
            }
            functions[start, node.name] = Function(path, node.name, frozenset(lines - inner))
    return functions


def sql_of(statements: set[str]) -> set[str]:
    """Return the lines of statements and of the functions, views and triggers that they reach, each with its place."""
    texts = {f"{name}()": STATEMENTS[name].text for name in statements}
    waiting = list(texts.values())
    while waiting:
        text = waiting.pop()
        for name, body in _created().items():
            if name not in texts and _reaches(text, name, body):
                texts[name] = body
                waiting.append(body)
    return {
        f"{name}:{number}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines())
        if line.partition("--")[0].strip()
    }


def _reaches(text: str, name: str, body: str) -> bool:
    if table := re.match(r".*? ON (\w+)", body, re.DOTALL) if "EXECUTE FUNCTION" in body else None:
        return bool(re.search(_WRITES.format(table[1]), text))
    return bool(
        re.search(rf"\b{name}\b" if body.startswith("CREATE OR REPLACE VIEW") else rf"\b{name}\(", text)
    )


@functools.cache
def _created() -> dict[str, str]:
    """Return the functions, all of one name together, views and triggers, each with its text.

    Leaves out the triggers of back-channel logout: the story has no applications.
    """
    created: dict[str, str] = {}
    for path in sorted({*schema.FUNCTIONS.glob("*.sql")} - {schema.FUNCTIONS / "backchannel_logout.sql"}):
        for match in _CREATED.finditer(path.read_text()):
            created[match[2]] = created.get(match[2], "") + match[0]
    return created
