"""Consents: what an application's authorization request lacks (OpenID Connect Core 1.0, section 3.1.2.6), and
what its code gives.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from auth.rules.clients import Client, UserOfClient, may_use
from auth.rules.levels import lacks_step
from auth.rules.policy import Policy
from auth.rules.sessions import AuthenticatedSession, ProvedSession, authenticated_at
from auth.rules.tokens import refusal_of_client_session
from auth.rules.users import UserOfToken

# `interaction_required`: the user has to choose an organization.
Obstacle = Literal[
    "access_denied",
    "login_required",
    "interaction_required",
    "account_selection_required",
    "consent_required",
]
CodeRefusal = Literal["invalid_grant", "user_banned", "access_denied"]
# What a user lacks to use a client: a step that makes a membership count in the session, any membership, the
# one that the request or the client names, or an allowed role. `access` is nothing that users can get.
Lack = Literal["step", "membership", "named_membership", "role", "access"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(Client):
    """A client that asks for consent. `has_document` if its id is the URL of a document."""

    updated_at: datetime
    has_document: bool = False
    is_public: bool = False
    skips_consent: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """The organizations that a request may be for: by id, whether the membership counts in the session.

    `chosen` is the user's choice, and `is_named` whether the request names the organization.
    """

    memberships: Mapping[str, bool]
    chosen: str | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An authorization request.

    `api_scopes` are those of its scopes that an API has named. `user_id` is the user whom it is for,
    `is_native` whether it redirects to a program, and `offer` None unless it asks for an organization.
    """

    created_at: datetime
    scopes: tuple[str, ...]
    api_scopes: frozenset[str] = frozenset()
    resource: str | None = None
    prompts: frozenset[str] = frozenset()
    max_age: timedelta | None = None
    user_id: str | None = None
    is_native: bool = False
    offer: Offer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a user has allowed a client.

    `has_redirect_uri` is whether that was for the request's redirect URI, too. `opened_scopes` are the scopes
    of its sessions for the request's resource, even of ended ones, since the client last changed.
    """

    scopes: tuple[str, ...]
    granted_at: datetime
    has_redirect_uri: bool = True
    opened_scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code of a browser's request, or of a device's, which has the user's `decision`."""

    expires_at: datetime
    resource: str | None = None
    is_of_device: bool = False
    decision: str | None = None
    has_grant: bool = True


def obstacle(
    request: Request,
    client: Asking,
    grant: Grant | None,
    user_id: str | None,
    user: UserOfClient | None,
    session: AuthenticatedSession | None,
    policy: Policy,
    memberships: Mapping[str, bool],
) -> Obstacle | None:
    """The obstacle to approving a request of this user, in this session, without asking; None approves it.

    `memberships` are as those of `lack_of`.
    """
    if user is None or lack_of(request.offer, client, request.resource, user, memberships):
        return "access_denied"
    if not is_fresh_for(request, user, session, policy):
        return "login_required"
    # This obstacle comes before those that a user removes by agreeing.
    if request.offer and organization_of(request.offer) is None:
        return "interaction_required"
    if request.user_id not in (None, user_id):
        return "account_selection_required"
    if not is_allowed(request, client, grant):
        return "consent_required"
    return "consent_required" if {"consent", "select_account"} & request.prompts else None


def lack_of(
    offer: Offer | None,
    client: Client,
    resource: str | None,
    user: UserOfClient,
    memberships: Mapping[str, bool],
) -> Lack | None:
    """What a user lacks to use a client for an offer, if anything: only the user is told.

    `memberships` are all of the user's, by id, with whether each counts in the session.
    """
    counting = [id for id, counts in memberships.items() if counts]
    if may_use(user, client, resource, counting) and (offer is None or any(offer.memberships.values())):
        return None
    for_all = replace(client, organizations=frozenset())
    if not may_use(user, replace(for_all, allowed_roles=frozenset()), resource):
        return "access"
    if not may_use(user, for_all, resource):
        return "role"
    if client.organizations & memberships.keys() if offer is None else offer.memberships:
        return "step"
    is_open = offer is not None and not (offer.is_named or client.organizations)
    return "membership" if is_open else "named_membership"


def is_allowed(request: Request, client: Asking, grant: Grant | None) -> bool:
    """Whether a client gets what it asks for without a question.

    Any program on a device can pretend to be a native client without a secret (RFC 8252, section 8.6), and a
    client that registered itself has proved nothing.
    """
    is_unproved = client.is_dynamic and not client.has_document
    if is_unproved or (request.is_native and client.is_public):
        return False
    return covers(grant, request, client) or (client.skips_consent and not request.is_native)


def disclosed(
    obstacle: Obstacle | None, request: Request, client: Asking, grant: Grant | None
) -> Obstacle | None:
    """The obstacle that a client learns. Without the user's consent, it learns nothing about memberships, nor
    whether it admits the user.
    """
    depends_on_user = request.offer or client.organizations or client.allowed_roles
    return "consent_required" if depends_on_user and not is_allowed(request, client, grant) else obstacle


def organization_of(offer: Offer) -> str | None:
    """The organization that a request is for: the chosen one, else the only one, if it counts."""
    counts = offer.memberships
    id = offer.chosen or (next(iter(counts)) if len(counts) == 1 else None)
    return id if id is not None and counts.get(id) else None


def is_fresh_for(
    request: Request, user: UserOfToken | None, session: AuthenticatedSession | None, policy: Policy
) -> bool:
    """Whether a session is fresh enough for `prompt` and `max_age`.

    A user who takes long to agree need not sign in again. A session that lacks the second step would give the
    client nothing.
    """
    if user is None or session is None:
        return True
    if lacks_step(user, session.aal, policy):
        return False
    if "login" in request.prompts:
        return authenticated_at(session) > request.created_at
    return request.max_age is None or authenticated_at(session) > request.created_at - request.max_age


def covers(grant: Grant | None, request: Request, client: Asking) -> bool:
    """Whether a user has allowed what a request asks for.

    Resources of a client that no administrator created are allowed one by one, and so are the scopes that an
    API has named: another may have the same name. A redirect URI that the client got later could be that of a
    stranger.
    """
    if grant is None or not set(request.scopes) <= set(grant.scopes) or is_outdated(grant, client):
        return False
    if not grant.has_redirect_uri:
        return False
    if request.resource is None:
        return True
    return grant.opened_scopes.issuperset(request.scopes if client.is_dynamic else request.api_scopes)


def scopes_after(grant: Grant | None, scopes: Sequence[str], client: Asking) -> list[str]:
    """The scopes of a grant once its user has allowed further ones: its sessions keep theirs."""
    kept = () if grant is None or is_outdated(grant, client) else grant.scopes
    return list(dict.fromkeys([*kept, *scopes]))


def is_outdated(grant: Grant, client: Asking) -> bool:
    """A changed document is another application, without a consent of the user."""
    return client.has_document and grant.granted_at < client.updated_at


def refusal_of_code(
    code: Code,
    user: UserOfClient,
    opener: ProvedSession | None,
    client: Client,
    policy: Policy,
    memberships: Collection[str] = (),
) -> CodeRefusal | None:
    """Refuse a code once the session that approved it has ended, or the user has removed the grant.

    `memberships` are those that count in that session.
    """
    if code.expires_at <= user.now or not code.has_grant:
        return "invalid_grant"
    if code.is_of_device and code.decision != "approved":
        return "invalid_grant"
    resource = None if opener is None else opener.resource
    refusal = refusal_of_client_session(user, opener, resource, client, None, policy, memberships)
    if refusal == "user_banned":
        return "user_banned"
    if not may_use(user, client, code.resource, memberships):
        return "access_denied"
    return None if refusal is None else "invalid_grant"
