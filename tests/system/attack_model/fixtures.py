"""The model of theft with a service to play on, for tests that load this module as a plugin."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import run_state_machine_as_test

from tests.support.customers import Customers, SsoService
from tests.support.devices import make_television
from tests.support.links import Outbox
from tests.support.oauth import ALLOW_LIST
from tests.system.attack_model.actors import Environment
from tests.system.attack_model.customers import MaliciousCustomer
from tests.system.attack_model.devices import SentCodes
from tests.system.attack_model.invariants import INVARIANTS
from tests.system.attack_model.model import EXAMPLES, Theft
from tests.system.attack_model.sign_ins import SignIns
from tests.system.attack_model.sign_ups import QUOTA, SignUps
from tests.system.attack_model.takeover import Takeover

pytest_plugins = ["tests.support.oauth_fixtures"]

# Limits on the requests of a network, whose counts the model does not move.
_REQUESTS = [f"AUTH_RATE_LIMIT_{name}" for name in ("SIGNUP", "RECOVER", "VERIFY", "LINKS", "WAITING")]
# These and others, which Takeover leaves to the tests of limits: only wrong passwords and codes count.
_OF_A_NETWORK = (
    *("SIGNUP", "LOGIN", "AUTHORIZE", "RECOVER", "MESSAGES", "MESSAGES_PER_RECIPIENT", "LINKS", "VERIFY"),
    *("REFRESH", "LOGOUT", "USER_CHANGES", "ADDRESS_CHANGES", "CLIENT_TOKENS", "API_KEYS"),
)
# A function that does not exist.
_FAILING_HOOK = "pg-functions://postgres/nowhere/hook"


def settings(steps: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=EXAMPLES,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture
def play(play_model) -> Callable[[int], None]:
    """Play the ten examples of a seed."""
    return play_model(Theft, AUTH_ANONYMOUS_ENABLED="true", AUTH_API_KEYS="true")


@pytest.fixture
def play_sign_ups(play_model) -> Callable[[int], None]:
    """The same for two sign-ups, with limits."""
    limits = dict.fromkeys(_REQUESTS, "1000 per minute")
    limits["AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT"] = f"{QUOTA} per hour"
    return play_model(SignUps, AUTH_RATE_LIMITS_ENABLED="true", **limits)


@pytest.fixture
def play_sent_codes(app, database, alice, bob) -> Callable[[int], None]:
    """The same for a stranger and a victim with the code of a device."""
    members = {"app": app, "rows": database, "victim": alice, "stranger": bob}
    members["client"] = make_television(database)

    def play(seed: int) -> None:
        machine: Any = type(SentCodes.__name__, (SentCodes,), members)
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings(15))

    return play


@pytest.fixture
def play_customers(make_app, database, service_role) -> Iterator[Callable[[int], None]]:
    """The same for a malicious customer, with a provider and a domain."""
    app = make_app(AUTH_SSO="true", AUTH_API_KEYS="true", AUTH_LOG_LEVEL="error", **ALLOW_LIST)
    with Customers() as customers:
        members = {"sso": SsoService(app, service_role), "rows": database}
        members |= {"acme": customers.acme, "evil": customers.globex}

        def play(seed: int) -> None:
            machine: Any = type(MaliciousCustomer.__name__, (MaliciousCustomer,), members)
            run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings(15))

        yield play


@pytest.fixture
def play_sign_ins(app, client, database, outbox, service_role) -> Callable[[int], None]:
    """The same for an owner who travels, and thieves with the password."""
    members = {"app": app, "client": client, "outbox": outbox, "service_role": service_role}

    def play(seed: int) -> None:
        machine: Any = type(SignIns.__name__, (SignIns,), members)
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings(12))

    return play


@pytest.fixture
def play_takeover(make_service, fakes, database, service_role) -> Callable[..., None]:
    """Play the ten examples of a seed, and assert these invariants or all: `play_takeover(1, "additions")`."""
    limits = {f"AUTH_RATE_LIMIT_{name}": "100000 per minute" for name in _OF_A_NETWORK}
    changes = limits | {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_API_KEYS": "true"}
    # Some networks of strangers use it up.
    changes["AUTH_RATE_LIMIT_ACCOUNT_FAILURES"] = "20 per day"

    def make(**more: str) -> Any:
        return make_service(AUTH_TRUSTED_PROXIES="1", AUTH_LOG_LEVEL="error", **changes, **more)

    services = {level: make(AUTH_MFA_REQUIRED=level) for level in ("none", "admins", "all")}
    first = services["none"]
    environment = Environment(first.app, database, Outbox(first.parts, database), fakes, service_role)
    members = {
        "environment": environment,
        "applications": {level: service.app for level, service in services.items()},
        "failing_hook": make(AUTH_HOOK_CUSTOM_ACCESS_TOKEN=_FAILING_HOOK).app,
    }

    def play(seed: int, *invariants: str, model: type[Takeover] = Takeover) -> None:
        machine: Any = type(model.__name__, (model,), members | {"asserted": invariants or tuple(INVARIANTS)})
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings(12))

    return play


@pytest.fixture
def play_model(make_service, fakes, database, service_role) -> Callable[..., Callable[[int], None]]:
    return functools.partial(_player, make_service, fakes, database, service_role)


def _player(
    make_service: Any, fakes: Any, database: Any, service_role: Any, model: Any, **changes: str
) -> Callable[[int], None]:
    service = make_service(AUTH_TRUSTED_PROXIES="1", AUTH_LOG_LEVEL="error", **changes)
    environment = Environment(service.app, database, Outbox(service.parts, database), fakes, service_role)

    def play(seed: int) -> None:
        machine: Any = type(model.__name__, (model,), {"environment": environment})
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings(15))

    return play
