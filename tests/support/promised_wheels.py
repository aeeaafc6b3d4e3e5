"""Ask pip's index for a wheel of every pin, for each machine and Python of make_venv.py: `make wheels`.

Nothing is downloaded but what describes the packages.
"""

import subprocess
import sys

import make_venv
from tests.support.processes import CHECKOUT

# The tags of wheels that a machine accepts. pip itself adds those of earlier releases of macOS.
_GLIBC = [f"manylinux_2_{minor}" for minor in range(make_venv.OLDEST_GLIBC[1], 4, -1)]
_GLIBC += ["manylinux2014", "manylinux2010", "manylinux1"]
TAGS = {
    ("Linux", "x86_64"): [f"{glibc}_x86_64" for glibc in _GLIBC],
    ("Linux", "aarch64"): [f"{glibc}_aarch64" for glibc in _GLIBC],
    ("macOS", "arm64"): ["macosx_14_0_arm64"],
}


def problem(machine: tuple[str, str], minor: int) -> str | None:
    """Return what pip says if a pin has no wheel for a machine and Python."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary", ":all:", "--no-deps", "--ignore-installed", "--target", "unused"]
    command += ["--implementation", "cp", "--python-version", f"3.{minor}", "-r", "constraints.txt"]
    command += [argument for tag in TAGS[machine] for argument in ("--platform", tag)]
    result = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return None if result.returncode == 0 else result.stderr.strip().splitlines()[-1]


def main() -> None:
    is_whole = True
    for machine, oldest in make_venv.OLDEST.items():
        for minor in range(oldest, make_venv.NEWEST + 1):
            missing = problem(machine, minor)
            is_whole = is_whole and missing is None
            print(f"{' '.join(machine)}, Python 3.{minor}: {missing or 'all wheels'}", flush=True)
    sys.exit(not is_whole)


if __name__ == "__main__":
    main()
