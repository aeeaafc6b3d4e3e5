"""The model of theft with a service to play on, for tests that load this module as a plugin."""

from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import run_state_machine_as_test

from tests.support.links import Outbox
from tests.theft.actors import Environment
from tests.theft.model import EXAMPLES, Theft

pytest_plugins = ["tests.support.oauth_fixtures"]


@pytest.fixture
def play(make_service, fakes, database, service_role) -> Callable[[int], None]:
    """Play the ten examples of a seed."""
    changes = {"AUTH_TRUSTED_PROXIES": "1", "AUTH_ANONYMOUS_ENABLED": "true", "AUTH_LOG_LEVEL": "error"}
    service = make_service(**changes)
    environment = Environment(service.app, database, Outbox(service.parts, database), fakes, service_role)
    settings = hypothesis.settings(
        max_examples=EXAMPLES,
        stateful_step_count=15,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    def play(seed: int) -> None:
        machine: Any = type("Theft", (Theft,), {"environment": environment})
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings)

    return play
