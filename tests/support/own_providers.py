"""Organisations that set up their sign-in: a service with a name server of ours and two OpenID providers."""

from collections.abc import Iterator
from typing import Any

import dns.resolver
import pytest

from tests.support.customers import Customer, Customers
from tests.support.dns_server import DnsServer
from tests.support.oauth import ALLOW_LIST, Service
from tests.support.users import PASSWORD, Session


class SignIn:
    """The sign-in of an organisation, in the hands of its owner."""

    def __init__(self, owner: Session, path: str, names: DnsServer) -> None:
        self.owner, self.path, self.names = owner, path, names

    def name(self, domain: str) -> dict[str, str]:
        response = self.owner.post(f"{self.path}/domains", json={"domain": domain})
        assert response.status_code == 201, response.text
        return response.json

    def prove(self, domain: str) -> Any:
        """Set the record of a domain, and have it looked up."""
        record = self.name(domain)
        self.names.texts[record["name"]] = record["value"]
        return self.owner.post(f"{self.path}/domains/{domain}")

    def connect(self, customer: Customer, **changes: Any) -> Any:
        body = customer.body(**changes) | {"current_password": PASSWORD}
        body = {name: value for name, value in body.items() if name not in ("provider_type", "identifier")}
        return self.owner.post(f"{self.path}/providers", json=body)

    def change(self, id: str, session: Session | None = None, **changes: Any) -> Any:
        body = changes | {"current_password": PASSWORD}
        return (session or self.owner).put(f"{self.path}/providers/{id}", json=body)


@pytest.fixture(scope="session")
def running_customers() -> Iterator[Customers]:
    with Customers() as customers:
        yield customers


@pytest.fixture
def customers(running_customers: Customers) -> Customers:
    for customer in running_customers.all:
        customer.provider.reset()
        customer.domain = "example.com"
    return running_customers


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[DnsServer]:
    """The name server that the service asks."""
    with DnsServer({}) as server:
        monkeypatch.setattr(dns.resolver, "default_resolver", server.resolver)
        yield server


@pytest.fixture
def service(make_app: Any) -> Service:
    return Service(make_app(AUTH_ORGANIZATIONS="users", AUTH_SSO="true", AUTH_CONSOLE="true", **ALLOW_LIST))


@pytest.fixture
def client(service: Service) -> Any:
    return service.client


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let owners name issuers on loopback, where those of the tests are."""
    monkeypatch.setattr("auth.core.providers.customers.reaches_private_networks", lambda *_: True)


@pytest.fixture
def sign_in(owner: Session, acme: str, names: DnsServer, customers: Customers, near: None) -> SignIn:
    return SignIn(owner, acme, names)
