"""The budgets of requests, in tests/system/reached.json: what each was measured to run. `make budgets` writes them anew.

A request may run five percent more.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parents[1] / "system" / "reached.json"
_TOLERANCE = 1.05
# The number of "Python calls" of a request, or its "functions" and "SQL", each with the number of its lines.
Measured = Mapping[str, Any]


def read() -> dict[str, dict[str, Any]]:
    return json.loads(RECORD.read_text())


def check(requests: Mapping[str, Measured]) -> None:
    """Fail if a request exceeds its budget; for `make budgets`, write the budgets instead."""
    limits = read()
    if os.environ.get("WRITE_BUDGETS"):
        for name, measured in requests.items():
            limits[name] = {**limits.get(name, {}), **measured}
        RECORD.write_text(json.dumps(limits, indent=1, sort_keys=True) + "\n")
        return
    excess = [line for name, measured in requests.items() for line in _excess(name, measured, limits[name])]
    assert excess == [], "\n".join([*excess, "If it is worth that, run: make budgets"])


def figures(measured: Measured) -> dict[str, int]:
    """Return the figures that a budget limits, 0 for what was not measured."""
    functions, sql = measured.get("functions", {}), measured.get("SQL", {})
    return {
        "Python calls": measured.get("Python calls", 0),
        "functions": len(functions),
        "lines": sum(functions.values()),
        "files": len({name.partition(":")[0] for name in functions}),
        "statements": sum(name.endswith("()") for name in sql),
        "lines of SQL": sum(sql.values()),
    }


def _excess(name: str, measured: Measured, budget: Measured) -> Iterator[str]:
    """Describe what exceeds a budget, and the functions and SQL that are new or longer, the longest first."""
    limits = figures(budget)
    beyond = [
        f"{number} {figure} of {limits[figure]} and five percent"
        for figure, number in figures(measured).items()
        if number > limits[figure] * _TOLERANCE
    ]
    if beyond:
        yield f"{name}: {', '.join(beyond)}. It grew in"
        growth = {
            place: lines - budget[part].get(place, 0)
            for part in ("functions", "SQL")
            for place, lines in measured.get(part, {}).items()
        }
        for place in sorted(growth, key=lambda place: -growth[place]):
            if growth[place] > 0:
                yield f"  {place} (+{growth[place]} lines)"
