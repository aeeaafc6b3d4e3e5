"""Services and commands with other keys than the database was last used with."""

import dataclasses
import os
import subprocess
import sys

import pytest

from auth.keys import fingerprints
from auth.keys.fingerprints import OtherKeys
from tests.conftest import secret
from tests.support.processes import CHECKOUT, Service

pytestmark = pytest.mark.selection
OTHER = secret("other")


@pytest.fixture
def other_keys(environment, parts, database):
    fingerprints.keep(parts.db, parts.settings)
    return environment | {"AUTH_SECRET_KEY": OTHER}


@pytest.fixture
def run():
    def run(environment, *arguments):
        command = [sys.executable, "-m", "auth.commands", *arguments]
        process_environment = {"PATH": os.environ["PATH"], "HOME": "/", **environment}
        return subprocess.run(
            command, cwd=CHECKOUT, env=process_environment, capture_output=True, text=True, check=False
        )

    return run


def test_service_with_another_key_does_not_start(other_keys, state_dir):
    changes = {name: value for name, value in other_keys.items() if name != "AUTH_STATE_DIR"}
    status, text = Service(state_dir, **changes).refuses_to_start()
    assert (status, text.count("\n")) == (1, 1)
    assert text.startswith("AUTH_SECRET_KEY: Is not what this database was last used with")
    assert f"{state_dir / 'secret_key'}" in text
    assert OTHER not in text


@pytest.mark.parametrize("arguments", [["deliver"], ["explain", "alice@example.com"]], ids=" ".join)
def test_command_with_another_key_does_not_run(other_keys, run, arguments):
    done = run(other_keys, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: AUTH_SECRET_KEY: Is not what this database was last used with")


def test_operator_accepts_new_keys_for_lost_ones(other_keys, run, parts):
    done = run(other_keys, "keys", "accept")
    assert (done.returncode, done.stdout) == (0, "The keys are accepted. Start the service.\n")
    fingerprints.keep(parts.db, dataclasses.replace(parts.settings, secret_key=(OTHER,)))
    with pytest.raises(OtherKeys):
        fingerprints.keep(parts.db, parts.settings)
