"""The command as a shell starts it."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.commands import start_process
from tests.support.processes import CHECKOUT, hangups


def test_output_or_directory_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    removed_directory = (
        f"cd {tmp_path}/gone && rmdir ../gone && exec {sys.executable} -m latchkey_auth doctor"
    )
    full_device = f"exec {sys.executable} -m latchkey_auth backup-key > /dev/full"
    beginning = "Error: The directory or the output of this command cannot be used"
    for script, reason in (
        (removed_directory, "No such file or directory. Change that, and run the command again."),
        (full_device, "No space left on device. Free space on its disk."),
    ):
        environment = {"PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"]}
        result = subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.splitlines()[-1] == f"{beginning}: {reason}"
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_signal_ends_a_command_without_output_and_with_its_status(tmp_path, number, status):
    os.mkfifo(tmp_path / "list")
    with hangups():
        process = start_process({"AUTH_STATE_DIR": str(tmp_path)}, "passwords", "build", tmp_path / "list")
    with (tmp_path / "list").open("w"):  # once the command has opened it
        process.send_signal(number)
        assert (process.communicate()[1], process.returncode) == ("", status)
