"""Gates as an administrator creates them: each is a client of the provider, with the origin of its tool."""

from typing import Any

from psycopg2.errors import UniqueViolation

from auth.core.net.networks import is_loopback
from auth.openid import clients, uris
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from sql import queries

CALLBACK = "/.latchkey/callback"
# What `Remote-*` says. Without openid: nobody reads an ID token of a gate.
SCOPES = ("profile", "email", "groups", "roles")


def create(name: str, url: str, roles: list[str]) -> dict[str, Any]:
    """Create the gate in front of the tool at `url`, and return its client's object. Raises `ApiError`.

    Users are not asked for consent: the administrator gives it here.
    """
    origin = check_origin(url)
    body = {
        "client_name": name,
        "client_uri": origin,
        "redirect_uris": [origin + CALLBACK],
        "grant_types": ["authorization_code"],
        "scopes": list(SCOPES),
        "allowed_roles": roles,
        "skip_consent": True,
    }
    try:
        return clients.create(body, gate_origin=origin) | {"gate_origin": origin}
    except UniqueViolation:
        raise _refusal(f"{origin} has a gate already", url, "it has a gate already") from None


def delete(gate_id: str) -> None:
    """Delete a gate with its sessions. Raises `ApiError`, also for a client that is no gate."""
    if "gate_origin" not in clients.get(gate_id):
        raise ApiError("oauth_client_not_found")
    clients.delete(gate_id)


def at_host(host: str) -> "queries.SelectGate":
    """Return the row of the gate at a host, in the spelling of browsers. Raises `ApiError`."""
    return found(queries.select_gate(latchkey.db, host=host), "not_found")


def check_origin(url: str) -> str:
    """Return the origin of a gate, without the slash that browsers add. Raises `ApiError`."""
    try:
        parts = uris.split(url)
    except uris.InvalidUri as error:
        raise _refusal(str(error), url) from None
    origin = uris.plain_origin(parts)
    if url.removesuffix("/") != origin or not parts.hostname:
        raise _refusal("it must be an origin, in lower case, such as https://docs.example.com", url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise _refusal("it must begin with https://, unless its host is this machine", url)
    own = uris.split(latchkey.settings.base_url)
    if parts.hostname == own.hostname:
        raise _refusal("a gate needs a host of its own, not that of AUTH_BASE_URL", url)
    return origin


def _refusal(problem: str, url: str, why: str = "") -> ApiError:
    error = ApiError("client.validation_failed", f"URL: {problem}", problem=f"URL: {problem}")
    error.values |= {"field": "url", "rule": "uri", "uri": url, "why": why or problem}
    return error
