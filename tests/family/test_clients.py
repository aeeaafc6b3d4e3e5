"""Supabase clients for other languages, unmodified, against the service.

Each has its own tests in a directory of this one, with pinned versions; skipped without its toolchain.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import PATIENT_GUNICORN, Service

HERE = Path(__file__).parent
# The first run downloads and compiles dependencies.
TIMEOUT = 1800.0
CLIENTS = {
    "go": ["go", "test", "-count=1", "./..."],
    "rust": ["cargo", "test", "--locked", "--quiet"],
    "kotlin": ["mvn", "--batch-mode", "--quiet", "test"],
}
# The limits allow one message a minute to an address.
SETTINGS = {
    "AUTH_DEV_INBOX": "true",
    "AUTH_ANONYMOUS_ENABLED": "true",
    "AUTH_RATE_LIMITS_ENABLED": "false",
}
pytestmark = pytest.mark.family


@pytest.fixture
def service() -> Iterator[dict[str, str]]:
    """A running service, as the environment of a client's tests. Its database is embedded, as in `make run`."""
    with tempfile.TemporaryDirectory(prefix="latchkey-family-") as directory:
        Path(directory).chmod(0o755)
        state_dir = Path(directory).resolve() / "var"
        with Service(state_dir, command=PATIENT_GUNICORN, **SETTINGS) as running:
            yield os.environ | {
                "LATCHKEY_URL": f"http://localhost:{running.port}",
                "LATCHKEY_SERVICE_KEY": (running.state_dir / "service_role_key").read_text().strip(),
            }


@pytest.mark.parametrize("language", CLIENTS)
def test_client(service, language):
    command = CLIENTS[language]
    if not shutil.which(command[0]):
        pytest.skip(f"NOT TESTED: the client for {language}, which needs {command[0]}")
    done = subprocess.run(
        command,
        cwd=HERE / language,
        env=service,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
