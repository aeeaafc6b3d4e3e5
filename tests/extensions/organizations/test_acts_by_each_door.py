"""Every act on organizations by each door: who may, and that a door refuses what the others refuse."""

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
class Act:
    """An act: its doors, the actors who may, and what else it demands.

    `body` is that of the API, and `fields` are of the page's form, if they differ.
    """

    who: set[str]
    api: tuple[str, str]
    page: str
    console: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    body: dict[str, object] | None = None
    fields: dict[str, str] | None = None
    needs_proof: bool = False
    # Of who has a membership that does not count, too.
    needs_level: bool = True
    # In a session at the level that it demands of others.
    is_raised: bool = False
    by_operator: bool = True


ACTS = {
    "create": Act(
        who=ANYBODY,
        api=("post", "/organizations"),
        page="/account/organizations/new",
        console=("/new",),
        command=("create", "import"),
        body={"name": "Other", "slug": "other"},
        needs_level=False,
    ),
    "rename": Act(
        who={"owner"},
        api=("put", ORGANIZATION),
        page=f"{PAGE}/name",
        console=("/{organization_id}/change",),
        body={"name": "Other"},
    ),
    "require": Act(
        who={"owner"},
        api=("put", ORGANIZATION),
        page=f"{PAGE}/requirement",
        console=tuple(f"/{{organization_id}}/{act}" for act in ("require", "lift", "lift_sign_in")),
        command=("require",),
        body={"requires": {"aal": "aal2"}},
        fields={"aal": "aal2"},
        needs_proof=True,
        is_raised=True,
    ),
    "end": Act(
        who={"owner"},
        api=("delete", ORGANIZATION),
        page=f"{PAGE}/end",
        console=("/{organization_id}/end",),
        command=("end",),
        body={},
        needs_proof=True,
    ),
    "promote": Act(
        who={"owner"},
        api=("put", ORGANIZATION + MEMBER),
        page=PAGE + MEMBER,
        console=("/{organization_id}/add", f"/{{organization_id}}{MEMBER}/role"),
        command=("add",),
        body={"role": "admin"},
        needs_proof=True,
    ),
    "change a role": Act(
        who=MANAGERS,
        api=("put", ORGANIZATION + MEMBER),
        page=PAGE + MEMBER,
        body={"role": "billing"},
    ),
    "remove": Act(
        who=MANAGERS,
        api=("delete", ORGANIZATION + MEMBER),
        page=f"{PAGE}{MEMBER}/remove",
        console=(f"/{{organization_id}}{MEMBER}/remove",),
        command=("remove",),
    ),
    "leave": Act(
        who=MEMBERS,
        api=("delete", f"{ORGANIZATION}/members/{{own_id}}"),
        page=f"{PAGE}/leave",
        needs_level=False,
    ),
    "invite": Act(
        who=MANAGERS,
        api=("post", f"{ORGANIZATION}/invitations"),
        page=f"{PAGE}/invite",
        console=("/{organization_id}/invite",),
        command=("invite",),
        body={"email": "other@example.com", "role": "member"},
    ),
    "invite who will manage": Act(
        who={"owner"},
        api=("post", f"{ORGANIZATION}/invitations"),
        page=f"{PAGE}/invite",
        body={"email": "other@example.com", "role": "admin"},
        needs_proof=True,
    ),
    "withdraw": Act(
        who=MANAGERS,
        api=("delete", ORGANIZATION + INVITATION),
        page=f"{PAGE}{INVITATION}/withdraw",
        console=(f"/{{organization_id}}{INVITATION}/withdraw",),
    ),
    "join": Act(
        who={"invited"},
        api=("post", "/user/invitations/{invitation_id}"),
        page="/organizations/{slug}/join",
        fields={"action": "approve"},
        needs_level=False,
        by_operator=False,
    ),
    "decline": Act(
        who={"invited"},
        api=("delete", "/user/invitations/{invitation_id}"),
        page="/organizations/{slug}/join",
        fields={"action": "deny"},
        needs_level=False,
        by_operator=False,
    ),
}
READING = {"list", "show", "export"}


@pytest.fixture
def app(make_app):
    return make_app(AUTH_ORGANIZATIONS="users", AUTH_CONSOLE="true")


@pytest.fixture
def client(app):
    return app.test_client()


def changing(listed):
    """Return the routes about organizations that change something, each with the method."""
    return {
        (method, path)
        for method, path, view in listed
        if method != "get" and view.__module__.startswith("auth.extensions.organizations")
    }


def test_every_door_is_in_the_table(app):
    from auth.extensions.organizations.command import command

    acts = ACTS.values()
    own = {(method, path.replace("{own_id}", "{user_id}")) for method, path in (act.api for act in acts)}
    assert changing(routes(app)) == own
    assert changing(page_routes(app)) == {("post", act.page) for act in acts}
    of_console = {
        ("post", path)
        for method, path, _view in console_routes(app)
        if method == "post" and path.startswith(CONSOLE)
    }
    assert of_console == {("post", CONSOLE + path) for act in acts for path in act.console}
    assert command.commands.keys() - READING == {name for act in acts for name in act.command}


class Stage:
    """Acme with Bob in a role, another member, and an invitation."""

    def __init__(self, owner, acme, bob, mallory, join, client, database):
        self.owner, self.acme, self.bob, self.mallory = owner, acme, bob, mallory
        self.client, self.database = client, database
        join(mallory, acme, "member")
        self.invitation = self._invite(NEW)

    def _invite(self, email):
        invited = self.owner.post(f"{self.acme}/invitations", json={"email": email, "role": "member"})
        assert invited.status_code == 201
        return invited.json["id"]

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
        """Whether an act changes anything. The API says so by its status."""
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

    def do(act, ids):
        method, path = act.api
        sent = {} if act.body is None else {"json": act.body}
        if act.is_raised:
            database.run("UPDATE sessions SET aal = 'aal2'")
        return (
            (session.refreshed() if act.is_raised else session)
            .open(path.format(**ids), method=method.upper(), **sent)
            .status_code
        )

    return do


@pytest.fixture
def by_page(stage, bob, app, database):
    visitor = Visitor(app).with_session_of(bob)

    def do(act, ids):
        if act.is_raised:
            database.run("UPDATE sessions SET aal = 'aal2'")
        visitor.visit("/account/organizations/new")
        fields = act.fields or {name: str(value) for name, value in (act.body or {}).items()}
        assert visitor.send(act.page.format(**ids), **fields).status < 500

    return do


def least(act):
    return next(actor for actor in reversed(ACTORS) if actor in act.who)


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("door", ["api", "page"])
def test_door_refuses_who_may_not(stage, database, request, name, door):
    act, do = ACTS[name], request.getfixturevalue(f"by_{door}")
    for actor in (each for each in ACTORS if each not in act.who):
        ids = stage.be(actor)
        assert not stage.is_done(lambda ids=ids: do(act, ids)), actor
        refused = database.all(
            "DELETE FROM audit_log WHERE action = 'change_refused' RETURNING details #>> '{organization,id}'"
        )
        assert {id for (id,) in refused} <= {ids["name"] if actor in MEMBERS else None}


@pytest.mark.parametrize(
    ("name", "door", "actor"),
    [(name, "api", actor) for name, act in ACTS.items() for actor in ACTORS if actor in act.who]
    + [(name, "page", least(act)) for name, act in ACTS.items()],
)
def test_door_asks_who_may_for_the_level_and_the_proof(stage, database, request, name, door, actor):
    act, do = ACTS[name], request.getfixturevalue(f"by_{door}")
    ids = stage.be(actor)
    if act.needs_level and not act.is_raised:
        database.run("UPDATE organizations SET level = 'aal2'")
        assert not stage.is_done(lambda: do(act, ids))
        database.run("UPDATE organizations SET level = 'aal1'")
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    if act.needs_proof:
        assert not stage.is_done(lambda: do(act, ids))
        database.run("UPDATE sessions SET created_at = created_at + interval '20 minutes'")
    assert stage.is_done(lambda: do(act, ids))


@pytest.mark.parametrize("name", ACTS)
def test_key_acts_for_the_operator_only_with_its_scope(stage, parts, client, name):
    act = ACTS[name]
    method, path = act.api
    reading, writing = (
        make_admin_key(parts, f"organizations:{each}", name=each) for each in ("read", "write")
    )
    ids = stage.be("member")

    sent = {} if act.body is None else {"json": act.body}

    def send(key):
        return client.open(path.format(**ids), method=method.upper(), headers=key.headers, **sent).status_code

    assert not stage.is_done(lambda: send(reading))
    assert stage.is_done(lambda: send(writing)) == act.by_operator


def test_every_act_of_the_console_asks_for_a_factor():
    from auth.extensions.organizations import console

    for acts in (console._MAKING, console._ACTS, console._MEMBER_ACTS, console._INVITATION_ACTS):
        assert all(act.needs_factor for act in acts.values())
