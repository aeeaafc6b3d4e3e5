"""The order of the tests, in which xdist's workers must agree. TEST_SHUFFLE=SEED in the environment shuffles them."""

import os
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

# The story of a new checkout runs first.
STORY = "tests/test_story.py"
# The files that take longest, longest first, so that no worker has one of them left when the others are done.
SLOW = (
    "attack_model/test_takeover.py",
    "pages/test_accessibility.py",
    "attack_model/test_attack_model.py",
    "clients/test_javascript.py",
    "trials/test_one_machine.py",
    "trials/test_install.py",
    "trials/test_conversations.py",
    "trials/test_backup_command.py",
    "trials/test_schemathesis.py",
    "trials/test_kit_of_the_wheel.py",
    "trials/test_stuck_hashing.py",
    "faults/test_run.py",
    "faults/test_doctor.py",
    "faults/test_key_files.py",
    "trials/test_nodes.py",
    "trials/test_database_roles.py",
    "faults/test_deliver_command.py",
    "faults/test_frozen_processes.py",
    "faults/test_database_outages.py",
    "trials/test_events.py",
    "console/test_console_stories.py",
    "processes/test_doctor.py",
    "system/test_guide.py",
    "guides/test_quick_start.py",
    "pages/test_html.py",
    "pages/test_provider_stories.py",
    "clients/test_generated_python.py",
    "examples/test_second_terminal.py",
    "examples/test_examples.py",
    "system/test_extensions.py",
    "sql/test_schema.py",
    "processes/test_make_venv.py",
    "web/test_proofs_of_acts.py",
    "web/test_access_matrix.py",
    "processes/test_doctor_without_service.py",
    "processes/test_remedies.py",
    "delivery/test_message_quota.py",
    "delivery/test_notices.py",
    "web/test_limits.py",
)
_PLACES = {name: place for place, name in enumerate((STORY, *SLOW))}


def pytest_report_header() -> str | None:
    seed = os.environ.get("TEST_SHUFFLE")
    return f"shuffled: the same order again by TEST_SHUFFLE={seed}" if seed else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.path))
    if seed := os.environ.get("TEST_SHUFFLE"):
        items[:] = shuffled(items, seed)


def shuffled(items: list[Any], seed: str) -> list[Any]:
    """Return the files in another order, and the tests of each in another order."""
    random = Random(seed)
    files = [list(tests) for _, tests in groupby(items, lambda item: item.path)]
    return [test for file in random.sample(files, len(files)) for test in random.sample(file, len(file))]


def _place(path: Path) -> tuple[int, Path]:
    return _PLACES.get("/".join(path.parts[-2:]), len(_PLACES)), path
