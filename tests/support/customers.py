"""Customers' providers in the tests: two customers, each with a provider and a domain."""

from contextlib import ExitStack
from typing import Any

from tests.support.fake_provider import FakeProvider, Request
from tests.support.oauth import Service

ACME, GLOBEX = "acme.example", "globex.example"


class Customer:
    """A customer with a provider, which the service knows as `custom:<name>`."""

    def __init__(self, name: str, domain: str) -> None:
        self.provider = FakeProvider(name)
        self.name, self.identifier, self.domain = name, f"custom:{name}", domain
        self.object: dict[str, Any] = {}

    def body(self, **changes: Any) -> dict[str, Any]:
        """Return the body that adds the provider."""
        return {
            "provider_type": "oidc",
            "identifier": self.identifier,
            "name": self.name.title(),
            "client_id": self.provider.client_id,
            "client_secret": self.provider.client_secret,
            "issuer": self.provider.url,
            "domains": [self.domain],
        } | changes

    def be(self, subject: str, email: Any = None, **claims: Any) -> None:
        """Set who is signed in at the provider."""
        self.provider.person = {"sub": subject, **({"email": email} if email else {}), **claims}

    def other_document(self, **members: Any) -> str:
        """Publish the provider's document at another path, too, with changed members, and return its URL."""
        path, metadata = "/other/openid-configuration", self.provider.metadata
        self.provider.metadata = metadata | members
        self.provider.instead[path] = self.provider.discovery(Request("GET", path, {}, {}))
        self.provider.metadata = metadata
        return f"{self.provider.url}{path}"

    @property
    def host(self) -> str:
        return self.provider.url.removeprefix("http://")

    @property
    def id(self) -> str:
        return self.object["id"]


class Customers:
    def __init__(self) -> None:
        self.acme, self.globex = Customer("acme-idp", ACME), Customer("globex-idp", GLOBEX)
        self.all = (self.acme, self.globex)

    def __enter__(self) -> "Customers":
        self._stack = ExitStack()
        for customer in self.all:
            self._stack.enter_context(customer.provider)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class SsoService(Service):
    """The service with customers' providers."""

    def __init__(self, app: Any, service_role: dict[str, str]) -> None:
        super().__init__(app)
        self.service_role = service_role

    def admin(self, method: str, path: str = "", **body: Any) -> Any:
        options: dict[str, Any] = {"json": body} if body else {}
        url = f"/admin/custom-providers{path}"
        return self.client.open(url, method=method, headers=self.service_role, **options)

    def add(self, customer: Customer, **changes: Any) -> dict[str, Any]:
        response = self.admin("POST", **customer.body(**changes))
        assert response.status_code == 201, response.text
        customer.object = response.json
        return response.json

    def change(self, customer: Customer, **changes: Any) -> Any:
        return self.admin("PUT", f"/{customer.identifier}", **changes)

    def delete(self, customer: Customer) -> None:
        response = self.admin("DELETE", f"/{customer.identifier}")
        assert (response.status_code, response.data) == (204, b"")
