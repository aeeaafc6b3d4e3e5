"""An API for the users of Latchkey: flask --app api run --port 5000"""

import os
from typing import Any

import jwt
import requests
from flask import Flask, Response, jsonify, request

LATCHKEY = os.environ.get("LATCHKEY_URL", "http://localhost:8000")
# Where this API reaches it, if that is another address than the issuer of the tokens.
INTERNAL = os.environ.get("LATCHKEY_INTERNAL_URL", LATCHKEY)
SERVICE_ROLE_KEY = os.environ.get("LATCHKEY_SERVICE_ROLE_KEY", "")
KEYS = jwt.PyJWKClient(f"{INTERNAL}/.well-known/jwks.json", timeout=5)

app = Flask(__name__)


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


def bearer_token() -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


@app.errorhandler(jwt.PyJWTError)
def unauthorized(error: Exception) -> Response:
    app.logger.warning("Token refused: %r, expected from %s", error, LATCHKEY)
    return Response(status=401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})


@app.errorhandler(jwt.PyJWKClientConnectionError)
@app.errorhandler(requests.RequestException)
def unavailable(error: Exception) -> Response:
    app.logger.error("No answer from %s: %r", INTERNAL, error)
    return Response(status=503)


@app.get("/me")
def me() -> Response:
    claims = verify(bearer_token())
    return jsonify(id=claims["sub"], email=claims["email"])


# The audience says that no second step is missing; `aal` says whether there was one.
@app.get("/reports")
def reports() -> Response:
    claims = verify(bearer_token())
    if claims["role"] != "admin" or claims["aal"] != "aal2":
        return Response(status=403)
    return jsonify(reports=[])


@app.get("/drafts")
def drafts() -> Response:
    claims = verify(bearer_token())
    if "editor" not in claims.get("roles", []):
        return Response(status=403)
    return jsonify(drafts=[])


@app.post("/payments")
def pay() -> Response:
    token = bearer_token()
    claims = verify(token)
    if claims["is_anonymous"]:
        return Response(status=403)
    # An access token outlives a log-out. Ask where that matters, not for every request.
    if not is_active(token):
        raise jwt.InvalidTokenError("the session has ended")
    return jsonify(paid_by=claims["sub"])
