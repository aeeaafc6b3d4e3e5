"""Spend a link or a code: confirm an address, take over a new address, or undo a change of email."""

from dataclasses import asdict, dataclass
from typing import Any

from psycopg2.errors import UniqueViolation

from auth.context import latchkey
from auth.flows.outgoing import Message
from auth.tokens import one_time
from auth.web import audit
from auth.web.edge import client
from auth.web.errors import ApiError
from sql import Transaction


@dataclass(frozen=True)
class Proof:
    """What the client brings: the token of a link, or a code that was sent to an address."""

    token_hash: bytes | None = None
    target: str | None = None
    code_mac: bytes | None = None

    @classmethod
    def by_link(cls, token: str) -> "Proof":
        return cls(token_hash=one_time.hash_token(token))

    @classmethod
    def by_code(cls, address: str, code: str) -> "Proof":
        return cls(target=address, code_mac=latchkey.codes.mac(address, code))


@dataclass(frozen=True)
class Outcome:
    """What a link or code led to: a refusal (an error_code), a session, an authorization code, or nothing."""

    refusal: str | None = None
    session: Any = None
    authorization_code: str | None = None
    redirect_to: str | None = None


def spend(link_type: str, proof: Proof, *, redirects: bool) -> Outcome:
    """Spend a link or a code. With `redirects`, a browser opened the link and is redirected.

    Raises `ApiError`.
    """
    audit.about(address=proof.target, token_hash=proof.token_hash, type=link_type)
    try:
        outcome = _spend(link_type, proof, redirects)
    except UniqueViolation as error:
        outcome = Outcome(
            "phone_exists" if error.diag.constraint_name == "users_phone_key" else "email_exists"
        )
    if outcome.refusal:
        raise ApiError(outcome.refusal)
    return outcome


def _spend(link_type: str, proof: Proof, redirects: bool) -> Outcome:
    """Commit a refusal too: it leaves a counted try, or a spent link."""
    purposes = one_time.PURPOSES.get(link_type)
    if purposes is None:
        return Outcome("otp_expired")
    with latchkey.db.transaction() as tx:
        if link_type == "email_restore":
            tx.all("lock_users_of_restore", token_hash=proof.token_hash)
        spent = tx.one("spend_one_time_token", **asdict(proof), purposes=purposes)
        if spent is None:
            return Outcome("otp_expired")
        if link_type == "email_restore":
            return _restore_email(tx, spent)
        if link_type in one_time.CHANGES:
            return _take_new_address(tx, spent, signs_in=not redirects)
        return _confirm_address(tx, spent, redirects)


def _confirm_address(tx: Transaction, spent: Any, redirects: bool) -> Outcome:
    """Confirm an address of the user's own, and sign in."""
    user_id, password_hash = spent.user_id, spent.password_hash
    by_email = "@" in spent.target
    provider = "email" if by_email else "phone"
    proof = tx.one("select_proof", user_id=user_id, provider=provider)
    if spent.target not in (proof.email, proof.phone):
        return Outcome("otp_expired")
    if proof.is_banned:
        return Outcome("user_banned")

    if proof.is_first:
        keeps_password = spent.purpose in ("signup", "sms_signup")
        tx.run(
            "drop_unproved",
            user_id=user_id,
            provider=provider,
            drops_email=proof.drops_email,
            keeps_password=keeps_password,
        )
    tx.run("confirm_address", user_id=user_id, provider=provider, password_hash=password_hash)
    if proof.is_first or password_hash:
        reason = "password_changed" if password_hash else "address_proved"
        tx.run("end_user_sessions", user_id=user_id, kept_session_id=None, reason=reason)
    tx.run("void_tokens", user_id=user_id)

    code = _write_authorization_code(tx, spent) if redirects and spent.code_challenge else None
    session_id = None if code else tx.one("open_session", user_id=user_id, method="otp", **client()).id
    tx.run(
        "record_acts",
        user_id=user_id,
        email=None if proof.drops_email else proof.email,
        acts=[
            ("email_confirmed" if by_email else "phone_confirmed") if proof.is_confirmation else None,
            "password_changed" if password_hash else None,
            "signed_in" if session_id else None,
        ],
        events=[
            "user.updated" if proof.is_confirmation or password_hash else None,
            "auth.login" if session_id else None,
        ],
        details={"method": "otp", "purpose": spent.purpose, "session_id": session_id},
    )
    return Outcome(
        session=tx.one("select_new_session", session_id=session_id) if session_id else None,
        authorization_code=code,
        redirect_to=spent.redirect_to,
    )


def _write_authorization_code(tx: Transaction, spent: Any) -> str:
    code = one_time.new_token()
    tx.run(
        "write_authorization_code",
        user_id=spent.user_id,
        code_hash=one_time.hash_token(code),
        code_challenge=spent.code_challenge,
        method="otp",
        network=client()["network"],
        authorization_code_lifetime=one_time.AUTHORIZATION_CODE_LIFETIME,
    )
    return code


def _take_new_address(tx: Transaction, spent: Any, signs_in: bool) -> Outcome:
    """Make a new email or phone the user's. Raises `UniqueViolation` if another user has it by now."""
    user = tx.one("lock_user", user_id=spent.user_id)
    by_email = spent.purpose == "email_change"
    if spent.target != (user.new_email if by_email else user.new_phone):
        return Outcome("otp_expired")
    if user.is_banned:
        return Outcome("user_banned")

    if by_email:
        tx.run("change_email", user_id=user.id, email=spent.target)
        tx.run("end_user_sessions", user_id=user.id, kept_session_id=spent.session_id, reason="email_changed")
    else:
        tx.run("change_phone", user_id=user.id, phone=spent.target)
    tx.run(
        "write_address_identity",
        user_id=user.id,
        provider="email" if by_email else "phone",
        address=spent.target,
    )
    tx.run("void_tokens", user_id=user.id)
    if user.email_proved:
        _tell_old_email(tx, user, spent)

    session_id = tx.one("open_session", user_id=user.id, method="otp", **client()).id if signs_in else None
    tx.run(
        "record_acts",
        user_id=user.id,
        email=spent.target if by_email else user.email,
        acts=["email_changed" if by_email else "phone_changed", "signed_in" if signs_in else None],
        events=["user.updated", "auth.login" if signs_in else None],
        details={
            "old_address": user.email if by_email else user.phone,
            "new_address": spent.target,
            "method": "otp",
            "session_id": session_id,
        },
    )
    session = tx.one("select_new_session", session_id=session_id) if session_id else None
    return Outcome(session=session, redirect_to=spent.redirect_to)


def _tell_old_email(tx: Transaction, user: Any, spent: Any) -> None:
    """Tell the proved email that an address was changed, with a link that undoes a change of email."""
    if spent.purpose == "email_change":
        message = Message(user.email, code=False, link_lifetime=one_time.RESTORE_LIFETIME)
        tx.run("write_token", **message.token_row(user.id, "email_restore"))
        tx.run("write_message", **message.message_row(user.id, "email_changed", new_email=spent.target))
    else:
        message = Message(user.email, link=False, code=False)
        tx.run("write_message", **message.message_row(user.id, "phone_changed", new_phone=spent.target))


def _restore_email(tx: Transaction, spent: Any) -> Outcome:
    """Undo a change of email, and what was added since. Nobody may hold the address who has not proved it."""
    tx.run("delete_unused_holder", email=spent.target, owner_id=spent.user_id)
    tx.run("take_email_back", email=spent.target, owner_id=spent.user_id)
    tx.run("drop_since", user_id=spent.user_id, moment=spent.created_at)
    tx.run("change_email", user_id=spent.user_id, email=spent.target)
    tx.run("write_address_identity", user_id=spent.user_id, provider="email", address=spent.target)
    tx.run("end_user_sessions", user_id=spent.user_id, kept_session_id=None, reason="email_restored")
    tx.run("void_tokens", user_id=spent.user_id)
    tx.run(
        "record_acts",
        user_id=spent.user_id,
        email=spent.target,
        acts=["email_change_undone"],
        events=["user.updated"],
        details={},
    )
    return Outcome()
