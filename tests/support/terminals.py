"""Terminals of a developer: shells in a folder, beside the service that another one runs with `make run`."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.processes import CHECKOUT, Service, free_port, short_directory

# The ports of the documents: of the service, another one, applications, MCP servers and the metrics.
PORTS = ("8000", "8001", "3000", "3001", "5000", "9000", "9100")
# Seconds in which a script ends.
_PATIENCE = 300
_OWN = {".git", ".venv", ".env", "var"}


class Terminal:
    """A shell in a folder, without a setting of the service in its environment.

    Tests run beside each other, so each has its own `ports`: scripts have them instead of those of the documents.
    """

    def __init__(self, directory: Path, ports: dict[str, str], commands: str) -> None:
        """`commands` is the folder of the command `latchkey`, which an installation has."""
        self.directory, self.ports, self._commands = directory, ports, commands

    @property
    def port(self) -> int:
        """Of the service."""
        return int(self.ports["8000"])

    def with_ports(self, text: str) -> str:
        """Replace the ports of the documents by those of this test, in one pass: a new one may contain another."""
        return re.sub(rf"\b({'|'.join(self.ports)})\b", lambda match: self.ports[match[0]], text)

    def at(self, folder: str | Path) -> "Terminal":
        """Return a terminal in a folder of this one's, or elsewhere."""
        return Terminal(self.directory / folder, self.ports, self._commands)

    def write(self, name: str, text: str) -> None:
        """Make a file of a guide."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.with_ports(text))

    @contextmanager
    def run(self, script: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """Run a script, which ends with the context. `env` has further variables."""
        environment = {
            "PATH": f"{self._commands}:{os.environ['PATH']}",
            "HOME": str(self.directory),
            **options.pop("env", {}),
        }
        pipes: Any = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
        }
        process = subprocess.Popen(
            ["bash", "-c", self.with_ports(script)],
            cwd=self.directory,
            env=environment,
            start_new_session=True,
            **pipes,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            if process.stdin and not process.stdin.closed:
                process.communicate(timeout=20)

    def finish(
        self, script: str, *, input: str = "", status: int = 0, env: Mapping[str, str] | None = None
    ) -> str:
        """Run a script to its end, and return its output."""
        with self.run(script, env=env or {}) as shell:
            output, _ = shell.communicate(input, timeout=_PATIENCE)
        assert shell.returncode == status, output
        return output


@contextmanager
def checkout() -> Iterator[Terminal]:
    """A terminal in the folder of a checkout, which has a `.env`, a `var` and ports of its own."""
    with short_directory() as directory:
        for entry in CHECKOUT.iterdir():
            if entry.name not in _OWN:
                (directory / entry.name).symlink_to(entry)
        programs, commands = directory / ".venv" / "bin", directory / ".commands"
        programs.mkdir(parents=True)
        commands.mkdir()
        for name in ("flask", "gunicorn", "python3"):
            (programs / name).symlink_to(Path(sys.executable).with_name(name))
        # Not the installed one, which runs the checkout in which it was installed.
        program = programs / "latchkey"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P {CHECKOUT}/latchkey_auth/__main__.py "$@"\n')
        program.chmod(0o700)
        (commands / "latchkey").symlink_to(program)
        yield Terminal(directory, {port: str(free_port()) for port in PORTS}, str(commands))


@contextmanager
def make_run(terminal: Terminal, **settings: str) -> Iterator[Service]:
    """Run `make run` in the folder of a terminal, with `settings` that no guide names, such as a short lifetime."""
    # It is installed already.
    fixed = {"PYTHON": "true", "AUTH_WORKERS": "1", "PORT": str(terminal.port)}
    state_dir = terminal.directory / "var"
    with Service(
        state_dir, command=["make", "run"], directory=terminal.directory, **fixed | settings
    ) as service:
        yield service


@contextmanager
def beside_a_service(lines: list[str], **settings: str) -> Iterator[tuple[Terminal, Service]]:
    """A terminal in the folder of a checkout, where `make run` runs with these lines in `.env`."""
    with checkout() as terminal:
        terminal.write(".env", "\n".join(lines))
        with make_run(terminal, **settings) as service:
            yield terminal, service
