"""Days with the service, in Chromium: Nimbus, whose users sign in here, and Acme, a company that is its customer.

Nimbus is a service with organizations and single sign-on, and an application that signs in with it. Acme's OpenID
provider is a second service, at a host of its own, with accounts of its own. Each module has its own four programs,
and nobody has an account at Nimbus.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Browser, fill
from tests.support.databases import new_databases
from tests.support.day_application import Application
from tests.support.dns_server import DnsServer
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.processes import GUNICORN, PATIENT_GUNICORN, free_port
from tests.support.relying_parties import create_client
from tests.support.server import ServerClient

AUTHORIZATION = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}
PASSWORD = "Correct-Horse-Battery-1"
COMPANY_HOST = "login.acme.localhost"


class Company:
    """Acme, with the domain acme.example, an OpenID provider, and the accounts of its employees there."""

    def __init__(self, issuer: str, client: ServerClient, names: DnsServer) -> None:
        self.issuer, self.client, self.names = issuer, client, names
        self.host = issuer.removeprefix("http://")

    def hire(self, *emails: str, **members: Any) -> None:
        """Give people accounts at the provider, with the password `PASSWORD`."""
        for email in emails:
            body = {"email": email, "password": PASSWORD, "email_confirm": True} | members
            response = self.client.post("/admin/users", json=body, headers=AUTHORIZATION)
            assert response.status_code in (200, 201), response.data

    def dismiss_all(self) -> None:
        """Delete all accounts at the provider."""
        for user in self.client.get("/admin/users", headers=AUTHORIZATION).json["data"]:
            assert self.client.delete(f"/admin/users/{user['id']}", headers=AUTHORIZATION).status_code == 200

    def register(self, redirect_uri: str, name: str = "Nimbus") -> dict[str, Any]:
        """Register Nimbus at the provider, and return the client with its secret."""
        return create_client(self.client, AUTHORIZATION, client_name=name, redirect_uris=[redirect_uri])

    def sign_in(self, page: Browser, email: str) -> None:
        """Sign in on the provider's page, and allow Nimbus the account for the first time."""
        page.wait(lambda: page.url.startswith(f"{self.issuer}/sign-in"))
        fill(page, email=email, password=PASSWORD)
        page.click("Sign in")
        page.wait(lambda: page.url.startswith(f"{self.issuer}/oauth/consent"))
        page.click("Allow")

    def publish(self, name: str, value: str) -> None:
        """Set a TXT record."""
        self.names.texts[name] = value


@pytest.fixture(scope="module")
def names() -> Iterator[DnsServer]:
    """The name server that Nimbus asks. It knows the host of Acme's provider."""
    with DnsServer({}) as server:
        server.addresses[COMPANY_HOST] = "127.0.0.1"
        yield server


@pytest.fixture(scope="module")
def application_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str], names: DnsServer, application_port: int) -> dict[str, str]:
    return {
        **mailing,
        "AUTH_BRAND_NAME": "Nimbus",
        "AUTH_SITE_URL": f"http://localhost:{application_port}",
        "AUTH_ORGANIZATIONS": "users",
        "AUTH_SSO": "true",
        "OWN_NAMES_PORT": str(names.resolver.port),
    }


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    return [sys.executable, *GUNICORN, "--config", "tests/support/own_providers.conf.py"]


@pytest.fixture(scope="module")
def running_company(serve: Any, all_rows: Any, database_url: str, names: DnsServer) -> Iterator[Company]:
    port = free_port()
    issuer = f"http://{COMPANY_HOST}:{port}"
    with new_databases(all_rows, database_url) as make:
        changes = {"DATABASE_URL": make(), "PORT": str(port), "AUTH_BASE_URL": issuer, "AUTH_WORKERS": "1"}
        with serve(PATIENT_GUNICORN, **changes, AUTH_BRAND_NAME="Acme Login") as (_, client):
            yield Company(issuer, client, names)


@pytest.fixture
def company(running_company: Company) -> Iterator[Company]:
    yield running_company
    running_company.names.texts.clear()
    running_company.dismiss_all()


@pytest.fixture
def nimbus(site: ServerClient, origin: str, application_port: int) -> Iterator[Application]:
    """The application, which nobody has opened yet."""
    application = Application(origin, application_port)
    with application.use(create_client(site, AUTHORIZATION, **application.registration())):
        yield application


@pytest.fixture
def connected(site: ServerClient, company: Company, origin: str) -> dict[str, str]:
    """Acme's organization, whose provider is on and adds members. Returns the ids of both, for days that begin after
    that of Acme's administrator."""
    found = {"name": "Acme", "slug": "acme"}
    organization = site.post("/organizations", json=found, headers=AUTHORIZATION)
    assert organization.status_code == 201, organization.data
    path = "/organizations/acme"
    record = site.post(f"{path}/domains", json={"domain": "acme.example"}, headers=AUTHORIZATION).json
    company.publish(record["name"], record["value"])
    assert site.post(f"{path}/domains/acme.example", headers=AUTHORIZATION).status_code == 200
    client = company.register(f"{origin}/callback")
    body = {
        "name": "Acme Login", "issuer": company.issuer, "client_id": client["client_id"],
        "client_secret": client["client_secret"], "domains": ["acme.example"], "member_role": "member",
    }  # fmt: skip
    provider = site.post(f"{path}/providers", json=body, headers=AUTHORIZATION)
    assert provider.status_code == 201, provider.data
    # Its redirect URI has its id.
    changed = company.client.put(
        f"/admin/oauth/clients/{client['client_id']}",
        json={"redirect_uris": [provider.json["redirect_uri"]]},
        headers=AUTHORIZATION,
    )
    assert changed.status_code == 200, changed.data
    turned_on = site.put(
        f"{path}/providers/{provider.json['id']}", json={"enabled": True}, headers=AUTHORIZATION
    )
    assert turned_on.status_code == 200, turned_on.data
    return {"organization": organization.json["id"], "provider": provider.json["id"]}
