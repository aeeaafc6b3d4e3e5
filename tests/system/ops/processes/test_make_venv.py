"""make_venv.py, which `make` runs with the Python of the user."""

import configparser
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import make_venv
from tests.support import promised_wheels
from tests.support.cases import cases
from tests.support.processes import CHECKOUT

# Runs make_venv.py as another Python or machine would.
RUN_ON_MACHINE = """
import json, os, platform, runpy, sys
machine = json.loads(sys.argv.pop())
sys.version_info = (*machine["python"], 0, "final", 0)
platform.system, platform.machine = lambda: machine["system"], lambda: machine["machine"]
def confstr(name):
    if machine["libc"] is None:  # musl: Python knows the name, and confstr does not
        raise OSError(22, "Invalid argument")
    return machine["libc"]
os.confstr = confstr
runpy.run_path("make_venv.py", run_name="__main__")
"""
SUPPORTED_MACHINE = {"python": [3, 11], "system": "Linux", "machine": "x86_64", "libc": "glibc 2.28"}
MAC = {"system": "Darwin", "machine": "arm64", "libc": None}
PYTHON = f"{sys.executable} is"
# A build backend for an installation in place. It has no requirements, which pip would download.
BACKEND = """
from zipfile import ZipFile
def build_editable(folder, config_settings=None, metadata_directory=None):
    with ZipFile(f"{folder}/latchkey-1.0-py3-none-any.whl", "w") as wheel:
        about = "latchkey-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\\nName: latchkey\\nVersion: 1.0\\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{about}/RECORD", "")
    return "latchkey-1.0-py3-none-any.whl"
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """A checkout with one dependency, a local wheel."""
    shutil.copy(CHECKOUT / "make_venv.py", tmp_path)
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n    ./dependency-1.0-py3-none-any.whl\n"
    )
    build = 'requires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (tmp_path / "pyproject.toml").write_text(f"[build-system]\n{build}")
    (tmp_path / "backend.py").write_text(BACKEND)
    with ZipFile(tmp_path / "dependency-1.0-py3-none-any.whl", "w") as wheel:
        about = "dependency-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: dependency\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return tmp_path


def run(folder, *arguments, **environment):
    command = [sys.executable, *arguments]
    variables = os.environ | environment
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@cases(
    ("machine", "line"),
    [
        ({"python": [3, 15]}, f"Latchkey needs Python 3.11 to 3.14 on Linux; {PYTHON} 3.15."),
        (MAC, f"Latchkey needs Python 3.12 to 3.14 on macOS; {PYTHON} 3.11."),
        (
            MAC | {"machine": "x86_64", "python": [3, 13]},
            "Latchkey runs on Linux (x86_64, aarch64) and macOS (Apple silicon), not on macOS (x86_64).",
        ),
        ({"libc": None}, "Latchkey needs Linux with glibc, which this one lacks (Alpine has musl)."),
        ({"libc": "glibc 2.17"}, "Latchkey needs Linux with glibc 2.28 or later; this one has 2.17."),
    ],
)
def test_machine_without_wheels_is_refused_in_one_line_before_anything_is_installed(folder, machine, line):
    result = run(folder, "-c", RUN_ON_MACHINE, json.dumps(SUPPORTED_MACHINE | machine))
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith(f"{line} ")
    assert not (folder / ".venv").exists()


def test_packages_are_installed_whatever_pip_is_configured_to_do(folder):
    (folder / "pip.conf").write_text("[install]\nuser = true\n")
    configuration = {"PIP_USER": "1", "PIP_CONFIG_FILE": str(folder / "pip.conf")}
    result = run(folder, "make_venv.py", **configuration)
    assert (result.returncode, result.stderr) == (0, "")
    names = {path.name for path in folder.glob(".venv/lib/python3*/site-packages/*.dist-info")}
    assert {"dependency-1.0.dist-info", "latchkey-1.0.dist-info"} <= names


def test_environment_of_another_checkout_stays_as_it_is_when_dotvenv_is_a_link_to_it(
    folder, tmp_path_factory
):
    other_environment = tmp_path_factory.mktemp("other")
    (other_environment / "kept").touch()
    (folder / ".venv").symlink_to(other_environment)
    result = run(folder, "make_venv.py")
    assert (result.returncode, result.stderr) == (0, "")
    assert [path.name for path in other_environment.iterdir()] == ["kept"]
    assert not (folder / ".venv").is_symlink()


def test_port_in_use_is_reported_before_anything_is_installed(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        results = [run(folder, "make_venv.py", "--serves", PORT=str(port))]
        (folder / ".env").write_text(f"AUTH_PAGES=true\nexport PORT = '{port}'  # another\n")
        results.append(run(folder, "make_venv.py", "--serves"))
        line = f"Port {port} is in use. Use another one: PORT={port + 1} make run\n"
        assert [(result.returncode, result.stdout, result.stderr) for result in results] == [
            (1, "", line)
        ] * 2
        assert not (folder / ".venv").exists()
        # The tests need no port.
        assert run(folder, "make_venv.py").returncode == 0
    assert run(folder, "make_venv.py", "--serves").returncode == 0


def test_wheels_are_asked_for_on_each_machine_that_make_venv_accepts():
    assert promised_wheels.TAGS.keys() == make_venv.OLDEST.keys()


def test_wheel_and_documents_name_the_pythons_that_make_venv_accepts():
    configuration = configparser.ConfigParser()
    configuration.read(CHECKOUT / "setup.cfg")
    oldest, newest = min(make_venv.OLDEST.values()), make_venv.NEWEST
    assert configuration["options"]["python_requires"] == f">=3.{oldest},<3.{newest + 1}"
    for system, name in [("Linux", "x86_64"), ("macOS", "arm64")]:
        pythons = f"3.{make_venv.OLDEST[system, name]} to 3.{newest}"
        for document in ("README.md", "docs/deployment.md"):
            assert pythons in (CHECKOUT / document).read_text(), (document, pythons)
