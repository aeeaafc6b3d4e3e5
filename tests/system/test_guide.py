"""The guides of contributors: their blocks add an endpoint, and an extension, to a copy that passes the tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sql import schema
from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
# Tests that report missing parts of an endpoint; the page's own test does the rest.
TESTS_OF_ENDPOINTS = (
    *("tests/source/test_contract.py", "tests/source/test_structure.py", "tests/sql/test_every_statement.py"),
    *("tests/web/test_contract_of_routes.py", "tests/web/test_every_route.py", "tests/web/test_levels.py"),
)
# Further tests that report missing parts of an extension.
TESTS_OF_EXTENSIONS = (
    "tests/source/test_layers.py",
    "tests/system/test_extensions.py::test_extension_that_is_off_is_not_imported",
    "tests/system/test_extensions.py::test_extension_that_is_on_is_imported",
    "tests/source/core/text",
    "tests/core/text",
    "tests/flows/history/test_audit_log.py",
    "tests/flows/history/test_timeline_sentences.py",
)
CHANGE = re.compile(r"^(\w\S+)\n([ -])(.*)\n((?:\+.*\n)+)", re.MULTILINE)
PAGES = {
    "adding-an-endpoint.md": TESTS_OF_ENDPOINTS,
    "adding-an-extension.md": (*TESTS_OF_ENDPOINTS, *TESTS_OF_EXTENSIONS),
}


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the files and the text of each block of code of a page."""
    return blocks_of((ROOT / "docs" / page).read_text())


def blocks_of(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```\w+ ?([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def add(block: str, path: Path) -> None:
    """Add a block to a file: paths before the components, imports above those of the file, the rest below."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else ""
    if path.name == "openapi.yaml":
        text = text.replace("\ncomponents:\n", f"\n{block}\ncomponents:\n")
    elif path.suffix == ".py" and text:
        imports, _, rest = block.partition("\n\n")
        text = f"{imports}\n{text}\n\n{rest}"
    else:
        text += f"\n{block}" if text else block
    path.write_text(text)


def change(block: str, root: Path) -> None:
    """Add lines to files: below a line that the block repeats, or instead of it."""
    for name, sign, line, added_lines in CHANGE.findall(block):
        text, lines = (root / name).read_text(), added_lines[1:].replace("\n+", "\n")
        assert text.count(f"{line}\n") == 1, (name, line)
        (root / name).write_text(text.replace(f"{line}\n", f"{line}\n{lines}" if sign == " " else lines))


def apply(page: str, root: Path) -> None:
    for files, block in blocks(page):
        if not files:
            change(block, root)
        for file in files.split():
            add(block, root / file.replace("NNNN", f"{schema.NEWEST + 1:04}"))


def own_test(page: str) -> str:
    (test_file,) = [file for file, _block in blocks(page) if file.startswith("tests/")]
    return test_file


@pytest.fixture
def copy(tmp_path) -> Path:
    # Copy the bytecode, too: compiling the tests takes longer than running them.
    unneeded = shutil.ignore_patterns(".*", "build", "node_modules", "var")
    return Path(shutil.copytree(ROOT, tmp_path / "copy", ignore=unneeded))


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_adds_passes_its_tests_and_the_rules(page, copy, database_url, all_rows):
    apply(page, copy)
    # Use the running server of this worker's database.
    all_rows.run("CREATE DATABASE guide_test")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["TEST_DATABASE_URL"] = urlsplit(database_url)._replace(path="/guide_test").geturl()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", own_test(page), *PAGES[page]]
    result = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    all_rows.run("DROP DATABASE guide_test WITH (FORCE)")
    assert result.returncode == 0, result.stdout[-5000:]
