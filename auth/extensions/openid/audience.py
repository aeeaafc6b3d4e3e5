"""The audience of a client's access token: an API, and never a client of this or another provider.

Some libraries accept any token as an ID token if its `aud` is their client's id.
"""

from auth.core.net.redirects import parse_pattern
from auth.core.settings import Settings
from auth.core.tokens import client_ids
from auth.extensions.openid import uris
from auth.extensions.openid.oauth_errors import OAuthError
from auth.rules.clients import spelled_in
from auth.web.context import Latchkey
from sql import queries


def of_userinfo(settings: Settings) -> str:
    """Return the audience of a token without another resource (RFC 9068, section 3)."""
    return f"{settings.jwt_issuer}/oauth/userinfo"


def check(parts: Latchkey, resource: str) -> None:
    """Check a resource indicator (RFC 8707, section 2). Raises `uris.InvalidUri`.

    A client's id is a UUID, which is not a URI, or the URL of its document.
    """
    settings = parts.settings
    hosts = settings.oauth_client_documents
    id = client_ids.admitted_row_id(resource, hosts) if hosts and client_ids.is_url(resource) else None
    if id and queries.select_client(parts.db, id=id):
        raise uris.InvalidUri("it must not be a client's id")
    is_of_service = parse_pattern(f"{settings.base_url}/**").allows(uris.split(resource))
    ours = (settings.jwt_issuer, of_userinfo(settings), settings.jwt_audience)
    if is_of_service or spelled_in(ours, resource):
        raise uris.InvalidUri("it must not be this service, its issuer or AUTH_JWT_AUDIENCE")


def of_token(parts: Latchkey, resource: str | None) -> str:
    """Return the `aud` of an access token. Raises `OAuthError`, even for a resource that became invalid."""
    if resource is None:
        return of_userinfo(parts.settings)
    try:
        check(parts, resource)
    except uris.InvalidUri as error:
        description = f"resource is not valid: {error}"
        raise OAuthError("invalid_target", description, sent={"resource": resource}) from None
    return resource
