"""The units, as systemd reads them, and the wrapper for commands."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.source.deploy.test_units_and_containers import DEPLOY, UNITS
from tests.support.programs import find_program


class Wrapper:
    """deploy/latchkey, with programs in place of `id`, `sudo` and `systemd-run` that record their arguments and
    variables, because sudo and the journal log them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        record = 'printf "%s\\n" "${0##*/} $*" >> "$RECORD"; env >> "$RECORD"\n'
        programs = {
            "id": '[ "$1" = -u ] && echo ${IS_ROOT:-1000} || echo root',
            # sudo drops variables, as Debian configures it.
            "sudo": f'{record}unset LATCHKEY_ADMIN_PASSWORD\nIS_ROOT=0 SUDO_USER=ann exec "$@"',
            "systemd-run": f'{record}printf "%s\\n" "$@"\ncat > "$RECORD.input"\nexit ${{STATUS:-0}}',
        }
        for name, script in programs.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)

    def __call__(
        self, *arguments: str, status: int = 0, stdin: str = "", **variables: str
    ) -> tuple[str, str, str]:
        """Return the options of systemd-run, the arguments of `latchkey`, and its standard input."""
        environment = {"PATH": f"{self._folder}:{os.environ['PATH']}", "RECORD": str(self._folder / "record")}
        command = [str(DEPLOY / "latchkey"), *arguments]
        process = subprocess.run(
            command, env=environment | variables, input=stdin, capture_output=True, text=True, check=False
        )
        assert (process.returncode, process.stderr) == (status, "")
        options, program, arguments_of_latchkey = process.stdout.partition(
            "/opt/latchkey/current/bin/latchkey\n"
        )
        assert program
        return options, arguments_of_latchkey, (self._folder / "record.input").read_text()

    def record(self) -> str:
        return (self._folder / "record").read_text()


@pytest.fixture
def wrapper(tmp_path) -> Wrapper:
    return Wrapper(tmp_path)


@pytest.fixture
def units(tmp_path) -> Path:
    """The units, with the programs of this environment instead of those in /opt."""
    for path in [*DEPLOY.glob("latchkey*.service"), *DEPLOY.glob("latchkey*.timer")]:
        text = re.sub(r"/opt/latchkey/current/bin/\w+", "/bin/true", path.read_text())
        (tmp_path / path.name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", [*UNITS, "latchkey-backup.timer"])
def test_unit_passes_systemd_analyze(units, name):
    program = find_program("systemd-analyze", "systemd", "THE SYSTEMD UNITS ARE NOT TESTED")
    environment = {"PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": f"{units}:"}
    process = subprocess.run(
        [program, "verify", "--man=no", units / name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in process.stderr.splitlines() if "latchkey" in line]
    assert (process.returncode, lines) == (0, []), process.stderr


@pytest.mark.parametrize("name", UNITS)
def test_unit_is_confined(units, name):
    program = find_program("systemd-analyze", "systemd", "THE SYSTEMD UNITS ARE NOT TESTED")
    command = [program, "security", "--offline=true", "--threshold=20", units / name]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout[-300:] + process.stderr


def test_wrapper_runs_commands_as_the_unit_does(wrapper):
    options, arguments, _ = wrapper("users", "find", "1$HOME %n 2")
    assert arguments == "users\nfind\n1$$HOME %n 2\n"
    # The journal shows the description instead of the command line.
    assert {"--pipe", "--setenv=SUDO_USER=ann", "--description=latchkey"} <= set(options.split())
    unit = (DEPLOY / "latchkey.service").read_text()
    names = "User|Group|WorkingDirectory|EnvironmentFile|Environment|StateDirectory|StateDirectoryMode"
    expected = re.findall(rf"^(?:{names})=.+$", unit, re.M)
    assert re.findall(r"^--property=(.+)$", options, re.M) == expected


PASSWORD = 'Correct $HOME "Horse" %n 1\\'


@pytest.mark.parametrize("variables", [{}, {"IS_ROOT": "0"}], ids=["user", "root"])
def test_password_reaches_the_command_by_a_pipe_alone(wrapper, variables):
    _, arguments, stdin = wrapper(
        "create-admin", "ada@example.com", LATCHKEY_ADMIN_PASSWORD=PASSWORD, **variables
    )
    assert (arguments, stdin) == ("create-admin\nada@example.com\n", f"{PASSWORD}\n")
    assert "systemd-run " in wrapper.record()
    assert PASSWORD not in wrapper.record()
    assert "LATCHKEY_ADMIN_PASSWORD" not in wrapper.record()


def test_wrapper_leaves_the_standard_input_of_commands_alone(wrapper):
    options = {"stdin": "given\n", "LATCHKEY_ADMIN_PASSWORD": PASSWORD}
    assert wrapper("keys", "add", "secret", "-", **options)[2] == "given\n"
    assert wrapper("create-admin", "ada@example.com", stdin="given\n")[2] == "given\n"


def test_wrapper_exits_as_the_command_does(wrapper):
    wrapper("create-admin", "ada@example.com", status=3, STATUS="3", LATCHKEY_ADMIN_PASSWORD=PASSWORD)
