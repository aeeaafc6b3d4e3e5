import uuid
from functools import partial
from typing import TypedDict

from auth.core.json_bodies import JsonObject
from auth.core.passwords.policy import check_strength
from auth.flows import admission
from auth.flows.facts import PersonFacts
from auth.flows.messages import outgoing
from auth.flows.messages.outgoing import TokenColumns
from auth.flows.sessions.issuing import IssuedSession, about_new
from auth.flows.sessions.token_response import SignInProof, open_session, sign_in_user
from auth.rules.first_proof import disputes_sign_up
from auth.rules.messages import message_of_sign_up
from auth.rules.users import AddressKind, is_unused_sign_up
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from auth.web.input import checked_redirect
from sql import Transaction, acts, queries
from sql.acts import Act

_TAKEN = "user_already_exists"


class _Columns(TypedDict):
    """The columns of a new user."""

    user_id: str
    email: str | None
    phone: str | None
    password_hash: str
    user_metadata: JsonObject
    user_agent: str | None


def sign_up(asked: Asked, body: JsonObject) -> "IssuedSession | queries.InsertSignUp":
    """Create the user of a `Signup` body, and return its row, or its session with autoconfirm.

    Raises `WeakPassword`.
    """
    email, phone, settings = body.get("email"), body.get("phone"), asked.settings
    admission.check_settings(asked, email, phone, "new", doing="Sign-up")
    check_strength(asked.settings, body["password"], [email, phone], asked.parts.leaked_passwords)
    user_id = str(uuid.uuid4())
    admission.ask_hook(asked, user_id, email, phone, data=body["data"])
    columns: _Columns = {
        "user_id": user_id,
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


def sign_up_anonymously(asked: Asked, body: JsonObject) -> IssuedSession:
    """Create a user without an address, and return the session."""
    admission.check_settings(asked, None, None, "new", doing="Sign-up")
    user_id = str(uuid.uuid4())
    admission.ask_hook(asked, user_id, None, None, data=body["data"])
    details = {"by": "anonymous", "method": "anonymous"}
    with acts.begin(asked.db) as act:
        queries.insert_anonymous_user(act, user_id=user_id, user_metadata=body["data"])
        session = _begin(asked, act, user_id, details)
    return session or _continue(asked, user_id, details["method"])


def _sign_up_confirmed(asked: Asked, columns: _Columns) -> IssuedSession:
    """Create a user with a confirmed address, and return the session."""
    user_id, address = columns["user_id"], columns["email"] or columns["phone"]
    details = {"by": "signup", "method": "password"}

    # The constraint decides who gets the address.
    def insert(act: Act) -> None:
        queries.insert_sign_up(act, **columns, is_confirmed=True)

    find = partial(queries.find_holder, address=address)
    with acts.on_found(asked.db, find, before=insert) as (act, owners):
        is_created = owners == [user_id]
        session = _begin(asked, act, user_id, details) if is_created else None
        if not is_created:
            queries.record_refused_sign_up(act, user_id=next(iter(owners), None), reason=_TAKEN)
    if not is_created:
        raise ApiError(_TAKEN)
    return session or _continue(asked, user_id, details["method"])


def _begin(asked: Asked, act: Act, user_id: str, details: dict[str, str]) -> IssuedSession | None:
    """Record a new user, and open the session in the same act, unless the token hook has to be asked."""
    person = found(act.read(queries.select_person, user_id=user_id, session_id=None), "unexpected_failure")
    if asked.parts.token_hook:
        audit.record(act, user_id, person.email, ["user_created"], ["user.created"], **details)
        return None
    session = open_session(asked, act, person, SignInProof(method=details["method"]))
    entries, events = ["user_created", "signed_in"], ["user.created", "auth.login"]
    audit.record(act, user_id, person.email, entries, events, **details, session_id=session.session_id)
    return session


def _continue(asked: Asked, user_id: str, method: str) -> IssuedSession:
    """Open the session of a new user with the answer of the token hook."""
    hook = found(asked.parts.token_hook, "unexpected_failure")
    issue = about_new(asked, hook, user_id, method)
    with acts.on(asked.db, user_id) as act:
        person = found(
            act.read(queries.select_person, user_id=user_id, session_id=None), "unexpected_failure"
        )
        return sign_in_user(asked, act, person, SignInProof(method=method), issue)


def _sign_up_unconfirmed(asked: Asked, columns: _Columns, body: JsonObject) -> "queries.InsertSignUp":
    """Create a user with an unconfirmed address, send its link or code, and return the user's row.

    If sign-in requires a confirmed address, a taken address runs the same statements as a free one and writes
    one message too, so that clients cannot tell them apart. Otherwise a taken address is refused. Several
    people may sign up with one address. Sign-ups with equal passwords are one; of different ones, only the
    button of the page of a link keeps its password.
    """
    settings, email = asked.settings, columns["email"]
    address, purpose = (email, "signup") if email else (columns["phone"] or "", "sms_signup")
    address_kind: AddressKind = "email" if email else "phone"
    is_hidden = settings.confirm_required(address_kind)
    message = outgoing.Message(asked, address, channel=body.get("channel"))
    password_hash, data = columns["password_hash"], columns["user_metadata"]
    link = TokenColumns(
        redirect_to=checked_redirect(asked, body),
        code_challenge=body.get("code_challenge"),
        browser_hash=body.get("browser_hash"),
        password_hash=password_hash,
        user_metadata=data,
        **asked.device,
    )
    quota = outgoing.count(asked, address, is_new=True)
    # A refusal by the windows of the recipient would tell of other sign-ups.
    if quota.refused_by in ("tenth", "total"):
        raise outgoing.error_of(asked, address, quota)
    drafts = []

    # The constraint decides who gets the address.
    def insert(act: Act) -> None:
        drafts.append(queries.insert_sign_up(act, **columns, is_confirmed=False))

    find = partial(queries.find_holder, address=address)
    with acts.on_found(asked.db, find, before=insert) as (act, owners):
        owner_id = next(iter(owners), None)
        owner = act.read(queries.select_person, user_id=owner_id, session_id=None)
        is_created = owner_id == columns["user_id"]
        is_unused = owner is not None and is_unused_sign_up(owner)
        is_repeated = is_hidden and is_unused and not is_created
        # This holds beyond the quota, too: otherwise a stranger who used it up would have sent the only code.
        dispute(act, owner if is_repeated else None, password_hash=password_hash, user_metadata=data)
        kind = message_of_sign_up(owner, address_kind, is_new=is_created, is_hidden=is_hidden)
        # Beyond the quota no email is sent, and the sign-up could not be confirmed.
        kind = "none" if quota.refused_by else kind
        has_secrets = kind == "signup"
        message.write_token(act, owner_id if has_secrets else None, purpose, **link)
        message.write(act, owner_id, kind, redirect_to=link["redirect_to"])

        if is_created:
            details = {"by": "signup", "method": "password"}
            audit.record(act, owner_id, email, ["user_created"], ["user.created"], **details)
        elif has_secrets:
            audit.record(act, owner_id, email, ["message_requested"], [], purpose=purpose, is_sent=True)
        else:
            act.later(queries.record_refused_sign_up, user_id=owner_id, reason=_TAKEN)
    if not is_created and not is_hidden:
        raise ApiError(_TAKEN)
    return drafts[-1]


def dispute(
    tx: Transaction,
    owner: "PersonFacts | None",
    *,
    password_hash: str | None = None,
    user_metadata: JsonObject | None = None,
) -> None:
    """Leave nobody's password and data of an address with several sign-ups, until its proof.

    `owner` is the locked row of the user who has the address. Without a password, the other one is a request
    for a message.
    """
    owner_id = owner and owner.id
    same = queries.compare_sign_up(
        tx, user_id=owner_id, password_hash=password_hash, user_metadata=user_metadata or {}
    )
    is_disputed = owner is not None and same is not None and disputes_sign_up(owner, **same._asdict())
    queries.dispute_sign_up(tx, user_id=owner_id if is_disputed else None, password_hash=password_hash)


def create_addressed_user(
    tx: Transaction,
    body: JsonObject,
    new_id: str | None,
    made_by: str,
    *,
    password_hash: str | None = None,
    app_metadata: JsonObject | None = None,
    is_invited: bool = False,
    by_key: bool = False,
) -> str | None:
    """Create a user without a sign-up, if an id is given. Return the id, or None if the address is taken."""
    created = queries.insert_addressed_user(
        tx,
        new_id=new_id,
        email=body.get("email"),
        phone=body.get("phone"),
        user_metadata=body.get("data", {}),
        made_by=made_by,
        password_hash=password_hash,
        app_metadata=app_metadata or {},
        is_invited=is_invited,
        by_key=by_key,
    )
    return created and created.id
