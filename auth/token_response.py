"""The token response, RFC 6749, section 5.1: what every way to sign in ends with."""

from typing import Any

from flask import json

from auth.context import latchkey


def token_response(row: Any, method: str, signed_in_at: int | None = None) -> dict[str, Any]:
    """Return the response for the session of a row: `user_object`, `session_id`, `counter`, `issued_at`.

    `method` is how the session was signed in to, and `signed_in_at` when (Unix seconds), unless that is just now: claim `amr`.
    """
    user = json.loads(row.user_object)
    lifetime = latchkey.access_tokens.lifetime
    return {
        "access_token": latchkey.access_tokens.issue(user, row.session_id, method, row.issued_at, signed_in_at or row.issued_at),
        "token_type": "bearer",
        "expires_in": lifetime,
        "expires_at": row.issued_at + lifetime,
        "refresh_token": latchkey.refresh_tokens.make(row.session_id, row.counter),
        "user": user,
    }
