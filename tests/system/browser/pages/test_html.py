"""The HTML of the pages is valid, by html-validate."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.page_tour import tour_all

pytest_plugins = ["tests.support.tour_fixtures"]

CLIENTS = Path(__file__).parents[2] / "clients"


def test_html_is_valid(page_client, database):
    if not (CLIENTS / "node_modules" / "html-validate").is_dir():
        pytest.skip("NOT TESTED: the HTML of the pages. It needs Node.js and npm: make test-browser")
    pages: dict[str, str] = {}
    page_client.check = lambda name: pages.update({name: page_client.visitor.page.text})
    tour_all(page_client, database)
    for path in ("/docs/api", "/docs/settings", "/docs?q=passkey"):
        page_client.visit(path)
        page_client.check(path)
    node = shutil.which("node")
    assert node
    result = subprocess.run(
        [node, "validate.mjs"],
        cwd=CLIENTS,
        input=json.dumps(pages),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(result.stdout) == []
