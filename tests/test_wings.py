"""Wings that are off are not imported, and commands import no page."""

import base64
import subprocess
import sys

import pytest

from auth.wings import WINGS
from tests.support.wings import EVERY_WING

_APPLICATION = "from app import create_app; create_app(settings.load())"
_COMMAND = "from auth.web import audit, context; context.make_parts(settings.load(), audit.of_command)"
_SECRETS = "v1,whsec_" + base64.b64encode(bytes(32)).decode()


@pytest.fixture
def modules(environment):
    """Return a function that runs a program with settings, and returns the modules of auth/ that it imports."""

    def run(program: str, **settings: str) -> set[str]:
        code = f"import sys; from auth.core import settings; {program}; print(*sys.modules)"
        command = [sys.executable, "-c", code]
        output = subprocess.check_output(command, env=environment | settings, text=True)
        return {name.removeprefix("auth.") for name in output.split() if name.startswith("auth.")}

    return run


def test_wing_that_is_off_is_not_imported(modules):
    imported = modules(_APPLICATION, AUTH_PAGES="false", AUTH_CONSOLE="false", AUTH_OAUTH_SERVER="false")
    assert imported & WINGS.keys() == {"social", "webhooks", "docs"}


def test_wing_that_is_on_is_imported(modules):
    assert modules(_APPLICATION, **EVERY_WING) & WINGS.keys() == WINGS.keys()


def test_command_imports_the_hooks_but_no_page(modules):
    hook = "AUTH_HOOK_BEFORE_USER_CREATED"
    imported = modules(_COMMAND, **{hook: "http://localhost/hook", f"{hook}_SECRETS": _SECRETS})
    assert "hooks.before_user_created" in imported
    assert [
        name for name in imported if name.startswith(("web.html", "openid.", "api_keys.", "console."))
    ] == []


def test_wing_that_is_off_has_no_templates_and_no_files(make_app):
    on, off = make_app(AUTH_CONSOLE="true"), make_app(AUTH_PAGES="false")
    names = {"console/layout.html", "account.html", "page.html"}
    assert [names & {*app.jinja_env.list_templates()} for app in (on, off)] == [names, {"page.html"}]
    statuses = [app.test_client().get("/static/console.css").status_code for app in (on, off)]
    assert statuses == [200, 404]
