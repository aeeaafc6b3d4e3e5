"""docs/adding-an-endpoint.md: its blocks add an endpoint to a copy of the checkout, which passes the tests."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.contract import OPENAPI

ROOT = OPENAPI.parent
# They report what is missing of an endpoint; the page's own test does the rest.
RULES = ("tests/test_contract.py", "tests/test_structure.py", "tests/web/test_levels.py")


def blocks() -> dict[str, str]:
    """Return the page's blocks of code by the files that they belong to."""
    page = (ROOT / "docs" / "adding-an-endpoint.md").read_text()
    return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


def add(block: str, path: Path) -> None:
    """Add a block to a file: paths before the components, imports above those of the file, the rest below."""
    text = path.read_text() if path.exists() else ""
    if path.name == "openapi.yaml":
        text = text.replace("\ncomponents:\n", f"\n{block}\ncomponents:\n")
    elif path.name == "limits.py":
        text = text.replace('    "logout": ["log_out", "open_logout"],\n', block)
    elif path.suffix == ".py" and text:
        imports, _, rest = block.partition("\n\n")
        text = f"{imports}\n{text}\n\n{rest}"
    else:
        text += f"\n{block}" if text else block
    path.write_text(text)


@pytest.fixture
def copy(tmp_path) -> Path:
    # With the bytecode: to compile the tests takes longer than to run them.
    unneeded = shutil.ignore_patterns(".*", "node_modules", "var")
    return Path(shutil.copytree(ROOT, tmp_path / "copy", ignore=unneeded))


def test_each_test_of_the_page_ends_with_its_only_assertion():
    """Or another line of the page could be left out without a failure."""
    (test,) = [ast.parse(block) for file, block in blocks().items() if file.startswith("tests/")]
    functions = [node for node in test.body if isinstance(node, ast.FunctionDef)]
    assert [sum(isinstance(node, ast.Assert) for node in ast.walk(each)) for each in functions] == [1, 1]
    assert all(isinstance(each.body[-1], ast.Assert) for each in functions)
    assert ast.get_docstring(test)


def test_endpoint_of_the_page_passes_its_tests_and_the_rules(copy, database_url, all_rows):
    for file, block in blocks().items():
        add(block, copy / file)
    own = [file for file in blocks() if file.startswith("tests/")]
    # Next to the database of this worker, whose server is running.
    all_rows.run("CREATE DATABASE guide_test")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["TEST_DATABASE_URL"] = urlsplit(database_url)._replace(path="/guide_test").geturl()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *own, *RULES]
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    all_rows.run("DROP DATABASE guide_test WITH (FORCE)")
    assert ran.returncode == 0, ran.stdout[-5000:]
