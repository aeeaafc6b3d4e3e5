"""Each remedy that the doctor can print is provoked by a test: a new one needs a test with its words."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.source.test_remedies_of_lines import templates
from tests.support import sentences
from tests.support.processes import CHECKOUT

# The modules with remedies of checks; those of a restore are in test_what_a_restore_brings_back.py.
MODULES = [
    *(CHECKOUT / "auth/ops/doctor").glob("*.py"),
    *(CHECKOUT / "auth/extensions").glob("*/checks.py"),
    *(
        CHECKOUT / "auth" / name
        for name in (
            "core/keys/resealing.py",
            "core/settings/running.py",
            "flows/admin/providers_out_of_place.py",
            "ops/commands/doctor.py",
            "ops/processes/start_checks.py",
        )
    ),
]
# The first characters of a remedy, which a test repeats.
HEAD = 30


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module, with {} for values, but docstrings and parts of other texts."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    left_out |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in left_out:
            yield from templates(node)


def is_remedy(text: str) -> bool:
    return (
        sentences.begins_with_act(text)
        and sentences.problem_of_remedy(f"{text.strip()}.") is None
        and len(text) > 12
    )


# What --help says of the doctor is no remedy.
NO_REMEDIES = {"Check the deployment for common problems."}
REMEDIES = sorted({text for path in MODULES for text in texts_of(path) if is_remedy(text)} - NO_REMEDIES)
TESTS = [
    text
    for folder in ("core", "extensions", "ops", "system/faults", "system/ops")
    for path in (CHECKOUT / "tests" / folder).rglob("test_*.py")
    for text in texts_of(path)
    if len(text) > 10
]


def head_of(text: str) -> str:
    return text.removeprefix("{} ").partition("{}")[0][:HEAD]


def test_remedy_of_the_doctor_is_provoked_by_a_test():
    assert len(REMEDIES) > 50
    heads = [head_of(text) for text in TESTS]
    forgotten = [
        remedy
        for remedy in REMEDIES
        if not any(
            head_of(remedy).startswith(head) or head.startswith(head_of(remedy))
            for head in heads
            if len(head) > 9
        )
    ]
    assert forgotten == []
