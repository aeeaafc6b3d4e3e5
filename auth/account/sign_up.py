from typing import Any

from auth import addresses
from auth.context import latchkey
from auth.hooks import access_token, before_user_created
from auth.messages import outgoing
from auth.passwords.policy import check_strength
from auth.sign_in import waiting
from auth.sign_in.token_response import issued, open_session
from auth.web import audit, g
from auth.web.errors import ApiError
from auth.web.input import checked_redirect
from sql import Transaction, queries


def sign_up(body: dict[str, Any]) -> Any:
    """Create the user of a `Signup` body, and return its row, or that of its session with autoconfirm.

    Raises `ApiError` or `WeakPassword`.
    """
    email, phone, settings = body.get("email"), body.get("phone"), latchkey.settings
    if settings.disable_signup:
        raise ApiError("signup_disabled")
    outgoing.check_channel(email, phone, doing="Sign-up")
    outgoing.check_domain(email)
    check_strength(settings, body["password"], [email, phone])
    user_id = before_user_created.ask(email=email, phone=phone, data=body["data"])
    create = _sign_up_confirmed if settings.autoconfirm else _sign_up_unconfirmed
    return create(body | {"user_id": user_id}, latchkey.passwords.hash(body["password"]))


def sign_up_anonymously(body: dict[str, Any]) -> Any:
    """Create a user without an address, and return the session's row. Raises `ApiError`."""
    if latchkey.settings.disable_signup:
        raise ApiError("signup_disabled")
    return _create_anonymous_user(before_user_created.ask(data=body["data"]), body["data"])


@access_token.asked
def _create_anonymous_user(user_id: str, data: dict[str, Any]) -> Any:
    with access_token.transaction() as tx:
        user = queries.insert_anonymous_user(tx, user_id=user_id, user_metadata=data)
        row = open_session(tx, user.id, "anonymous")
        acts, events = ["user_created", "signed_in"], ["user.created", "auth.login"]
        details = {"by": "anonymous", "method": "anonymous", "session_id": row.session_id}
        audit.record(tx, user.id, None, acts, events, **details)
        return issued(tx, row)


@access_token.asked
def _sign_up_confirmed(body: dict[str, Any], password_hash: str) -> Any:
    """Create a user with a confirmed address, and return the session's row. Raises `ApiError`."""
    with access_token.transaction() as tx:
        user = _insert(tx, body, password_hash, is_confirmed=True)
        if user.is_created:
            row = open_session(tx, user.id, "password")
            acts = ["user_created", "signed_in"]
            details = {"by": "signup", "method": "password", "session_id": row.session_id}
            audit.record(tx, user.id, body.get("email"), acts, ["user.created", "auth.login"], **details)
            return issued(tx, row)
        owner = queries.select_address_owner(tx, address=_address(body))
        queries.record_refused_sign_up(tx, user_id=owner and owner.id)
    raise ApiError("user_already_exists")


def _sign_up_unconfirmed(body: dict[str, Any], password_hash: str) -> Any:
    """Create a user with an unconfirmed address, send its link or code, and return the user's row.

    If sign-in requires a confirmed address, a taken address runs the same statements as a free one and writes
    one message too, so that clients cannot tell them apart. Otherwise it raises `ApiError`. Several people
    may sign up with one address: the link that is used decides whose password counts, and a code confirms
    none.
    """
    address, settings, email = _address(body), latchkey.settings, body.get("email")
    is_hidden = settings.email_confirm_required if email else settings.phone_confirm_required
    message, redirect_to = outgoing.Message(address), checked_redirect(body)
    with latchkey.db.transaction() as tx:
        has_quota = outgoing.count(tx, address).seconds_left == 0
        user = _insert(tx, body, password_hash, is_confirmed=False)
        owner = queries.select_address_owner(tx, address=address)
        owner_id = owner and owner.id
        kind = _kind(body, user, owner, is_hidden)
        # Over the quota too: a stranger who has used it up would have sent the only code.
        queries.dispute_sign_up(tx, address=address, is_repeated=kind == "signup" and not user.is_created)
        # Over the quota no email is sent, and the sign-up could not be confirmed.
        kind = kind if has_quota else "none"
        has_secrets = kind == "signup"
        purpose = "signup" if email else "sms_signup"
        link = {"redirect_to": redirect_to, "code_challenge": body.get("code_challenge")}
        link |= {"browser_hash": body.get("browser_hash"), **waiting.asker()}
        own = {"password_hash": password_hash, "user_metadata": body["data"]}
        message.write_token(tx, owner_id if has_secrets else None, purpose, **link, **own)
        message.write(tx, owner_id, kind, secret=has_secrets, redirect_to=redirect_to)

        if user.is_created:
            made = {"by": "signup", "method": "password"}
            audit.record(tx, user.id, email, ["user_created"], ["user.created"], **made)
        elif has_secrets:
            audit.record(tx, owner_id, email, ["message_requested"], [], purpose=purpose, is_sent=True)
        else:
            queries.record_refused_sign_up(tx, user_id=owner_id)
    if not user.is_created and not is_hidden:
        raise ApiError("user_already_exists")
    return user


def create_addressed_user(
    tx: Transaction, body: dict[str, Any], new_id: str | None, made_by: str, **columns: Any
) -> str | None:
    """Create a user without a sign-up, if there is an id. Return it, or None if the address is taken."""
    defaults: dict[str, Any] = {"password_hash": None, "app_metadata": {}}
    created = queries.insert_addressed_user(
        tx,
        new_id=new_id,
        email=body.get("email"),
        phone=body.get("phone"),
        user_metadata=body.get("data", {}),
        made_by=made_by,
        **defaults | {"is_invited": False} | columns,
    )
    user_id, address = created and created.id, _address(body)
    kind = addresses.kind_of(address)
    queries.write_address_identity(tx, user_id=user_id, provider=kind, address=address)
    return user_id


def _kind(body: dict[str, Any], user: Any, owner: Any, is_hidden: bool) -> str:
    if user.is_created:
        return "signup"
    if not is_hidden or owner is None:
        return "none"
    if owner.is_unused:
        return "signup"
    return "signup_attempt" if "email" in body else "none"


def _address(body: dict[str, Any]) -> str:
    return body.get("email") or body["phone"]


def _insert(
    tx: Transaction, body: dict[str, Any], password_hash: str, *, is_confirmed: bool
) -> "queries.InsertSignUp":
    return queries.insert_sign_up(
        tx,
        user_id=body["user_id"],
        email=body.get("email"),
        phone=body.get("phone"),
        password_hash=password_hash,
        user_metadata=body["data"],
        user_agent=g.client["user_agent"],
        is_confirmed=is_confirmed,
    )
