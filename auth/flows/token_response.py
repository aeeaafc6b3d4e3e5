"""The end of every sign-in: the token response (RFC 6749, section 5.1), or a redirect with the same."""

import json
from typing import Any

from flask import Response

from auth.context import latchkey
from auth.net.redirects import with_fragment, with_query
from auth.web import audit
from auth.web.application import JsonResponse
from auth.web.errors import ApiError


def redirect_with_tokens(target: str, row: Any, method: str, link_type: str | None = None) -> Response:
    """Redirect a browser with the tokens of a session in the fragment."""
    return see_other(with_fragment(target, tokens(row, method) | ({"type": link_type} if link_type else {})))


def redirect_with_code(target: str, authorization_code: str) -> Response:
    """Redirect a browser with the code that its application exchanges for tokens (RFC 7636)."""
    return see_other(with_query(target, {"code": authorization_code}))


def redirect_with_error(target: str, error: str, refusal: ApiError) -> Response:
    """Redirect to the target with an error in the fragment; `error` is one of RFC 6749, section 4.1.2.1."""
    audit.refused(refusal.error_code)
    members = {"error": error, "error_code": refusal.error_code, "error_description": refusal.msg}
    return see_other(with_fragment(target, members))


def see_other(url: str) -> Response:
    """Return a redirect without Werkzeug's page, which would repeat the tokens."""
    return Response(status=303, headers={"Location": url})


def token_response(row: Any, method: str, signed_in_at: int | None = None, **members: Any) -> Response:
    """Return the token response for the session of a row, as for `tokens`, with further members."""
    # Postgres has written the user as JSON already.
    return JsonResponse(
        f'{json.dumps(members | tokens(row, method, signed_in_at))[:-1]}, "user": {row.user_object}}}'
    )


def tokens(row: Any, method: str, signed_in_at: int | None = None) -> dict[str, Any]:
    """Return the tokens for the session of a row: `user_object`, `session_id`, `counter`, `issued_at`.

    `method` and `signed_in_at` (in Unix seconds; None: now) become the claim `amr`.
    """
    user, lifetime = json.loads(row.user_object), latchkey.access_tokens.lifetime
    return {
        "access_token": latchkey.access_tokens.issue(
            user, row.session_id, method, row.issued_at, signed_in_at or row.issued_at
        ),
        "token_type": "bearer",
        "expires_in": lifetime,
        "expires_at": row.issued_at + lifetime,
        "refresh_token": latchkey.refresh_tokens.make(row.session_id, row.counter),
    }
