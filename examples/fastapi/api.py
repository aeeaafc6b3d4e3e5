"""An API for the users of Latchkey: uvicorn api:app --port 5000"""

import logging
import os
from typing import Annotated, Any

import httpx
import jwt
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

LATCHKEY = os.environ.get("LATCHKEY_URL", "http://localhost:8000")
# Where this API reaches it, if that is another address than the issuer of the tokens.
INTERNAL = os.environ.get("LATCHKEY_INTERNAL_URL", LATCHKEY)
SERVICE_ROLE_KEY = os.environ.get("LATCHKEY_SERVICE_ROLE_KEY", "")
KEYS = jwt.PyJWKClient(f"{INTERNAL}/.well-known/jwks.json", timeout=5)

PROJECTS: dict[str, set[str]] = {}  # by organization; yours are in a database

app = FastAPI()
log = logging.getLogger("uvicorn.error")
Credentials = Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]


# Not `async`: FastAPI runs it in a thread, as it may fetch the keys.
def verified(credentials: Credentials) -> dict[str, Any]:
    """Return the claims of the access token. Raises `jwt.PyJWTError`."""
    token = credentials.credentials
    key = KEYS.get_signing_key_from_jwt(token)
    expected: Any = {"algorithms": ["ES256"], "issuer": LATCHKEY, "audience": "authenticated"}
    required: Any = {"require": ["exp", "sub", "session_id"]}
    claims: dict[str, Any] = jwt.decode(token, key, **expected, leeway=10, options=required)
    if "client_id" in claims:
        raise jwt.InvalidTokenError("issued to a client, not for a session")
    return claims


Claims = Annotated[dict[str, Any], Depends(verified)]


async def active(credentials: Credentials, claims: Claims) -> dict[str, Any]:
    """Return the claims if Latchkey says that the user is still signed in. Raises `jwt.PyJWTError`."""
    headers = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}
    async with httpx.AsyncClient(timeout=5) as client:
        token = {"token": credentials.credentials}
        response = await client.post(f"{INTERNAL}/introspect", data=token, headers=headers)
    if not response.raise_for_status().json()["active"]:
        raise jwt.InvalidTokenError("the session has ended")
    return claims


@app.exception_handler(jwt.PyJWTError)
def unauthorized(request: Request, error: Exception) -> Response:
    log.warning("Token refused: %r, expected from %s", error, LATCHKEY)
    return Response(status_code=401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})


@app.exception_handler(jwt.PyJWKClientConnectionError)
@app.exception_handler(httpx.HTTPError)
def unavailable(request: Request, error: Exception) -> Response:
    log.error("No answer from %s: %r", INTERNAL, error)
    return Response(status_code=503)


@app.get("/me")
def me(claims: Claims) -> dict[str, str]:
    return {"id": claims["sub"], "email": claims["email"]}


# The audience says that no second step is missing; `aal` says whether there was one.
@app.get("/reports")
def reports(claims: Claims) -> dict[str, list[str]]:
    if claims["role"] != "admin" or claims["aal"] != "aal2":
        raise HTTPException(403)
    return {"reports": []}


@app.get("/drafts")
def drafts(claims: Claims) -> dict[str, list[str]]:
    if "editor" not in claims.get("roles", []):
        raise HTTPException(403)
    return {"drafts": []}


# Access tokens have the ids of organizations, and so have these paths.
def member(organization_id: str, claims: Claims) -> str:
    """Return the caller's role in an organization. Tokens of users without organizations lack the claim."""
    role = claims.get("organizations", {}).get(organization_id)
    if role is None:
        raise HTTPException(404)
    return role


Role = Annotated[str, Depends(member)]


@app.get("/organizations/{organization_id}/projects")
def projects(organization_id: str, role: Role) -> dict[str, list[str]]:
    return {"projects": sorted(PROJECTS.get(organization_id, ()))}


@app.put("/organizations/{organization_id}/projects/{name}")
def add_project(organization_id: str, name: str, role: Role) -> dict[str, list[str]]:
    if role not in ("owner", "admin"):
        raise HTTPException(403)
    PROJECTS.setdefault(organization_id, set()).add(name)
    return {"projects": sorted(PROJECTS[organization_id])}


# An access token outlives a log-out. Ask where that matters, not for every request.
@app.post("/payments")
def pay(claims: Annotated[dict[str, Any], Depends(active)]) -> dict[str, str]:
    if claims["is_anonymous"]:
        raise HTTPException(403)
    return {"paid_by": claims["sub"]}
