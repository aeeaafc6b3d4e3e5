"""Expected responses: the error envelope, the user object, the token response, the client object, and
placeholders for values that differ each time.
"""

import re
from typing import Any
from unittest import mock

from werkzeug.wrappers import Response

from auth import __version__
from tests.support.contract import described_members


class Like:
    """Equal to every string of a pattern."""

    def __init__(self, name: str, form: str) -> None:
        self._name = name
        self._form = re.compile(form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and bool(self._form.fullmatch(other))

    def __hash__(self) -> int:
        return hash(self._form)

    def __repr__(self) -> str:
        return f"<{self._name}>"


A_UUID = Like("a UUID", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
A_TIMESTAMP = Like("a timestamp in UTC", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)")
AN_ACCESS_TOKEN = Like("an access token", r"[\w-]+\.[\w-]+\.[\w-]+")
A_REFRESH_TOKEN = Like("a refresh token", r"[\w-]{56}")
A_CLIENT_SECRET = Like("a secret of an OAuth client", r"[\w-]{43}")
A_SENTENCE = Like("a sentence", r".*\S+ \S+.*")


ANYTHING = mock.ANY
INVALID = (400, "validation_failed")
NEEDED = (400, "reauthentication_needed")
LOW = (403, "insufficient_aal")
WRONG_CODE = (422, "mfa_verification_failed")
# An id that no row has.
NO_ID = "00000000-0000-0000-0000-000000000000"
DAY = 86_400
DIALECT = {"X-Supabase-Api-Version": "2024-01-01"}


def assert_error(
    response: Response,
    status: int,
    error_code: str,
    msg: Any = A_SENTENCE,
    details: Any = None,
    **members: Any,
) -> None:
    """Assert that a whole response is an error envelope with the headers of every error."""
    expected = (
        {"code": status, "msg": msg, "error_code": error_code}
        | ({} if details is None else {"details": details})
        | members
    )
    assert (response.status_code, response.json) == (status, expected)
    assert response.mimetype == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["X-Request-Id"]
    assert response.headers.get("WWW-Authenticate") == (challenge(error_code) if status == 401 else None)
    assert ("Retry-After" in response.headers) == (status in (429, 503))
    assert ("Allow" in response.headers) == (status == 405)


def challenge(error_code: str) -> str:
    """Return the expected header WWW-Authenticate of a 401 of the API."""
    is_about_token = error_code not in ("no_authorization", "invalid_credentials")
    return 'Bearer realm="latchkey"' + (', error="invalid_token"' if is_about_token else "")


def assert_ok(response: Response, body: Any, status: int = 200) -> None:
    """Assert the status and the whole body of a response."""
    assert (response.status_code, response.json) == (status, body)
    assert response.mimetype == "application/json"


def page_of(page: int, per_page: int, total: int, total_pages: int) -> dict[str, int]:
    """Return the expected member `pagination` of a list."""
    return {"page": page, "per_page": per_page, "total": total, "total_pages": total_pages}


def unhealthy(msg: str) -> dict[str, Any]:
    """Return the expected response of GET /health at 503."""
    return {
        "status": "unhealthy",
        "service": "latchkey",
        "version": __version__,
        "timestamp": A_TIMESTAMP,
        "code": 503,
        "msg": msg,
        "error_code": "service_unavailable",
    }


def identity(provider: str, address: str, **changes: Any) -> dict[str, Any]:
    """Return an expected identity object."""
    expected = {
        "id": A_UUID,
        "identity_id": A_UUID,
        "user_id": A_UUID,
        "identity_data": {"sub": A_UUID, provider: address},
        "provider": provider,
        "last_sign_in_at": None,
        "created_at": A_TIMESTAMP,
        "updated_at": A_TIMESTAMP,
    }
    return expected | changes


class UserObject(dict[str, Any]):
    """Equals a user object even if that has further members, unless openapi.yaml describes them. The check of responses
    against it reports undescribed ones once, and tests/flows/account/test_user_get.py compares all members.
    """

    def __eq__(self, other: object) -> bool:
        described = self.keys() | described_members()
        return isinstance(other, dict) and dict(self) == {
            name: other[name] for name in other if name in described
        }

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __or__(self, changes: Any) -> Any:
        return UserObject({**self, **changes})


def user(email: str, **changes: Any) -> UserObject:
    """Return the expected user object of a user that an administrator created and confirmed, before the first
    sign-in.
    """
    expected = {
        "id": A_UUID,
        "aud": "authenticated",
        "role": "authenticated",
        "email": email,
        "email_confirmed_at": A_TIMESTAMP,
        "phone": None,
        "phone_confirmed_at": None,
        "confirmed_at": A_TIMESTAMP,
        "confirmation_sent_at": None,
        "invited_at": None,
        "last_sign_in_at": None,
        "app_metadata": {"provider": "email", "providers": ["email"]},
        "user_metadata": {},
        "identities": [identity("email", email, last_sign_in_at=changes.get("last_sign_in_at"))],
        "new_email": None,
        "email_change_sent_at": None,
        "new_phone": None,
        "phone_change_sent_at": None,
        "banned_until": None,
        "is_anonymous": False,
        "created_at": A_TIMESTAMP,
        "updated_at": A_TIMESTAMP,
    }
    return UserObject(expected | changes)


def token_response(of_user: dict[str, Any]) -> dict[str, Any]:
    """Return the expected token response."""
    return {
        "access_token": AN_ACCESS_TOKEN,
        "token_type": "bearer",
        "expires_in": 3600,
        "expires_at": ANYTHING,
        "refresh_token": A_REFRESH_TOKEN,
        "user": of_user,
    }


def oauth_client(**changes: Any) -> dict[str, Any]:
    """Return the expected object of an OAuth client that an administrator made with one redirect URI."""
    expected = {
        "client_id": A_UUID,
        "client_name": "",
        "client_type": "confidential",
        "token_endpoint_auth_method": "client_secret_basic",
        "accepts_either_method": "token_endpoint_auth_method" not in changes,
        "registration_type": "manual",
        "redirect_uris": ["https://app.example.com/callback"],
        "post_logout_redirect_uris": [],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scopes": [],
        "resources": [],
        "allowed_roles": [],
        "require_pkce": True,
        "skip_consent": False,
        "introspects_sessions": False,
        "is_blocked": False,
        "token_lifetime": None,
        "id_token_signed_response_alg": "RS256",
        "created_at": A_TIMESTAMP,
        "updated_at": A_TIMESTAMP,
    }
    return expected | changes
