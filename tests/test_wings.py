"""Wings that are off are not imported."""

import base64
import subprocess
import sys

import pytest

from auth.wings import WINGS

_LIST = """
import sys
from app import create_app
from auth.core import settings
create_app(settings.load())
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("auth.")}))
"""


@pytest.fixture
def imported(environment):
    """Return a function that starts the application, and returns the parts of auth/ that it has imported."""

    def start(**settings: str) -> set[str]:
        command = [sys.executable, "-c", _LIST]
        output = subprocess.run(
            command, env=environment | settings, check=True, capture_output=True, text=True
        )
        return {*output.stdout.split()}

    return start


def test_wing_that_is_off_is_not_imported(imported):
    assert imported(AUTH_PAGES="false", AUTH_CONSOLE="false") & WINGS.keys() == {
        "social",
        "webhooks",
        "openid",
        "api_keys",
        "docs",
    }


def test_wing_that_is_on_is_imported(imported):
    secret = "v1,whsec_" + base64.b64encode(bytes(32)).decode()
    hook = {"AUTH_HOOK_SEND_EMAIL": "http://localhost/hook", "AUTH_HOOK_SEND_EMAIL_SECRETS": secret}
    assert imported(AUTH_CONSOLE="true", **hook) & WINGS.keys() == WINGS.keys()
