"""The end of a sign-in: its session, and the token response (RFC 6749, section 5.1)."""

import json
from dataclasses import dataclass
from typing import Any

from flask import Response

from auth.context import latchkey
from auth.tokens.access_tokens import SECOND_STEP
from auth.web import g
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from sql import Transaction


@dataclass(frozen=True)
class Outcome:
    """The result of a sign-in: a session (a row of `open_session`), an authorization code, or a refusal.

    `undone_to` is the address that an undone change has given back.
    """

    session: Any = None
    authorization_code: str | None = None
    refusal: ApiError | None = None
    redirect_to: str | None = None
    recent_changes: list[dict[str, Any]] | None = None
    undone_to: str | None = None
    # A link that another browser asked for: the application gets nothing.
    is_elsewhere: bool = False


def open_session(tx: Transaction, user_id: str, method: str) -> Any:
    """Open a session of a user whose row is locked, and return its row."""
    return tx.one("open_session", user_id=user_id, method=method, **g.client)


def raise_session(tx: Transaction, session_id: str, method: str, factor_id: str | None) -> Any:
    """Raise a session of a user whose row is locked to `aal2`, and return its row."""
    columns = {"session_id": session_id, "method": method, "factor_id": factor_id}
    return tx.one("raise_session", **columns, network=g.client["network"])


def see_other(url: str) -> Response:
    # Not `redirect`: its page repeats the tokens.
    return Response(status=303, headers={"Location": url})


def token_response(row: Any, **members: Any) -> Response:
    # Postgres has written the user as JSON.
    body = json.dumps(members | tokens(row))
    return JsonResponse(f'{body[:-1]}, "user": {row.user_object}}}')


def tokens(row: Any) -> dict[str, Any]:
    """Return the tokens of a session, a row of `open_session`."""
    user, access_tokens = json.loads(row.user_object), latchkey.access_tokens
    lacks_step = row.lacks_step and latchkey.settings.mfa_tokens == SECOND_STEP
    level = {"aal": row.aal, "amr": row.amr, "lacks_step": lacks_step}
    return {
        "access_token": access_tokens.issue(user, row.session_id, row.issued_at, **level),
        "token_type": "bearer",
        "expires_in": access_tokens.lifetime,
        "expires_at": row.issued_at + access_tokens.lifetime,
        "refresh_token": latchkey.refresh_tokens.make(row.session_id, row.counter),
    }
