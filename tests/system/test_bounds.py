"""A test outside tests/system that starts a program or takes long fails, and says where it belongs."""

import subprocess
import sys

import pytest

from tests.support.processes import CHECKOUT

# The helper of a test: `start`.
WAYS = {
    "subprocess": "import subprocess\n\ndef start(): subprocess.run(['true'], check=True)\n",
    "fork": "import os\n\ndef start():\n    if not os.fork(): os._exit(0)\n    os.wait()\n",
    "processor time": "import time\nfrom tests.support import bounds\nbounds.SECONDS = 0.2\n\ndef start():\n"
    "    end = time.process_time() + 0.3\n    while time.process_time() < end: pass\n",
}
TEST = "from helper import start\n\ndef test_it(): start()\n"


@pytest.fixture
def play(tmp_path):
    """Return a function that runs a test in a folder with its helper, and returns what pytest prints."""

    def play(helper: str, text: str, path: str = "tests/web/test_it.py") -> str:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "helper.py").write_text(helper)
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
        command = [sys.executable, "-m", "pytest", "-q"]
        command += ["-p", "tests.support.bounds", "-p", "no:cacheprovider"]
        environment = {"PYTHONPATH": f"{CHECKOUT}:{tmp_path}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "check": False}
        return subprocess.run([*command, path], **options).stdout

    return play


@pytest.mark.parametrize("way", WAYS)
def test_test_that_starts_a_program_or_takes_long_fails_and_names_its_folder(play, way):
    output = play(WAYS[way], TEST)
    assert "1 failed" in output
    assert "tests/web/test_it.py::test_it " in output
    assert "Move it to tests/system/web/test_it.py" in output


def test_test_of_the_system_may_start_programs(play):
    assert "1 passed" in play(WAYS["subprocess"], TEST, "tests/system/web/test_it.py")
