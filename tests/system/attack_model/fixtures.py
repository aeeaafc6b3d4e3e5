"""The model of theft with a service to play on, for tests that load this module as a plugin."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import run_state_machine_as_test

from auth.web.context import EXTENSION
from tests.support.admin_keys import make_admin_key
from tests.support.customers import Customers, SsoService
from tests.support.devices import make_television
from tests.support.links import Outbox
from tests.support.oauth import ALLOW_LIST
from tests.system.attack_model.actors import Environment
from tests.system.attack_model.customers import MaliciousCustomer
from tests.system.attack_model.devices import SentCodes
from tests.system.attack_model.invariants import INVARIANTS
from tests.system.attack_model.members import Members
from tests.system.attack_model.model import EXAMPLES, Theft
from tests.system.attack_model.sign_ins import SignIns
from tests.system.attack_model.sign_ups import QUOTA, SignUps
from tests.system.attack_model.takeover import Takeover

pytest_plugins = ["tests.support.oauth_fixtures"]

# Limits on the requests of a network: the clock of the model does not move their counts.
_LIMITS_OF_REQUESTS = [
    f"AUTH_RATE_LIMIT_{name}" for name in ("SIGNUP", "RECOVER", "VERIFY", "LINKS", "WAITING")
]
# The limits that Takeover leaves to the tests of limits, so that only wrong passwords and codes count.
_LIMITS_OF_A_NETWORK = (
    *("SIGNUP", "LOGIN", "AUTHORIZE", "RECOVER", "MESSAGES", "MESSAGES_PER_RECIPIENT", "LINKS", "VERIFY"),
    *("REFRESH", "LOGOUT", "USER_CHANGES", "ADDRESS_CHANGES", "CLIENT_TOKENS", "API_KEYS"),
)
# A function that does not exist.
_FAILING_HOOK = "pg-functions://postgres/nowhere/hook"


def run(model: Any, seed: int, steps: int = 15, **members: Any) -> None:
    """Play the ten examples of a seed with a model, which gets these members."""
    machine: Any = type(model.__name__, (model,), members)
    profile = hypothesis.settings(
        max_examples=EXAMPLES,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=profile)


@pytest.fixture
def make_environment(make_service, fakes, database, service_role) -> Callable[..., Environment]:
    """Return a function that starts a service with settings for an owner and a thief."""

    def make(**changes: str) -> Environment:
        service = make_service(AUTH_TRUSTED_PROXIES="1", AUTH_LOG_LEVEL="error", **changes)
        outbox = Outbox(service.parts, database)
        return Environment(service.app, database, outbox, fakes, service_role)

    return make


@pytest.fixture
def play(make_environment) -> Callable[[int], None]:
    environment = make_environment(AUTH_ANONYMOUS_ENABLED="true", AUTH_API_KEYS="true")
    return lambda seed: run(Theft, seed, environment=environment)


@pytest.fixture
def play_sign_ups(make_environment) -> Callable[[int], None]:
    """Two sign-ups, with limits."""
    limits = dict.fromkeys(_LIMITS_OF_REQUESTS, "1000 per minute")
    limits["AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT"] = f"{QUOTA} per hour"
    environment = make_environment(AUTH_RATE_LIMITS_ENABLED="true", **limits)
    return lambda seed: run(SignUps, seed, environment=environment)


@pytest.fixture
def play_sent_codes(app, database, alice, bob) -> Callable[[int], None]:
    """A stranger and a victim with the code of a device."""
    members = {"app": app, "rows": database, "victim": alice, "stranger": bob}
    members["client"] = make_television(database)
    return lambda seed: run(SentCodes, seed, **members)


@pytest.fixture
def play_customers(make_app, database, service_role) -> Iterator[Callable[[int], None]]:
    """A malicious customer, with a provider and a domain."""
    app = make_app(AUTH_SSO="true", AUTH_API_KEYS="true", AUTH_LOG_LEVEL="error", **ALLOW_LIST)
    with Customers() as customers:
        members = {"sso": SsoService(app, service_role), "rows": database}
        members |= {"acme": customers.acme, "evil": customers.globex}
        yield lambda seed: run(MaliciousCustomer, seed, **members)


@pytest.fixture
def play_members(make_app, database, service_role) -> Callable[[int], None]:
    """Members of organizations, an administrator, and the holder of an operator's key."""
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_LOG_LEVEL="error")
    members = {"app": app, "rows": database, "service_role": service_role}
    members["make_key"] = partial(make_admin_key, app.extensions[EXTENSION])
    return lambda seed: run(Members, seed, steps=30, **members)


@pytest.fixture
def play_sign_ins(app, client, database, outbox, service_role) -> Callable[[int], None]:
    """An owner who travels, and thieves with the password."""
    members = {"app": app, "client": client, "outbox": outbox, "service_role": service_role}
    return lambda seed: run(SignIns, seed, steps=12, **members)


@pytest.fixture
def play_takeover(make_environment) -> Callable[..., None]:
    """Play the ten examples of a seed, and assert these invariants or all: `play_takeover(1, "additions")`."""
    changes = {f"AUTH_RATE_LIMIT_{name}": "100000 per minute" for name in _LIMITS_OF_A_NETWORK}
    changes |= {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_API_KEYS": "true"}
    # Strangers from many networks use this limit up.
    changes["AUTH_RATE_LIMIT_ACCOUNT_FAILURES"] = "20 per day"
    levels = {
        level: make_environment(AUTH_MFA_REQUIRED=level, **changes) for level in ("none", "admins", "all")
    }
    members = {
        "environment": levels["none"],
        "applications": {level: environment.app for level, environment in levels.items()},
        "failing_hook": make_environment(AUTH_HOOK_CUSTOM_ACCESS_TOKEN=_FAILING_HOOK, **changes).app,
    }

    def play(seed: int, *invariants: str, model: type[Takeover] = Takeover) -> None:
        run(model, seed, steps=12, asserted=invariants or tuple(INVARIANTS), **members)

    return play
