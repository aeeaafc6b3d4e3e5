"""Members of two organizations and the holder of an operator's key act in any order, also where they may not."""

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
ACTIONS = (
    *("invite", "accept", "set role", "set role") * 6,
    *("remove", "remove", "withdraw", "decline", "require", "end", "delete the account"),
)
# What a key does to the organization or to a user, and the scope that it needs.
KEYS_ACTIONS = {
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
    *(("person", action) for action in ACTIONS),
    *(("key", action) for action in KEYS_ACTIONS),
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
        self.organizations = [
            self._create_organization("alice", "Acme"),
            self._create_organization("carol", "Globex"),
        ]
        place = f"/organizations/{self.organizations[0]}/members/{self.people['bob'].id}"
        self.client.put(place, json={"role": "admin"}, headers=self.service_role)
        self.scopes, self.key = scopes, self.make_key(*scopes)
        # Organizations that the operator's key changed: it may leave them without an owner.
        self.changed_by_key: set[str] = set()
        # The rows that the tokens were last compared with.
        self.facts: Any = None

    def _create_organization(self, name: str, title: str) -> str:
        response = self.sessions[name].post("/organizations", json={"name": title})
        assert response.status_code == 201, response.text
        return str(response.json["id"])

    # What is stored.

    def roles(self) -> dict[tuple[str, str], str]:
        """Return the roles by organization and user."""
        return {(row.id, row.user_id): row.role for row in self.rows.all(_MEMBERSHIPS)}

    def _invitations(self, organization: str, email: str) -> list[Any]:
        invitations = self.rows.all(_INVITATIONS)
        return [each for each in invitations if (each.organization_id, each.email) == (organization, email)]

    # Moves. One rule, because Hypothesis leaves out most rules of most examples.

    @rule(
        move=st.sampled_from(MOVES),
        name=st.sampled_from(NAMES),
        other=st.sampled_from(NAMES),
        number=st.integers(0, 2),
        role=st.sampled_from(ROLES),
    )
    def moves(self, move: tuple[str, str], name: str, other: str, number: int, role: str) -> None:
        party, action = move
        organization, before = self.organizations[number // 2], self.roles()
        invitations = self.rows.all(_INVITATIONS)
        if party == "operator":
            self.rows.run("DELETE FROM admin_keys")
            self.scopes = set()
        elif party == "key":
            self._act_by_key(action, organization, other, role)
        else:
            inside = [self.names[user_id] for id, user_id in before if id == organization]
            # Outsiders try, too, but less often.
            actor = name if number == 1 or not inside else inside[NAMES.index(name) % len(inside)]
            session = self.sessions[actor]
            self._act(session, action, organization, other, role)
            self._assert_allowed(session, before, invitations)

    def _act(self, session: Session, action: str, organization: str, other: str, role: str) -> None:
        place, person = f"/organizations/{organization}", self.people[other]
        invitations = self.rows.all(_INVITATIONS)
        if action == "invite":
            session.post(f"{place}/invitations", json={"email": person.email, "role": role})
        elif action in ("accept", "decline"):
            # Try the invitations of others, too.
            for each in invitations:
                session.open(f"/user/invitations/{each.id}", "POST" if action == "accept" else "DELETE")
        elif action == "withdraw":
            for each in invitations:
                session.delete(f"{place}/invitations/{each.id}")
        elif action == "set role":
            session.put(f"{place}/members/{person.id}", json={"role": role})
        elif action == "remove":
            session.delete(f"{place}/members/{person.id}")
        elif action == "require":
            session.put(place, json={"requires": {"aal": "aal2" if role in MANAGERS else "aal1"}})
        elif action == "end":
            session.delete(place, json={})
        else:
            session.delete("/user", json={})

    def _act_by_key(self, action: str, organization: str, other: str, role: str) -> None:
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
        }[action]
        before = self.roles(), self.rows.all(_USERS)
        response = self.client.open(path, method=method, json=body, headers=self.key.headers)
        after = self.roles(), self.rows.all(_USERS)
        scope = KEYS_ACTIONS[action]
        is_covered = scope in self.scopes or (
            scope == "organizations:read" and "organizations:write" in self.scopes
        )
        if not is_covered:
            assert response.status_code == (403 if self.scopes else 401), (
                f"a key may {action} without {scope}"
            )
        if response.status_code >= 400:
            assert after == before, f"a refused key can {action}"
        elif after[0] != before[0]:
            self.changed_by_key.add(organization)
            self.changed_by_key |= {id for id, user_id in before[0] if user_id == self.people[other].id}
        [root] = [row for row in before[1] if row.role == "admin"]
        assert [row for row in after[1] if row.role == "admin"] == [root], (
            f"a key can {action} an administrator"
        )

    def _assert_allowed(
        self, session: Session, before: dict[tuple[str, str], str], invitations: list[Any]
    ) -> None:
        """Assert that the actor's role, or an invitation, allows each change."""
        after, actor_id = self.roles(), session.user["id"]
        ended = {id for id, _ in before} - {row.id for row in self.rows.all(_LIVING)}
        offered = {(row.organization_id, row.email, row.role) for row in invitations}
        for place in before.keys() | after.keys():
            (organization, user_id), role_before, role_after = place, before.get(place), after.get(place)
            if role_before == role_after:
                continue
            person, actor = self.names[user_id], before.get((organization, actor_id))
            change = f"{self.names[actor_id]}, {actor}, makes {person}, {role_before}, {role_after} there"
            if organization in ended:
                assert actor == "owner", change
            elif user_id == actor_id and role_before is None:
                assert (organization, self.people[person].email, role_after) in offered, change
            elif user_id != actor_id or role_after is not None:
                manages = actor == "owner" or (actor == "admin" and not {role_before, role_after} & MANAGERS)
                assert manages, change
                assert self._counts(organization, session), change

    def _counts(self, organization: str, session: Session) -> bool:
        level = self.rows.value("SELECT level FROM organizations WHERE id = %(id)s", id=organization)
        return str(level) <= str(session.claims["aal"])

    # What holds after each move.

    @invariant()
    def organizations_keep_an_owner(self) -> None:
        roles = self.roles()
        for organization in {id for id, _ in roles} - self.changed_by_key:
            assert "owner" in {role for (id, _), role in roles.items() if id == organization}, (
                "no owner is left"
            )

    @invariant()
    def inviters_of_open_invitations_are_managers(self) -> None:
        roles = self.roles()
        for each in self.rows.all(_INVITATIONS):
            role = roles.get((each.organization_id, each.invited_by))
            assert role in MANAGERS, f"an invitation by {self.names[each.invited_by]}, {role}, is open"

    @invariant()
    def tokens_say_what_counts(self) -> None:
        """After a move that changed memberships, get new tokens, and check their claims and what they open."""
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
            roles_in_token = {id: role for id, role in memberships.items() if self._counts(id, session)}
            assert session.claims.get("organizations", {}) == roles_in_token, f"{name}'s token"
            roles_shown = {
                each["id"]: each.get("role") for each in session.get("/user").json.get("organizations", [])
            }
            assert roles_shown == {id: roles_in_token.get(id) for id in memberships}, (
                f"what GET /user says to {name}"
            )
            for id in self.organizations:
                status = session.get(f"/organizations/{id}").status_code
                assert status == (200 if id in roles_in_token else 403 if id in memberships else 404), (
                    f"what {name} sees"
                )
