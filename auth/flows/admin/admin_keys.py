"""Administrative keys: creating, listing and ending them. The guard admits them."""

from collections.abc import Sequence
from typing import get_args

from psycopg2.errors import UniqueViolation

from auth.core import constants
from auth.core.tokens import api_keys
from auth.flows.admin import targets
from auth.web import audit
from auth.web.asked import Asked
from auth.web.declarations import Scope
from auth.web.errors import ApiError, found
from sql import queries

SCOPES: tuple[Scope, ...] = get_args(Scope)


def create(asked: Asked, name: str, scopes: Sequence[str], lifetime: int | None) -> tuple[str, str]:
    """Create a key with a lifetime in seconds, or without an end. Return its id and the key."""
    id, key = api_keys.new_key(api_keys.ADMIN_PREFIX)
    try:
        with targets.begin(asked) as act:
            act.later(queries.lock_admin_keys)
            if queries.count_admin_keys(act).total >= constants.MOST_ADMIN_KEYS:
                raise ApiError("admin_keys.validation_failed", most=str(constants.MOST_ADMIN_KEYS))
            queries.insert_admin_key(
                act,
                id=id,
                name=name,
                key_mac=asked.parts.api_keys.macs(key)[0],
                scopes=[*scopes],
                lifetime=lifetime,
                created_by=asked.user.user_id if asked.user else None,
            )
            details = {"admin_key": name, "admin_key_id": id, "scopes": " ".join(scopes)}
            audit.record(act, None, None, ["admin_key_added"], [], **details)
    except UniqueViolation:
        raise ApiError("admin_key.conflict", rule="admin_key", field="name") from None
    return id, key


def listed(asked: Asked) -> "list[queries.ListAdminKeys]":
    return queries.list_admin_keys(asked.db)


def end(asked: Asked, id: str) -> None:
    with targets.begin(asked) as act:
        ended = found(queries.delete_admin_key(act, id=id), "admin_key.not_found")
        details = {"admin_key": ended.name, "admin_key_id": id}
        audit.record(act, None, None, ["admin_key_removed"], [], **details)
