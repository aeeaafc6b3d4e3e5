"""A service for clients, their Python environments, and the browser for other people's applications."""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.processes import PATIENT_GUNICORN, Service

# The limits allow one message a minute to an address.
SETTINGS = {
    "AUTH_DEV_INBOX": "true",
    "AUTH_ANONYMOUS_ENABLED": "true",
    "AUTH_RATE_LIMITS_ENABLED": "false",
}


@pytest.fixture
def service() -> Iterator[dict[str, str]]:
    """A running service, as the environment of a client's tests. Its database is embedded, as in `make run`."""
    with tempfile.TemporaryDirectory(prefix="latchkey-interop-") as directory:
        Path(directory).chmod(0o755)
        state_dir = Path(directory).resolve() / "var"
        with Service(state_dir, command=PATIENT_GUNICORN, **SETTINGS) as process:
            yield os.environ | {
                "LATCHKEY_URL": f"http://localhost:{process.port}",
                "LATCHKEY_SERVICE_KEY": (process.state_dir / "service_role_key").read_text().strip(),
            }


@pytest.fixture(scope="session")
def make_python(request) -> Callable[[Path], Path]:
    """Return a function that installs a file of requirements into an environment of its own, once, because they
    may need other versions than Latchkey, and returns its folder of programs.
    """

    def make(requirements: Path) -> Path:
        digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
        directory = request.config.cache.mkdir(requirements.parent.name) / digest
        if not (directory / "stamp").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
            install = [directory / "bin" / "python", "-m", "pip", "install", "--quiet"]
            install += ["--only-binary", ":all:", "-r", requirements]
            subprocess.run(install, check=True)
            (directory / "stamp").touch()
        return directory / "bin"

    return make


@pytest.fixture
def page(tab, origin) -> Iterator[Browser]:
    """A browser that speaks English. Pages of others may lack icons, or name pictures on other hosts."""
    tab.start_anew()
    yield tab
    # Its requests would reach the tables of the next test.
    tab.open("about:blank")
    tab.complaints()
