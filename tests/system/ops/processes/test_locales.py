"""A locale whose encoding is not UTF-8 changes no file that the service reads, and nothing that it stores."""

from contextlib import closing

import pytest

from sql import schema
from tests.support.commands import run_process
from tests.support.environment import ENVIRONMENT, SERVICE_ROLE_KEY
from tests.support.processes import CHECKOUT, Service
from tests.support.server import ServerClient
from tests.support.users import register

# Python would choose UTF-8 for this locale by itself, but not for those that name another encoding.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def environment(new_database):
    return ENVIRONMENT | ASCII | {"DATABASE_URL": new_database(), "AUTH_WORKERS": "1"}


def test_service_and_commands_work_in_ascii_and_other_nodes_have_nothing_to_change(
    environment, new_state_dir
):
    with Service(new_state_dir, **environment) as service, closing(ServerClient(service.port)) as client:
        zoe = register(client, {"apikey": SERVICE_ROLE_KEY}, "zoë@bücher.example")
        command = environment | {"AUTH_STATE_DIR": str(new_state_dir), "PYTHONPATH": str(CHECKOUT)}
        result = run_process(command, "users", "show", zoe.id)
        assert "Traceback" not in result.stderr, result.stderr
        assert (result.returncode, result.stderr) == (0, "")
        assert "@xn--bcher-kva.example" in result.stdout
    assert schema.pending(environment["DATABASE_URL"]) == []
