"""A container whose file systems are read-only, with and without a place for temporary files."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.environment import make_keys
from tests.support.processes import Service

READ_ONLY = (
    "mount --make-rprivate / && for place in / /tmp /var/tmp; do"
    " mount --bind $place $place && mount -o remount,ro,bind $place; done"
)
LINE = "TMPDIR: No directory of temporary files can be written. Mount a tmpfs at /tmp or /dev/shm.\n"


@pytest.fixture
def read_only(tmp_path, new_database, new_state_dir) -> Callable[..., Service]:
    """Make a service that a shell starts in file systems of its own, with its keys in the environment."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("NOTHING IS TESTED ON READ-ONLY FILE SYSTEMS: this user may not mount")
    make_keys(tmp_path)
    keys = {"AUTH_SECRET_KEY": "secret_key", "AUTH_JWT_KEYS": "jwt_keys.json"}
    keys |= {"AUTH_SERVICE_ROLE_KEY": "service_role_key"}
    environment = {name: (tmp_path / file).read_text().strip() for name, file in keys.items()}

    def make(command: str) -> Service:
        script = f"{READ_ONLY} && {command} && exec {sys.executable} -m gunicorn wsgi:app"
        shell = ["unshare", "--mount", "sh", "-c", script]
        return Service(new_state_dir, command=shell, DATABASE_URL=new_database(), **environment)

    return make


def test_service_with_its_keys_in_the_environment_writes_to_memory_alone(read_only):
    with read_only("! touch /tmp/x") as service:
        assert service.get("/health")[0] == 200
        assert "Traceback" not in service.text()


def test_start_without_a_place_for_temporary_files_says_what_to_mount(read_only):
    service = read_only("mount -t tmpfs -o ro tmpfs /dev/shm")
    assert service.refuses_to_start() == (1, LINE)
