"""Applications by other hands, unmodified: they sign a user in here, in Chromium, by password and second step."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.factors import set_up
from tests.support.processes import BRIEF_GUNICORN, free_port
from tests.support.relying_parties import TELLS, allow, create_client, end_session, running, sign_in
from tests.support.users import Person

pytest_plugins = ["tests.support.browser_fixtures"]

HERE = Path(__file__).parent
# By their program: a directory, a command that builds the application there, one that runs it, and where it is
# told of ended sessions. The first build downloads dependencies.
BUILDS = {
    "go": ("go", ["go", "build", "-o", "target/application", "./application"], ["target/application"], ""),
    "mvn": (
        "spring",
        ["mvn", "--batch-mode", "--quiet", "package"],
        ["java", "-jar", "target/application.jar"],
        "/logout/connect/back-channel/latchkey",
    ),
}


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    return BRIEF_GUNICORN


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return TELLS


@pytest.fixture(params=BUILDS)
def application(request, site, here, service_role, tmp_path) -> Iterator[str]:
    """The URL of a running application named Notes. It is on another host: cookies do not know ports."""
    if not shutil.which(request.param):
        pytest.skip(
            f"NOT TESTED: the application in tests/system/interop/{BUILDS[request.param][0]}, which needs {request.param}"
        )
    directory, build, command, told_at = BUILDS[request.param]
    subprocess.run(build, cwd=HERE / directory, check=True)
    port = free_port()
    url = f"http://localhost:{port}"
    client = create_client(
        site,
        service_role,
        client_name="Notes",
        redirect_uris=[f"{url}/callback"],
        post_logout_redirect_uris=[f"{url}/"],
        backchannel_logout_uri=told_at and f"{url}{told_at}",
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PORT": str(port),
        "LATCHKEY_URL": here,
        "APPLICATION_URL": url,
        "CLIENT_ID": client["client_id"],
        "CLIENT_SECRET": client["client_secret"],
    }
    with running(command, f"http://127.0.0.1:{port}", tmp_path / "output", HERE / directory, **environment):
        yield url


@pytest.fixture
def put_into(site, service_role) -> Callable[..., None]:
    """Return a function that sets the groups of a person."""

    def put_into(person: Person, *groups: str) -> None:
        changes = {"app_metadata": {"groups": groups}}
        assert site.put(f"/admin/users/{person.id}", json=changes, headers=service_role).status_code == 200

    return put_into


def answer_of(page: Browser, url: str) -> Any:
    """Open a URL of an application, and return its JSON."""
    page.open(url)
    return json.loads(page.text)


def assert_out(page: Browser, application: str) -> None:
    """An application that was told has ended its session; another is refused new tokens."""

    def is_out() -> bool:
        page.open(f"{application}/refresh")
        return "invalid_grant" in page.text or not page.url.startswith(application)

    page.wait(is_out)


def test_user_signs_in_by_second_step_and_the_application_refreshes(page, application, put_into, alice):
    app, session = set_up(alice.open_session())
    put_into(alice, "staff")
    page.open(f"{application}/me")
    sign_in(page, alice, app)
    allow(page, "Notes")
    page.wait_for('"sub"')
    claims = json.loads(page.text)
    assert (claims["sub"], claims["email"], claims["email_verified"]) == (alice.id, alice.email, True)
    assert (claims["acr"], "otp" in claims["amr"]) == ("aal2", True)
    for _ in range(2):
        refreshed = answer_of(page, f"{application}/refresh")
        assert refreshed == {"is_new": True, "sub": alice.id, "email": alice.email, "groups": ["staff"]}
    session.post("/logout?scope=global")
    assert_out(page, application)


@pytest.mark.parametrize("application", ["mvn"], indirect=True)
def test_application_ends_its_session_when_it_ends_here(page, application, site, service_role, alice):
    page.open(f"{application}/me")
    sign_in(page, alice)
    allow(page, "Notes")
    page.wait_for('"sub"')
    end_session("sign-out", site, service_role, alice)
    page.wait(lambda: page.open(f"{application}/me") or not page.url.startswith(application))
