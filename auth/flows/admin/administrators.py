"""Becoming an administrator."""

from contextlib import suppress
from typing import TypedDict

from psycopg2.errors import UniqueViolation

from auth.core.json_bodies import JsonObject
from auth.flows import ends, organizations
from auth.flows.account import removal
from auth.flows.links.proving import prove_address
from auth.flows.messages.outgoing import Message
from auth.rules.users import ADDRESS_KINDS
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import acts, queries
from sql.acts import Act


def needs_password(asked: Asked, email: str) -> bool:
    """Whether no user has proved the address, so that the administrator will be a new user."""
    known = queries.select_user_of_address(asked.db, address=email)
    return known is None or not known.email_proved


def begin_anew(act: Act, user_id: str) -> list[JsonObject]:
    """End what a new administrator has from before (rule 20). Return what was added to the user recently.

    A thief or a program may have begun it, with less to gain then. So a password that an administrative key
    has set ends, too, and an address that one has set is refused: its holder would be an administrator.
    """
    by_key = queries.select_set_by_key(act, user_id=user_id)
    for kind in ADDRESS_KINDS:
        if getattr(by_key, kind):
            remedy = f"send it again with {kind}_confirm, or null"
            raise ApiError("validation_failed", f"{kind}: an administrative key has set it; {remedy}")
    ends.end_and_void(act, user_id, None, "promoted")
    if by_key.password:
        queries.set_password(act, user_id=user_id, password_hash=None)
    return removal.list_recent(act, user_id)


class Appointed(TypedDict):
    id: str
    email: str
    created: bool
    recent_changes: list[JsonObject]


def appoint(asked: Asked, email: str, password_hash: str | None) -> Appointed:
    """Make the user of an address an administrator, and return the user.

    With a password hash, a new user replaces one who never proved the address.
    """
    # Another command may create the user at the same time: then this one finds that user.
    with suppress(UniqueViolation):
        return _appoint(asked, email, password_hash)
    return _appoint(asked, email, password_hash)


def _appoint(asked: Asked, email: str, password_hash: str | None) -> Appointed:
    with acts.on_found(asked.db, lambda on: queries.select_holders(on, addresses=[email]).ids) as (act, ids):
        act.read(queries.select_holders, addresses=[email])
        known = queries.select_person(act, user_id=ids[0], session_id=None) if ids else None
        if known and not known.email_proved and password_hash:
            organizations.leave_all(asked, act, known.id)
            queries.delete_user(act, user_id=known.id, because="created_again")
            known = None
        if known is None:
            made = {"by": "administrator", "role": "admin"}
            id = queries.create_user(
                act,
                id=None,
                email=email,
                email_confirmed_at=act.acted_at,
                phone=None,
                phone_confirmed_at=None,
                password_hash=password_hash,
                is_vouched=None,
                role="admin",
                banned_until=None,
                user_metadata={},
                app_metadata={},
            ).id
            audit.record(act, id, email, ["user_created"], ["user.created"], **made)
            return {"id": id, "email": email, "created": True, "recent_changes": []}
        recent: list[JsonObject] = []
        if known.email_proved and known.role != "admin":
            queries.update_any_user(
                act, id=known.id, role="admin", user_metadata={}, app_metadata={}, vouches_password=False
            )
            # The operator who names the address vouches for it.
            prove_address(act, known, "email", email, "administrator")
            recent = begin_anew(act, known.id)
            audit.record(
                act, known.id, email, ["role_changed"], ["user.updated"], by="administrator", role="admin"
            )
        return {"id": known.id, "email": email, "created": False, "recent_changes": recent}


def write_code(asked: Asked, user_id: str, email: str) -> str | None:
    """Return a code that lets an administrator without a second factor add one, like an emailed code."""
    message = Message(asked, email, carries=["code"])
    with acts.on(asked.db, user_id) as act:
        user = act.read(queries.select_person, user_id=user_id, session_id=None)
        if user is None or user.oldest_factor_at is not None:
            return None
        message.write_token(act, user_id, "reauthentication")
    return message.code
