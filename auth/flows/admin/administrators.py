"""Becoming an administrator."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypedDict

from psycopg2.errors import UniqueViolation

from auth.core.json_bodies import JsonObject
from auth.core.text.moments import iso_8601
from auth.flows import ends, memberships
from auth.flows.account import removal
from auth.flows.links.proving import person_of
from auth.flows.messages.outgoing import Message
from auth.rules.promotion import refusal_of_promotion
from auth.rules.refusals import Refusal
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import acts, queries
from sql.acts import Act


class NamedWay(TypedDict):
    """A way to sign in, or a step of it. One of before 0.7.1 may have no `added_at`."""

    type: str
    added_at: str | None
    label: str | None


class Appointed(TypedDict):
    id: str
    email: str
    created: bool
    recent_changes: list[JsonObject]
    ways_to_sign_in: list[NamedWay]


class Anew(NamedTuple):
    """What signs a new administrator in, and what is removed, because an administrative key had set it."""

    ways: list[NamedWay]
    removed: list[str]


def begin_anew(asked: Asked, act: Act, user_id: str) -> Anew:
    """End what a new administrator has from before (rule 20).

    A thief or a program may have begun it, with less to gain then. Every door of promotion comes here.
    """
    ways = queries.list_all_ways_to_sign_in(act, user_id=user_id)
    queries.remove_before_promotion(act, user_id=user_id)
    if any(way.is_by_key for way in ways if way.type == "password"):
        queries.set_password(act, user_id=user_id, password_hash=None, by_key=False)
    ends.end_and_void(act, user_id, None, "promoted")
    queries.void_undo_links(act, user_id=user_id, moment=None)
    queries.forget_factors(act, user_id=user_id)
    if refusal := refusal_of_promotion(ways, remains=removal.remains(asked, act, user_id, "password")):
        user = person_of(act, user_id)
        raise _refused(refusal, user_id, user.email or user.phone)
    return Anew(_named(queries.list_all_ways_to_sign_in(act, user_id=user_id)), _removed(ways))


def foreseen(asked: Asked, email: str) -> Anew | None:
    """Return what `begin_anew` would, for the user of an address. Refuse an address of an administrative key.

    None for a new user, or for an administrator.
    """
    user = queries.select_user_of_address(asked.db, address=email)
    if user is None or not user.email_proved or user.role == "admin":
        return None
    ways = queries.list_all_ways_to_sign_in(asked.db, user_id=user.id)
    if refusal := refusal_of_promotion(ways, remains=True):
        raise _refused(refusal, user.id, email)
    return Anew(_named(way for way in ways if not way.is_by_key), _removed(ways))


def _refused(refusal: Refusal, user_id: str, address: str | None) -> ApiError:
    return ApiError(refusal, user=f"{address} ({user_id})" if address else user_id)


def _named(ways: "Iterable[queries.ListAllWaysToSignIn]") -> list[NamedWay]:
    return [{"type": way.type, "added_at": iso_8601(way.added_at), "label": way.label} for way in ways]


def _removed(ways: "Iterable[queries.ListAllWaysToSignIn]") -> list[str]:
    return [f"{way.type} {way.label or ''}".strip() for way in ways if way.is_by_key]


def needs_password(asked: Asked, email: str) -> bool:
    """Whether no user has proved the address, so that the administrator will be a new user."""
    user = queries.select_user_of_address(asked.db, address=email)
    return user is None or not user.email_proved


def appoint(
    asked: Asked, email: str, password_hash: str | None, listed: Sequence[NamedWay] | None
) -> Appointed:
    """Make the user of an address an administrator, and return the user.

    With a password hash, a new user replaces one who never proved the address. Refuse if the user has another
    way to sign in than those `listed` for the operator.
    """
    # Another command may create the user at the same time: then this one finds that user.
    with suppress(UniqueViolation):
        return _appoint(asked, email, password_hash, listed)
    return _appoint(asked, email, password_hash, listed)


def _appoint(
    asked: Asked, email: str, password_hash: str | None, listed: Sequence[NamedWay] | None
) -> Appointed:
    with acts.on_found(asked.db, lambda on: queries.select_holders(on, addresses=[email]).ids) as (act, ids):
        act.read(queries.select_holders, addresses=[email])
        user = queries.select_person(act, user_id=ids[0], session_id=None) if ids else None
        if user and not user.email_proved and password_hash:
            memberships.leave_all(asked, act, user.id)
            queries.delete_user(act, user_id=user.id, because="created_again")
            user = None
        if user is None:
            details = {"by": "administrator", "role": "admin"}
            id = queries.create_user(
                act,
                id=None,
                email=email,
                email_confirmed_at=act.acted_at,
                phone=None,
                phone_confirmed_at=None,
                password_hash=password_hash,
                is_vouched=None,
                by_key=False,
                role="admin",
                banned_until=None,
                user_metadata={},
                app_metadata={},
            ).id
            audit.record(act, id, email, ["user_created"], ["user.created"], **details)
            return {"id": id, "email": email, "created": True, "recent_changes": [], "ways_to_sign_in": []}
        recent: list[JsonObject] = []
        ways: list[NamedWay] = []
        if user.role != "admin":
            queries.update_any_user(
                act, id=user.id, role="admin", user_metadata={}, app_metadata={}, vouches_password=False
            )
            (ways, removed), recent = begin_anew(asked, act, user.id), removal.list_recent(act, user.id)
            if listed is None or any(way not in listed for way in ways):
                raise ApiError("stale.validation_failed")
            changed = {"by": "administrator", "role": "admin", "removed": removed or None}
            audit.record(act, user.id, email, ["role_changed"], ["user.updated"], **changed)
        return {
            "id": user.id,
            "email": email,
            "created": False,
            "recent_changes": recent,
            "ways_to_sign_in": ways,
        }


def write_code(asked: Asked, user_id: str, email: str) -> str | None:
    """Return a code that lets an administrator without a second factor add one, like an emailed code."""
    message = Message(asked, email, carries=["code"])
    with acts.on(asked.db, user_id) as act:
        user = act.read(queries.select_person, user_id=user_id, session_id=None)
        if user is None or user.oldest_factor_at is not None:
            return None
        message.write_token(act, user_id, "reauthentication")
    return message.code
