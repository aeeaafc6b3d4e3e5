"""Starts at a lower priority, as by `nice`, cron or a unit with `Nice=`. An ordinary process cannot raise it again."""

import os
import shutil
from pathlib import Path

import pytest

from auth.core.passwords.threads import NICENESS
from tests.support.processes import PATIENT_GUNICORN, children_of
from tests.support.users import WRONG_PASSWORD, sign_in

needs_nice = pytest.mark.skipif(
    not Path("/proc").is_dir() or shutil.which("setpriv") is None,
    reason="NOT TESTED: low priorities. They need Linux and setpriv (util-linux)",
)
# Takes the right to raise a priority away from root.
ORDINARY = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"] if os.geteuid() == 0 else []


def niceness_of_threads(pid: int) -> set[int]:
    # Field 19 of proc(5), after the name, which may contain spaces.
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return {int(thread.read_text().rpartition(")")[2].split()[16]) for thread in threads}


@needs_nice
@pytest.mark.parametrize("niceness", [0, 15, 19])
def test_users_sign_in_at_each_priority_at_which_the_service_starts(serve, alice, niceness):
    command = [*ORDINARY, "nice", "-n", str(niceness), *PATIENT_GUNICORN]
    with serve(command, AUTH_WORKERS="1") as (service, client):
        assert sign_in(client, alice.email, WRONG_PASSWORD).status_code == 401
        assert alice.try_to_sign_in(client=client).status_code == 200
        (worker,) = {*children_of(service.process.pid)} - {*service.delivery_processes()}
        assert niceness_of_threads(worker) == {niceness, max(niceness, NICENESS)}
