"""POST /admin/generate_link and POST /admin/invite: links that administrators pass on, or have mailed."""

from typing import Any

from flask import Blueprint, Response, json

from auth.context import latchkey
from auth.flows import outgoing
from auth.passwords.policy import check_strength
from auth.tokens import one_time
from auth.web import guard, schemas
from auth.web.application import JsonResponse
from auth.web.errors import ApiError
from auth.web.input import checked_redirect, read_body
from sql import Transaction

blueprint = Blueprint("admin_links", __name__)


@blueprint.post("/admin/generate_link")
@guard.service_role
def generate_link() -> Response:
    """Create a link, and the code beside it, without sending them."""
    body = read_body(schemas.NewLink())
    settings = latchkey.settings
    # The client chooses whether to mail the link to the old or the new address; it confirms the new one.
    purpose = "email_change" if body["type"].startswith("email_change") else body["type"]
    new_email = body["new_email"] if purpose == "email_change" else None
    password_hash = None
    if "password" in body and purpose in ("signup", "recovery"):
        check_strength(settings, body["password"], [body["email"]])
        password_hash = latchkey.passwords.hash(body["password"])
    redirect_to = checked_redirect(body) or settings.site_url
    message = outgoing.Message(new_email or body["email"], code=purpose != "invite")
    with latchkey.db.transaction() as tx:
        user_id, is_created = _linked_user(tx, purpose, body, password_hash)
        if new_email:
            _request_email_change(tx, user_id, new_email)
        link_password = password_hash if purpose == "recovery" else None
        tx.run(
            "write_token",
            **message.token_row(user_id, purpose, redirect_to=redirect_to, password_hash=link_password),
        )
        tx.run(
            "record_acts",
            user_id=user_id,
            email=body["email"],
            acts=["user_created" if is_created else None, "link_generated"],
            events=["user.created" if is_created else None],
            details={"by": "link" if is_created else None, "purpose": purpose, "new_email": new_email},
        )
        user = tx.one("select_any_user", id=user_id).user_object
    link = {
        "action_link": outgoing.own_url(
            "verify", {"token": str(message.link), "type": purpose, "redirect_to": redirect_to}
        ),
        "email_otp": message.code or "",
        "hashed_token": message.link,
        "verification_type": body["type"],
        "redirect_to": redirect_to,
    }
    return JsonResponse(json.dumps(json.loads(user) | link))


def _linked_user(
    tx: Transaction, purpose: str, body: dict[str, Any], password_hash: str | None
) -> tuple[str, bool]:
    """Return the id of the user that a link is for, and whether the user is new.

    A sign-up or an invitation creates the user, or takes over an unconfirmed one. Raises `ApiError`.
    """
    creates, is_invited = purpose in ("signup", "invite"), purpose == "invite"
    own_password = password_hash if purpose == "signup" else None
    created_id = _create_user(
        tx,
        body,
        is_wanted=creates,
        password_hash=own_password,
        app_metadata={},
        made_by="link",
        is_invited=is_invited,
    )
    if created_id:
        return created_id, True
    user = tx.one("lock_user_by_email", email=body["email"])
    if user is None:
        raise ApiError("email.user_not_found")
    if not creates:
        return user.id, False
    if user.is_confirmed:
        raise ApiError("email_exists")
    tx.run(
        "take_over_unconfirmed",
        user_id=user.id,
        password_hash=own_password,
        user_metadata=body["data"],
        is_invited=is_invited,
    )
    tx.run("end_user_sessions", user_id=user.id, kept_session_id=None, reason="address_proved")
    tx.run("void_tokens", user_id=user.id)
    return user.id, False


def _request_email_change(tx: Transaction, user_id: str, new_email: str) -> None:
    if tx.one("select_user_by_email", email=new_email):
        raise ApiError("email_exists")
    tx.run("request_email_change", user_id=user_id, new_email=new_email)


@blueprint.post("/admin/invite")
@blueprint.post("/invite")
@guard.service_role
def invite() -> Response:
    """Invite a user by mail. A user who was invited and has not accepted is invited again."""
    body = read_body(schemas.Invitation())
    settings = latchkey.settings
    email, redirect_to = body["email"], checked_redirect(body)
    message = outgoing.Message(email, code=False, link_lifetime=one_time.INVITATION_LIFETIME)
    # The window of the address comes first: what it refuses does not count for the service.
    windows = [
        (f"invite {email}", settings.rate_limit_invite_per_address),
        ("invite", settings.rate_limit_invite),
    ]
    limits = outgoing.as_parameters(windows if settings.rate_limits_enabled else [])
    with latchkey.db.transaction() as tx:
        known = tx.one("select_is_invited", email=email)
        if known and not known.is_invited:
            raise ApiError("email_exists")
        quota = outgoing.take_quota(tx, limits, "over_email_send_rate_limit")
        user_id, is_created = _invited_user(tx, body)
        tx.run("write_token", **message.token_row(user_id, "invite", redirect_to=redirect_to))
        tx.run("write_message", **message.message_row(user_id, "invite", redirect_to=redirect_to))
        tx.run(
            "record_acts",
            user_id=user_id,
            email=email,
            acts=["user_created" if is_created else None, "invited"],
            events=["user.created" if is_created else None],
            details={"by": "invitation" if is_created else None},
        )
        user = tx.one("select_any_user", id=user_id).user_object
    outgoing.note_quota(quota)
    return JsonResponse(f'{{"user": {user}, "message_id": "{message.id}"}}')


def _invited_user(tx: Transaction, body: dict[str, Any]) -> tuple[str, bool]:
    """Return the id of an invited user, and whether the user is new. Raises `ApiError`."""
    app_metadata = body["options"].get("data", {})
    created_id = _create_user(
        tx,
        body,
        is_wanted=True,
        password_hash=None,
        app_metadata=app_metadata,
        made_by="invitation",
        is_invited=True,
    )
    if created_id:
        return created_id, True
    user = tx.one("lock_user_by_email", email=body["email"])
    if user is None or not user.is_invited:
        raise ApiError("email_exists")
    tx.run("renew_invitation", user_id=user.id, user_metadata=body["data"], app_metadata=app_metadata)
    return user.id, False


def _create_user(tx: Transaction, body: dict[str, Any], **columns: Any) -> str | None:
    """Insert a user with a free email, and return the id."""
    created = tx.one(
        "insert_addressed_user", email=body["email"], phone=None, user_metadata=body["data"], **columns
    )
    if created is None:
        return None
    tx.run("write_address_identity", user_id=created.id, provider="email", address=body["email"])
    return created.id
