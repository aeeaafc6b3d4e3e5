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
    """Return a function that runs `make audit` with a fake pip-audit: it prints a finding about jinja2 2.10, which has a
    known vulnerability, and exits with a status for the lock.
    """
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


def test_audit_fails_if_pip_audit_does_not_find_a_known_vulnerability(audit, tmp_path):
    result = audit("No known vulnerabilities found", 0)
    assert (result.returncode, "NOTHING WAS AUDITED" in result.stdout) == (2, True)
    assert not (tmp_path / "asked").exists()


@cases(("status", "status_of_make"), [(0, 0), (1, 2)])
def test_audit_asks_about_each_package_of_the_lock_on_any_python(audit, tmp_path, status, status_of_make):
    assert audit(FINDS, status).returncode == status_of_make
    audited = pins((tmp_path / "asked").read_text())
    assert {name: pin.specifier for name, pin in audited.items()} == {
        name: pin.specifier for name, pin in LOCKED.items()
    }
    assert {pin.marker for pin in audited.values()} == {None}
