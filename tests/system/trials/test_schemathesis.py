"""Schemathesis generates valid and invalid requests from openapi.yaml, and checks the responses against it.

The requests are the same in every run; `SCHEMATHESIS_SECONDS=60` generates random ones for a minute.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.contract import OPENAPI
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.server import ServerClient, at_once

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "ignored_auth",
    "use_after_free",
]
# The statuses of refusals that Schemathesis expects, and those of HTTP itself; not 503.
CONFIGURATION = """
hooks = "{hooks}"
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 414, 415, 422, 429, 431]
"""
WITH_THE_KEY = ["-H", f"Authorization: Bearer {SERVICE_ROLE_KEY}"]


def run(server: ServerClient, directory: Path, name: str, *options: str) -> tuple[int, str]:
    """Run Schemathesis, and return its exit status and report."""
    folder = directory / name
    folder.mkdir()
    configuration = folder / "schemathesis.toml"
    configuration.write_text(
        CONFIGURATION.format(hooks=Path(__file__).parents[2] / "support" / "schemathesis_hooks.py")
    )
    seconds = os.environ.get("SCHEMATHESIS_SECONDS")
    extent = ["--generation-deterministic", "--max-examples", "2"]
    if seconds:
        extent = ["--max-time", seconds, "--generation-database", "none"]
    command = [str(Path(sys.executable).with_name("st")), "--config-file", str(configuration)]
    command += ["run", str(OPENAPI), "--url", f"http://127.0.0.1:{server.port}", "--checks", ",".join(CHECKS)]
    command += ["--continue-on-failure", "--no-shrink", "--no-color", *extent, *options]
    result = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout.partition("= FAILURES =")[2] or result.stdout + result.stderr


def test_schemathesis_finds_no_violation(server, tmp_path):
    # Without credentials, most requests of the coverage phase would be 401.
    runs = [
        ("with the service role key", *WITH_THE_KEY),
        ("without credentials", "--phases", "examples,fuzzing"),
    ]
    results = at_once(2, lambda number: run(server, tmp_path, *runs[number]))
    for (name, *_), (status, report) in zip(runs, results, strict=True):
        assert status == 0, f"{name}:\n{report}"
