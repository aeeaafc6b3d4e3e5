"""How many connections a process takes: as many as it may have files open for, and a few less."""

import resource
import subprocess
import sys

import pytest

from tests.support.processes import CHECKOUT


@pytest.mark.parametrize(
    ("soft", "hard", "allowed", "soft_then"),
    [(300, 300, 100, 300), (300, 20_000, 10_000, 10_200), (300, 5_000, 4_800, 5_000), (15_000, 20_000, 10_000, 15_000), (100, 100, 1, 100)],
)
def test_the_limit_is_raised_as_far_as_the_system_lets_us(soft, hard, allowed, soft_then):
    _, ours = resource.getrlimit(resource.RLIMIT_NOFILE)
    if ours != resource.RLIM_INFINITY and ours < hard:
        pytest.skip(f"this system allows {ours} files at most; ulimit -n raises it")
    program = (
        "import resource; from auth import open_files;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}));"
        "print(open_files.allow(10_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(allowed), str(soft_then)]
