"""An administrative key is no service role: whatever its scopes, it changes no administrator, sets no role, leaves
each user a way to sign in, and is limited like any caller. Each refusal changes nothing, and is in the log with the
key.
"""

import uuid
from typing import Any, NamedTuple, get_args

import pytest

from auth.web.context import EXTENSION
from auth.web.declarations import Scope, route_of
from tests.source.test_contract import OPERATIONS, views
from tests.support.admin_keys import AdminKey, make_admin_key
from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.extensions import EVERY_EXTENSION
from tests.support.factors import set_up
from tests.support.openid import make_client
from tests.support.passkeys import register as register_passkey
from tests.support.server import at_once
from tests.support.users import PASSWORD, Person, register

SCOPES: tuple[str, ...] = get_args(Scope)
TARGET = ROLE = (403, "insufficient_permissions")
LAST_OWNER = (409, "last_owner")
LAST_WAY, TAKEN = (422, "single_identity_not_deletable"), (409, "email_exists")
FOREIGN = "https://evil.example/callback"
# An administrator whose invitation is open: only such a user can be invited.
INVITED_ADMIN = "UPDATE users SET invited_at = now(), email_confirmed_at = NULL, email_proved = false, password_hash = NULL WHERE id = %(id)s"
PROMOTION = "UPDATE users SET role = 'admin', admin_since = now() WHERE id = %s"


class Attack(NamedTuple):
    """A request of a key that has the operation's scope, and its refusal."""

    operation: str
    body: dict[str, Any]
    refusal: tuple[int, str]
    # Values of the path: the names of things in `world`.
    user: str = "carol"


LINK_TYPES = ("signup", "magiclink", "recovery", "invite", "email_change")
CHANGES: list[dict[str, Any]] = [
    {"password": "Mallorys-Horse-1"},
    {"email": "mallory@evil.example", "email_confirm": True},
    {"email_confirm": True},
    {"phone": "+4915100000009", "phone_confirm": True},
    {"ban_duration": "1h"},
    {"app_metadata": {"roles": ["x"]}},
    {"user_metadata": {"x": 1}},
    {"role": "authenticated"},
    {},
]
ATTACKS = [
    *(Attack("update_any_user", body, TARGET) for body in CHANGES),
    Attack("delete_any_user", {}, TARGET),
    Attack("logout_any_user", {}, TARGET),
    Attack("rename_any_factor", {"friendly_name": "x"}, TARGET),
    Attack("delete_any_factor", {}, TARGET),
    Attack("delete_any_passkey", {}, TARGET),
    *(
        Attack(
            "generate_link", {"type": type, "email": "{email}", "new_email": "new@example.com"} | more, TARGET
        )
        for type in LINK_TYPES
        for more in ([{"password": PASSWORD}] if type in ("signup", "recovery") else [{}])
    ),
    *(Attack(name, {"email": "{email}"}, TARGET, "invited") for name in ("invite", "invite_by_short_path")),
    Attack("invite", {"email": "{email}"}, TAKEN),
    # The address of an administrator for another user.
    Attack("create_user", {"email": "{email}", "email_confirm": True}, TAKEN),
    Attack("create_user", {"email": "{email}", "email_confirm": True}, TAKEN, "unproved"),
    # Roles.
    *(
        Attack("create_user", {"email": "dave@example.com", "password": PASSWORD, "role": role}, ROLE)
        for role in ("admin", "authenticated", "editor")
    ),
    *(
        Attack("update_any_user", {"role": role}, ROLE, "alice")
        for role in ("admin", "authenticated", "editor")
    ),
    # The last way to sign in.
    Attack("update_any_user", {"email": None}, LAST_WAY, "alice"),
    Attack("update_any_user", {"email_confirmed_at": None}, LAST_WAY, "alice"),
    Attack("update_any_user", {"email": "elsewhere@example.com"}, LAST_WAY, "alice"),
    Attack("delete_any_passkey", {}, LAST_WAY, "holder"),
    # What only the service role key may do.
    Attack("create_client", {"client_name": "x", "redirect_uris": [FOREIGN], "skip_consent": True}, ROLE),
    Attack("update_client", {"skip_consent": True}, ROLE, "client"),
    *(
        Attack("update_client", body, ROLE, "trusted")
        for body in ({"redirect_uris": [FOREIGN]}, {"resources": [FOREIGN]}, {"allowed_roles": ["x"]})
    ),
    Attack("update_client", {"introspects_sessions": True}, ROLE, "client"),
    Attack("regenerate_secret", {}, ROLE, "trusted"),
    # Carol has an identity there.
    Attack("update_provider", {"enabled": False}, TARGET),
    *(
        Attack("update_provider", body, ROLE)
        for body in (
            {"issuer": FOREIGN},
            {"client_id": "x"},
            {"client_secret": "x"},
            {"domains": ["x.example"]},
        )
    ),
    # Administrators in organizations, and the last owner of one.
    Attack("create_organization", {"name": "Evil", "owner": "{id}"}, TARGET),
    Attack("update_member", {"role": "member"}, TARGET),
    Attack("remove_member", {}, TARGET),
    Attack("remove_member", {}, LAST_OWNER, "holder"),
]
# Operations with a scope that change no user, no role and no way to sign in.
HARMLESS = {
    *("list_users", "get_any_user", "list_recent_changes", "list_any_factors", "list_any_passkeys"),
    *("list_audit", "get_timeline", "introspect"),
    *("list_clients", "get_client", "delete_client", "delete_previous_secret"),
    *("create_webhook", "list_webhooks", "get_webhook", "update_webhook", "delete_webhook"),
    *("list_deliveries", "redeliver_event", "test_webhook"),
    *("list_providers", "get_provider"),
    *(
        "list_organizations",
        "get_organization",
        "list_members",
        "list_organization_audit",
        "list_invitations",
    ),
    *("update_organization", "delete_organization", "create_invitation", "withdraw_invitation"),
    *("list_domains", "name_domain", "prove_domain", "list_own_providers", "get_own_provider"),
}


def test_every_operation_with_a_scope_is_attacked_or_named_as_harmless(whole_app):
    scoped = {name for name, view in views(whole_app).items() if route_of(view).scope}
    assert {attack.operation for attack in ATTACKS} | HARMLESS == scoped


class World:
    """The service with every extension, its users, and what belongs to them."""

    def __init__(self, app: Any, database: Any, service_role: dict[str, str]) -> None:
        self.client, self.parts, self.database = app.test_client(), app.extensions[EXTENSION], database
        people = {name: self.register(name, service_role) for name in ("alice", "holder")}
        admins = {
            name: self.register(name, service_role, "admin") for name in ("carol", "invited", "unproved")
        }
        self.people: dict[str, Person] = people | admins
        app_of_carol, session = set_up(self.people["carol"].open_session())
        _, passkey = register_passkey(session)
        _, last_passkey = register_passkey(self.people["holder"].open_session())
        database.run(INVITED_ADMIN, id=self.people["invited"].id)
        database.run(
            "UPDATE users SET made_by = 'signup', email_confirmed_at = NULL, email_proved = false,"
            " password_vouched = NULL WHERE id = %(id)s",
            id=self.people["unproved"].id,
        )
        # A passkey is all that this user signs in with.
        database.run(
            "UPDATE users SET password_hash = NULL, email_confirmed_at = NULL, email_proved = false WHERE id = %(id)s",
            id=self.people["holder"].id,
        )
        self.client_id = make_client(database).id
        self.trusted_id = make_client(database, skip_consent=True, introspects_sessions=True).id
        self.provider_id = str(uuid.uuid4())
        database.run(
            "INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret)"
            " VALUES (%(id)s, 'custom:acme', 'Acme', 'https://login.acme.example', 'x', %(secret)s)",
            id=self.provider_id, secret=self.parts.sealer.seal("x", self.provider_id),
        )  # fmt: skip
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data)"
            " VALUES (%(id)s, %(provider)s, '1', '{\"sub\": \"1\"}')",
            id=self.people["carol"].id, provider=f"sso:{self.provider_id}",
        )  # fmt: skip
        database.run(
            "WITH made AS (INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'acme', 'Acme')"
            " RETURNING id) INSERT INTO memberships (user_id, organization_id, role, added_by)"
            " SELECT person.id, made.id, person.role, 'administrator'"
            " FROM made, (VALUES (%(holder)s::uuid, 'owner'), (%(carol)s::uuid, 'staff')) AS person (id, role)",
            **{name: self.people[name].id for name in ("holder", "carol")},
        )
        self.values = {"factor_id": app_of_carol.id, "identifier": "custom:acme", "name": "acme"}
        self.passkeys = {"carol": passkey["id"], "holder": last_passkey["id"]}

    def register(self, name: str, service_role: dict[str, str], role: str | None = None) -> Person:
        return register(self.client, service_role, f"{name}@example.com", role)

    def key(self, *scopes: str) -> AdminKey:
        self.database.run("DELETE FROM admin_keys")
        return make_admin_key(self.parts, *scopes)

    def attack(self, attack: Attack, headers: dict[str, str]) -> Any:
        person = self.people.get(attack.user)
        operation = OPERATIONS[attack.operation]
        client_id = self.trusted_id if attack.user == "trusted" else self.client_id
        values = self.values | {"user_id": person.id if person else "", "client_id": client_id}
        values["passkey_id"] = self.passkeys.get(attack.user, "")
        email = person.email if person else ""
        body = {
            name: value.format(email=email, id=person.id if person else "")
            if name in ("email", "owner") and value
            else value
            for name, value in attack.body.items()
        }
        url = operation.path.format(**values)
        return self.client.open(url, method=operation.method.upper(), json=body, headers=headers)


@pytest.fixture
def world(make_app, database, service_role) -> World:
    return World(make_app(**EVERY_EXTENSION), database, service_role)


def test_key_with_every_scope_is_refused_what_the_service_role_key_may(world, database):
    key = world.key(*SCOPES)
    assert world.client.get("/admin/users", headers=key.headers).status_code == 200
    for attack in ATTACKS:
        database.run("DELETE FROM audit_log")
        before = database.everything()
        answer = world.attack(attack, key.headers)
        refusal = (answer.status_code, (answer.json or {}).get("error_code"))
        assert (attack, *refusal) == (attack, *attack.refusal), answer.text
        assert database.everything() == before, attack
        row = database.one("SELECT actor, actor_id::text, details ->> 'administrator' FROM audit_log")
        assert tuple(row) == ("service_role", key.id, "key billing"), attack


@pytest.mark.parametrize("scope", SCOPES)
def test_no_scope_alone_changes_an_administrator_a_role_or_the_last_way_to_sign_in(world, database, scope):
    key = world.key(scope)
    status = world.client.get("/admin/users", headers=key.headers).status_code
    assert status == (200 if scope == "users:read" else 403)
    before = database.everything()
    for attack in ATTACKS:
        assert world.attack(attack, key.headers).status_code in (403, 409, 422), attack
    assert database.everything() == before


def test_service_role_key_is_refused_none_of_the_attacks(world, service_role):
    """Only the actor decides."""
    possible = [attack for attack in ATTACKS if attack.refusal[0] == 403]
    for attack in sorted(possible, key=lambda attack: attack.operation == "delete_any_user"):
        assert world.attack(attack, service_role).status_code != 403, attack


@cases(
    ("operation", "body"),
    [
        ("update_any_user", {"password": "Mallorys-Horse-1"}),
        ("delete_any_user", {}),
        ("logout_any_user", {}),
        ("generate_link", {"type": "recovery", "email": "{email}"}),
        ("generate_link", {"type": "magiclink", "email": "{email}"}),
    ],
)
def test_user_who_becomes_an_administrator_while_the_act_waits_is_not_changed(
    world, database, operation, body
):
    key, alice = world.key(*SCOPES), world.people["alice"]
    database.run("UPDATE users SET role = 'authenticated', admin_since = NULL WHERE id = %(id)s", id=alice.id)
    tables = ("sessions", "one_time_tokens", "identities", "outbox")
    before = database.everything(*tables)
    attack = Attack(operation, body, TARGET, "alice")
    with database.locked("users", alice.id, PROMOTION) as lock:
        future = lock.start(lambda: world.attack(attack, key.headers))
    assert_error(future.result(), *TARGET)
    assert database.everything(*tables) == before
    assert database.count("users", "email = %(email)s AND role = 'admin'", email=alice.email) == 1


WAITING_OPERATIONS = {
    "update_any_user": ("users", "alice", {"password": "Mallorys-Horse-1"}),
    "delete_any_user": ("users", "alice", {}),
    "logout_any_user": ("users", "alice", {}),
    "generate_link": ("users", "alice", {"type": "magiclink", "email": "{email}"}),
    "invite": ("users", "guest", {"email": "{email}"}),
    "update_client": ("oauth_clients", "client", {"client_name": "x"}),
    "regenerate_secret": ("oauth_clients", "client", {}),
    "delete_client": ("oauth_clients", "client", {}),
    "update_provider": ("identity_providers", "provider", {"name": "x"}),
}


@pytest.mark.parametrize("operation", WAITING_OPERATIONS)
def test_key_that_ends_while_its_act_waits_changes_nothing(world, database, service_role, operation):
    table, subject, body = WAITING_OPERATIONS[operation]
    world.people["guest"] = world.register("guest", service_role)
    database.run(INVITED_ADMIN, id=world.people["guest"].id)
    key = world.key(*SCOPES)
    ids = {"client": world.client_id, "provider": world.provider_id}
    id = ids.get(subject) or world.people[subject].id
    tables = ("users", "sessions", "one_time_tokens", "outbox", "oauth_clients", "identity_providers")
    before = database.everything(*tables)
    with database.locked(table, id) as lock:
        future = lock.start(lambda: world.attack(Attack(operation, body, (401, ""), subject), key.headers))
        database.run("DELETE FROM admin_keys")
    assert_error(future.result(), 401, "bad_jwt")
    assert database.everything(*tables) == before


def test_key_changes_users_below_administrators(world, database):
    """The key does what its scopes name: a user keeps another way to sign in, or gets the new address confirmed."""
    key, alice = world.key("users:write"), world.people["alice"]

    def change(**body: Any) -> int:
        return world.client.put(f"/admin/users/{alice.id}", json=body, headers=key.headers).status_code

    assert change(email="elsewhere@example.com", email_confirm=True) == 200
    assert change(phone="+4915100000001", phone_confirm=True) == 200
    assert change(email=None) == 200
    assert change(ban_duration="1h") == 200
    assert change(ban_duration=None, app_metadata={"plan": "pro"}) == 200
    response = world.client.delete(f"/admin/users/{alice.id}", json={}, headers=key.headers)
    assert response.status_code == 200


def test_key_counts_in_the_tenth_of_its_network_and_the_service_role_key_does_not(
    make_app, database, service_role
):
    limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_MAIL_TOTAL": "20/hour"}
    app = make_app(**limits, AUTH_RATE_LIMIT_INVITE="100/hour")
    key = make_admin_key(app.extensions[EXTENSION], "invites")
    client, statuses = app.test_client(), {}
    for name, headers in (("key", key.headers), ("service role", service_role)):
        statuses[name] = [
            client.post("/invite", json={"email": f"{number}@{name[0]}.example"}, headers=headers).status_code
            for number in range(4)
        ]
    assert statuses == {"key": [200, 200, 429, 429], "service role": [200] * 4}


def test_key_opens_neither_the_inbox_nor_keys(make_app, database):
    app = make_app(AUTH_DEV_INBOX="true")
    key = make_admin_key(app.extensions[EXTENSION], *SCOPES)
    client = app.test_client()
    for path in ("/dev/inbox", f"/dev/inbox/{uuid.uuid4()}"):
        answer = client.get(path, headers=key.headers)
        assert_error(answer, 403, "insufficient_scope", details="no scope opens this")
    assert client.get("/admin/keys", headers=key.headers).status_code == 404


def test_key_and_an_administrator_who_race_leave_the_user_an_administrator(
    server, service_role, parts, alice
):
    """However they interleave, nothing that the key did is left in an administrator's account."""
    key = make_admin_key(parts, "users:write")

    def promote_or_change(number: int) -> int:
        body = {"role": "admin"} if number == 5 else {"user_metadata": {"n": number}}
        headers = service_role if number == 5 else key.headers
        return server.put(f"/admin/users/{alice.id}", json=body, headers=headers).status_code

    answers = at_once(10, promote_or_change)
    assert answers[5] == 200
    assert set(answers) <= {200, 403}
