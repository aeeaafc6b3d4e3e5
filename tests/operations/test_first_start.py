"""`latchkey serve` with hardly a setting: it creates a database and secrets, and prints messages."""

import re
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support import log_watch
from tests.support.commands import run_with_settings
from tests.support.processes import CHECKOUT, Service, short_directory, wait_until
from tests.support.server import ServerClient
from tests.support.users import PASSWORD

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """A service with an embedded database, which was started in an empty directory."""
    with short_directory() as directory:
        command = [sys.executable, "-m", "auth.commands", "serve"]
        changes = {"PYTHONPATH": str(CHECKOUT), "AUTH_WORKERS": "1", "AUTH_LOG_FORMAT": "json"}
        with Service(directory / "var", command=command, directory=directory, **changes) as service:
            yield service
        log_watch.scan_log("the first start", service.log())


@pytest.fixture(scope="module")
def client(service) -> Iterator[ServerClient]:
    with closing(ServerClient(service.port)) as client:
        yield client


def test_messages_are_printed_on_localhost_and_not_logged(service, client):
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
    (link,) = wait_until(
        lambda: re.findall(r"^http://localhost:\d+(/verify\S+)$", service.text(), re.MULTILINE)
    )
    log = [line for line in service.text().splitlines() if line.startswith("{")]
    assert log
    assert not [line for line in log if "dave@example.com" in line or link in line]
    assert service.get(link)[1] == b""


def test_command_finds_the_embedded_database_of_a_running_service(service, client):
    environment = {
        "AUTH_STATE_DIR": str(service.state_dir),
        "AUTH_BCRYPT_COST": "4",
        "PORT": str(service.port),
        "LATCHKEY_ADMIN_PASSWORD": PASSWORD,
    }
    result = run_with_settings(environment, "create-admin", "carol@example.com")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("carol@example.com is an administrator (new user): ")
    body = {"email": "carol@example.com", "password": PASSWORD}
    assert client.post("/login-admin", json=body).status_code == 200
