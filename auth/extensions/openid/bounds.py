"""What a client may get: its grant types, scopes and a resource.

An authorization request, that of a device, a code, a poll, a refresh and the client itself are decided here:
what a request may not have, no later one gets, and what a client may no longer have is not in its next token.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Self

from auth.core.settings import Settings
from auth.extensions.openid import audience, memberships
from auth.extensions.openid.oauth_errors import OAuthError
from auth.rules.clients import is_same_resource, spelled_in
from auth.web.context import Latchkey
from sql import queries

REPLACES_ALL = "which replaces all: repeat it for each"


class Bounds(NamedTuple):
    """The bounds of a client: columns of its row. Without `scopes`, it may have all that are about users."""

    client_id: str
    grant_types: Collection[str]
    scopes: Collection[str]
    resources: Collection[str]
    is_dynamic: bool

    @classmethod
    def of(cls, row: "queries.SelectClient") -> Self:
        return cls(row.id, row.grant_types, row.scopes, row.resources, row.is_dynamic)

    @classmethod
    def of_grant(cls, row: "queries.SelectOauthCode | queries.LockClientSession") -> Self:
        """Return the bounds of the client that a code or a session is of."""
        return cls(row.client_id, row.grant_types, row.client_scopes, row.resources, row.is_dynamic)

    def update(self, options: str) -> str:
        """Return the command that changes the client, for the log."""
        return f"latchkey clients update {self.client_id} {options}"


def every_scope(settings: Settings) -> list[str]:
    """Return the scopes that clients may request: those about users, and those of APIs."""
    of_apis = (scope for each in settings.oauth_api_scopes.values() for scope in each)
    return list(dict.fromkeys([*memberships.OF_USERS, *memberships.scopes(settings), *of_apis]))


def require(client: Bounds, grant_type: str) -> None:
    """Raises `OAuthError` unless a client may use a grant."""
    if grant_type not in client.grant_types:
        remedy = client.update(f"--grant {grant_type}, {REPLACES_ALL}")
        description = f"the client is not registered for {grant_type}"
        raise OAuthError("unauthorized_client", description, remedy=remedy)


def of_request(
    parts: Latchkey, client: Bounds, parameters: Mapping[str, str]
) -> tuple[list[str], str | None]:
    """Return the scopes and the resource of a request for a user's consent. Raises `OAuthError`."""
    requested = parameters.get("resource")
    audience.of_token(parts, requested)
    resource = _resource(parts.settings, client, requested)
    return _scopes(parts.settings, client, parameters.get("scope", "email").split(" "), resource), resource


def _resource(settings: Settings, client: Bounds, requested: str | None) -> str | None:
    """Return a resource as it is registered. Raises `OAuthError` if the client may not use it."""
    if requested is None:
        return None
    # The page shows the resource for a client that registered itself. Other clients may skip consent.
    if client.is_dynamic:
        return spelled_in(settings.oauth_api_scopes, requested) or requested
    if spelled := spelled_in(client.resources, requested):
        return spelled
    remedy, sent = client.update(f"--resource URI, {REPLACES_ALL}"), {"resource": requested}
    raise OAuthError("invalid_target", "resource must be one of the client's", remedy=remedy, sent=sent)


def _scopes(
    settings: Settings, client: Bounds, requested: Collection[str], resource: str | None
) -> list[str]:
    """Return the scopes among some that a client may have for a resource. Raises `OAuthError` without any."""
    of_apis = settings.oauth_api_scopes
    api = resource and spelled_in(of_apis, resource)
    available = (*memberships.OF_USERS, *memberships.scopes(settings), *(of_apis[api] if api else ()))
    allowed = [scope for scope in available if scope in (client.scopes or available)]
    named = memberships.named(settings, requested, client.scopes)
    replaced = [memberships.ONE] if named else []
    scopes = [scope for scope in allowed if scope in requested and scope not in replaced] + named
    if not scopes:
        remedy = client.update(f"--scope SCOPE, {REPLACES_ALL}") if client.scopes else None
        description = f"scope must include one of {' '.join(allowed)}, separated by spaces"
        if not allowed:
            description = "none of the client's scopes is about a user"
        raise OAuthError("invalid_scope", description, remedy=remedy, sent={"scope": " ".join(requested)})
    return scopes


def of_grant(
    settings: Settings,
    client: Bounds,
    row: "queries.SelectOauthCode | queries.LockClientSession",
    body: Mapping[str, str],
    requested: Sequence[str] | None = None,
) -> tuple[list[str], str | None]:
    """Return the scopes and the resource of a grant's tokens: what the client may still have of what it got.

    A body may repeat the resource of the grant, and `requested` scopes may be fewer. Raises `OAuthError`.
    """
    sent = body.get("resource")
    if sent is not None and (row.resource is None or not is_same_resource(sent, row.resource)):
        description = "resource: must be that of the authorization request"
        raise OAuthError("invalid_target", description, sent={"resource": sent})
    resource = _resource(settings, client, row.resource)
    wanted = row.scopes if requested is None else requested
    allowed = _scopes(settings, client, wanted, resource)
    if not set(allowed) <= set(row.scopes):
        description = "scope: must be among the scopes of the authorization request"
        raise OAuthError("invalid_scope", description, sent={"scope": " ".join(requested or ())})
    return [scope for scope in wanted if scope in allowed], resource


def of_client(settings: Settings, client: Bounds, body: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Return the scopes and the resource of a token for the client itself. Raises `OAuthError`."""
    requested = requested_scopes(body)
    scopes = [*client.scopes] if requested is None else requested
    if requested == [] or not set(scopes) <= set(client.scopes):
        description = "scope: must be among the scopes of the client"
        raise OAuthError("invalid_scope", description, sent={"scope": body["scope"]})
    return scopes, _resource(settings, client, body.get("resource"))


def requested_scopes(body: Mapping[str, str]) -> list[str] | None:
    """Return the scopes of a body, once each, or None without the parameter."""
    return list(dict.fromkeys(filter(None, body["scope"].split(" ")))) if "scope" in body else None
