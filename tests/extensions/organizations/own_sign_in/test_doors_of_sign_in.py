"""Every door to an organization's sign-in: none opens to an admin, a member or a stranger, who change nothing there."""

import pytest

from tests.support.contract import page_routes, routes
from tests.support.own_providers import DOMAIN
from tests.support.pages import Visitor
from tests.support.users import PASSWORD

TABLES = (
    "organizations",
    "organization_domains",
    "identity_providers",
    "identity_provider_domains",
    "oauth_flows",
)
PROOF = {"current_password": PASSWORD}
NEW = {"name": "Theirs", "issuer": "https://login.other.example", "client_id": "x", "client_secret": "x"}
# The bodies of routes, by the end of their path.
BODIES = {
    "/domains": {"domain": "other.example"},
    "/providers": NEW | PROOF,
    "{provider}": PROOF,
    "{domain}": PROOF,
}
ACTS = ("test", "on", "off", "delete")


@pytest.fixture
def ids(sign_in, customers, acme):
    assert sign_in.prove(DOMAIN).status_code == 200
    response = sign_in.connect(customers.acme)
    assert response.status_code == 201, response.text
    return {
        "name": acme.rpartition("/")[2],
        "slug": "acme",
        "domain": DOMAIN,
        "provider": response.json["id"],
        "at": "other",
    }


def doors(all_routes, module):
    module_name = f"auth.extensions.organizations.{module}"
    return sorted((method, path) for method, path, view in all_routes if view.__module__ == module_name)


@pytest.mark.parametrize("role", ["admin", "member", None])
def test_every_door_opens_to_owners_alone(service, ids, join, acme, bob, client, database, role):
    session = join(bob, acme, role) if role else bob.open_session(client)
    visitor = Visitor(service.app).with_session_of(bob)
    before = database.everything(*TABLES)
    api = doors(routes(service.app), "sign_in_routes")
    modules = ("pages.sign_in", "pages.own_requirement")
    pages = [door for module in modules for door in doors(page_routes(service.app), module)]
    assert (len(api), len(pages)) == (9, 15)
    for method, path in api:
        body = next((body for end, body in BODIES.items() if path.endswith(end)), None)
        options = {} if method == "get" or body is None else {"json": body}
        response = session.open(path.format(**ids), method=method.upper(), **options)
        assert response.status_code == (403 if role else 404), (method, path, response.text)
    for method, path in pages:
        for act in ACTS if "{act}" in path else ("",):
            full_path = path.format(act=act, **ids)
            visitor.visit("/account/organizations/new")
            fields = NEW | {
                "domain": "other.example",
                "domains": DOMAIN,
                "action": "remove",
                "own_provider": "true",
            }
            page = visitor.visit(full_path) if method == "get" else visitor.send(full_path, **fields)
            assert page.status in (403, 404), (method, full_path)
    assert database.everything(*TABLES) == before
