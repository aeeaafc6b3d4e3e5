"""examples/hooks, in its own process, called by the service."""

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.answers import assert_error
from tests.support.deliverers import deliver_due
from tests.support.processes import CHECKOUT, free_port
from tests.support.relying_parties import running
from tests.support.users import PASSWORD, session_of, sign_in

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HOOKS = ("before_user_created", "custom_access_token", "send_email")


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("example") / "output"


@pytest.fixture(scope="module")
def url(output) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "flask", "--app", "hook", "run", "--port", str(port)]
    environment = {"PATH": os.environ["PATH"], "HOOK_SECRET": SECRET}
    url = f"http://127.0.0.1:{port}"
    with running(command, url, output, CHECKOUT / "examples" / "hooks", **environment):
        yield url


def test_hooks_of_the_example_admit_users_add_a_claim_and_send_email(make_app, service_role, url, output):
    urls = {f"AUTH_HOOK_{hook.upper()}": f"{url}/{hook.replace('_', '-')}" for hook in HOOKS}
    app = make_app(**urls, **{f"{name}_SECRETS": SECRET for name in urls})
    client = app.test_client()
    stranger = {"email": "mallory@example.org", "password": PASSWORD}
    assert_error(client.post("/signup", json=stranger), 403, "hook_refused")
    user = client.post("/signup", json={"email": "alice@example.com", "password": PASSWORD}).json
    deliver_due(app.extensions["latchkey"])
    assert "To alice@example.com: Confirm your email address" in output.read_text()
    change = {"password": PASSWORD, "email_confirm": True, "app_metadata": {"department": "sales"}}
    client.put(f"/admin/users/{user['id']}", json=change, headers=service_role)
    session = session_of(client, sign_in(client, "alice@example.com"))
    assert session.claims["department"] == "sales"


@pytest.mark.parametrize("hook", HOOKS)
def test_request_without_a_signature_is_refused(url, hook):
    response = httpx.post(f"{url}/{hook.replace('_', '-')}", json={}, trust_env=False)
    assert response.status_code == 401
