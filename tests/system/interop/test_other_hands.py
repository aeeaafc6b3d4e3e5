"""Applications by other hands, unmodified: they sign a user in here, in Chromium, by password and second step."""

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.browser import Browser
from tests.support.factors import set_up
from tests.support.processes import BRIEF_GUNICORN, free_port, wait_until
from tests.support.relying_parties import ENDS, TELLS, allow, create_client, end_session, running, sign_in
from tests.support.timeouts import BRIEF_ID_TOKEN_LIFETIME
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


def test_application_keeps_the_user_in_past_its_tokens_with_the_groups_of_now_until_a_ban(
    page, application, put_into, alice, database, site, service_role
):
    put_into(alice, "editors", "staff")
    database.run("UPDATE oauth_clients SET token_lifetime = 5")
    page.open(f"{application}/me")
    sign_in(page, alice)
    allow(page, "Notes")
    page.wait_for('"sub"')
    claims = json.loads(page.text)
    assert claims["groups"] == ["editors", "staff"]
    put_into(alice, "staff")
    expires_at = (
        datetime.fromisoformat(claims["exp"]).timestamp() if isinstance(claims["exp"], str) else claims["exp"]
    )
    wait_until(lambda: time.time() > expires_at + 1)
    assert answer_of(page, f"{application}/refresh")["groups"] == ["staff"]
    ban = {"ban_duration": "1h"}
    assert site.put(f"/admin/users/{alice.id}", json=ban, headers=service_role).status_code == 200
    assert_out(page, application)


def test_user_signs_out_at_the_application_and_here(page, application, here, alice):
    app, _session = set_up(alice.open_session())
    page.open(f"{application}/me")
    sign_in(page, alice, app)
    allow(page, "Notes")
    page.wait_for('"sub"')
    page.open(f"{application}/logout")
    page.wait_for("Signed out")
    assert page.url == f"{application}/"
    # Neither remembers the user.
    page.open(f"{application}/me")
    sign_in(page, alice, app, steps=1)
    page.wait_for('"sub"')


@pytest.mark.parametrize("application", ["mvn"], indirect=True)
@pytest.mark.parametrize("end", ENDS)
def test_application_ends_its_session_when_it_ends_here(page, application, site, service_role, alice, end):
    page.open(f"{application}/me")
    sign_in(page, alice)
    allow(page, "Notes")
    page.wait_for('"sub"')
    end_session(end, site, service_role, alice)
    page.wait(lambda: page.open(f"{application}/me") or not page.url.startswith(application))


def test_proxy_keeps_a_user_in_beyond_the_id_token_and_signs_out(
    page, site, here, service_role, put_into, alice, database, tmp_path
):
    if not shutil.which("go"):
        pytest.skip("NOT TESTED: oauth2-proxy, which needs go")
    program = "target/oauth2-proxy"
    build = ["go", "build", "-o", program, "github.com/oauth2-proxy/oauth2-proxy/v7"]
    subprocess.run(build, cwd=HERE / "oauth2_proxy", check=True)
    port = free_port()
    url = f"http://localhost:{port}"
    client = create_client(
        site,
        service_role,
        client_name="Wiki",
        redirect_uris=[f"{url}/oauth2/callback"],
        post_logout_redirect_uris=[f"{url}/"],
    )
    # As docs/openid.md says.
    command = [
        program,
        "--provider=oidc",
        f"--oidc-issuer-url={here}",
        f"--client-id={client['client_id']}",
        f"--client-secret={client['client_secret']}",
        "--email-domain=*",
        f"--redirect-url={url}/oauth2/callback",
        "--code-challenge-method=S256",
        "--scope=openid email profile groups",
        f"--cookie-secret={secrets.token_hex(16)}",
        "--upstream=static://200",
        # For these tests. It refreshes at most once a second.
        f"--http-address=127.0.0.1:{port}",
        "--cookie-secure=false",
        "--cookie-refresh=1ms",
        "--skip-provider-button",
        f"--whitelist-domain={urlsplit(here).netloc}",
    ]

    put_into(alice, "editors", "staff")
    app, session = set_up(alice.open_session())
    output = tmp_path / "output"
    with running(command, f"http://127.0.0.1:{port}", output, HERE / "oauth2_proxy"):
        page.open(f"{url}/")
        sign_in(page, alice, app)
        allow(page, "Wiki")
        page.wait_for("Authenticated")
        expired_at = time.monotonic() + BRIEF_ID_TOKEN_LIFETIME + 1
        seen = answer_of(page, f"{url}/oauth2/userinfo")
        assert (seen["email"], seen["groups"]) == (alice.email, ["editors", "staff"])
        put_into(alice, "staff")
        page.wait(lambda: answer_of(page, f"{url}/oauth2/userinfo")["groups"] == ["staff"])
        while time.monotonic() < expired_at:
            page.open(f"{url}/")
            assert "Authenticated" in page.text
            time.sleep(0.5)
        assert database.count("sessions", "grant_id IS NOT NULL AND counter > 1") == 1
        assert "Unable to refresh session" not in output.read_text()
        back = urlencode({"client_id": client["client_id"], "post_logout_redirect_uri": f"{url}/"})
        page.open(f"{url}/oauth2/sign_out?{urlencode({'rd': f'{here}/oauth/logout?{back}'})}")
        # It sends no ID token, so the page asks.
        page.wait_for("Wiki")
        page.click("Sign out")
        sign_in(page, alice, app, steps=1)
        page.wait_for("Authenticated")
        session.post("/logout?scope=global")
        # It lets the user in until the ID token expires, as docs/openid.md says.
        page.wait(lambda: page.open(f"{url}/") or "Unable to refresh session" in output.read_text())
        page.wait(lambda: page.open(f"{url}/") or "Authenticated" not in page.text)
