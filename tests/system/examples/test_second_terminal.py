"""Each "second terminal" of the documents, in the state that its page has reached: `.env` and a service that runs."""

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.support import guides
from tests.support.processes import CHECKOUT, Service, wait_until
from tests.support.terminals import Terminal, beside_a_service
from tests.support.users import PASSWORD
from tests.system.test_guide import blocks_of

_SECOND = re.compile(r"(second|another) terminal")
ALICE = {"email": "alice@example.com", "password": PASSWORD}


def halves(page: str) -> tuple[str, str]:
    """Return a page up to its second terminal, and the rest."""
    text = (CHECKOUT / page).read_text()
    place = next(_SECOND.finditer(text)).start()
    return text[:place], text[place:]


def settings(page: str) -> list[str]:
    """Return the lines that a page puts into `.env` before its second terminal."""
    lines = (line for _, block in blocks_of(halves(page)[0]) for line in block.splitlines())
    return [line for line in lines if line.startswith("AUTH_")]


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


def scripts(page: str) -> list[str]:
    return [block for _, block in blocks_of(halves(page)[1])]


PAGES = {
    "docs/webhooks.md": webhooks,
    "docs/pages.md": pages,
    "docs/messages.md": inbox,
    "docs/monitoring.md": metrics,
    "examples/README.md": supabase_js,
}


def test_every_page_with_a_second_terminal_is_played():
    paths = [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md"), *(CHECKOUT / "examples").glob("*.md")]
    pages_with_one = {
        path.relative_to(CHECKOUT).as_posix()
        for path in paths
        if path.name not in guides.PAGES and _SECOND.search(path.read_text())
    }
    assert pages_with_one == PAGES.keys()


@pytest.mark.parametrize("page", PAGES)
def test_second_terminal_of_a_page_acts_on_the_service_of_the_first(terminals, page):
    terminal, service = terminals(page)
    PAGES[page](terminal, service, scripts(page))
