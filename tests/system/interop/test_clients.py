"""Supabase clients for other languages, unmodified, against the service.

Each has its own tests in a directory of this one, with pinned versions; skipped without its toolchain.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parent
# The first run downloads and compiles dependencies.
TIMEOUT = 1800.0
CLIENTS = {
    "go": ["go", "test", "-count=1", "./..."],
    "rust": ["cargo", "test", "--locked", "--quiet"],
    "kotlin": ["mvn", "--batch-mode", "--quiet", "test"],
}


@pytest.mark.parametrize("language", CLIENTS)
def test_client_of_each_language_passes_its_tests(service, language):
    command = CLIENTS[language]
    if not shutil.which(command[0]):
        pytest.skip(f"NOT TESTED: the client for {language}, which needs {command[0]}")
    result = subprocess.run(
        command,
        cwd=DIRECTORY / language,
        env=service,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert result.returncode == 0, result.stdout
