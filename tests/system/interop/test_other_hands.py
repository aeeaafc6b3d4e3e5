"""Spring Security signs a user in at the service, in Chromium, by password and second step."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.factors import set_up
from tests.support.processes import BRIEF_GUNICORN, free_port
from tests.support.relying_parties import TELLS, allow, create_client, end_session, running, sign_in

pytest_plugins = ["tests.support.browser_fixtures"]

PROJECT = Path(__file__).parent / "spring"


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    return BRIEF_GUNICORN


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return TELLS


@pytest.fixture
def application(site, origin, service_role, tmp_path) -> Iterator[str]:
    """The URL of a running application named Notes. It is on another host: cookies do not know ports."""
    if not shutil.which("mvn"):
        pytest.skip("NOT TESTED: the application in tests/system/interop/spring, which needs mvn")
    # The first build downloads dependencies.
    subprocess.run(["mvn", "--batch-mode", "--quiet", "package"], cwd=PROJECT, check=True)
    port = free_port()
    url = f"http://localhost:{port}"
    client = create_client(
        site,
        service_role,
        client_name="Notes",
        redirect_uris=[f"{url}/callback"],
        post_logout_redirect_uris=[f"{url}/"],
        backchannel_logout_uri=f"{url}/logout/connect/back-channel/latchkey",
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PORT": str(port),
        "LATCHKEY_URL": origin,
        "APPLICATION_URL": url,
        "CLIENT_ID": client["client_id"],
        "CLIENT_SECRET": client["client_secret"],
    }
    command = ["java", "-jar", "target/application.jar"]
    with running(command, f"http://127.0.0.1:{port}", tmp_path / "output", PROJECT, **environment):
        yield url


def test_user_signs_in_by_second_step_and_the_application_refreshes_until_the_session_ends(
    page, application, site, service_role, alice
):
    changes = {"app_metadata": {"groups": ["staff"]}}
    assert site.put(f"/admin/users/{alice.id}", json=changes, headers=service_role).status_code == 200
    app, _session = set_up(alice.open_session())
    page.open(f"{application}/me")
    sign_in(page, alice, app)
    allow(page, "Notes")
    page.wait_for('"sub"')
    claims = json.loads(page.text)
    assert (claims["sub"], claims["email"], claims["email_verified"]) == (alice.id, alice.email, True)
    assert (claims["acr"], "otp" in claims["amr"]) == ("aal2", True)
    page.open(f"{application}/refresh")
    assert json.loads(page.text) == {
        "is_new": True,
        "sub": alice.id,
        "email": alice.email,
        "groups": ["staff"],
    }
    end_session("sign-out", site, service_role, alice)
    page.wait(lambda: page.open(f"{application}/me") or not page.url.startswith(application))
