"""Requests for a message. The outcome hides whether one was sent, as anyone may enter any address."""

import uuid
from dataclasses import dataclass
from functools import partial

from auth.core.json_bodies import JsonObject
from auth.core.settings import Settings
from auth.core.tokens import one_time
from auth.flows import admission, organizations
from auth.flows.admission import Admitted
from auth.flows.facts import PersonFacts
from auth.flows.links.targets import requested_target
from auth.flows.messages import outgoing
from auth.flows.messages.outgoing import TokenColumns
from auth.flows.sign_in.reauthentication import admit_caller, code_address
from auth.flows.sign_up.sign_up import create_addressed_user, dispute
from auth.rules import links
from auth.rules.admission import refusal_of_first_proof
from auth.rules.first_proof import OF_SIGN_UPS
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Transaction, acts, queries
from sql.acts import Act


def request_message(asked: Asked, purpose: str, body: JsonObject) -> str:
    """Send a message and return its id. Every address runs the same statements and writes a message, perhaps
    of kind `none`.
    """
    email, phone = body.get("email"), body.get("phone")
    admission.check_channel(asked, email, phone)
    address, target = email or body["phone"], requested_target(asked, purpose, body)
    message = outgoing.Message(asked, address, channel=body.get("channel"))
    new_id, refusal, is_invited = None, JsonObject(), False
    admitted = admission.admitted(asked, email)
    creates = _creates(asked.settings, body.get("create_user"), admitted)
    if creates:
        new_id = str(uuid.uuid4())
        try:
            admission.ask_hook(asked, new_id, email, phone, data=body.get("data"))
        except ApiError:
            # Only the audit log gets the refusal: the client must not learn that the address is free.
            new_id, refusal = None, asked.noted.subject["details"] if asked.noted.subject else {}
    has_quota = outgoing.count(asked, address).refused_by is None

    # The constraint decides who gets the address.
    def insert(act: Act) -> None:
        nonlocal is_invited
        is_invited = "invited" in (creates, admitted) and admission.is_invited(act, email)
        is_wanted = has_quota and (creates == "anyone" or is_invited)
        create_addressed_user(act, body, new_id if is_wanted else None, "message")

    find = partial(queries.find_recipient, address=address, purpose=purpose)
    with acts.on_found(asked.db, find, before=insert) as (act, _):
        recipient = recipient_of(act, purpose, address)
        user_id, user = recipient.user_id, recipient.user
        # Its proof would be refused.
        is_out = user and refusal_of_first_proof(user, email, asked.settings, is_invited=is_invited)
        is_due = has_quota and recipient.is_due and not is_out
        # A stranger may have signed up, and resend that code to the owner, who waits for this one.
        dispute(act, recipient.holder if purpose not in OF_SIGN_UPS else None)
        columns = TokenColumns(
            redirect_to=target,
            code_challenge=body.get("code_challenge"),
            browser_hash=body.get("browser_hash"),
            **asked.device,
        )
        write_requested(act, message, purpose, user_id, columns, is_due=is_due)
        is_created = new_id is not None and user_id == new_id
        entries = ["user_created" if is_created else None, "message_requested"]
        events = ["user.created" if is_created else None]
        details = {"by": "message" if is_created else None, "purpose": purpose, "is_sent": is_due}
        # The hook was asked about a new user. Its answer does not concern an existing one.
        details |= refusal if user_id is None else {}
        audit.record(act, user_id, email, entries, events, **details)
    if has_quota and not is_due:
        why = "no user has this address"
        why = "the user of this address is banned or needs none" if user_id else why
        why = "sign-up is closed to this address" if is_out else why
        outgoing.tell_developer(asked, address, f"not sent: {why}")
    return message.id


def _creates(settings: Settings, wanted: object, admitted: Admitted | None) -> Admitted | None:
    """Return for whom a request makes a user; with `wanted` "invited", for nobody else than the invited."""
    if not wanted:
        return None
    if wanted == "invited" and admitted == "anyone":
        return "invited" if organizations.is_on(settings) else None
    return admitted


@dataclass(frozen=True)
class Recipient:
    """The user who gets a message at an address, if there is one, and the one who has the address."""

    user: "PersonFacts | None"
    is_due: bool
    holder: "PersonFacts | None"

    @property
    def user_id(self) -> str | None:
        return self.user and self.user.id


def recipient_of(tx: Transaction, purpose: str, address: str) -> Recipient:
    """Return who gets a message of a purpose at an address. The users are locked."""
    ids = queries.find_recipient(tx, address=address, purpose=purpose)
    holder = queries.select_person(tx, user_id=ids.holder_id, session_id=None)
    waiting = queries.select_person(tx, user_id=ids.waiting_id, session_id=None)
    user = waiting if purpose in one_time.CHANGES else holder
    if user is None:
        return Recipient(None, False, holder)
    return Recipient(user, links.is_due(purpose, user, holder), holder)


def write_requested(
    tx: Transaction,
    message: outgoing.Message,
    purpose: str,
    user_id: str | None,
    columns: TokenColumns,
    *,
    is_due: bool = True,
    **variables: object,
) -> None:
    """Write a message and its token for a user; one of kind `none` unless it is due."""
    browser_hash = columns.get("browser_hash")
    request = queries.select_request(tx, user_id=user_id, purpose=purpose, browser_hash=browser_hash)
    if request:
        own = TokenColumns(
            session_id=request.session_id, password_hash=request.own_password_hash, by_key=request.is_by_key
        )
        columns = columns | own
    message.write_token(tx, user_id if is_due else None, purpose, **columns)
    if request and purpose == "signup":
        variables |= {"user_agent": request.user_agent, "requested_at": request.signed_up_at}
    kind = purpose.replace("sms_signup", "signup") if is_due else "none"
    message.write(tx, user_id, kind, redirect_to=columns.get("redirect_to"), **variables)


def send_reauthentication_code(asked: Asked, browser_hash: bytes | None = None) -> str:
    """Send the caller a code and return the message's id."""
    address = code_address(asked.live_caller())
    if not address:
        raise ApiError("reauthentication.validation_failed")
    message, user_id = outgoing.Message(asked, address, carries=["code"]), asked.caller.user_id
    quota = outgoing.take_quota(asked, address)
    with acts.on(asked.db, asked.caller.user_id) as act:
        admit_caller(asked, act)
        session_id = asked.caller.session_id
        message.write_token(
            act, user_id, "reauthentication", session_id=session_id, browser_hash=browser_hash
        )
        message.write(act, user_id, "reauthentication")
        details = {"purpose": "reauthentication", "is_sent": True}
        audit.record(act, user_id, None, ["message_requested"], [], **details)
    outgoing.add_quota_headers(asked, quota)
    return message.id
