"""Applications (OAuth clients): which users one admits, and whether its credentials are good."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from auth.rules.users import UserOfToken, is_anonymous


class UserOfClient(UserOfToken, Protocol):
    @property
    def app_metadata(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Without `allowed_roles`, all users may use it. `is_dynamic` is a client that no administrator created:
    it registered itself, or came by the URL of a document. `resources` are those that an administrator has
    listed. `organizations` are those of which a user must be a member: the one whose members alone it admits,
    and the one that its session is for.
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

    Anonymous users may not: an application could not tell who they are. Of resources, a client that an
    administrator created may be used for the listed ones alone. `memberships` are the organizations in which
    the user's membership counts in the session (rule 47).
    """
    if is_anonymous(user) or client.is_blocked or lacks_membership(client, memberships):
        return False
    if resource is not None and not client.is_dynamic and resource not in client.resources:
        return False
    listed = user.app_metadata.get("roles")
    others = listed if isinstance(listed, list) else []
    roles = {user.role, *(role for role in others if isinstance(role, str))}
    return not client.allowed_roles or not client.allowed_roles.isdisjoint(roles)


def lacks_membership(client: Client, memberships: Collection[str]) -> bool:
    return not client.organizations.issubset(memberships)


class Credentials(Protocol):
    """A row with what a client has registered: hashes of its secret and of the one before, and how it sends
    them.
    """

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


def problem_of_credentials(known: Credentials, sent_method: str, sent_hash: bytes | None) -> str | None:
    """Why credentials are not a client's; a method in the result is the one that it must use.

    A wrong secret is refused like an unknown client. That a client is blocked is no secret: public clients
    are told so too.

    The hashes are of random secrets: how long a comparison takes tells nothing about them.
    """
    if known.is_blocked:
        return "blocked"
    if known.secret_hash is None:
        return "public" if sent_method != "none" else None
    if sent_method == "none":
        return "secret_missing"
    hashes, until = [bytes(known.secret_hash)], known.previous_secret_expires_at
    if known.previous_secret_hash is not None and until is not None and until > known.now:
        hashes.append(bytes(known.previous_secret_hash))
    if sent_hash not in hashes:
        return "unknown"
    registered = known.token_endpoint_auth_method
    return None if known.accepts_either_method or registered == sent_method else registered
