"""An API for the users of Latchkey: python api.py runserver 5000"""

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import jwt
import requests
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

LATCHKEY = os.environ.get("LATCHKEY_URL", "http://localhost:8000")
# Where this API reaches it, if that is another address than the issuer of the tokens.
INTERNAL = os.environ.get("LATCHKEY_INTERNAL_URL", LATCHKEY)
SERVICE_ROLE_KEY = os.environ.get("LATCHKEY_SERVICE_ROLE_KEY", "")
KEYS = jwt.PyJWKClient(f"{INTERNAL}/.well-known/jwks.json", timeout=5)

log = logging.getLogger(__name__)


def verify(token: str) -> dict[str, Any]:
    """Return the claims of an access token. Raises `jwt.PyJWTError`."""
    key = KEYS.get_signing_key_from_jwt(token)
    expected: Any = {"algorithms": ["ES256"], "issuer": LATCHKEY, "audience": "authenticated"}
    required: Any = {"require": ["exp", "sub", "session_id"]}
    claims: dict[str, Any] = jwt.decode(token, key, **expected, leeway=10, options=required)
    if "client_id" in claims:
        raise jwt.InvalidTokenError("issued to a client, not for a session")
    return claims


def is_active(token: str) -> bool:
    """Ask Latchkey whether the user is still signed in."""
    headers = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}
    response = requests.post(f"{INTERNAL}/introspect", data={"token": token}, headers=headers, timeout=5)
    response.raise_for_status()
    return response.json()["active"]


class BearerMiddleware:
    """Keep the token of a request in `request.token`, and answer the errors of `verify` and `is_active`."""

    def __init__(self, get_response: Callable[[Any], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        request.token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, jwt.PyJWKClientConnectionError | requests.RequestException):
            log.error("No answer from %s: %r", INTERNAL, error)
            return HttpResponse(status=503)
        if isinstance(error, jwt.PyJWTError):
            log.warning("Token refused: %r, expected from %s", error, LATCHKEY)
            return HttpResponse(status=401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
        return None


@require_GET
def me(request: Any) -> JsonResponse:
    claims = verify(request.token)
    return JsonResponse({"id": claims["sub"], "email": claims["email"]})


# The audience says that no second step is missing; `aal` says whether there was one.
@require_GET
def reports(request: Any) -> HttpResponse:
    claims = verify(request.token)
    if claims["role"] != "admin" or claims["aal"] != "aal2":
        return HttpResponse(status=403)
    return JsonResponse({"reports": []})


@require_GET
def drafts(request: Any) -> HttpResponse:
    claims = verify(request.token)
    if "editor" not in claims.get("roles", []):
        return HttpResponse(status=403)
    return JsonResponse({"drafts": []})


# Browsers do not send the header on their own, so no other site can forge such a request.
@csrf_exempt
@require_POST
def pay(request: Any) -> HttpResponse:
    claims = verify(request.token)
    if claims["is_anonymous"]:
        return HttpResponse(status=403)
    # An access token outlives a log-out. Ask where that matters, not for every request.
    if not is_active(request.token):
        raise jwt.InvalidTokenError("the session has ended")
    return JsonResponse({"paid_by": claims["sub"]})


urlpatterns = [path("me", me), path("reports", reports), path("drafts", drafts), path("payments", pay)]

# Yours are in settings.py.
settings.configure(
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[f"{__name__}.BearerMiddleware"],
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
)

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
