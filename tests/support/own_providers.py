"""Organizations that set up their sign-in: a service with a name server of ours and two OpenID providers."""

from collections.abc import Callable, Iterator
from typing import Any

import dns.resolver
import pytest

from tests.support.answers import Like
from tests.support.customers import Customer, Customers
from tests.support.dns_server import DnsServer
from tests.support.links import SITE
from tests.support.oauth import ALLOW_LIST, Service
from tests.support.pages import Visitor
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Session

DOMAIN, PATH = "example.com", "/account/organizations/acme"
ALICE = "alice@example.com"
A_REDIRECT_URI = Like("a redirect URI", rf"{SITE}/providers/[0-9a-f-]{{36}}/callback")


class SignIn:
    """The sign-in of an organization, in the hands of its owner."""

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
def sign_in(owner: Session, acme: str, names: DnsServer, customers: Customers) -> SignIn:
    return SignIn(owner, acme, names)


@pytest.fixture
def provider(sign_in: SignIn, customers: Customers) -> str:
    """The id of Acme's provider, which nobody has tested, and at which Alice is signed in."""
    assert sign_in.prove(DOMAIN).status_code == 200
    customers.acme.be("1", ALICE)
    response = sign_in.connect(customers.acme, member_role="member")
    assert response.status_code == 201, response.text
    id: str = response.json["id"]
    return id


def page_of_press(act: str, provider: str) -> str:
    """Return the path of the page with the button of an act on a provider, or of a move to it."""
    return "account/company" if act == "move" else f"{PATH[1:]}/sign-in/providers/{provider}/{act}"


@pytest.fixture
def browse(client: Any) -> Callable[[Any], Visitor]:
    return lambda person: Visitor(client.application).with_session_of(person)


@pytest.fixture
def press(browse: Callable[[Any], Visitor], provider: str) -> Callable[..., Visitor]:
    """Return a browser in which a person has pressed a button of the provider's, by default *Test sign-in*."""

    def press(person: Any, act: str = "test", visitor: Visitor | None = None) -> Visitor:
        visitor, path = visitor or browse(person), page_of_press(act, provider)
        visitor.visit(f"/{path}")
        visitor.press(path)
        return visitor

    return press


@pytest.fixture
def tried(press: Callable[..., Visitor], alice: Any) -> Visitor:
    """Alice's browser, which has tested the provider."""
    return press(alice)


@pytest.fixture
def on(tried: Visitor, press: Callable[..., Visitor], alice: Any, provider: str, database: Rows) -> Visitor:
    """The same browser, which has turned the provider on."""
    press(alice, "on", tried)
    assert database.value("SELECT is_on FROM identity_providers")
    return tried
