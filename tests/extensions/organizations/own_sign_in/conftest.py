"""The fixtures of an organization that sets up its sign-in, for all tests of this folder."""

import pytest

from tests.support.commands import run_command
from tests.support.own_providers import (
    browse,
    client,
    customers,
    names,
    on,
    press,
    provider,
    running_customers,
    service,
    sign_in,
    tried,
)

__all__ = [
    "browse", "client", "customers", "names", "on", "press", "provider", "running_customers", "service",
    "sign_in", "tried",
]  # fmt: skip


@pytest.fixture
def app(service):
    return service.app


@pytest.fixture
def id(acme):
    """The id of Acme."""
    return acme.rpartition("/")[2]


@pytest.fixture
def latchkey(app):
    """Run a command, and return its result, which must be a success."""

    def latchkey(*arguments, **options):
        result = run_command(app, *arguments, **options)
        assert result.exit_code == 0, result.output
        return result

    return latchkey


@pytest.fixture
def provider_identifier(provider, database):
    return database.value("SELECT identifier FROM identity_providers")
