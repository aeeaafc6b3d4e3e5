"""Every action on organizations by each door: who may, and that a door refuses what the others refuse."""

from dataclasses import dataclass

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.contract import console_routes, page_routes, routes
from tests.support.pages import Visitor

TABLES = ("organizations", "memberships", "organization_invitations")
NEW = "new@example.com"
# The role of Bob; an invited person has an invitation for his address.
ACTORS = ("owner", "admin", "member", "stranger", "invited")
ANYBODY, MEMBERS, MANAGERS = set(ACTORS), {"owner", "admin", "member"}, {"owner", "admin"}
ORGANIZATION, PAGE = "/organizations/{name}", "/account/organizations/{slug}"
CONSOLE = "/console/organizations"
MEMBER, INVITATION = "/members/{user_id}", "/invitations/{invitation_id}"


@dataclass(frozen=True)
class Action:
    """An action: its doors, the actors who may, and what else it demands.

    `body` is that of the API, and `fields` are of the page's form, if they differ.
    """

    actors: set[str]
    api: tuple[str, str]
    page: str
    console: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    body: dict[str, object] | None = None
    fields: dict[str, str] | None = None
    needs_proof: bool = False
    # A member without the level that the organization requires may not.
    needs_level: bool = True
    # The session must be at the level that the action demands of others.
    is_raised: bool = False
    by_operator: bool = True


ACTIONS = {
    "create": Action(
        actors=ANYBODY,
        api=("post", "/organizations"),
        page="/account/organizations/new",
        console=("/new",),
        command=("create", "import"),
        body={"name": "Other", "slug": "other"},
        needs_level=False,
    ),
    "rename": Action(
        actors={"owner"},
        api=("put", ORGANIZATION),
        page=f"{PAGE}/name",
        console=("/{organization_id}/change",),
        body={"name": "Other"},
    ),
    "require": Action(
        actors={"owner"},
        api=("put", ORGANIZATION),
        page=f"{PAGE}/requirement",
        console=tuple(f"/{{organization_id}}/{action}" for action in ("require", "lift", "lift_sign_in")),
        command=("require",),
        body={"requires": {"aal": "aal2"}},
        fields={"aal": "aal2"},
        needs_proof=True,
        is_raised=True,
    ),
    "limit the age of sign-ins": Action(
        actors={"owner"},
        api=("put", ORGANIZATION),
        page=f"{PAGE}/requirement/age",
        console=("/{organization_id}/limit",),
        command=("require",),
        body={"requires": {"max_age": 43_200}},
        fields={"max_age": "43200"},
        needs_proof=True,
    ),
    "end": Action(
        actors={"owner"},
        api=("delete", ORGANIZATION),
        page=f"{PAGE}/end",
        console=("/{organization_id}/end",),
        command=("end",),
        body={},
        fields={"confirmation": "Acme"},
        needs_proof=True,
    ),
    "promote": Action(
        actors={"owner"},
        api=("put", ORGANIZATION + MEMBER),
        page=PAGE + MEMBER,
        console=("/{organization_id}/add", f"/{{organization_id}}{MEMBER}/role"),
        command=("add",),
        body={"role": "admin"},
        needs_proof=True,
    ),
    "change a role": Action(
        actors=MANAGERS,
        api=("put", ORGANIZATION + MEMBER),
        page=PAGE + MEMBER,
        body={"role": "billing"},
    ),
    "remove": Action(
        actors=MANAGERS,
        api=("delete", ORGANIZATION + MEMBER),
        page=f"{PAGE}{MEMBER}/remove",
        console=(f"/{{organization_id}}{MEMBER}/remove",),
        command=("remove",),
    ),
    "leave": Action(
        actors=MEMBERS,
        api=("delete", f"{ORGANIZATION}/members/{{own_id}}"),
        page=f"{PAGE}/leave",
        needs_level=False,
    ),
    "invite": Action(
        actors=MANAGERS,
        api=("post", f"{ORGANIZATION}/invitations"),
        page=f"{PAGE}/invite",
        console=("/{organization_id}/invite",),
        command=("invite",),
        body={"email": "other@example.com", "role": "member"},
        fields={"emails": "other@example.com", "role": "member"},
    ),
    "invite again": Action(
        actors=MANAGERS,
        api=("post", f"{ORGANIZATION}/invitations"),
        page=f"{PAGE}{INVITATION}/again",
        body={"email": NEW, "role": "member"},
    ),
    "invite who will manage": Action(
        actors={"owner"},
        api=("post", f"{ORGANIZATION}/invitations"),
        page=f"{PAGE}/invite",
        body={"email": "other@example.com", "role": "admin"},
        fields={"emails": "other@example.com", "role": "admin"},
        needs_proof=True,
    ),
    "withdraw": Action(
        actors=MANAGERS,
        api=("delete", ORGANIZATION + INVITATION),
        page=f"{PAGE}{INVITATION}/withdraw",
        console=(f"/{{organization_id}}{INVITATION}/withdraw",),
        command=("withdraw",),
    ),
    "join": Action(
        actors={"invited"},
        api=("post", "/user/invitations/{invitation_id}"),
        page="/organizations/{slug}/join",
        fields={"action": "approve"},
        needs_level=False,
        by_operator=False,
    ),
    "decline": Action(
        actors={"invited"},
        api=("delete", "/user/invitations/{invitation_id}"),
        page="/organizations/{slug}/join",
        fields={"action": "deny"},
        needs_level=False,
        by_operator=False,
    ),
}
READING = {"list", "members", "show", "export"}
# Of domains: own_sign_in/test_on_your_machine.py and own_sign_in/test_doors_of_sign_in.py.
OF_DOMAINS = {"prove", "forget"}


@pytest.fixture
def app(make_app):
    return make_app(AUTH_ORGANIZATIONS="users", AUTH_CONSOLE="true")


@pytest.fixture
def client(app):
    return app.test_client()


def changing(all_routes):
    """Return the routes about organizations that change something, each with the method."""
    return {
        (method, path)
        for method, path, view in all_routes
        if method != "get" and view.__module__.startswith("auth.extensions.organizations")
    }


def test_every_door_is_in_the_table(app):
    from auth.extensions.organizations.command import command

    actions = ACTIONS.values()
    api_routes = {
        (method, path.replace("{own_id}", "{user_id}")) for method, path in (action.api for action in actions)
    }
    assert changing(routes(app)) == api_routes
    assert changing(page_routes(app)) == {("post", action.page) for action in actions}
    console_actions = {
        ("post", path)
        for method, path, _view in console_routes(app)
        if method == "post" and path.startswith(CONSOLE)
    }
    assert console_actions == {("post", CONSOLE + path) for action in actions for path in action.console}
    doors = command.commands.keys() - READING - OF_DOMAINS
    assert doors == {name for action in actions for name in action.command}


class Stage:
    """Acme with Bob in a role, another member, and an invitation."""

    def __init__(self, owner, acme, bob, mallory, join, client, database):
        self.owner, self.acme, self.bob, self.mallory = owner, acme, bob, mallory
        self.client, self.database = client, database
        join(mallory, acme, "member")
        self.invitation = self._invite(NEW)

    def _invite(self, email):
        response = self.owner.post(f"{self.acme}/invitations", json={"email": email, "role": "member"})
        assert response.status_code == 201
        return response.json["id"]

    def be(self, actor):
        """Give Bob the role, and return the ids that he acts on."""
        run, bob = self.database.run, {"id": self.bob.id}
        run("DELETE FROM memberships WHERE user_id = %(id)s", **bob)
        run("DELETE FROM organization_invitations WHERE email = 'bob@example.com'")
        if actor in MEMBERS:
            run(
                "INSERT INTO memberships (user_id, organization_id, role, added_by)"
                " SELECT %(id)s, id, %(role)s, 'administrator' FROM organizations",
                role=actor,
                **bob,
            )
        invitation = self._invite(self.bob.email) if actor == "invited" else self.invitation
        return {
            "name": self.acme.rpartition("/")[2],
            "slug": "acme",
            "user_id": self.mallory.id,
            "own_id": self.bob.id,
            "invitation_id": invitation,
        }

    def is_done(self, do):
        """Whether an action changes anything, which the status of the API must say."""
        before = self.database.everything(*TABLES)
        status = do()
        has_changed = self.database.everything(*TABLES) != before
        assert status is None or has_changed == (status < 300), status
        return has_changed


@pytest.fixture
def stage(owner, acme, bob, mallory, join, client, database):
    return Stage(owner, acme, bob, mallory, join, client, database)


@pytest.fixture
def by_api(stage, bob, client, database):
    session = bob.open_session(client)

    def do(action, ids):
        method, path = action.api
        options = {} if action.body is None else {"json": action.body}
        if action.is_raised:
            database.run("UPDATE sessions SET aal = 'aal2'")
        return (
            (session.refreshed() if action.is_raised else session)
            .open(path.format(**ids), method=method.upper(), **options)
            .status_code
        )

    return do


@pytest.fixture
def by_page(stage, bob, app, database):
    visitor = Visitor(app).with_session_of(bob)

    def do(action, ids):
        if action.is_raised:
            database.run("UPDATE sessions SET aal = 'aal2'")
        visitor.visit("/account/organizations/new")
        fields = action.fields or {name: str(value) for name, value in (action.body or {}).items()}
        assert visitor.send(action.page.format(**ids), **fields).status < 500

    return do


def least_actor(action):
    return next(actor for actor in reversed(ACTORS) if actor in action.actors)


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("door", ["api", "page"])
def test_door_refuses_each_actor_who_may_not(stage, database, request, name, door):
    action, do = ACTIONS[name], request.getfixturevalue(f"by_{door}")
    for actor in (each for each in ACTORS if each not in action.actors):
        ids = stage.be(actor)
        assert not stage.is_done(lambda ids=ids: do(action, ids)), actor
        rows = database.all(
            "DELETE FROM audit_log WHERE action = 'change_refused' RETURNING details #>> '{organization,id}'"
        )
        assert {id for (id,) in rows} <= {ids["name"] if actor in MEMBERS else None}


@pytest.mark.parametrize(
    ("name", "door", "actor"),
    [(name, "api", actor) for name, action in ACTIONS.items() for actor in ACTORS if actor in action.actors]
    + [(name, "page", least_actor(action)) for name, action in ACTIONS.items()],
)
def test_door_demands_the_level_and_the_proof_of_an_actor_who_may(
    stage, database, request, name, door, actor
):
    action, do = ACTIONS[name], request.getfixturevalue(f"by_{door}")
    ids = stage.be(actor)
    if action.needs_level and not action.is_raised:
        database.run("UPDATE organizations SET level = 'aal2'")
        assert not stage.is_done(lambda: do(action, ids))
        database.run("UPDATE organizations SET level = 'aal1'")
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    if action.needs_proof:
        assert not stage.is_done(lambda: do(action, ids))
        database.run("UPDATE sessions SET created_at = created_at + interval '20 minutes'")
    assert stage.is_done(lambda: do(action, ids))


@pytest.mark.parametrize("name", ACTIONS)
def test_key_acts_for_the_operator_only_with_its_scope(stage, parts, client, name):
    action = ACTIONS[name]
    method, path = action.api
    reading, writing = (
        make_admin_key(parts, f"organizations:{each}", name=each) for each in ("read", "write")
    )
    ids = stage.be("member")

    options = {} if action.body is None else {"json": action.body}

    def send(key):
        return client.open(
            path.format(**ids), method=method.upper(), headers=key.headers, **options
        ).status_code

    assert not stage.is_done(lambda: send(reading))
    assert stage.is_done(lambda: send(writing)) == action.by_operator


def test_every_action_of_the_console_asks_for_a_factor():
    from auth.extensions.organizations import console

    for actions in (console._MAKING, console._ACTS, console._MEMBER_ACTS, console._INVITATION_ACTS):
        assert all(action.needs_factor for action in actions.values())
