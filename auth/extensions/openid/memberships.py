"""Organizations in applications' requests and tokens.

The scope `organization` asks for one that the user chooses, `organization:acme` for the one of this short
name, and `organizations` for the roles in all.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from auth.core.json_bodies import JsonObject
from auth.core.settings import Settings
from auth.core.tokens.access_tokens import providers_in
from auth.extensions.openid.oauth_errors import OAuthError
from auth.flows import organizations
from auth.rules.consent import Offer
from auth.rules.organizations import Standing
from sql import queries

# The scopes about users, but those about organizations.
OF_USERS = ("openid", "profile", "email", "phone", "offline_access", "groups", "roles")
ONE, ALL = "organization", "organizations"
_NAMED = re.compile(f"{ONE}:[a-z0-9-]{{1,63}}")
RequestRow: TypeAlias = "queries.SelectOauthRequest | queries.SelectDeviceRequest"
_Session: TypeAlias = "queries.OpenClientSession | queries.LockClientSession | queries.SelectClientCaller"


def scopes(settings: Settings) -> tuple[str, ...]:
    """Return the scopes about organizations that applications may request."""
    return (ONE, ALL) if organizations.is_on(settings) else ()


def of_apis(granted: Iterable[str]) -> list[str]:
    """Return the scopes that an API has named."""
    about_users = (*OF_USERS, ONE, ALL)
    return [scope for scope in granted if scope.partition(":")[0] not in about_users]


def named(settings: Settings, requested: Collection[str], allowed: Collection[str]) -> list[str]:
    """Return the scope that names an organization, if any. Raises `OAuthError` for two."""
    scopes = [scope for scope in dict.fromkeys(requested) if scope.startswith(f"{ONE}:")]
    if not organizations.is_on(settings) or not scopes:
        return []
    if len(scopes) > 1 or not _NAMED.fullmatch(scopes[0]):
        raise OAuthError("invalid_scope", f"scope: {ONE}: must be followed by one short name")
    return scopes if not allowed or not {ONE, *scopes}.isdisjoint(allowed) else []


def kinds(granted: Iterable[str]) -> list[str]:
    """Return the scopes about users, once each: `organization` for one that names an organization."""
    about_users = (*OF_USERS, ONE, ALL)
    return list(dict.fromkeys(kind for scope in granted if (kind := scope.partition(":")[0]) in about_users))


def _requested(granted: Collection[str]) -> str | None:
    """Return the short name of the organization that scopes ask for, "" to let the user choose, or None."""
    slugs = [scope.partition(":")[2] for scope in granted if scope.partition(":")[0] == ONE]
    return max(slugs, default=None)  # a named one goes before a choice


def offered(
    row: RequestRow, client: "queries.SelectClient", person: "queries.SelectPerson | None"
) -> list[JsonObject]:
    """Return the memberships that a request may be for, as the user's session sees them."""
    return needed(row, client, person) if _requested(row.scopes) is not None else []


def needed(
    row: RequestRow, client: "queries.SelectClient", person: "queries.SelectPerson | None"
) -> list[JsonObject]:
    """Return what is `offered`, and the membership that the client demands of its users."""
    standing = organizations.standing_of(person)
    return [
        organizations.as_seen(each, standing)
        for each in organizations.listed(row.memberships)
        if is_for_members(row, client) and serves(row, client, each)
    ]


def is_for_members(row: RequestRow, client: "queries.SelectClient") -> bool:
    """Whether a user without a membership gets nothing."""
    return _requested(row.scopes) is not None or client.organization_id is not None


def names_one(row: RequestRow, client: "queries.SelectClient") -> bool:
    """Whether the request or the client names one organization."""
    return bool(_requested(row.scopes)) or client.organization_id is not None


def serves(row: RequestRow, client: "queries.SelectClient", organization: JsonObject) -> bool:
    """Whether a membership in this organization is one that a request asks for, or the client demands."""
    slug = _requested(row.scopes) or organization["slug"]
    return slug == organization["slug"] and client.organization_id in (None, organization["id"])


def offer_of(
    row: RequestRow,
    client: "queries.SelectClient",
    person: "queries.SelectPerson | None",
    chosen: str | None = None,
) -> Offer | None:
    """Return what is `offered` as the rules take it, or None for a request that asks for no organization."""
    if _requested(row.scopes) is None:
        return None
    memberships = {each["id"]: "role" in each for each in offered(row, client, person)}
    return Offer(memberships, chosen, is_named=_requested(row.scopes) != "")


def standing_of(row: _Session) -> Standing:
    """Return the standing of a client's session, which is as old as its `auth_time`."""
    authenticated_at = datetime.fromtimestamp(row.auth_time or 0, UTC)
    return Standing(row.aal or "", providers_in(row.amr), authenticated_at, row.now)


def claims_of(row: _Session, granted: Collection[str]) -> dict[str, Any]:
    """Return the claims of a session's scopes: memberships that count in it, with their present roles."""
    roles = organizations.counting(row.memberships, standing_of(row))
    counting = {
        each["id"]: {name: each[name] for name in ("id", "slug", "role")}
        for each in organizations.listed(row.memberships)
        if each["id"] in roles
    }
    claims: dict[str, Any] = {}
    if _requested(granted) is not None and row.for_organization_id in counting:
        claims[ONE] = counting[row.for_organization_id]
    if ALL in granted and counting:
        claims[ALL] = {id: each["role"] for id, each in counting.items()}
    return claims


def present_claims(claims: JsonObject, row: _Session) -> JsonObject:
    """Return the claims of an introspected token with the memberships that still count."""
    present = claims_of(row, (ONE, ALL))
    in_token: Mapping[str, str] = claims.get(ALL, {})
    roles = {id: role for id, role in present.get(ALL, {}).items() if id in in_token}
    memberships = {ONE: present.get(ONE), ALL: roles}
    lost = {name for name, value in memberships.items() if not value}
    return {name: memberships.get(name, value) for name, value in claims.items() if name not in lost}
