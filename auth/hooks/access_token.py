"""The hook of access tokens, which adds and changes claims (GoTrue's `customize-access-token`).

A SQL function is called in the transaction that issues the token. An HTTP hook must not be: it may call the
admin API, which would wait for the locked user. So that transaction runs twice: rolled back where it would
ask, and again with the answer. Either way a hook that refuses or fails leaves nothing behind: no session, no
spent link, and the client's refresh token still works.
"""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeVar

import psycopg2

from auth.context import latchkey
from auth.hooks import http
from auth.hooks.http import Hook, HookFailed, HookRefused
from auth.senders import hooks
from auth.tokens.access_tokens import SERVICE_ROLES
from auth.web import audit, g
from auth.web.error_handlers import as_api_error
from auth.web.errors import unavailable
from sql import Transaction, queries

P = ParamSpec("P")
T = TypeVar("T")
# These come back as they went, or in the second line not at all, from hooks that want a small token.
_FIXED = {"sub", "aud", "exp", "iat", "nbf", "session_id", "client_id", "api_key_id", "scope", "nonce", "aal",
          "next_aal", "is_anonymous"}  # fmt: skip
_FIXED_IF_KEPT = {"iss", "jti", "amr"}
_NEEDED = {"role", "email", "phone"}
_TYPES = dict.fromkeys(_NEEDED, str) | {"app_metadata": dict, "user_metadata": dict}
# In a header of 32 KiB, as base64.
MOST_BYTES = 23 * 1024


class _Unasked(Exception):
    """Rolls back a transaction that needs the answer of an HTTP hook."""

    def __init__(self, hook: Hook, event: dict[str, Any]) -> None:
        super().__init__("the hook has not been asked yet")
        self.hook = hook
        self.event = event


class _Rollback(Exception):
    pass


def hook() -> Hook | None:
    return latchkey.settings.hook("custom_access_token")


def asked(issue: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that issues a token in its only transaction, one of `transaction`.

    With an HTTP hook it runs twice. It raises the `ApiError` of a hook that refuses or fails.
    """

    @functools.wraps(issue)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        g.hook_answer = None
        try:
            try:
                return issue(*args, **kwargs)
            except _Unasked as unasked:
                answer, sent = http.call(unasked.hook, unasked.event), unasked.event["claims"]
                g.hook_answer = sent, checked(unasked.hook.name, sent, answer)
            return issue(*args, **kwargs)
        except (HookRefused, HookFailed) as error:
            raise as_api_error(error) from error

    return run


@contextmanager
def transaction() -> Iterator[Transaction]:
    """Begin a transaction that may issue a token. In the second run, a new session gets the same id."""
    with latchkey.db.transaction() as tx:
        if g.hook_answer:
            queries.reuse_session_id(tx, session_id=g.hook_answer[0].get("session_id", ""))
        yield tx


def customize(tx: Transaction, claims: dict[str, Any], method: str) -> dict[str, Any]:
    """Return the claims as the hook wants them. `method` is how the user authenticated.

    Call it last in a transaction of a function that `asked` decorates.
    """
    found = hook()
    if found is None:
        return claims
    audit.about(user_id=claims["sub"])
    event = event_of(found, claims, method)
    if found.function:
        answer = http.spared(found, functools.partial(call_function, tx, found.name, found.function, event))
        return checked(found.name, claims, answer)
    if g.hook_answer is None:
        raise _Unasked(found, event)
    sent, answer = g.hook_answer
    if any(sent.get(name) != claims.get(name) for name in ("sub", "session_id")):
        # Meanwhile another request has changed whom this one signs in.
        raise unavailable()
    # Times and level are those of what is committed.
    answer = {name: value for name, value in answer.items() if name not in _FIXED}
    return answer | {name: claims[name] for name in (_FIXED | {"amr"} & answer.keys()) & claims.keys()}


def event_of(hook: Hook, claims: dict[str, Any], method: str) -> dict[str, Any]:
    """Return the request to the hook."""
    members = {"user_id": claims["sub"], "claims": claims, "authentication_method": method}
    return {"metadata": http.metadata(hook), **members}


def call_function(
    tx: Transaction, name: str, function: tuple[str, str], event: dict[str, Any]
) -> dict[str, Any]:
    """Return the answer of a SQL function. Raises `HookRefused` or `HookFailed`; roll back then."""
    queries.bound_hook(tx)
    try:
        result = tx.call(function, event)
    except psycopg2.Error as error:
        # Without a code, or with that of a shutdown, Postgres itself is away.
        if not error.pgcode or error.pgcode.startswith(("08", "57P")):
            raise
        reason = f"{error.pgcode}: {error.diag.message_primary}"
        raise HookFailed(name, reason, is_down=error.pgcode == "57014") from error
    return hooks.parse(name, result or "null")


def try_function(name: str, function: tuple[str, str], event: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a SQL function whose changes are rolled back. Raises as `call_function` does."""
    answer: dict[str, Any] = {}
    with suppress(_Rollback), latchkey.db.transaction() as tx:
        answer = call_function(tx, name, function, event)
        raise _Rollback
    return answer


def checked(name: str, sent: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the claims in the answer of a hook, after checks. Raises `HookFailed`."""
    claims = answer.get("claims")
    if not isinstance(claims, dict):
        raise HookFailed(name, "its answer has no claims")
    kept = _FIXED | _FIXED_IF_KEPT & claims.keys()
    problems = {
        "changes": [claim for claim in kept if _text(claims, claim) != _text(sent, claim)],
        "lacks": _NEEDED - claims.keys(),
        "has another type for": [
            claim for claim, wanted in _TYPES.items() if type(claims.get(claim, wanted())) is not wanted
        ],
    }
    for problem, found in problems.items():
        if found:
            raise HookFailed(name, f"its answer {problem} {', '.join(sorted(found))}")
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


def _text(claims: dict[str, Any], name: str) -> str | None:
    # In Python, 1 equals true.
    return json.dumps(claims[name], sort_keys=True) if name in claims else None
