"""`make audit` asks about each package."""

import shutil
import subprocess

import pytest

from tests.source.deploy.test_packages import LOCKED, pins
from tests.support.cases import cases
from tests.support.processes import CHECKOUT

FINDS = "jinja2 2.10 PYSEC-2019-217 2.10.1 CVE-2019-10906"


@pytest.fixture
def audit(tmp_path):
    """Return what runs `make audit` with a pip-audit that says one thing of jinja2 2.10, and another of the lock."""
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(CHECKOUT / name, tmp_path)
    program = tmp_path / ".venv" / "bin" / "pip-audit"
    program.parent.mkdir(parents=True)

    def run(of_jinja2: str, status: int) -> subprocess.CompletedProcess[str]:
        program.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *vulnerable*) echo {of_jinja2}; exit 1 ;; esac\n'
            f'while [ "$1" != --requirement ]; do shift; done; cp "$2" asked; exit {status}\n'
        )
        program.chmod(0o755)
        command = ["make", "audit", "PYTHON=true"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_audit_fails_where_nothing_knows_of_a_known_vulnerability(audit, tmp_path):
    done = audit("No known vulnerabilities found", 0)
    assert (done.returncode, "NOTHING WAS AUDITED" in done.stdout) == (2, True)
    assert not (tmp_path / "asked").exists()


@cases(("status", "expected"), [(0, 0), (1, 2)])
def test_audit_asks_about_each_package_of_the_lock_on_any_python(audit, tmp_path, status, expected):
    assert audit(FINDS, status).returncode == expected
    asked = pins((tmp_path / "asked").read_text())
    assert {name: pin.specifier for name, pin in asked.items()} == {
        name: pin.specifier for name, pin in LOCKED.items()
    }
    assert {pin.marker for pin in asked.values()} == {None}
