"""Links and codes: confirm an address, or take over a new one."""

from dataclasses import replace
from typing import Any

from psycopg2.errors import UniqueViolation

from auth.core import addresses
from auth.core.tokens import one_time
from auth.flows.account import removal
from auth.flows.links.proving import person_of, prove_address
from auth.flows.links.targets import target_of
from auth.flows.messages.outgoing import notify
from auth.flows.sessions.issuing import Issue, about_new, is_asked
from auth.flows.sessions.token_response import Outcome, Session, notify_of_sign_in, open_session, write_code
from auth.flows.sign_in import waiting
from auth.flows.sign_up import first_address
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import acts, queries

# The token of a link, or a code that was sent to an address, as parameters of `spend_one_time_token`.
Proof = dict[str, Any]


def by_link(token: str) -> Proof:
    return {"token_hash": one_time.hash_token(token), "target": None, "code_macs": [], "browser_hash": None}


def by_code(asked: Asked, address: str, code: str, browser_hash: bytes | None = None) -> Proof:
    """Return the proof of a code that was typed on a page of the browser with this hash, or sent to the
    API."""
    macs = asked.parts.codes.macs(address, code)
    return {"token_hash": None, "target": address, "code_macs": macs, "browser_hash": browser_hash}


def spend(
    asked: Asked,
    link_type: str,
    proof: Proof,
    *,
    redirects: bool,
    for_client: bool = False,
    redirect_to: str | None = None,
    is_shown: bool = False,
    is_same: bool = False,
    keeps_sign_up: bool = True,
) -> Outcome:
    """Spend a link or a code. `redirects` if the response is a redirect, perhaps to the request's
    `redirect_to`.

    `is_shown` if the user has pressed the button of the link's page; `is_same` if that said that this browser
    asked for the link. `keeps_sign_up` unless the page of a code waits for another than a sign-up's.
    """
    asked.noted.note(address=proof["target"], token_hash=proof["token_hash"], type=link_type)
    proof |= {"purposes": one_time.PURPOSES.get(link_type, []), "network": asked.client["network"]}
    issue, members = Issue(), dict[str, Any]()
    try:
        if is_asked(asked, for_client=for_client):
            issue, members = _issue(asked, proof, redirects, redirect_to, is_shown, is_same)
        with acts.begin(asked.db) as tx:
            # A refusal is raised later, so that the transaction commits the verdict or the spent link.
            spent = queries.spend_one_time_token(tx, **proof)
            user = spent and found(queries.lock_user(tx, user_id=spent.user_id), "user_not_found")
            if spent is None or user is None:
                outcome = Outcome(refusal=ApiError("otp_expired"))
            elif issue.answer and link_type in one_time.CHANGES:
                outcome = _sign_in_at_new_address(asked, tx, spent, user, issue)
            elif link_type in one_time.CHANGES:
                outcome = _take_new_address(asked, tx, spent, user, proof, redirects)
            else:
                outcome = _confirm_address(
                    asked, tx, spent, user, redirects, is_shown, is_same, issue, keeps_sign_up
                )
    except UniqueViolation as error:
        is_phone = error.diag.constraint_name == "users_phone_key"
        raise ApiError("phone_exists" if is_phone else "email_exists") from None
    if outcome.refusal:
        raise outcome.refusal
    return replace(outcome, members=members | outcome.members)


def _issue(
    asked: Asked, proof: Proof, redirects: bool, redirect_to: str | None, is_shown: bool, is_same: bool
) -> tuple[Issue, dict[str, Any]]:
    """Ask the token hook about the session that a link or code opens for a client.

    A first proof or a new address is committed before, because the token contains it. The link or code stays
    valid. Also returns the members of the response about the first proof.
    """
    issue, outcome = Issue(), Outcome()
    with acts.begin(asked.db) as tx:
        spent = queries.spend_one_time_token(tx, **proof)
        user = spent and found(queries.lock_user(tx, user_id=spent.user_id), "user_not_found")
        if spent is None or user is None:
            outcome = Outcome(refusal=ApiError("otp_expired"))
        elif spent.purpose in one_time.CHANGES:
            is_for_client = _signs_in(user, proof, redirects)
            # Otherwise an earlier request took the address, and the hook refused.
            if is_for_client and spent.target not in (user.email, user.phone):
                outcome = _take_new_address(asked, tx, spent, user, proof, redirects=True)
        else:
            is_for_client = _is_for_client(asked, spent, redirects, redirect_to, is_same)
            if is_for_client and not getattr(user, f"{addresses.kind_of(spent.target)}_proved"):
                outcome = _confirm_address(asked, tx, spent, user, redirects, is_shown, is_same, None)
        if spent and not outcome.refusal:
            queries.keep_one_time_token(tx, id=spent.id)
    if outcome.refusal or spent is None:
        raise outcome.refusal or ApiError("otp_expired")
    issue = about_new(asked, spent.user_id, spent.method, for_client=True) if is_for_client else issue
    return issue, outcome.members


def _is_for_client(asked: Asked, spent: Any, redirects: bool, redirect_to: str | None, is_same: bool) -> bool:
    """Whether an application gets the session directly, not a browser on our pages or an authorization
    code."""
    target = asked.parts.redirects.checked(redirect_to or target_of(asked, spent))
    stays_here = waiting.is_elsewhere(asked, spent, is_same=is_same) or asked.parts.redirects.is_own_page(
        target
    )
    return not redirects or not (spent.code_challenge or stays_here)


def _signs_in(user: Any, proof: Proof, redirects: bool) -> bool:
    # A stranger may have sent the link to sign its reader in as the stranger's user.
    return not redirects and not (first_address.is_without_address(user) and proof["token_hash"])


def _confirm_address(
    asked: Asked,
    tx: acts.Act,
    spent: Any,
    user: Any,
    redirects: bool,
    is_shown: bool,
    is_same: bool,
    issue: Issue | None,
    keeps_sign_up: bool = True,
) -> Outcome:
    of_sign_up, kind = spent.purpose in ("signup", "sms_signup"), addresses.kind_of(spent.target)
    is_sign_up, is_disputed = of_sign_up and keeps_sign_up, of_sign_up and not keeps_sign_up
    if spent.target not in (user.email, user.phone):
        return Outcome(refusal=ApiError("otp_expired"))
    if user.is_banned:
        return Outcome(refusal=ApiError("user_banned"))

    is_elsewhere = redirects and waiting.is_elsewhere(asked, spent, is_same=is_same)
    shown = {"is_shown": is_shown, "network": asked.client["network"]}
    if is_disputed:
        # A stranger may have signed up after the browser asked, in vain, for a code to sign in.
        other: dict[str, Any] = {"address": spent.target, "is_repeated": True}
        queries.dispute_sign_up(tx, **other, password_hash=None, user_metadata={})
    proved = queries.confirm_address(tx, token_id=spent.id, provider=kind, **shown)
    if is_disputed and proved.is_first:
        # That leaves the password of a user who has signed in unconfirmed.
        queries.set_password(tx, user_id=user.id, password_hash=None)
    code, session = None, None
    # Without an issue, no session is opened yet.
    if issue and redirects and spent.code_challenge and not is_elsewhere:
        code = write_code(asked, tx, user.id, spent.code_challenge, spent.method)
    elif issue:
        session = open_session(asked, tx, user.id, spent.method, issue)
        notify_of_sign_in(asked, tx, user.id, session, address=spent.target)
    acts = [
        None if getattr(user, f"{kind}_proved") else f"{kind}_confirmed",
        "password_changed" if proved.sets_password and not is_sign_up else None,
        "signed_in" if session else None,
    ]
    events = ["user.updated" if acts[0] or acts[1] else None, "auth.login" if session else None]
    email = None if proved.is_first and kind == "phone" else user.email
    details = {"method": "otp", "purpose": spent.purpose, "session_id": session and session.session_id}
    audit.record(tx, user.id, email, acts, events, **details)
    members: dict[str, Any] = {}
    if spent.purpose == "recovery":
        # The address was just proved, so it needs no check.
        recent = [change for change in removal.list_recent(tx, user.id) if change["type"] != kind]
        members["recent_changes"] = recent
    is_kept = proved.sets_password or (is_sign_up and not user.lacks_password)
    if not is_kept and user.has_own_password and (is_sign_up or proved.is_first):
        members["password_removed"] = True
    return Outcome(
        session=Session(session, issue) if session and issue else None,
        authorization_code=code,
        # Only the application may use the code.
        redirect_to=target_of(asked, spent) if session else spent.redirect_to,
        members=members,
        is_elsewhere=is_elsewhere,
        purpose=spent.purpose,
    )


def _take_new_address(
    asked: Asked, tx: acts.Act, spent: Any, user: Any, proof: Proof, redirects: bool
) -> Outcome:
    """Give the user a new email or phone. Raises `UniqueViolation` if another user has it."""
    kind = addresses.kind_of(spent.target)
    if spent.target != getattr(user, f"new_{kind}"):
        return Outcome(refusal=ApiError("otp_expired"))
    if user.is_banned:
        return Outcome(refusal=ApiError("user_banned"))

    is_first = first_address.is_without_address(user)
    queries.make_way(tx, addresses=[spent.target], owner_id=user.id, because="proved_by_other")
    act, old_address = f"{kind}_changed", getattr(user, kind)
    notify(asked, tx, user, act, **{f"new_{kind}": spent.target})
    prove_address(tx, person_of(tx, user.id), kind, spent.target, spent.purpose)
    queries.forget_mail_proofs(tx, user_id=user.id)
    if is_first:
        first_address.finish(asked, tx, user.id, spent.session_id)
    else:
        queries.end_access(tx, user_id=user.id, session_id=spent.session_id, reason=act, voids=True)

    session = open_session(asked, tx, user.id, "otp", Issue()) if _signs_in(user, proof, redirects) else None
    acts = [act, "signed_in" if session else None]
    events = ["user.updated", "auth.login" if session else None]
    details = {"method": "otp", "old_address": old_address, "new_address": spent.target}
    email = spent.target if kind == "email" else user.email
    audit.record(tx, user.id, email, acts, events, **details, session_id=session and session.session_id)
    return Outcome(session and Session(session, Issue()), redirect_to=spent.redirect_to)


def _sign_in_at_new_address(asked: Asked, tx: acts.Act, spent: Any, user: Any, issue: Issue) -> Outcome:
    """Open the session that the hook was asked about, after the change of the address."""
    session = open_session(asked, tx, user.id, "otp", issue)
    details = {"method": "otp", "session_id": session.session_id}
    audit.record(tx, user.id, user.email, ["signed_in"], ["auth.login"], **details)
    return Outcome(Session(session, issue), redirect_to=spent.redirect_to)
