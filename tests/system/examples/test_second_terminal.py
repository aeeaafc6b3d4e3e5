"""Each "second terminal" of the documents, in the state that its page has reached: `.env` and a service that runs."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import CHECKOUT, Service, free_port, short_directory, wait_until
from tests.support.users import PASSWORD
from tests.system.test_guide import blocks_of

_SECOND = re.compile(r"(second|another) terminal")
ALICE = {"email": "alice@example.com", "password": PASSWORD}


class Terminal:
    """A shell in the folder of a checkout, without a setting of the service in its environment."""

    def __init__(self, directory: Path, ports: dict[str, str]) -> None:
        self.port, self._directory, self.ports = int(ports["8000"]), directory, ports

    def with_ports(self, text: str) -> str:
        """Replace the ports of the documents by those of this test, in one pass: a new one may contain another."""
        return re.sub("|".join(self.ports), lambda match: self.ports[match[0]], text)

    def scripts(self, page: str) -> list[str]:
        return [self.with_ports(block) for _, block in blocks_of(halves(page)[1])]

    @contextmanager
    def run(self, script: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._directory), **options.pop("env", {})}
        pipes: Any = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
        }
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=self._directory, env=environment, start_new_session=True, **pipes
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            if process.stdin and not process.stdin.closed:
                process.communicate(timeout=20)


def halves(page: str) -> tuple[str, str]:
    """Return a page up to its second terminal, and the rest."""
    text = (CHECKOUT / page).read_text()
    place = next(_SECOND.finditer(text)).start()
    return text[:place], text[place:]


def settings(page: str) -> list[str]:
    """Return the lines that a page puts into `.env` before its second terminal."""
    lines = (line for _, block in blocks_of(halves(page)[0]) for line in block.splitlines())
    return [line for line in lines if line.startswith("AUTH_")]


@contextmanager
def beside_a_service(lines: list[str], **settings: str) -> Iterator[tuple[Terminal, Service]]:
    """Start the service in the folder of a checkout, with these lines in `.env`."""
    with short_directory() as directory:
        for name in ("examples", "latchkey_auth", "auth"):
            (directory / name).symlink_to(CHECKOUT / name)
        (directory / ".venv" / "bin").mkdir(parents=True)
        for name in ("latchkey", "flask", "python3"):
            (directory / ".venv" / "bin" / name).symlink_to(Path(sys.executable).with_name(name))
        terminal = Terminal(directory, {port: str(free_port()) for port in ("8000", "3000", "9100")})
        (directory / ".env").write_text(terminal.with_ports("\n".join(lines)))
        fixed_settings = {"PORT": str(terminal.port), "PYTHONPATH": str(CHECKOUT), "AUTH_WORKERS": "1"}
        command = [sys.executable, "-m", "latchkey_auth", "serve"]
        with Service(
            directory / "var", command=command, directory=directory, **fixed_settings, **settings
        ) as service:
            yield terminal, service


@pytest.fixture(scope="module")
def terminals() -> Iterator[Callable[[str], tuple[Terminal, Service]]]:
    """A function that returns a page's second terminal and its service.

    Pages without settings share a service, and those with settings another, which has all of them.
    """
    with ExitStack() as stack:

        @functools.cache
        def start(has_settings: bool) -> tuple[Terminal, Service]:
            lines = [line for page in PAGES for line in settings(page)] if has_settings else []
            return stack.enter_context(beside_a_service(lines))

        yield lambda page: start(bool(settings(page)))


def serves(port: str) -> bool:
    try:
        return httpx.get(f"http://localhost:{port}/").status_code == 200
    except httpx.TransportError:
        return False


def quick_start(terminal: Terminal, service: Service, scripts: list[str]) -> None:
    *steps, create_admin = scripts
    with terminal.run("\n".join(steps)) as shell:
        assert shell.stdin
        (path,) = wait_until(
            lambda: set(re.findall(r"^http://localhost:\d+(/verify\S+)$", service.text(), re.M))
        )
        output, _ = shell.communicate(f"http://localhost:{terminal.port}{path}\n", timeout=60)
    assert re.findall(r"^(?:303|401, .*|Refresh:|Log out:)", output, re.M)[0] == "303"
    assert '"error_code": "session_not_found"' in output.replace('":"', '": "'), output
    with terminal.run(create_admin, env={"LATCHKEY_ADMIN_PASSWORD": PASSWORD}) as shell:
        output, _ = shell.communicate(timeout=60)
    assert f"Sign in to the console: http://localhost:{terminal.port}/console\n" in output


def webhooks(terminal: Terminal, service: Service, scripts: list[str]) -> None:
    command = scripts[0].splitlines()[0].removeprefix("$ ")
    with terminal.run(command) as shell:
        assert shell.stdout
        assert shell.stdout.readline().startswith("Listening. ")
        httpx.post(f"http://localhost:{terminal.port}/signup", json=ALICE | {"email": "bob@example.com"})
        assert "user.created  " in shell.stdout.readline()
    register = scripts[1].partition("\n{")[0].removeprefix("$ ")
    with terminal.run(register) as shell:
        assert json.loads(shell.communicate(timeout=60)[0])["secret"].startswith("whsec_")


def pages(terminal: Terminal, service: Service, scripts: list[str]) -> None:
    port = terminal.with_ports("3000")
    for script in scripts[:2]:
        with terminal.run(script):
            assert wait_until(lambda: serves(port))
        wait_until(lambda: not serves(port))


def supabase_js(terminal: Terminal, service: Service, scripts: list[str]) -> None:
    # The tests of this example install the package.
    script = re.sub("^npm .*\n", "", scripts[0], flags=re.M)
    with terminal.run(script):
        assert wait_until(lambda: serves(terminal.with_ports("3000")))


def inbox(terminal: Terminal, service: Service, scripts: list[str]) -> None:
    httpx.post(f"http://localhost:{terminal.port}/signup", json=ALICE)

    def messages() -> Any:
        with terminal.run(scripts[0]) as shell:
            return json.loads(shell.communicate(timeout=60)[0])

    (message,) = wait_until(messages)
    assert (message["kind"], message["recipient"]) == ("signup", ALICE["email"])


def metrics(terminal: Terminal, service: Service, scripts: list[str]) -> None:
    def text() -> str:
        with terminal.run(scripts[0]) as shell:
            return shell.communicate(timeout=60)[0]

    assert "latchkey_" in wait_until(text)


PAGES = {
    "docs/quick-start.md": quick_start,
    "docs/webhooks.md": webhooks,
    "docs/pages.md": pages,
    "docs/messages.md": inbox,
    "docs/monitoring.md": metrics,
    "examples/README.md": supabase_js,
}


def test_every_page_with_a_second_terminal_is_played():
    paths = [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md"), *(CHECKOUT / "examples").glob("*.md")]
    pages_with_one = {
        path.relative_to(CHECKOUT).as_posix() for path in paths if _SECOND.search(path.read_text())
    }
    assert pages_with_one == PAGES.keys()


@pytest.mark.parametrize("page", PAGES)
def test_second_terminal_of_a_page_acts_on_the_service_of_the_first(terminals, page):
    terminal, service = terminals(page)
    PAGES[page](terminal, service, terminal.scripts(page))
