"""Applications that sign users in here: their clients, their processes, and their users in Chromium."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.browser import Browser, fill
from tests.support.factors import App
from tests.support.processes import wait_until
from tests.support.users import PASSWORD, Person

# The delivery process notifies applications on this machine of ended sessions.
TELLS = {"AUTH_DELIVER": "true", "AUTH_WEBHOOK_PRIVATE_NETWORKS": "true"}
ENDS = ("sign-out", "ban", "removed application")

# Seconds until an application answers: a JVM on a busy machine.
_PATIENCE = 120


def create_client(site: Any, service_role: Mapping[str, str], **members: Any) -> dict[str, Any]:
    """Create a client as an administrator, and return it with its secret."""
    response = site.post("/admin/oauth/clients", json=members, headers=service_role)
    assert response.status_code == 201, response.data
    return response.json


def sign_in(page: Browser, person: Person, app: App | None = None, steps: int = 0) -> None:
    """Sign in on our pages by password, and by the code of an authenticator app if the person has one.

    The code is of this time step, or of `steps` later: each is accepted once.
    """
    page.wait(lambda: page.run("!!document.querySelector('[name=password]')"))
    fill(page, email=person.email, password=PASSWORD)
    page.click("Sign in")
    if app:
        page.wait_for("One more step")
        # A typed code submits itself.
        page.type(app.code(steps))


def allow(page: Browser, name: str) -> None:
    """Agree to what an application asks for on the page of consent."""
    page.wait(lambda: page.url.partition("?")[0].endswith("/oauth/consent") and name in page.text)
    page.click("Allow")


def end_session(end: str, site: Any, service_role: Mapping[str, str], person: Person) -> None:
    """End what applications have of a person in one of the ENDS."""
    if end == "ban":
        path, ban = f"/admin/users/{person.id}", {"ban_duration": "1h"}
        assert site.put(path, json=ban, headers=service_role).status_code == 200
        return
    session = person.open_session()
    if end == "sign-out":
        assert session.post("/logout?scope=global").status_code == 200
    else:
        for grant in session.get("/user/oauth/grants").json:
            removed = session.delete(f"/user/oauth/grants?client_id={grant['client']['id']}")
            assert removed.status_code in (200, 204)


@contextmanager
def running(
    command: Sequence[str], url: str, output: Path, directory: Path, **environment: str
) -> Iterator[httpx.Client]:
    """Run an application until the end of the context, and return a client of it, once it answers."""
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:

            def answers() -> bool:
                assert process.poll() is None, output.read_text()
                try:
                    return bool(client.get("/").status_code)
                except httpx.TransportError:
                    return False

            wait_until(answers, _PATIENCE)
            yield client
    finally:
        process.kill()
        process.wait()
