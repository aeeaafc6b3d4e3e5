"""Makes a user an administrator, for an operator's command."""

import uuid
from typing import Any

from auth.core import promises
from auth.core.tokens import one_time
from auth.flows.messages.outgoing import TOKEN_COLUMNS
from auth.web import audit
from auth.web.asked import Asked
from sql import queries


def needs_password(asked: Asked, email: str) -> bool:
    """Whether no user has proved the address, so that the administrator will be a new user."""
    known = queries.select_user_of_address(asked.db, address=email)
    return known is None or not known.email_proved


def appoint(asked: Asked, email: str, password_hash: str | None) -> dict[str, Any]:
    """Make the user of an address an administrator. Return `id`, `email` and whether the user was `created`.

    With a password hash, a new user replaces one who never proved the address.
    """
    with asked.db.transaction() as tx:
        known = queries.select_user_of_address(tx, address=email)
        if password_hash:
            queries.delete_unproved_user(tx, email=email)
        if known:
            queries.end_lost_access_of_user(tx, user_id=known.id)
        user = queries.make_administrator(tx, email=email, password_hash=password_hash)
        if user is None:
            return {"id": known and known.id, "email": email, "created": False}
        if user.created:
            queries.write_address_identity(tx, user_id=user.id, provider="email", address=email)
        queries.end_lost_access_of_user(tx, user_id=user.id)
        act, event = ("user_created", "user.created") if user.created else ("role_changed", "user.updated")
        audit.record(tx, user.id, email, [act], [event], by="administrator", role="admin")
    return {"id": user.id, "email": email, "created": user.created}


def write_code(asked: Asked, user_id: str, email: str) -> str | None:
    """Return a code that lets an administrator without a second factor add one, like an emailed code."""
    code = one_time.code_of(one_time.new_token())
    with asked.db.transaction() as tx:
        if queries.count_verified_factors(tx, user_id=user_id).total:
            return None
        queries.write_token(
            tx,
            token_id=str(uuid.uuid4()),
            user_id=user_id,
            purpose="reauthentication",
            target=email,
            code_mac=asked.parts.codes.macs(email, code)[0],
            code_lifetime=promises.MAIL_CODE_LIFETIME,
            token_hash=None,
            link_lifetime=None,
            **TOKEN_COLUMNS,
        )
    return code
