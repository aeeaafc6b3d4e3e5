"""Prints how much SQL there is: `python -m tests.support.sql_figures`.

What only nodes of the release before call is left out. Lines are neither blank nor a comment.
"""

import re
from collections.abc import Iterator, Mapping

import sql
from sql import Statement, schema
from tests.support import previous_release

MOST_LINES, MOST_PARAMETERS = 40, 12
# Reports of the console, the doctor, the keys and the audit log may be long, and so may the record of an export.
REPORTS = frozenset(
    {
        "count_needs_of_secret",
        "export_users",
        "count_hours",
        "diagnose_pages",
        "list_timeline",
        "search_audit",
        "select_health",
        "select_summary",
    }
)
_TRIGGER = re.compile(r"^CREATE OR REPLACE TRIGGER ", re.MULTILINE)


def lines_of(text: str) -> int:
    """Return the number of lines that are neither blank nor a comment."""
    return sum(bool(line.partition("--")[0].strip()) for line in text.splitlines())


def functions() -> Mapping[str, list[previous_release.Part]]:
    """Return the functions and views of this release by name, with all parameters."""
    parts = previous_release.read(schema.SCHEMA.parent).parts
    found: dict[str, list[previous_release.Part]] = {}
    for part in (part for file, parts in parts.items() if file != previous_release.FILE for part in parts):
        if part.name:
            found.setdefault(part.name, []).append(part)
    return found


def is_list_of_columns(statement: Statement) -> bool:
    """Whether most parameters are the columns of a row."""
    return bool(re.search(r"\b(INSERT INTO|UPDATE) \w+", statement.text))


def too_long() -> Iterator[str]:
    """Yield the statements over the limits, with their lines and parameters."""
    for statement in sql.load_statements().values():
        lines, parameters = lines_of(statement.text), len(statement.parameters)
        if statement.name not in REPORTS and (
            lines > MOST_LINES or (parameters > MOST_PARAMETERS and not is_list_of_columns(statement))
        ):
            yield f"{statement.name} ({lines} lines, {parameters} parameters)"


def figures() -> dict[str, object]:
    texts = [
        path.read_text() for path in schema.FUNCTIONS.glob("*.sql") if path.name != previous_release.FILE
    ]
    statements = sql.load_statements()
    return {
        "SQL functions": sum(len(parts) for parts in functions().values()),
        "their lines": sum(lines_of(text) for text in texts),
        "triggers": sum(len(_TRIGGER.findall(text)) for text in texts),
        "statements": len(statements),
        "lines of statements": sum(lines_of(statement.text) for statement in statements.values()),
        "too long": list(too_long()),
    }


def main() -> None:
    calls = {name: parts[0].calls for name, parts in functions().items()}
    for name, figure in figures().items():
        print(f"{name}: {figure}")
    texts = {statement.name: statement.text for statement in sql.load_statements().values()}
    texts |= {f"{name}()": "\n".join(part.code for part in parts) for name, parts in functions().items()}
    for name, is_called in calls.items():
        callers = [caller for caller, text in texts.items() if caller != f"{name}()" and is_called(text)]
        print(f"  {name}: {', '.join(callers)}")


if __name__ == "__main__":
    main()
