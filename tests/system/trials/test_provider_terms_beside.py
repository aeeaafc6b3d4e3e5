"""Nodes of the previous releases beside a new one, and alone after the way back: what a customer's provider opened gives
no token there either once the provider is turned off, and everything else goes on.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from sql import Database
from tests.support import factors, oldest_release, previous_release
from tests.support.api_keys import make_key, use
from tests.support.customers import Customers, SsoService
from tests.support.nodes import NodeApp
from tests.support.oauth import ALLOW_LIST
from tests.support.opened_by_provider import REFUSED, Opened
from tests.support.processes import Service
from tests.support.users import PASSWORD, Session, session_of, sign_in
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import Deployment

SETTINGS: Any = {
    "AUTH_SSO": "true",
    "AUTH_API_KEYS": "true",
    "AUTH_ORGANIZATIONS": "users",
    "AUTH_WORKERS": "1",
    **ALLOW_LIST,
}
NEW = "new"
# The batch that ends it comes later, or never: a worker was killed.
OFF_AND_ON = """
UPDATE identity_providers SET enabled = false WHERE identifier = 'custom:acme-idp';
UPDATE identity_providers SET enabled = true WHERE identifier = 'custom:acme-idp'
"""
# A node of a previous release reads `ended_at`, so it accepts access tokens until the batch.
TOKENS = ("refresh", "key", "code", "application", "code of an application", "device")
ALL = dict.fromkeys(REFUSED, 200) | {"page": 201}
KEEP_HOUSE = """
from app import create_app
from auth.delivery import janitor
(parts,) = (each for each in create_app().extensions.values() if hasattr(each, "sealer"))
janitor.keep_house(parts.settings, parts.db, parts.sealer)
"""


class World:
    """A database with a node of each release; `at` are their services by name."""

    def __init__(self, deployment: Deployment, customers: Customers, db: Database) -> None:
        self._deployment, self.customers, self._db = deployment, customers, db
        self.at: dict[str, SsoService] = {}
        self.services: dict[str, Service] = {}
        self.rows: Any = None

    def add(self, name: str, service: Service) -> None:
        self.services[name] = service
        self.rows = self.rows or self._deployment.rows()
        self.at[name] = SsoService(NodeApp(self._deployment.client(service), self._db), ADMIN)

    def begin(self) -> None:
        """Begin with two customers' providers and without users."""
        self.rows.run("DELETE FROM users; DELETE FROM identity_providers; DELETE FROM organizations")
        for customer in self.customers.all:
            customer.provider.reset()
            next(iter(self.at.values())).add(customer)
        self.customers.acme.be("1", "alice@acme.example")
        self.customers.globex.be("2", "gwen@globex.example")

    def opened(self, name: str) -> Opened:
        return Opened(self.at[name], self.customers.acme, self.rows)

    def own_session(self, name: str) -> Session:
        """Return a session of Alice that a password opened, after an operator has set one."""
        client = self.at[name].client
        user_id = self.rows.value("SELECT id::text FROM users WHERE email = 'alice@acme.example'")
        path = f"/admin/users/{user_id}"
        assert client.put(path, json={"password": PASSWORD}, headers=ADMIN).status_code == 200
        return session_of(client, sign_in(client, "alice@acme.example"))

    def turn_off_and_on(self, name: str) -> None:
        """Turn Acme's provider off and on by the API of a node."""
        for is_on in (False, True):
            assert self.at[name].change(self.customers.acme, enabled=is_on).status_code == 200

    def keep_house(self, name: str) -> None:
        """Run the hourly clean-up of a node's release."""
        service = self.services[name]
        command = [sys.executable, "-c", KEEP_HOUSE]
        place, environment = service._directory, service.environment
        result = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Customers() as customers, Deployment() as deployment, ExitStack() as stack:
        db = stack.enter_context(closing(Database(deployment.postgres.url)))
        world = World(deployment, customers, db)
        for name, commit in previous_release.RELEASES.items():
            files = oldest_release.unpack(tmp_path_factory.mktemp("release"), commit)
            world.add(name, stack.enter_context(deployment.service(**SETTINGS | {"directory": files})))
        world.add(NEW, stack.enter_context(deployment.service(**SETTINGS)))
        yield world


@pytest.fixture(params=previous_release.RELEASES)
def old(request, world) -> str:
    world.begin()
    return request.param


def test_all_of_it_gives_tokens_at_either_node_while_the_provider_is_on(world, old):
    assert world.opened(old).on(world.at[NEW]).statuses(*TOKENS) == dict.fromkeys(TOKENS, 200)
    assert world.opened(NEW).on(world.at[old]).statuses(*TOKENS) == dict.fromkeys(TOKENS, 200)


@pytest.mark.parametrize("opens_at_new", [True, False])
def test_what_was_opened_before_gives_no_token_at_a_previous_release_before_its_end_has_come(
    world, old, opens_at_new
):
    opened = world.opened(NEW if opens_at_new else old)
    globex = world.at[old].signed_in(world.customers.globex.identifier)
    key = make_key(globex)[1]
    world.rows.run(OFF_AND_ON)
    assert opened.on(world.at[old]).statuses(*TOKENS) == dict.fromkeys(TOKENS, 503)
    assert opened.session.post("/user/api_keys", json={"name": "x"}).status_code == 503
    assert (globex.refresh().status_code, use(world.at[old].client, key).status_code) == (200, 200)
    again = world.at[old].signed_in(world.customers.acme.identifier)
    assert again.refresh().status_code == 200


def test_raised_session_keeps_its_term_and_its_echo_gives_no_token_either(world, old):
    session = world.at[old].signed_in(world.customers.acme.identifier)
    app = factors.enrol(session)
    raised = session_of(
        session.client, factors.verify(session, app, app.code(), factors.challenge(session, app))
    )
    assert raised.claims["aal"] == "aal2"
    assert raised.refresh().status_code == raised.refresh().status_code == 200
    world.rows.run(OFF_AND_ON)
    assert raised.refresh().status_code == 503
    assert factors.verify(raised, app, app.code(1), factors.challenge(raised, app)).status_code == 503


@pytest.mark.parametrize("act", ["off and on", "delete"])
def test_act_of_the_new_node_ends_what_the_provider_opened_at_the_other_and_nothing_else(world, old, act):
    node, acme = world.at[old], world.customers.acme
    world.opened(old)
    own = world.own_session(old)
    new_session = own.on(world.at[NEW].client).refreshed()
    key = make_key(new_session)[1]
    organization = own.on(node.client).post("/organizations", json={"name": "Own", "slug": "own"})
    assert organization.status_code == 201, organization.text
    invitations = f"/organizations/{organization.json['id']}/invitations"
    invited = own.post(invitations, json={"email": "bob@example.com", "role": "member"})
    assert invited.status_code == 201, invited.text
    opened = world.opened(old)
    if act == "delete":
        world.at[NEW].delete(acme)
    else:
        world.turn_off_and_on(NEW)
    for _ in range(2):
        assert opened.statuses() == REFUSED
        assert use(node.client, key).status_code == 200
        assert new_session.on(node.client).refresh().status_code == 200
        assert world.rows.count("organization_invitations") == 1
        world.keep_house(old)
    assert world.rows.count("sessions", "ended_at IS NULL") == 1


def test_act_of_a_previous_release_ends_it_at_both(world, old):
    acme = world.customers.acme
    for act in ("off and on", "delete"):
        opened = world.opened(old)
        if act == "delete":
            world.at[old].delete(acme)
        else:
            world.turn_off_and_on(old)
        assert opened.statuses() == REFUSED
        assert opened.on(world.at[NEW]).statuses() == REFUSED


@pytest.mark.parametrize("name", previous_release.RELEASES)
def test_release_before_serves_alone_after_the_way_back_and_the_new_one_after_it(name, tmp_path):
    files = oldest_release.unpack(tmp_path, previous_release.RELEASES[name])
    with Customers() as customers, Deployment() as deployment, ExitStack() as stack:
        db = stack.enter_context(closing(Database(deployment.postgres.url)))
        world = World(deployment, customers, db)
        with deployment.service(**SETTINGS | {"directory": files}) as service:
            world.add(name, service)
            world.begin()
            before = world.opened(name)
            ended = world.opened(name)
            world.rows.run("UPDATE sessions SET created_at = created_at - interval '1 hour'")
        with deployment.service(**SETTINGS) as service:
            world.add(NEW, service)
            assert before.on(world.at[NEW]).statuses() == ALL
        with deployment.service(**SETTINGS | {"directory": files}) as service:
            world.add(name, service)
            assert before.on(world.at[name]).statuses("refresh", "key") == {"refresh": 200, "key": 200}
            ended.on(world.at[name])
            world.turn_off_and_on(name)
            assert ended.statuses() == REFUSED
            cut_off = world.opened(name)
            world.rows.run(OFF_AND_ON)
            assert cut_off.statuses(*TOKENS) == dict.fromkeys(TOKENS, 503)
            # Nobody ends Alice's sessions there: while one is over, that node cannot tell which one adds a key.
            customers.acme.be("3", "carol@acme.example")
            since = world.opened(name)
        with deployment.service(**SETTINGS) as service:
            world.add(NEW, service)
            assert ended.on(world.at[NEW]).statuses() == REFUSED
            assert cut_off.on(world.at[NEW]).statuses() == REFUSED
            assert since.on(world.at[NEW]).statuses() == ALL
