"""The hook of access tokens, which adds and changes claims (GoTrue's `customize-access-token`).

It runs outside the transaction that issues the token: an HTTP hook may call the admin API, which would wait
for the locked user, and a SQL function has its own transaction. See auth/flows/sessions/issuing.py.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import psycopg2

from auth.core.settings.values.hooks import Hook
from auth.core.tokens.access_tokens import SERVICE_ROLES
from auth.extensions.hooks import http_hooks, turns
from auth.extensions.hooks.http_hooks import HookFailed
from auth.flows.sessions.issuing import OWN_CLAIMS
from auth.registry import HookContext
from sql import Transaction, queries

# A hook returns these unchanged, or omits them for a small token.
_FIXED_IF_KEPT = {"iss", "jti", "amr"}
_NEEDED = {"role", "email", "phone"}
_TYPES = dict.fromkeys(_NEEDED, str) | {"app_metadata": dict, "user_metadata": dict}
# In a header of 32 KiB, as base64.
MOST_BYTES = 23 * 1024


def ask(hook: Hook, context: HookContext, claims: Mapping[str, object], method: str) -> dict[str, Any]:
    """Return a token's claims as the hook wants them, or refuse. `method` is how the user authenticated."""
    user_id, event = str(claims["sub"]), event_of(context, hook, claims, method)
    with turns.asking(context, hook, user_id):
        if hook.function:
            with context.db.transaction() as tx:
                return checked(hook.name, claims, call_function(tx, hook.name, hook.function, event))
        return checked(hook.name, claims, http_hooks.ask(hook, f"msg_{uuid.uuid4()}", event))


def event_of(context: HookContext, hook: Hook, claims: Mapping[str, object], method: str) -> dict[str, Any]:
    """Return the request to the hook."""
    members = {"user_id": claims["sub"], "claims": claims, "authentication_method": method}
    return {"metadata": turns.metadata(context, hook), **members}


def call_function(
    tx: Transaction, name: str, function: tuple[str, str], event: dict[str, object]
) -> dict[str, Any]:
    """Return the answer of a SQL function. Raises `HookRefused` or `HookFailed`."""
    queries.bound_hook(tx)
    try:
        result = tx.call(function, event)
    except psycopg2.Error as error:
        # An error without a code, or with the code of a shutdown, means that Postgres is unavailable.
        if not error.pgcode or error.pgcode.startswith(("08", "57P")):
            raise
        raise HookFailed(name, f"{error.pgcode}: {error.diag.message_primary}") from error
    return http_hooks.parse(name, result or "null")


def checked(name: str, sent: Mapping[str, object], answer: Mapping[str, object]) -> dict[str, Any]:
    """Check and return the claims in a hook's answer. Raises `HookFailed`."""
    claims = answer.get("claims")
    if not isinstance(claims, dict):
        raise HookFailed(name, "its answer has no claims")
    fixed = OWN_CLAIMS | _FIXED_IF_KEPT & claims.keys()
    problems = {
        "changes": [claim for claim in fixed if _text(claims, claim) != _text(sent, claim)],
        "lacks": _NEEDED - claims.keys(),
        "has another type for": [
            claim for claim, wanted in _TYPES.items() if type(claims.get(claim, wanted())) is not wanted
        ],
    }
    for problem, names in problems.items():
        if names:
            raise HookFailed(name, f"its answer {problem} {', '.join(sorted(names))}")
    if claims["role"] in SERVICE_ROLES:
        raise HookFailed(name, f"its answer has the role {claims['role']}")
    claims = {"iss": sent["iss"], **claims}
    try:
        size = len(json.dumps(claims, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        raise HookFailed(name, "its claims have a number or a character that JSON does not allow") from None
    if size > MOST_BYTES:
        raise HookFailed(name, f"its claims have {size} bytes, more than {MOST_BYTES}")
    return claims


def _text(claims: Mapping[str, object], name: str) -> str | None:
    # In Python, 1 equals true.
    return json.dumps(claims[name], sort_keys=True) if name in claims else None
