"""The actions of administrators on a user, each declared once: its flow, and its words at every door.

The console, actions on many users and `latchkey users` are made of this table. The API calls the same flows.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auth.core.json_bodies import JsonObject
from auth.core.text.labels import counted
from auth.core.text.moments import until
from auth.flows.admin import schemas, users
from auth.flows.admin.actions import AdminAction
from auth.flows.passkeys import passkeys
from auth.web.asked import Asked
from sql import queries

NEVER = "This can’t be undone."


@dataclass(frozen=True)
class Many:
    """The words of an action on many users, with {users}, {sessions} and {keys} in numbers."""

    title: str
    # What the users are afterwards: `banned`.
    past: str
    effect: str
    # The effect if none of the users is signed in, which {nobody} says.
    effect_signed_out: str
    undo: str
    effect_on_keys: str = ""


@dataclass(frozen=True)
class Command:
    """The words of `latchkey users NAME`.

    `said` follows the name of the user, and gets what the flow returned. An empty `question` is not
    asked.
    """

    name: str
    summary: str
    help: str
    example: str
    said: Callable[[Mapping[str, Any]], str]
    question: Callable[["queries.SelectSummary"], str] | None = None


@dataclass(frozen=True, kw_only=True)
class UserAction(AdminAction):
    """An action on a user.

    `flow` gets the id of the user and what `form` loads, and returns what `--json` prints. `effects` returns
    sentences about the effects, in numbers; empty ones are left out.
    """

    flow: Callable[[Asked, str, JsonObject], Mapping[str, Any]]
    effects: Callable[["queries.SelectEffects"], Iterable[str]]
    command: Command
    many: Many | None = None


def name_of(user: "queries.SelectEffects | queries.SelectSummary | queries.DescribeUsers") -> str:
    return user.email or user.phone or user.id


def _ban(asked: Asked, id: str, options: JsonObject) -> Mapping[str, Any]:
    body = {"ban_duration": options["ban_duration"]}
    return {"banned_until": json.loads(users.update_user(asked, id, body))["banned_until"]}


def _unban(asked: Asked, id: str, options: JsonObject) -> Mapping[str, Any]:
    """Lift a ban. The command can also void the password."""
    password, password_hash = users.void_password(asked, id) if options.get("void_password") else ({}, None)
    users.update_user(asked, id, {"ban_duration": None} | password, password_hash)
    return {"banned_until": None}


def _delete(asked: Asked, id: str, _options: JsonObject) -> Mapping[str, Any]:
    users.delete_user(asked, id)
    return {}


def _ended(user: "queries.SelectEffects") -> str:
    counts = [counted(user.sessions, "session")] if user.sessions or not user.client_sessions else []
    if user.client_sessions:
        counts.append(f"{counted(user.client_sessions, 'session')} of applications that sign in here")
    return f"Ends {', and '.join(counts)}."


def _keys(user: "queries.SelectEffects") -> str:
    return counted(user.api_keys, "API key")


ACTIONS = {
    "end-sessions": UserAction(
        title="Sign out everywhere",
        flow=lambda asked, id, _options: {"api_keys": users.end_sessions(asked, id).api_keys},
        effects=lambda user: [
            _ended(user),
            f"Leaves {_keys(user)}, which you can remove on the user’s page." if user.api_keys else "",
        ],
        undo=f"{NEVER} They can sign in again.",
        done="All sessions ended.",
        is_destructive=True,
        many=Many(
            title="Sign out",
            past="signed out",
            effect="Ends {sessions} of {users}.",
            effect_signed_out="{nobody}",
            undo="They can sign in again.",
            effect_on_keys="Leaves {keys}, which you can remove on the users’ pages.",
        ),
        command=Command(
            "sign-out",
            "End all sessions of a user.",
            "End all sessions of a user, also those of applications. They can sign in again.",
            "alice@example.com",
            lambda outcome: (
                f"is signed out everywhere. API keys that still work: {outcome['api_keys']}."
                if outcome["api_keys"]
                else "is signed out everywhere."
            ),
        ),
    ),
    "reset-two-step": UserAction(
        title="Reset two-step",
        flow=lambda asked, id, _options: {"removed": passkeys.remove_all(asked, id)},
        effects=lambda user: [
            f"Removes {counted(user.factors, 'factor or passkey', 'factors and passkeys')},"
            " and the recovery codes.",
            "Sessions that used them lose their second step. The user gets a notice.",
        ],
        undo="The user can set them up again. Check first who asks: anyone with the password or mailbox can"
        " sign in afterwards.",
        done="Two-step verification is reset.",
        needs_factor=True,
        is_destructive=True,
        command=Command(
            "remove-factors",
            "Remove all second factors and passkeys of a user.",
            "Remove all second factors, passkeys and recovery codes of a user who has lost them.\n\n"
            "The user gets a notice. Check first who asks: anyone with the password or mailbox can sign in"
            " afterwards.",
            "alice@example.com",
            lambda _outcome: "has no second factor or passkey.",
            question=lambda user: (
                f"Remove {', '.join(user.factors)} of {name_of(user)}?" if user.factors else ""
            ),
        ),
    ),
    "ban": UserAction(
        title="Ban",
        flow=_ban,
        effects=lambda user: [
            _ended(user),
            f"Voids {counted(user.links, 'unused link or code', 'unused links and codes')}."
            if user.links
            else "",
            f"Removes {_keys(user)}." if user.api_keys else "",
        ],
        undo="Lifting the ban lets them sign in again. What ends now stays ended.",
        done="User banned.",
        form=schemas.Ban,
        is_destructive=True,
        many=Many(
            title="Ban",
            past="banned",
            effect="Bans {users} and signs out {sessions}, which stay ended.",
            effect_signed_out="Bans {users}. {nobody}",
            undo="You can lift the ban later.",
            effect_on_keys="Removes {keys}.",
        ),
        command=Command(
            "ban",
            "Ban a user, and end their sessions.",
            "Ban a user, and end their sessions. Links and codes that they have stop working.",
            "mallory@example.com --for 24h",
            lambda outcome: f"is banned {until(outcome['banned_until'])}.",
        ),
    ),
    "unban": UserAction(
        title="Lift the ban",
        flow=_unban,
        effects=lambda _user: ["Lets 1 user sign in again. Ended sessions stay ended."],
        undo="You can ban them again.",
        done="Ban lifted.",
        command=Command(
            "unban",
            "Lift a user's ban.",
            "Lift a user's ban. Sessions that it ended stay ended.",
            "alice@example.com --void-password",
            lambda _outcome: "is not banned.",
        ),
    ),
    "unlock": UserAction(
        title="Clear the lock",
        flow=lambda asked, id, _options: {"cleared": users.clear_locks(asked, id)},
        effects=lambda user: [f"Lets {name_of(user)} try again now."],
        undo="Check first that it’s really them: someone else may have been guessing.",
        done="Lock cleared.",
        command=Command(
            "unlock",
            "Forget a user's wrong passwords and codes.",
            "Forget a user's wrong passwords and codes, so that they can try again.",
            "alice@example.com",
            lambda outcome: "can try again." if outcome["cleared"] else "has no wrong passwords or codes.",
        ),
    ),
    "delete": UserAction(
        title="Delete",
        flow=_delete,
        effects=lambda user: [
            f"Deletes 1 user with {counted(user.identities, 'identity', 'identities')},"
            f" {counted(user.sessions, 'session')}, {counted(user.factors, 'factor')}"
            f"{', ' + _keys(user) if user.api_keys else ''}, and their metadata.",
            "The audit log keeps their history.",
        ],
        undo=NEVER,
        done="User deleted.",
        needs_factor=True,
        is_destructive=True,
        many=Many(
            title="Delete",
            past="deleted",
            effect="Deletes {users} with all that belongs to them, and signs out {sessions}.",
            effect_signed_out="Deletes {users} with all that belongs to them. {nobody}",
            undo=f"{NEVER} The audit log keeps their history.",
        ),
        command=Command(
            "delete",
            "Delete a user.",
            "Delete a user with everything that belongs to them, but the audit log. This cannot be undone.",
            "mallory@example.com",
            lambda _outcome: "is deleted.",
            question=lambda user: f"Delete {name_of(user)} ({user.id}, created {user.created_at[:10]})?",
        ),
    ),
}
