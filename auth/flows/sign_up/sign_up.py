from collections.abc import Callable
from typing import Any

from auth.core.passwords.policy import check_strength
from auth.flows.admission import may_become
from auth.flows.messages import outgoing
from auth.flows.sessions.issuing import about_new, is_asked
from auth.flows.sessions.token_response import Proof, Session, open_session
from auth.flows.sign_in import waiting
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.input import checked_redirect
from sql import Transaction, acts, queries


def sign_up(asked: Asked, body: dict[str, Any]) -> "Session | queries.InsertSignUp":
    """Create the user of a `Signup` body, and return its row, or its session with autoconfirm.

    Raises `WeakPassword`.
    """
    email, phone, settings = body.get("email"), body.get("phone"), asked.settings
    if settings.disable_signup:
        raise ApiError("signup_disabled")
    check_strength(asked.settings, body["password"], [email, phone], asked.parts.leaked_passwords)
    columns = {
        "user_id": may_become(asked, email, phone, data=body["data"], doing="Sign-up"),
        "email": email,
        "phone": phone,
        "password_hash": asked.parts.passwords.hash(body["password"], email or phone),
        "user_metadata": body["data"],
        "user_agent": asked.client["user_agent"],
    }
    return (
        _sign_up_confirmed(asked, columns)
        if settings.autoconfirm
        else _sign_up_unconfirmed(asked, columns, body)
    )


def sign_up_anonymously(asked: Asked, body: dict[str, Any]) -> Session:
    """Create a user without an address, and return the session."""
    if asked.settings.disable_signup:
        raise ApiError("signup_disabled")
    columns = {"user_id": may_become(asked, None, None, data=body["data"]), "user_metadata": body["data"]}
    session = _create(
        asked, lambda tx: queries.insert_anonymous_user(tx, **columns).id, None, "anonymous", "anonymous"
    )
    return found(session, "unexpected_failure")


def _sign_up_confirmed(asked: Asked, columns: dict[str, Any]) -> Session:
    """Create a user with a confirmed address, and return the session."""
    email = columns["email"]

    def insert(tx: Transaction) -> str | None:
        user = queries.insert_sign_up(tx, **columns, is_confirmed=True)
        if user.is_created:
            return user.id
        owner = queries.select_address_owner(tx, address=email or columns["phone"])
        queries.record_refused_sign_up(tx, user_id=owner and owner.id)
        return None

    return found(_create(asked, insert, email, "signup", "password"), "user_already_exists")


def _create(
    asked: Asked, insert: Callable[[Transaction], str | None], email: str | None, by: str, method: str
) -> Session | None:
    """Insert a user and open a session, in one transaction unless the token hook is called in between.

    Return None if no user was inserted.
    """
    made = {"by": by, "method": method}
    with acts.begin(asked.db) as tx:
        user_id = insert(tx)
        if user_id is None:
            return None
        if not is_asked(asked, for_client=True):
            person = found(tx.read(queries.select_person, user_id=user_id, session_id=None), "user_not_found")
            row = open_session(asked, tx, person, Proof(method=method))
            done, events = ["user_created", "signed_in"], ["user.created", "auth.login"]
            audit.record(tx, user_id, email, done, events, **made, session_id=row.session_id)
            return Session(row)
        audit.record(tx, user_id, email, ["user_created"], ["user.created"], **made)
    issue = about_new(asked, user_id, method, for_client=True)
    with acts.on(asked.db, user_id) as tx:
        person = found(tx.read(queries.select_person, user_id=user_id, session_id=None), "user_not_found")
        row = open_session(asked, tx, person, Proof(method=method), issue)
        details = {"method": method, "session_id": row.session_id}
        audit.record(tx, user_id, email, ["signed_in"], ["auth.login"], **details)
    return Session(row, issue)


def _sign_up_unconfirmed(
    asked: Asked, columns: dict[str, Any], body: dict[str, Any]
) -> "queries.InsertSignUp":
    """Create a user with an unconfirmed address, send its link or code, and return the user's row.

    If sign-in requires a confirmed address, a taken address runs the same statements as a free one and writes
    one message too, so that clients cannot tell them apart. Otherwise a taken address is refused. Several
    people may sign up with one address: the link that is used decides whose password counts. Sign-ups with
    equal passwords are one.
    """
    settings, email = asked.settings, columns["email"]
    address, purpose = (email, "signup") if email else (columns["phone"], "sms_signup")
    is_hidden = settings.email_confirm_required if email else settings.phone_confirm_required
    message = outgoing.Message(asked, address, channel=body.get("channel"))
    link = {"redirect_to": checked_redirect(asked, body), **waiting.asker(asked)}
    link |= {name: body.get(name) for name in ("code_challenge", "browser_hash")}
    own = {"password_hash": columns["password_hash"], "user_metadata": body["data"]}
    counted = outgoing.take_quota(asked, address, is_new=True, hides_recipient=True)
    with asked.db.transaction() as tx:
        user = queries.insert_sign_up(tx, **columns, is_confirmed=False)
        owner = queries.select_address_owner(tx, address=address)
        owner_id = owner and owner.id
        is_repeated = bool(is_hidden and owner and owner.is_unused) and not user.is_created
        # Even beyond the quota: otherwise a stranger who has used it up would have sent the only code.
        queries.dispute_sign_up(tx, address=address, is_repeated=is_repeated, **own)
        kind = "signup_attempt" if is_hidden and owner and email else "none"
        if user.is_created or is_repeated:
            kind = "signup"
        # Beyond the quota no email is sent, and the sign-up could not be confirmed.
        kind = "none" if counted.refused_by else kind
        has_secrets = kind == "signup"
        message.write_token(tx, owner_id if has_secrets else None, purpose, **link, **own)
        message.write(tx, owner_id, kind, secret=has_secrets, redirect_to=link["redirect_to"])

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
    """Create a user without a sign-up, if an id is given. Return the id, or None if the address is taken."""
    defaults: dict[str, Any] = {"password_hash": None, "app_metadata": {}, "is_invited": False}
    created = queries.insert_addressed_user(
        tx,
        new_id=new_id,
        email=body.get("email"),
        phone=body.get("phone"),
        user_metadata=body.get("data", {}),
        made_by=made_by,
        **defaults | columns,
    )
    return created and created.id
