from collections.abc import Iterator

import pytest

from tests.support.customers import Customer, Customers, SsoService
from tests.support.oauth import ALLOW_LIST


@pytest.fixture(scope="session")
def running_customers() -> Iterator[Customers]:
    with Customers() as customers:
        yield customers


@pytest.fixture
def customers(running_customers: Customers) -> Customers:
    for customer in running_customers.all:
        customer.provider.reset()
    return running_customers


@pytest.fixture
def sso(make_app, service_role, customers) -> SsoService:
    """The service, which knows both customers."""
    service = SsoService(
        make_app(AUTH_SSO="true", AUTH_CONSOLE="true", AUTH_API_KEYS="true", **ALLOW_LIST), service_role
    )
    for customer in customers.all:
        service.add(customer)
    return service


@pytest.fixture
def acme(customers: Customers) -> Customer:
    """A customer, at whose provider Alice is signed in."""
    customers.acme.be("1", "alice@acme.example")
    return customers.acme


@pytest.fixture
def globex(customers: Customers) -> Customer:
    return customers.globex
