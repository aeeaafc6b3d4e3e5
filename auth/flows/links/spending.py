"""Links and codes: confirm an address, or take over a new one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from psycopg2.errors import UniqueViolation

from auth.core import addresses
from auth.core.json_bodies import JsonObject
from auth.core.tokens import one_time
from auth.flows import admission, ends
from auth.flows.account import removal
from auth.flows.facts import PersonFacts
from auth.flows.links.finding import LinkOrCode, Lookup, OpenedLink, find, locked
from auth.flows.links.proving import holder_of, person_of, prove_address, record_mail_proof
from auth.flows.links.targets import target_of
from auth.flows.messages.outgoing import notify
from auth.flows.passkeys import unused
from auth.flows.sessions.issuing import Issue, IssuedSession, about_new
from auth.flows.sessions.token_response import Outcome, SignInProof, open_session, write_code
from auth.flows.sign_in import waiting
from auth.flows.sign_up import first_address
from auth.registry import TokenHook
from auth.rules import first_proof, links, users
from auth.rules.ends import Reason
from auth.rules.messages import address_of_notices
from auth.rules.refusals import Refusal
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries
from sql.acts import Act


@dataclass(frozen=True)
class ToProgram:
    """A client that sent the link or code, and gets the session in the response."""


@dataclass(frozen=True)
class ToPage:
    """A page of ours that waits for a code of a purpose, and gets the session."""

    waits_for: str


@dataclass(frozen=True)
class ToBrowser:
    """A browser that opened the link: the response is a redirect, perhaps to the request's `redirect_to`.

    `is_shown` if its user has pressed the button of the link's page; `is_same` if that said that this browser
    asked for the link.
    """

    redirect_to: str | None = None
    is_shown: bool = False
    is_same: bool = False


# What gets the session of a link or code.
Receiver = ToProgram | ToPage | ToBrowser


@dataclass(frozen=True)
class _Effects:
    """What a link or code has changed, for the audit log and the response."""

    entries: Sequence[str | None] = ()
    # The email of the audit entries, and their details.
    email: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)

    def record(self, act: Act, link: "queries.SelectLink", session: IssuedSession | None) -> None:
        entries = [*self.entries, "signed_in" if session else None]
        events = ["user.updated" if any(self.entries) else None, "auth.login" if session else None]
        details = {"method": "otp", **self.details, "session_id": session and session.session_id}
        audit.record(act, link.user_id, self.email, entries, events, **details)


def spend(asked: Asked, link_type: str, secret: LinkOrCode, receiver: Receiver) -> Outcome:
    """Spend a link or a code."""
    if isinstance(secret, OpenedLink):
        asked.noted.note(address=None, token_hash=secret.token_hash, type=link_type)
    else:
        asked.noted.note(address=secret.address, token_hash=None, type=link_type)
    lookup = find(asked, secret, one_time.PURPOSES.get(link_type, []))
    if lookup is None:
        raise ApiError("otp_expired")
    issue, members = None, dict[str, Any]()
    try:
        if (hook := asked.parts.token_hook) and not isinstance(receiver, ToPage):
            issue, members = _ask_hook(asked, hook, lookup, receiver)
        with locked(asked, lookup) as (act, link):
            if link is None or not queries.spend_link(act, id=link.id):
                raise ApiError("otp_expired")
            person = person_of(act, link.user_id)
            # The refusal is raised below, so that the act spends what it refuses.
            refusal = _refusal_of_use(asked, act, link, person)
            if refusal is None and link.purpose in one_time.CHANGES:
                outcome = _use_for_change(asked, act, lookup, link, person, receiver, issue)
            elif refusal is None:
                outcome = _use(asked, act, link, person, receiver, issue)
    except UniqueViolation as error:
        is_phone = error.diag.constraint_name == "users_phone_key"
        raise ApiError("phone_exists" if is_phone else "email_exists") from None
    if refusal:
        raise ApiError(refusal)
    return replace(outcome, members=members | outcome.members)


def _ask_hook(
    asked: Asked, hook: TokenHook, lookup: Lookup, receiver: Receiver
) -> tuple[Issue | None, JsonObject]:
    """Ask about the session that a link or code opens for a client.

    A first proof or a new address is committed before, because the token contains it. The link or code stays
    valid. Also returns the members of the response about the first proof.
    """
    effects = _Effects()
    with locked(asked, lookup) as (act, link):
        if link is None:
            raise ApiError("otp_expired")
        person = person_of(act, link.user_id)
        refusal = _refusal_of_use(asked, act, link, person)
        if refusal:
            queries.spend_link(act, id=link.id)
        elif not _is_for_client(asked, lookup, link, person, receiver):
            return None, {}
        elif not users.has_proved(person, link.target):
            # Otherwise it would be void with the others.
            queries.spend_link(act, id=link.id)
            is_change = link.purpose in one_time.CHANGES
            effects = (
                _take_new_address(asked, act, link, person)
                if is_change
                else _confirm_address(asked, act, link, person, receiver)
            )
            effects.record(act, link, None)
            queries.unspend_link(act, id=link.id)
    if refusal:
        raise ApiError(refusal)
    method = links.method_of_session(link.purpose, was_mailed=link.was_mailed)
    return about_new(asked, hook, link.user_id, method), effects.members


def _refusal_of_use(
    asked: Asked, act: Act, link: "queries.SelectLink", person: PersonFacts
) -> Refusal | None:
    refusal = links.refusal_of_use(link.purpose, link.target, person, is_over=link.is_over)
    if refusal or not link.was_mailed:
        return refusal
    # The settings, or the invitation that the message was sent for, may have changed since.
    is_out = admission.refusal_of_first_proof(asked, act, person, link.target) is not None
    return "otp_expired" if is_out else None


def _use(
    asked: Asked,
    act: Act,
    link: "queries.SelectLink",
    person: PersonFacts,
    receiver: Receiver,
    issue: Issue | None,
) -> Outcome:
    """Confirm an address, and sign its user in."""
    effects = _confirm_address(asked, act, link, person, receiver)
    method = links.method_of_session(link.purpose, was_mailed=link.was_mailed)
    present = person_of(act, person.id)
    proof = SignInProof(method=method, without_notice=frozenset({link.target}), by_key=link.is_by_key)
    is_elsewhere = isinstance(receiver, ToBrowser) and waiting.is_elsewhere(
        asked, link, is_same=receiver.is_same
    )
    code, session = None, None
    if isinstance(receiver, ToBrowser) and link.code_challenge and not is_elsewhere:
        code = write_code(asked, act, present, link.code_challenge, proof)
    else:
        session = open_session(asked, act, present, proof, issue)
    effects.record(act, link, session)
    return Outcome(
        session=session,
        authorization_code=code,
        # Only the application may use the code.
        redirect_to=target_of(asked, link) if session else link.redirect_to,
        has_challenge=link.code_challenge is not None,
        members=effects.members,
        is_elsewhere=is_elsewhere,
        purpose=link.purpose,
    )


def _use_for_change(
    asked: Asked,
    act: Act,
    lookup: Lookup,
    link: "queries.SelectLink",
    person: PersonFacts,
    receiver: Receiver,
    issue: Issue | None,
) -> Outcome:
    """Give the user a new address, unless that came before the hook, and perhaps sign in."""
    effects = _Effects(email=person.email)
    if not users.has_proved(person, link.target):
        effects = _take_new_address(asked, act, link, person)
    session = None
    if _signs_in(lookup, person, receiver):
        present = person_of(act, person.id)
        # The change of the address has its own notice.
        address = address_of_notices(present, offers_phone=asked.settings.offers_phone)
        method = links.method_of_session(link.purpose, was_mailed=link.was_mailed)
        proof = SignInProof(method=method, without_notice=frozenset({address}), by_key=link.is_by_key)
        session = open_session(asked, act, present, proof, issue)
    effects.record(act, link, session)
    has_challenge = link.code_challenge is not None
    return Outcome(session=session, redirect_to=link.redirect_to, has_challenge=has_challenge)


def _signs_in(lookup: Lookup, person: PersonFacts, receiver: Receiver) -> bool:
    """Whether a new address opens a session."""
    # A stranger may have sent the link to sign its reader in as the stranger's user.
    is_strangers = users.lacks_address(person) and lookup.token_hash is not None
    return not isinstance(receiver, ToBrowser) and not is_strangers


def _is_for_client(
    asked: Asked,
    lookup: Lookup,
    link: "queries.SelectLink",
    person: PersonFacts,
    receiver: Receiver,
) -> bool:
    """Whether a client gets the session directly, not a browser on our pages or an authorization code."""
    if link.purpose in one_time.CHANGES:
        return _signs_in(lookup, person, receiver)
    if not isinstance(receiver, ToBrowser):
        return True
    target = asked.parts.redirects.checked(receiver.redirect_to or target_of(asked, link))
    is_elsewhere = waiting.is_elsewhere(asked, link, is_same=receiver.is_same)
    stays_here = is_elsewhere or asked.parts.redirects.is_own_page(target)
    return not (link.code_challenge or stays_here)


def _confirm_address(
    asked: Asked, act: Act, link: "queries.SelectLink", person: PersonFacts, receiver: Receiver
) -> _Effects:
    """Prove an address that the user has, and keep or remove the rest."""
    kind = addresses.kind_of(link.target)
    owner, purpose = {"user_id": person.id}, cast(first_proof.ProvedBy, link.purpose)
    is_of_sign_up = purpose in first_proof.OF_SIGN_UPS
    # A stranger may have signed up after the browser asked, in vain, for a code to sign in.
    is_disputed = is_of_sign_up and isinstance(receiver, ToPage) and receiver.waits_for != "signup"
    proof: first_proof.ProvedBy = "magiclink" if is_disputed else purpose
    is_first = prove_address(act, person, kind, link.target, proof, by_key=link.is_by_key)
    is_shown = isinstance(receiver, ToBrowser) and receiver.is_shown
    is_own = first_proof.is_own_sign_up(link, is_first=is_first, is_shown=is_shown)
    has_password = link.password_hash is not None
    sets_password = first_proof.sets_password(purpose, is_own=is_own, carries_password=has_password)
    if sets_password:
        queries.set_password(act, **owner, password_hash=link.password_hash, by_key=link.is_by_key)
    if is_own:
        queries.take_data_of_link(act, **owner, id=link.id)
    elif is_disputed and users.is_unused_sign_up(person):
        queries.forget_sign_up(act, **owner)
    if is_of_sign_up:
        queries.forget_password_of_link(act, id=link.id)
    act.later(queries.record_sign_in, **owner, identity=kind, password_hash=None, network=None)
    record_mail_proof(act, person.id, asked.client["network"])
    if links.ends_everything(proof, was_mailed=link.was_mailed):
        ends.end_and_void(act, person.id, None, "recovered")
        unused.remove_made_without_factor(act, person, "before_new_password")
    else:
        queries.void_tokens(act, **owner)

    members: dict[str, Any] = {}
    if proof == "recovery":
        # The address was just proved, so it needs no check.
        recent = [change for change in removal.list_recent(act, person.id) if change["type"] != kind]
        members["recent_changes"] = recent
    has_own_password = (person.password_hash or person.sign_up_hash) is not None
    is_kept = sets_password or first_proof.keeps_password(person, proof)
    if has_own_password and not is_kept and (is_first or proof in first_proof.OF_SIGN_UPS):
        members["password_removed"] = True
    is_new_password = sets_password and proof not in first_proof.OF_SIGN_UPS
    entries = [
        None if users.is_proved(person, kind) else f"{kind}_confirmed",
        "password_changed" if is_new_password else None,
    ]
    email = None if is_first and kind == "phone" else person.email
    return _Effects(entries, email, {"purpose": link.purpose}, members)


def _take_new_address(asked: Asked, act: Act, link: "queries.SelectLink", person: PersonFacts) -> _Effects:
    """Give the user a new email or phone. Raises `UniqueViolation` if another user has it."""
    kind, is_first = addresses.kind_of(link.target), users.lacks_address(person)
    reason: Reason = "email_changed" if kind == "email" else "phone_changed"
    old_address = person.email if kind == "email" else person.phone
    holder = holder_of(act, link.target, person.id)
    if holder and users.is_replaced(holder):
        queries.delete_user(act, user_id=holder.id, because="proved_by_other")
    new: dict[str, Any] = {f"new_{kind}": link.target}
    notify(asked, act, person, reason, **new)
    by = cast(first_proof.ProvedBy, link.purpose)
    prove_address(act, person, kind, link.target, by, by_key=link.is_by_key)
    queries.forget_mail_proofs(act, user_id=person.id)
    if is_first:
        first_address.finish(asked, act, person.id, link.session_id)
    else:
        ends.end_and_void(act, person.id, link.session_id, reason)
    email = link.target if kind == "email" else person.email
    return _Effects([reason], email, {"old_address": old_address, "new_address": link.target})
