"""A node of the release before next to one of this release: a rolling upgrade of two nodes, and back."""

import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from auth.core.tokens.refresh_tokens import RefreshTokens
from tests.support import api_keys, factors, openid, passkeys
from tests.support.authenticator import Authenticator
from tests.support.links import SITE, hand_in, type_in
from tests.support.nodes import Turns
from tests.support.processes import CHECKOUT, Service, wait_until
from tests.support.tables import Rows
from tests.support.user_agent import UserAgent
from tests.support.users import PASSWORD, Person, Session, refresh, register, session_of
from tests.system.faults.clients import ADMIN
from tests.system.faults.deployment import Deployment
from tests.system.faults.mail import Post

_LINK = re.compile(r"[?&]token=([\w-]+)")
_CODE = re.compile(r"\b\d{6}\b")


@dataclass(frozen=True)
class Nodes:
    """The node at which a story begins, the other one, and the mailbox of both."""

    one: Any
    other: Any
    post: Post
    rows: Rows
    name: str

    def register(self, name: str) -> Person:
        return register(self.one, ADMIN, self.address(name))

    def address(self, name: str) -> str:
        return f"{name}-{self.name}@example.com"

    def link(self, address: str) -> str:
        return self._find(_LINK, address)

    def code(self, address: str) -> str:
        return self._find(_CODE, address)

    def _find(self, pattern: re.Pattern[str], address: str) -> str:
        text = self.post.wait_for(address, 60)
        assert text, f"no mail to {address}"
        return pattern.findall(text)[0].removeprefix("token=")


@pytest.fixture(scope="module")
def releases(files_of_the_release_before):
    """A node of the release before, on whose database a node of this release has started, and that node."""
    settings: Any = {"AUTH_API_KEYS": "true", "AUTH_ORGANIZATIONS": "users", "AUTH_WORKERS": "1"}
    with (
        Deployment() as deployment,
        deployment.service(directory=files_of_the_release_before, **settings) as old_node,
        deployment.service(**settings) as new_node,
    ):
        yield deployment, deployment.client(old_node), deployment.client(new_node)


@pytest.fixture(params=["old-first", "new-first"])
def nodes(releases, request):
    deployment, *nodes = releases
    one, other = nodes if request.param == "old-first" else reversed(nodes)
    return Nodes(one, other, deployment.post, deployment.rows(), request.param)


def move(session: Session, client: Any) -> Session:
    """Refresh a session at another node, and return it for requests there."""
    return session.on(client).refreshed()


def test_session_lives_on_and_ends_at_the_other_node(nodes):
    session = nodes.register("session").sign_in()
    moved = move(move(session, nodes.other), nodes.one)
    assert moved.id == session.id
    assert moved.put("/user", json={"data": {"x": 1}}).json["user_metadata"] == {"x": 1}
    moved = move(moved, nodes.other)
    assert moved.get("/user").json["user_metadata"] == {"x": 1}
    assert moved.get("/sessions").json["data"][0]["id"] == session.id
    assert moved.post("/logout").status_code == 200
    assert refresh(nodes.one, moved.refresh_token).status_code == 400
    assert session.get("/user").status_code == 401


def test_reused_refresh_token_is_seen_at_the_other_node(nodes):
    first_session = nodes.register("reused").sign_in()
    newest_session = move(first_session, nodes.other)
    nodes.rows.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    newest_session = move(move(newest_session, nodes.one), nodes.other)
    assert refresh(nodes.one, first_session.refresh_token).status_code == 400
    assert refresh(nodes.other, newest_session.refresh_token).status_code == 400


@pytest.mark.parametrize(
    ("type", "by"),
    [("signup", "link"), ("magiclink", "code"), ("recovery", "link"), ("email_change", "code")],
)
def test_links_and_codes_of_one_node_work_once_at_the_other(nodes, type, by):
    address = nodes.address(f"{type}-{by}")
    if type == "signup":
        response = nodes.one.post("/signup", json={"email": address, "password": PASSWORD})
    elif type == "email_change":
        response = nodes.register(f"before-{by}").sign_in().put("/user", json={"email": address})
    else:
        nodes.register(f"{type}-{by}")
        response = nodes.one.post("/recover" if type == "recovery" else "/magiclink", json={"email": address})
    assert response.status_code in (200, 201), response.text

    def spend(client: Any) -> Any:
        if by == "link":
            return hand_in(client, type, nodes.link(address))
        return type_in(client, type, address, nodes.code(address))

    session = session_of(nodes.other, spend(nodes.other))
    assert session.get("/user").json["email"] == address
    assert spend(nodes.one).status_code == spend(nodes.other).status_code == 403
    assert move(session, nodes.one).get("/user").json["email"] == address


def test_second_factor_and_recovery_code_are_used_at_the_other_node(nodes):
    person = nodes.register("factor")
    session = person.sign_in()
    app = factors.enrol(session)
    challenge_id = factors.challenge(session, app)
    response = factors.verify(move(session, nodes.other), app, app.code(-1), challenge_id)
    session = session_of(nodes.other, response)
    codes = session.post("/factors/recovery-codes").json["codes"]
    for first_node, second_node in ((nodes.one, nodes.other), (nodes.other, nodes.one)):
        session = move(person.sign_in(client=first_node), second_node)
        recovered = session_of(
            second_node, session.post("/factors/recovery-codes/verify", json={"code": codes.pop()})
        )
        assert recovered.claims["aal"] == move(recovered, first_node).claims["aal"] == "aal2"
    session = person.sign_in(client=nodes.other)
    challenge_id = factors.challenge(session, app)
    raised = session_of(nodes.one, factors.verify(move(session, nodes.one), app, app.code(), challenge_id))
    assert raised.delete(f"/factors/{app.id}").status_code == 200
    assert move(raised, nodes.other).claims["aal"] == "aal1"


def test_passkey_ceremonies_begin_at_one_node_and_end_at_the_other(nodes):
    person = nodes.register("passkey")
    session, authenticator = person.sign_in(), Authenticator()
    options = session.post("/passkeys/registration/options", json={}).json
    body = {"challenge_id": options["challenge_id"], "credential": authenticator.create(options["options"])}
    response = move(session, nodes.other).post("/passkeys/registration/verify", json=body)
    assert response.status_code == 200, response.text
    for first_node, second_node in ((nodes.one, nodes.other), (nodes.other, nodes.one)):
        body = passkeys.assertion(first_node, authenticator)
        signed_in = session_of(second_node, second_node.post("/passkeys/authentication/verify", json=body))
        assert move(signed_in, first_node).get("/user").json["id"] == person.id


def test_passkey_that_a_browser_made_is_listed_by_the_release_before_and_signs_in_there_once_used(releases):
    """Its janitor deletes one that was not used: nobody relied on it."""
    deployment, old_node, new_node = releases
    rows, people = (
        deployment.rows(),
        [register(new_node, ADMIN, f"{name}@example.com") for name in ("ann", "ben")],
    )
    (anns, _), (bens, _) = [passkeys.make_unasked(person.sign_in()) for person in people]
    for authenticator, person in ((anns, people[0]), (bens, people[1])):
        session = person.sign_in(client=old_node)
        assert len(session.get("/passkeys").json) == 1
        assert passkeys.sign_in_response(old_node, authenticator).status_code == 400
        assert session.claims["aal"] == "aal1"
    passkeys.sign_in(new_node, anns)
    assert passkeys.sign_in(old_node, anns).claims["aal"] == "aal2"
    rows.run("UPDATE factors SET created_at = created_at - interval '6 minutes'")
    wait_until(lambda: rows.count("factors", "verified_at IS NULL") == 0, 90)
    assert rows.count("factors", "factor_type = 'passkey' AND user_id = %(id)s", id=people[0].id) == 1


def test_api_key_of_one_node_works_at_the_other(nodes):
    person = nodes.register("key")
    id, key = api_keys.make_key(person.sign_in())
    for first_node, second_node in ((nodes.one, nodes.other), (nodes.other, nodes.one)):
        token = api_keys.bearer(api_keys.token_of(first_node, key))
        assert second_node.get("/user", **token).json["id"] == person.id
    assert person.sign_in(client=nodes.other).delete(f"{api_keys.ROUTE}/{id}").status_code == 204
    assert api_keys.use(nodes.one, key).status_code == 401


def test_application_goes_on_at_the_other_node_until_its_user_is_banned(nodes):
    person, application = nodes.register("application"), openid.make_client(nodes.rows)
    session = person.sign_in()
    tokens = application.redeem(nodes.other, openid.granted_code(nodes.rows, application, session)).json
    for node in (nodes.one, nodes.other, nodes.one):
        response = application.refresh(node, tokens["refresh_token"])
        assert response.status_code == 200, response.text
        tokens = response.json
        for reader in (nodes.one, nodes.other):
            answer = reader.get("/oauth/userinfo", headers=openid.bearer(tokens["access_token"]))
            assert answer.json["sub"] == person.id
    banned = nodes.one.put(f"/admin/users/{person.id}", json={"ban_duration": "1h"}, headers=ADMIN)
    assert banned.status_code == 200
    assert application.refresh(nodes.other, tokens["refresh_token"]).status_code == 400


def test_organization_of_one_node_has_its_members_and_application_at_the_other(nodes):
    alice, bob, carol = (nodes.register(f"{name}-of-acme").sign_in() for name in ("alice", "bob", "carol"))
    id = alice.post("/organizations", json={"name": "Acme", "slug": f"acme-{nodes.name}"}).json["id"]
    member = f"/organizations/{id}/members/{bob.user['id']}"
    application = openid.make_client(nodes.rows, organization_id=id, is_blocked=True, admits_members=True)
    alice = move(alice, nodes.other)
    bob = join(alice, id, bob, "admin")
    code = openid.granted_code(nodes.rows, application, bob, "openid organization", organization_id=id)
    tokens = application.redeem(nodes.one, code).json
    for node in (nodes.other, nodes.one):
        bob = move(bob, node)
        assert bob.claims["organizations"] == {id: "admin"}
        assert bob.get("/user").json["organizations"][0]["role"] == "admin"
        tokens = application.refresh(node, tokens["refresh_token"]).json
        assert openid.claims_of(tokens["access_token"])["organization"]["id"] == id
        refused_code = openid.granted_code(nodes.rows, application, carol, organization_id=id)
        assert application.redeem(node, refused_code).status_code == 400
    assert alice.put(member, json={"role": "member"}).status_code == 200
    assert move(bob, nodes.one).claims["organizations"] == {id: "member"}
    assert move(alice, nodes.one).delete(member).status_code == 204
    assert application.refresh(nodes.other, tokens["refresh_token"]).status_code == 400


@pytest.fixture
def turns(nodes):
    return Turns(nodes.one)


@pytest.fixture
def browser(turns):
    return UserAgent({SITE: turns})


def test_browser_stays_signed_in_at_the_pages_of_both_nodes(nodes, browser, turns):
    person = nodes.register("pages")
    browser.visit(f"{SITE}/sign-in")
    turns.node = nodes.other
    assert browser.press("sign-in", email=person.email, password=PASSWORD).url == f"{SITE}/account"
    turns.node = nodes.one
    assert person.email in browser.visit(f"{SITE}/account").text
    turns.node = nodes.other
    browser.press("sign-out")
    turns.node = nodes.one
    assert browser.visit(f"{SITE}/account").url.startswith(f"{SITE}/sign-in")


_CROWD = """
INSERT INTO users (email, email_confirmed_at, email_proved, made_by, last_sign_in_at)
SELECT 'user' || n || '@example.com', now(), true, 'signup', now() - n * interval '1 minute'
  FROM generate_series(1, 20000) AS n;
INSERT INTO identities (user_id, provider, subject, identity_data)
SELECT id, 'email', id, jsonb_build_object('sub', id, 'email', email) FROM users;
INSERT INTO sessions (user_id, method) SELECT id, 'password' FROM users ORDER BY id LIMIT 400
"""


def refresh_all(client: Any, tokens: Iterable[str]) -> list[str]:
    """Refresh sessions, and return their next refresh tokens."""
    with ThreadPoolExecutor(8) as threads:
        return list(
            threads.map(lambda token: session_of(client, refresh(client, token)).refresh_token, tokens)
        )


def errors_of(service: Service, *, least: int = 400) -> list[Any]:
    service.written()
    lines = [json.loads(line) for line in service.log().splitlines() if line.startswith("{")]
    assert len(lines) > least
    return [line for line in lines if line["level"] not in ("debug", "info")]


def test_nobody_is_signed_out_by_a_node_beside_the_other_or_by_either_alone(
    deployment, files_of_the_release_before
):
    settings: Any = {"AUTH_WORKERS": "1"}
    with deployment.service(directory=files_of_the_release_before, **settings) as old_service:
        old_client, rows = deployment.client(old_service), deployment.rows()
        rows.insert_many(_CROWD)
        make = RefreshTokens([(deployment.state_dir / "secret_key").read_text().strip()]).make
        tokens = [make(*row) for row in rows.all("SELECT id::text, counter FROM sessions")]
        with ThreadPoolExecutor(1) as thread:
            beside = thread.submit(refresh_all, old_client, tokens)
            with deployment.service(**settings) as new_service:
                new_client, tokens = deployment.client(new_service), beside.result()
                for number, node in enumerate((new_client, old_client, new_client, old_client)):
                    tokens = refresh_all(node, tokens)
                    register(node, ADMIN, f"new{number}@example.com").sign_in()
                assert errors_of(new_service) == []
            assert errors_of(old_service) == []
    for release in (files_of_the_release_before, CHECKOUT):
        with deployment.service(directory=release, **settings) as service:
            tokens = refresh_all(deployment.client(service), tokens)
            assert errors_of(service) == []
    assert rows.count("sessions", "ended_at IS NOT NULL") == 0
    assert rows.count("sessions", "counter >= 7") == 400
    assert rows.misplaced() == []


def join(owner: Session, organization: str, session: Session, role: str = "member") -> Session:
    """Have a user join an organization by an invitation of its owner; return the same session."""
    email = session.user["email"]
    invitation = owner.post(f"/organizations/{organization}/invitations", json={"email": email, "role": role})
    assert invitation.status_code == 201, invitation.text
    assert session.on(owner.client).post(f"/user/invitations/{invitation.json['id']}").status_code == 200
    return session


def work_of(client: Any, sessions: list[Session]) -> list[Session]:
    """Refresh sessions ten times, and have a user sign up, sign in and be deleted each time."""
    for number in range(10):
        sessions = [move(session, client) for session in sessions]
        other_session = register(client, ADMIN, f"other{number}-{client.port}@example.com").sign_in()
        assert other_session.delete("/user", json={}).status_code == 200
    return sessions


def test_organizations_are_used_beside_a_node_of_the_release_before_and_outlive_the_way_back(
    deployment, files_of_the_release_before
):
    rows, settings = deployment.rows(), {"AUTH_WORKERS": "1", "AUTH_RATE_LIMITS_ENABLED": "false"}
    settings["AUTH_ORGANIZATIONS"] = "users"
    release_before = {"directory": files_of_the_release_before, **settings}
    with deployment.service(**release_before) as old_service:
        old_client = deployment.client(old_service)
        people = [register(old_client, ADMIN, f"{name}@example.com") for name in ("alice", "bob", "carol")]
        alice, bob, carol = (person.sign_in() for person in people)
        id = alice.post("/organizations", json={"name": "Acme", "slug": "acme"}).json["id"]
        with deployment.service(**settings) as new_service:
            owner = people[0].sign_in(client=deployment.client(new_service))
            join(owner, id, bob, "admin")
            # The release before refreshes, signs in and deletes while members join, change and leave.
            with ThreadPoolExecutor(1) as thread:
                beside = thread.submit(work_of, old_client, [alice, bob])
                for role in ("billing", "member", "admin", "billing"):
                    join(owner, id, carol, role)
                    path = f"/organizations/{id}/members/{carol.user['id']}"
                    assert owner.put(path, json={"role": "member"}).status_code == 200
                    assert owner.delete(path).status_code == 204
                alice, bob = beside.result()
            assert errors_of(new_service, least=20) == []
        assert errors_of(old_service, least=20) == []
    for release in (files_of_the_release_before, CHECKOUT):
        with deployment.service(directory=release, **settings) as service:
            alice, bob = work_of(deployment.client(service), [alice, bob])
            assert (alice.claims["organizations"], bob.claims["organizations"]) == (
                {id: "owner"},
                {id: "admin"},
            )
            assert errors_of(service, least=20) == []
    assert rows.count("sessions", "ended_at IS NOT NULL") == 0
    assert rows.misplaced() == []
