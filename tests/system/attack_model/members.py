"""Members of two organizations and the holder of an operator's key act in any order, and some want more than is theirs."""

from collections.abc import Callable
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from auth.web.declarations import Scope
from tests.support.factors import enrol, raised
from tests.support.tables import Rows
from tests.support.users import Session, register, session_of

NAMES = ("alice", "bob", "carol", "root")
ROLES = ("owner", "admin", "member", "editor")
MANAGERS = {"owner", "admin"}
ACTS = (
    *("invite", "accept", "set role", "set role") * 6,
    *("remove", "remove", "withdraw", "decline", "require", "end", "delete the account"),
)
# What a key does to the organization or to a user, and the scope that it needs.
KEYS_ACTS = {
    "set role": "organizations:write",
    "remove": "organizations:write",
    "require": "organizations:write",
    "look at the members": "organizations:read",
    "read the user": "users:read",
    "promote": "users:write",
    "choose a password": "users:write",
    "delete the user": "users:write",
    "make a link": "links",
    "sign out": "sessions:end",
}
MOVES = [
    *(("person", act) for act in ACTS),
    *(("key", act) for act in KEYS_ACTS),
    ("operator", "end the key"),
]
_MEMBERSHIPS = """
SELECT m.organization_id::text AS id, m.user_id::text, m.role
  FROM memberships AS m JOIN organizations AS o ON o.id = m.organization_id AND o.ended_at IS NULL
"""
_LIVING = "SELECT id::text FROM organizations WHERE ended_at IS NULL"
_ORGANIZATIONS = "SELECT * FROM organizations ORDER BY id"
_INVITATIONS = """
SELECT i.id::text, i.organization_id::text, i.email, i.role, i.invited_by::text
  FROM organization_invitations AS i JOIN organizations AS o ON o.id = i.organization_id AND o.ended_at IS NULL
"""
_USERS = """
SELECT u.id::text, u.role, u.password_hash, (SELECT count(*) FROM sessions AS s WHERE s.user_id = u.id) AS sessions
  FROM users AS u
"""


class Members(RuleBasedStateMachine):
    """A subclass sets the application, its rows, the headers of the service role key, and how to make other keys."""

    app: Any
    rows: Rows
    service_role: dict[str, str]
    make_key: Callable[..., Any]

    @initialize(scopes=st.sets(st.sampled_from(get_args(Scope)), min_size=1))
    def begin(self, scopes: set[str]) -> None:
        """Alice, who has a second step, owns Acme, and Bob is an admin there. Carol owns Globex. Root administers the
        service.
        """
        self.rows.empty()
        self.client = self.app.test_client()
        self.people = {
            name: register(self.client, self.service_role, f"{name}@example.com") for name in NAMES
        }
        self.names = {person.id: name for name, person in self.people.items()}
        self.sessions = {name: person.open_session(self.client) for name, person in self.people.items()}
        self.sessions["alice"] = raised(self.sessions["alice"], enrol(self.sessions["alice"]))
        self.rows.run("UPDATE users SET role = 'admin' WHERE id = %(id)s", id=self.people["root"].id)
        self.organizations = [self._found("alice", "Acme"), self._found("carol", "Globex")]
        place = f"/organizations/{self.organizations[0]}/members/{self.people['bob'].id}"
        self.client.put(place, json={"role": "admin"}, headers=self.service_role)
        self.scopes, self.key = scopes, self.make_key(*scopes)
        # The service role key may leave them without an owner.
        self.changed_by_key: set[str] = set()
        # What the tokens were last compared with.
        self.facts: Any = None

    def _found(self, name: str, title: str) -> str:
        response = self.sessions[name].post("/organizations", json={"name": title})
        assert response.status_code == 201, response.text
        return str(response.json["id"])

    # What is stored.

    def roles(self) -> dict[tuple[str, str], str]:
        """Return the roles by organization and user."""
        return {(row.id, row.user_id): row.role for row in self.rows.all(_MEMBERSHIPS)}

    def _invitations(self, organization: str, email: str) -> list[Any]:
        found = self.rows.all(_INVITATIONS)
        return [each for each in found if (each.organization_id, each.email) == (organization, email)]

    # Moves. One rule, because Hypothesis leaves out most rules of most examples.

    @rule(
        move=st.sampled_from(MOVES),
        name=st.sampled_from(NAMES),
        other=st.sampled_from(NAMES),
        number=st.integers(0, 2),
        role=st.sampled_from(ROLES),
    )
    def moves(self, move: tuple[str, str], name: str, other: str, number: int, role: str) -> None:
        who, act = move
        organization, before = self.organizations[number // 2], self.roles()
        invitations = self.rows.all(_INVITATIONS)
        if who == "operator":
            self.rows.run("DELETE FROM admin_keys")
            self.scopes = set()
        elif who == "key":
            self._act_by_key(act, organization, other, role)
        else:
            inside = [self.names[user_id] for id, user_id in before if id == organization]
            # Outsiders try, too, but less.
            actor = name if number == 1 or not inside else inside[NAMES.index(name) % len(inside)]
            session = self.sessions[actor]
            self._act(session, act, organization, other, role)
            self._assert_allowed(session, before, invitations)

    def _act(self, session: Session, act: str, organization: str, other: str, role: str) -> None:
        place, person = f"/organizations/{organization}", self.people[other]
        own = self.rows.all(_INVITATIONS)
        if act == "invite":
            session.post(f"{place}/invitations", json={"email": person.email, "role": role})
        elif act in ("accept", "decline"):
            # Those of others, too.
            for each in own:
                session.open(f"/user/invitations/{each.id}", "POST" if act == "accept" else "DELETE")
        elif act == "withdraw":
            for each in own:
                session.delete(f"{place}/invitations/{each.id}")
        elif act == "set role":
            session.put(f"{place}/members/{person.id}", json={"role": role})
        elif act == "remove":
            session.delete(f"{place}/members/{person.id}")
        elif act == "require":
            session.put(place, json={"requires": {"aal": "aal2" if role in MANAGERS else "aal1"}})
        elif act == "end":
            session.delete(place, json={})
        else:
            session.delete("/user", json={})

    def _act_by_key(self, act: str, organization: str, other: str, role: str) -> None:
        place, user = f"/organizations/{organization}", f"/admin/users/{self.people[other].id}"
        method, path, body = {
            "set role": ("PUT", f"{place}/members/{self.people[other].id}", {"role": role}),
            "remove": ("DELETE", f"{place}/members/{self.people[other].id}", None),
            "require": ("PUT", place, {"requires": {"aal": "aal1"}}),
            "look at the members": ("GET", f"{place}/members", None),
            "read the user": ("GET", user, None),
            "promote": ("PUT", user, {"role": "admin"}),
            "choose a password": ("PUT", user, {"password": "Another-Horse-1"}),
            "delete the user": ("DELETE", user, {}),
            "make a link": (
                "POST",
                "/admin/generate_link",
                {"type": "magiclink", "email": self.people[other].email},
            ),
            "sign out": ("POST", f"{user}/logout", None),
        }[act]
        before = self.roles(), self.rows.all(_USERS)
        response = self.client.open(path, method=method, json=body, headers=self.key.headers)
        after = self.roles(), self.rows.all(_USERS)
        scope = KEYS_ACTS[act]
        is_covered = scope in self.scopes or (
            scope == "organizations:read" and "organizations:write" in self.scopes
        )
        if not is_covered:
            assert response.status_code == (403 if self.scopes else 401), f"a key may {act} without {scope}"
        if response.status_code >= 400:
            assert after == before, f"a refused key can {act}"
        elif after[0] != before[0]:
            self.changed_by_key.add(organization)
            self.changed_by_key |= {id for id, user_id in before[0] if user_id == self.people[other].id}
        [root] = [row for row in before[1] if row.role == "admin"]
        assert [row for row in after[1] if row.role == "admin"] == [root], f"a key can {act} an administrator"

    def _assert_allowed(
        self, session: Session, before: dict[tuple[str, str], str], invitations: list[Any]
    ) -> None:
        """Assert that the role of who acted allows each change, or that an invitation did."""
        after, actor_id = self.roles(), session.user["id"]
        ended = {id for id, _ in before} - {row.id for row in self.rows.all(_LIVING)}
        offered = {(row.organization_id, row.email, row.role) for row in invitations}
        for place in before.keys() | after.keys():
            (organization, user_id), was, becomes = place, before.get(place), after.get(place)
            if was == becomes:
                continue
            person, actor = self.names[user_id], before.get((organization, actor_id))
            what = f"{self.names[actor_id]}, {actor}, makes {person}, {was}, {becomes} there"
            if organization in ended:
                assert actor == "owner", what
            elif user_id == actor_id and was is None:
                assert (organization, self.people[person].email, becomes) in offered, what
            elif user_id != actor_id or becomes is not None:
                manages = actor == "owner" or (actor == "admin" and not {was, becomes} & MANAGERS)
                assert manages, what
                assert self._counts(organization, session), what

    def _counts(self, organization: str, session: Session) -> bool:
        level = self.rows.value("SELECT level FROM organizations WHERE id = %(id)s", id=organization)
        return str(level) <= str(session.claims["aal"])

    # What holds after each.

    @invariant()
    def organizations_keep_an_owner(self) -> None:
        roles = self.roles()
        for organization in {id for id, _ in roles} - self.changed_by_key:
            assert "owner" in {role for (id, _), role in roles.items() if id == organization}, (
                "no owner is left"
            )

    @invariant()
    def who_invites_still_manages(self) -> None:
        roles = self.roles()
        for each in self.rows.all(_INVITATIONS):
            role = roles.get((each.organization_id, each.invited_by))
            assert role in MANAGERS, f"an invitation by {self.names[each.invited_by]}, {role}, is open"

    @invariant()
    def tokens_say_what_counts(self) -> None:
        """Ask for new ones, and for what they open, after a move that changed what they say."""
        roles = self.roles()
        facts = roles, self.rows.all(_ORGANIZATIONS), self.rows.all(_USERS)
        if facts == self.facts:
            return
        self.facts = facts
        for name, session in self.sessions.items():
            response = session.refresh()
            if response.status_code != 200:
                continue
            self.sessions[name] = session = session_of(self.client, response)
            memberships = {
                id: role for (id, user_id), role in roles.items() if user_id == self.people[name].id
            }
            said = {id: role for id, role in memberships.items() if self._counts(id, session)}
            assert session.claims.get("organizations", {}) == said, f"{name}'s token"
            shown = {
                each["id"]: each.get("role") for each in session.get("/user").json.get("organizations", [])
            }
            assert shown == {id: said.get(id) for id in memberships}, f"what GET /user says to {name}"
            for id in self.organizations:
                status = session.get(f"/organizations/{id}").status_code
                assert status == (200 if id in said else 403 if id in memberships else 404), (
                    f"what {name} sees"
                )
