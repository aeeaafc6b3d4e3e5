"""Applications (OAuth clients): which users they admit, and whether credentials are a client's."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from auth.rules.users import UserOfToken, is_anonymous

# A scheme and an authority without a path; `with_path` in sql/functions/openid.sql is the same.
_EMPTY_PATH = re.compile(r"^([a-z][a-z0-9+.-]*://[^/?]+)(\?|$)")


class UserOfClient(UserOfToken, Protocol):
    @property
    def app_metadata(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Facts about an application.

    Without `allowed_roles`, all users may use it. One that `is_dynamic` has no administrator: it registered
    itself, or came by the URL of a document. An administrator lists `resources`. A user must be a member of
    all `organizations`: the one whose members alone it admits, and the one that its session is for.
    """

    allowed_roles: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    is_dynamic: bool = False
    is_blocked: bool = False
    grant_types: frozenset[str] = frozenset()
    organizations: frozenset[str] = frozenset()


def may_use(
    user: UserOfClient, client: Client, resource: str | None, memberships: Collection[str] = ()
) -> bool:
    """Whether a user may use a client: by the user's role, or by one of the list `roles` in `app_metadata`.

    Anonymous users may not: the application could not tell them apart. A client that an administrator created
    may be used for its listed resources alone. `memberships` are the organizations in which the user's
    membership counts in the session (rule 47).
    """
    if is_anonymous(user) or client.is_blocked or lacks_membership(client, memberships):
        return False
    if resource is not None and not client.is_dynamic and spelled_in(client.resources, resource) is None:
        return False
    listed = user.app_metadata.get("roles")
    others = listed if isinstance(listed, list) else []
    roles = {user.role, *(role for role in others if isinstance(role, str))}
    return not client.allowed_roles or not client.allowed_roles.isdisjoint(roles)


def is_same_resource(resource: str, other: str) -> bool:
    """Whether two URIs are the same: an empty path is "/" (RFC 3986, section 6.2.3)."""
    return _with_path(resource) == _with_path(other)


def spelled_in(resources: Collection[str], resource: str) -> str | None:
    """A resource as it is spelled among some, or None if it is not there."""
    if resource in resources:
        return resource
    return next((each for each in resources if is_same_resource(each, resource)), None)


def _with_path(uri: str) -> str:
    return _EMPTY_PATH.sub(r"\1/\2", uri)


def lacks_membership(client: Client, memberships: Collection[str]) -> bool:
    return not client.organizations.issubset(memberships)


class Credentials(Protocol):
    """The registered credentials of a client: the hashes of its secrets, and how it sends them."""

    @property
    def now(self) -> datetime: ...
    @property
    def token_endpoint_auth_method(self) -> str: ...
    @property
    def secret_hash(self) -> memoryview | None: ...
    @property
    def previous_secret_hash(self) -> memoryview | None: ...
    @property
    def previous_secret_expires_at(self) -> datetime | None: ...
    @property
    def accepts_either_method(self) -> bool: ...
    @property
    def is_blocked(self) -> bool: ...


def problem_of_credentials(client: Credentials, sent_method: str, sent_hash: bytes | None) -> str | None:
    """Why a request does not authenticate a client. A method in the result is the one that it must use.

    A wrong secret is refused like an unknown client. Public clients learn too that they are blocked: it is
    not a secret. Secrets are random, so the duration of comparing their hashes tells nothing about them.
    """
    if client.is_blocked:
        return "blocked"
    if client.secret_hash is None:
        return "public" if sent_method != "none" else None
    if sent_method == "none":
        return "secret_missing"
    hashes, until = [bytes(client.secret_hash)], client.previous_secret_expires_at
    if client.previous_secret_hash is not None and until is not None and until > client.now:
        hashes.append(bytes(client.previous_secret_hash))
    if sent_hash not in hashes:
        return "unknown"
    registered = client.token_endpoint_auth_method
    return None if client.accepts_either_method or registered == sent_method else registered
