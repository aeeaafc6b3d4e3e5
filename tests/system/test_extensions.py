"""Extensions that are off are not imported."""

import os
import subprocess
import sys

import pytest

from auth.registry import EXTENSIONS
from tests.support.extensions import EVERY_EXTENSION, EXTENSIONS_OFF
from tests.support.processes import CHECKOUT

PACKAGES = {f"extensions.{name}" for name in EXTENSIONS}
_APPLICATION = "from app import create_app; create_app(settings.load())"
_DELIVERY = "import auth.delivery.__main__"
# Packages that only disabled extensions or /docs need.
_LIBRARIES = {"yaml", "markdown_it", "dns"}
# Quick tests of the specification's service.
_ALONE = (
    "tests/alone.py",
    "tests/core/tokens/test_refresh_tokens.py",
    "tests/extensions/social/test_anonymous_linking.py",
    "tests/extensions/social/test_oauth_linking.py",
    "tests/flows/account/test_first_address.py",
    "tests/flows/account/test_signup_domains.py",
    "tests/flows/admin/test_last_administrator.py",
)


@pytest.fixture
def modules(environment):
    """Return a function that runs a program with settings, and returns the modules that it imports, without
    the prefix `auth.`.
    """

    def run(program: str, **settings: str) -> set[str]:
        code = f"import sys; from auth.core import settings; {program}; print(*sys.modules)"
        command = [sys.executable, "-c", code]
        output = subprocess.check_output(command, env=environment | settings, text=True)
        return {name.removeprefix("auth.") for name in output.split()}

    return run


def test_extension_that_is_off_is_not_imported(modules):
    imported = modules(_APPLICATION, **EXTENSIONS_OFF)
    assert imported & PACKAGES == {f"extensions.{name}" for name in ("social", "webhooks", "docs")}
    assert imported & {*_LIBRARIES, "extensions.docs.rendered"} == set()


def test_delivery_without_domains_imports_no_dnspython(modules):
    assert "dns" not in modules(_DELIVERY)


def test_social_and_webhooks_alone_are_the_service_of_the_specification(new_database):
    """It runs in its own process, because this one has imported all extensions."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["TEST_EXTENSIONS"] = "none"
    environment.pop("TEST_SHUFFLE", None)  # alone.py is first: the others import other extensions
    if "TEST_DATABASE_URL" in environment:
        environment["TEST_DATABASE_URL"] = new_database()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *_ALONE]
    command += ["-k", "not page"]
    run = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:]


def test_extension_that_is_on_is_imported(modules):
    assert modules(_APPLICATION, **EVERY_EXTENSION) & PACKAGES == PACKAGES
