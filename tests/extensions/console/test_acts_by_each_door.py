"""Each action of an administrator does the same by the API, the console, on many users, and by a command."""

import json
import shlex
from dataclasses import dataclass, field
from typing import Any

import pytest

from auth.flows.admin.user_actions import ACTIONS, UserAction
from tests.extensions.console.test_console_routes import NEEDS
from tests.support.answers import NO_ID
from tests.support.api_keys import insert_key
from tests.support.audit import clear_history
from tests.support.commands import run_command
from tests.support.links import PHONE
from tests.support.pages import words

# By the first part of an action's path in the console: the table, the key in `ids`, and the audited details.
SUBJECTS = {
    "users": ("users", "user_id", {}),
    "webhooks": ("webhooks", "webhook_id", {"webhook_id": "{webhook_id}", "url": "http://127.0.0.1:9"}),
    "applications": ("oauth_clients", "client_id", {"client_id": "{client_id}"}),
    "providers": ("identity_providers", "provider_id", {"provider_id": "{provider_id}"}),
    "keys": ("admin_keys", "admin_key_id", {"admin_key_id": "{admin_key_id}", "admin_key": "billing"}),
}
# The actions that ask for no factor.
FREE = {"end", "end-sessions", "ban", "unban", "unlock", "recover", "invite-again", "metadata", "redeliver"}
WANTED = {"name": "Ada", "nested": {"a": [1, None]}}


@dataclass
class Action:
    """An action: its path in the console, the audited actions and events that it writes, and a condition that is
    true of its row afterwards.

    `confirms` and `says` are texts of the console before and after, `api` is a request of the service role key,
    and `command` a command line with the end of what it prints.
    """

    path: str
    writes: str
    effect: str
    confirms: str
    says: str
    fields: dict[str, str] = field(default_factory=dict)
    api: tuple[str, str, dict[str, Any]] | None = None
    command: tuple[str, str] | None = None
    before: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def declared(self) -> UserAction | None:
        return ACTIONS.get(self.name) if self.path == f"users/{{user_id}}/{self.name}" else None

    def doors(self) -> list[str]:
        many = self.declared and self.declared.many
        offered = {"console": True, "api": self.api, "command": self.command, "many": many}
        return [door for door, is_there in offered.items() if is_there]


USER, WEBHOOK = "/admin/users/{user_id}", "/admin/webhooks/{webhook_id}"
CLIENT, PROVIDER = "/admin/oauth/clients/{client_id}", "/admin/custom-providers/{provider_id}"
ENDED = "NOT EXISTS (SELECT FROM sessions AS s WHERE s.user_id = users.id AND s.ended_at IS NULL)"
HAS_KEY = "EXISTS (SELECT FROM api_keys)"
NO_COUNT = "NOT EXISTS (SELECT FROM failure_counts WHERE subject = users.email)"
EVERY_ACTION = [
    Action(
        *("users/{user_id}/end-sessions", "signed_out auth.logout", f"{ENDED} AND {HAS_KEY}"),
        *("Leaves 1 API key, which you can remove on the user’s page. This can’t", "All sessions ended."),
        api=("POST", f"{USER}/logout", {}),
        command=("users sign-out {user_id}", "is signed out everywhere. API keys that still work: 1."),
    ),
    Action(
        *("users/{user_id}/reset-two-step", "factor_removed user.updated"),
        "NOT EXISTS (SELECT FROM factors AS f WHERE f.user_id = users.id)",
        *("Removes 1 factor or passkey, and the recovery codes.", "Two-step verification is reset."),
        command=("users remove-factors {user_id} --yes", "has no second factor or passkey."),
    ),
    Action(
        *("users/{user_id}/ban", "banned user.updated", "banned_until > now() + interval '23 hours'"),
        *("Voids 1 unused link or code. Removes 1 API key. Lifting", "Can’t sign in: Banned until"),
        fields={"ban_duration": "24h"},
        api=("PUT", USER, {"ban_duration": "24h"}),
        command=("users ban {user_id} --for 24h", "UTC."),
    ),
    Action(
        *("users/{user_id}/unban", "unbanned user.updated", "banned_until IS NULL"),
        *("Lets 1 user sign in again.", "Ban lifted."),
        api=("PUT", USER, {"ban_duration": "none"}),
        command=("users unban {user_id}", "alice@example.com is not banned."),
    ),
    Action(
        *("users/{user_id}/unlock", "lock_cleared", NO_COUNT),
        *("Lets alice@example.com try again now.", "Lock cleared."),
        command=("users unlock {user_id}", "alice@example.com can try again."),
        before="INSERT INTO failure_counts VALUES"
        " ('login alice@example.com ::1', 20, now() + interval '1 hour', 'login', 'alice@example.com', '::1')",
    ),
    Action(
        *("users/{user_id}/invite-again", "invited"),
        *("(SELECT count(*) = 1 FROM outbox WHERE kind = 'invite')", "Sends 1 email to alice@example.com"),
        "The invitation is on its way.",
        before=NEEDS["invite-again"],
    ),
    Action(
        *("users/{user_id}/recover", "message_requested"),
        *("(SELECT count(*) = 2 FROM outbox WHERE kind = 'recovery')", "Sends 1 email to alice@example.com"),
        "The recovery email is on its way.",
    ),
    Action(
        *("users/{user_id}/metadata", "user_changed user.updated", f"user_metadata = '{json.dumps(WANTED)}'"),
        *("metadata", "Metadata saved."),
        fields={"user_metadata": json.dumps(WANTED, indent=1), "app_metadata": '{"big": 1.10}'},
        api=("PUT", USER, {"user_metadata": WANTED, "app_metadata": {"big": 1.1}}),
    ),
    Action(
        *("users/{user_id}/addresses", "email_changed email_unconfirmed phone_changed user.updated"),
        f"email = 'ada@example.com' AND phone = '{PHONE}' AND email_confirmed_at IS NULL AND {ENDED}",
        *("Changing the email or removing an address ends 2 sessions.", "ada@example.com not confirmed"),
        fields={"email": "Ada@example.com", "phone": PHONE},
        api=("PUT", USER, {"email": "Ada@example.com", "phone": PHONE}),
    ),
    Action(
        *("users/{user_id}/delete", "user_deleted user.deleted", "false"),
        "Deletes 1 user with 1 identity, 2 sessions, 1 factor, 1 API key, and their metadata.",
        "User deleted. This user was deleted.",
        api=("DELETE", USER, {}),
        command=("users delete {user_id} --yes", "alice@example.com is deleted."),
    ),
    Action(
        *("users/{user_id}/factors/{factor_id}/remove", "factor_removed user.updated"),
        "NOT EXISTS (SELECT FROM factors AS f WHERE f.user_id = users.id)",
        *("Removes 1 authenticator app", "Removed."),
        api=("DELETE", f"{USER}/factors/{{factor_id}}", {}),
    ),
    Action(
        *("webhooks/{webhook_id}/test", "webhook_tested user.deleted"),
        "EXISTS (SELECT FROM outbox WHERE kind = 'user.deleted' AND recipient = webhooks.id::text)",
        *("Sends 1 event to http://127.0.0.1:9", "The test event will be sent"),
        fields={"event": "user.deleted"},
        api=("POST", f"{WEBHOOK}/test", {"event": "user.deleted"}),
    ),
    Action(
        *("webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", "event_redelivered user.created"),
        "(SELECT count(*) = 2 FROM outbox WHERE kind = 'user.created' AND recipient = webhooks.id::text)",
        "Sends 1 event (user created) to http://127.0.0.1:9 again, with the same ID. 0 attempts so far: failed.",
        "The event will be sent within seconds.",
        api=("POST", f"{WEBHOOK}/deliveries/{{delivery_id}}/redeliver", {}),
    ),
    Action(
        *("webhooks/{webhook_id}/change", "webhook_changed", "events = '{auth.login}'"),
        *("Changes 1 webhook.", "Webhook changed."),
        fields={"url": "", "description": "", "auth_login": "yes"},
        api=("PUT", WEBHOOK, {"events": ["auth.login"]}),
    ),
    Action(
        *("webhooks/{webhook_id}/new-secret", "webhook_secret_rotated", "previous_secret IS NOT NULL"),
        *("Creates 1 secret, which you’ll see once.", "whsec_"),
        api=("PUT", WEBHOOK, {"rotate_secret": True}),
    ),
    Action(
        *("webhooks/{webhook_id}/disable", "webhook_disabled", "disabled_reason = 'by_administrator'"),
        *("Stops 1 webhook.", "Webhook disabled."),
        api=("PUT", WEBHOOK, {"disabled": True}),
    ),
    Action(
        *("webhooks/{webhook_id}/enable", "webhook_enabled", "disabled_at IS NULL"),
        *("Starts 1 webhook.", "Webhook enabled."),
        api=("PUT", WEBHOOK, {"disabled": False}),
        command=("webhooks enable {webhook_id} --yes", "is enabled."),
    ),
    Action(
        *("webhooks/{webhook_id}/delete", "webhook_deleted", "false"),
        *("4 waiting events won’t be sent.", "Webhook deleted."),
        api=("DELETE", WEBHOOK, {}),
    ),
    Action(
        *("applications/{client_id}/change", "client_changed", "name = 'Wiki'"),
        *("Changes 1 application with 1 grant.", "Application changed."),
        fields={
            "client_name": "Wiki",
            "authorization_code": "yes",
            "refresh_token": "yes",
            "require_pkce": "yes",
        },
        api=("PUT", CLIENT, {"client_name": "Wiki"}),
        command=("clients update {client_id} --name Wiki --json", "}"),
    ),
    Action(
        *("applications/{client_id}/new-secret", "client_secret_replaced", "secret_hash <> ''"),
        *("Creates 1 secret, which you’ll see once.", "Enter all three in the application."),
        api=("POST", f"{CLIENT}/regenerate_secret", {}),
        command=("clients rotate {client_id}", ""),
        before="UPDATE oauth_clients SET secret_hash = ''",
    ),
    Action(
        *("applications/{client_id}/end-old-secret", "client_secret_ended", "previous_secret_hash IS NULL"),
        *("Ends 1 old secret", "The old secret has ended."),
        api=("DELETE", f"{CLIENT}/previous_secret", {}),
        command=("clients end-old-secret {client_id}", "has no old secret anymore."),
    ),
    Action(
        *("applications/{client_id}/block", "client_changed", "is_blocked"),
        *("Blocks 1 application with 1 grant, and ends their sessions.", "Application blocked."),
        api=("PUT", CLIENT, {"is_blocked": True}),
        command=("clients update {client_id} --block --json", "}"),
    ),
    Action(
        *("applications/{client_id}/unblock", "client_changed", "NOT is_blocked"),
        *("Unblocks 1 application", "Application unblocked."),
        api=("PUT", CLIENT, {"is_blocked": False}),
        command=("clients update {client_id} --unblock --json", "}"),
        before="UPDATE oauth_clients SET is_blocked = true",
    ),
    Action(
        *("applications/{client_id}/delete", "client_deleted", "false"),
        *("Deletes 1 application with 1 grant, and ends the sessions of each.", "Application deleted."),
        api=("DELETE", CLIENT, {}),
        command=("clients delete {client_id}", "is deleted, and its sessions have ended."),
    ),
    Action(
        *("providers/{provider_id}/change", "provider_changed", "name = 'Acme Inc.'"),
        *("Changes 1 provider with 0 users.", "Provider changed."),
        fields={"name": "Acme Inc.", "client_secret": ""},
        api=("PUT", PROVIDER, {"name": "Acme Inc."}),
        command=("providers change {provider_id} --name 'Acme Inc.'", "/callback"),
    ),
    Action(
        *("providers/{provider_id}/disable", "provider_disabled", "NOT enabled"),
        *("Disables 1 provider, Acme. Nobody can sign in with it any more.", "Provider disabled."),
        api=("PUT", PROVIDER, {"enabled": False}),
        command=("providers disable {provider_id} --yes", "All that it had opened has ended."),
    ),
    Action(
        *("providers/{provider_id}/enable", "provider_enabled", "enabled"),
        *("Enables 1 provider", "Provider enabled."),
        api=("PUT", PROVIDER, {"enabled": True}),
        command=("providers enable {provider_id} --yes", "Provider enabled."),
        before="UPDATE identity_providers SET enabled = false, disabled_at = now()",
    ),
    Action(
        *("providers/{provider_id}/delete", "provider_disabled provider_deleted", "false"),
        *("Deletes 1 provider, Acme, and the identities of 0 users there.", "Provider deleted."),
        api=("DELETE", PROVIDER, {}),
        command=("providers delete {provider_id} --yes", "is deleted."),
    ),
    Action(
        *("keys/{admin_key_id}/end", "admin_key_removed", "false"),
        *("Ends 1 key: billing, with users:read.", "Key ended."),
        command=("keys end {admin_key_id}", "billing is ended."),
    ),
]
EACH_DOOR = [(action, door) for action in EVERY_ACTION for door in action.doors()]


@pytest.fixture
def app(make_app):
    return make_app(AUTH_SSO="true", AUTH_API_KEYS="true")


@pytest.fixture
def is_done(database, ids):
    def is_done(action):
        table, column, _details = SUBJECTS[action.path.partition("/")[0]]
        return database.count(table, f"id = %(id)s AND ({action.effect})", id=ids[column]) == 1

    return is_done


@pytest.fixture
def by_console(armed, codes, ids, is_done):
    def do(action):
        page = armed.visit("/console/" + action.path.format(**ids))
        assert (page.status, action.confirms in words(page)) == (200, True), words(page)
        if code := {} if action.name in FREE else {"factor_code": codes.code(1)}:
            assert armed.press(f"/{action.name}", **action.fields).status == 422
        assert not is_done(action)
        assert action.says in words(armed.press(f"/{action.name}", **action.fields, **code))

    return do


@pytest.fixture
def by_many(armed, codes, ids, is_done):
    def do(action):
        armed.visit(f"/console/users/chosen/{action.name}?id={ids['user_id']}")
        code = {} if action.name in FREE else {"factor_code": codes.code(1)}
        armed.press(f"/{action.name}", **action.fields, **code)
        assert not is_done(action)
        assert "1 of 1 done." in words(armed.press(armed.page.url.rpartition("/")[2]))

    return do


@pytest.fixture
def by_api(client, service_role, ids):
    def do(action):
        method, path, body = action.api
        options = {"json": body} if body else {}
        response = client.open(path.format(**ids), method=method, headers=service_role, **options)
        assert response.status_code in (200, 204), response.text

    return do


@pytest.fixture
def by_command(app, ids):
    def do(action):
        line, printed = action.command
        result = run_command(app, *shlex.split(line.format(**ids)))
        assert (result.exit_code, result.output.rstrip().endswith(printed)) == (0, True), result.output

    return do


@pytest.mark.parametrize(
    ("action", "door"), EACH_DOOR, ids=lambda each: each if isinstance(each, str) else each.path
)
def test_action_does_and_records_the_same_by_each_door(
    request, client, ids, alice, carol, database, is_done, action, door
):
    do = request.getfixturevalue(f"by_{door}")
    insert_key(database, alice.id)
    client.post("/recover", json={"email": alice.email})
    database.run(action.before or NEEDS.get(action.name, "SELECT 1"))
    clear_history(database)
    last_message_at = database.value("SELECT max(created_at) FROM outbox")
    do(action)
    table, column, details = SUBJECTS[action.path.partition("/")[0]]
    assert database.count(table, "id = %(id)s", id=ids[column]) == (action.effect != "false")
    assert is_done(action) == (action.effect != "false")
    entries = database.all(
        "SELECT action, actor, details ->> 'administrator' AS by, details FROM audit_log"
        " WHERE reason IS NULL AND user_id IS DISTINCT FROM %(carol)s ORDER BY at, action",
        carol=carol.id,
    )
    actor = {"api": ("service_role", None), "command": ("command", None)}.get(door, ("user", carol.email))
    writes = action.writes.split()
    assert [row[:3] for row in entries] == [(name, *actor) for name in writes if "." not in name]
    expected = {name: value.format(**ids) for name, value in details.items()}
    assert all(row.details.items() >= expected.items() for row in entries)
    events = database.all(
        "SELECT kind FROM outbox WHERE channel = 'webhook' AND created_at > %(last)s ORDER BY kind",
        last=last_message_at,
    )
    assert [row.kind for row in events] == [name for name in writes if "." in name]


@pytest.mark.parametrize("things", ["sessions", "factors", "applications", "api-keys"])
def test_thing_of_an_administrator_or_of_another_user_is_left_alone(
    armed, codes, ids, alice, bob, carol, database, things
):
    insert_key(database, alice.id)
    table, action, id = {
        "sessions": ("sessions", "end", ids["session_id"]),
        "factors": ("factors", "remove", ids["factor_id"]),
        "applications": ("oauth_grants", "remove", ids["client_id"]),
        "api-keys": ("api_keys", "remove", database.value("SELECT id FROM api_keys")),
    }[things]
    paths = {f"{carol.id}/{things}/{id}": 403, f"{bob.id}/{things}/{id}": 404, f"{NO_ID}/{things}/{id}": 404}
    paths |= {f"{alice.id}/{things}/{absent}": 404 for absent in (NO_ID, "x")}
    for path, status in paths.items():
        assert armed.visit(f"/console/users/{path}/{action}").status == status, path
    # The thing goes while its confirmation is shown.
    assert armed.visit(f"/console/users/{alice.id}/{things}/{id}/{action}").status == 200
    database.run(f"DELETE FROM {table} WHERE user_id = %(id)s", id=alice.id)
    assert armed.press(f"/{action}", factor_code=codes.code(1)).status == 404


def test_every_declared_action_is_tested_by_its_command():
    assert {action.name for action in EVERY_ACTION if action.declared and action.command} == ACTIONS.keys()
