"""The end of a sign-in: its session, and the token response (RFC 6749, section 5.1) or code (RFC 7636)."""

import hmac
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from auth.core import constants, json_bodies
from auth.core.json_bodies import JsonObject
from auth.core.passwords import leaked
from auth.core.tokens import one_time
from auth.flows import ends, facts, organizations
from auth.flows.facts import PersonFacts
from auth.flows.messages import outgoing
from auth.flows.sessions import credentials
from auth.flows.sessions.issuing import Issue, IssuedSession, about_new, answered, compose
from auth.rules import counts, levels, sessions
from auth.rules.messages import address_of_notices
from auth.rules.sign_in import verdict_on_code
from auth.rules.users import AddressKind
from auth.web import audit
from auth.web.asked import Asked
from auth.web.context import Latchkey
from auth.web.errors import ApiError, found
from sql import Runner, acts, queries

# In the format of GoTrue's clients.
_WEAK_PASSWORD: dict[str, Any] = {
    "weak_password": {
        "message": "This password is known from data breaches. Choose another one.",
        "reasons": [leaked.REASON],
    }
}


@dataclass(frozen=True)
class Opener:
    """A session of a browser on our pages that opens one for an application, which gets its level."""

    id: str
    session: sessions.ProvedSession
    methods: list[dict[str, Any]]
    factor_id: str | None
    provider_term: str | None


@dataclass(frozen=True, kw_only=True)
class SignInProof:
    """What a user signs in with."""

    # The session and the claim `amr` have it.
    method: str
    provider: str | None = None
    # The present term of a customer's provider.
    provider_term: str | None = None
    # When the provider authenticated the user, if it was earlier.
    authenticated_at: datetime | None = None
    # The kind of address that was typed with a password.
    identity: AddressKind | None = None
    # Another hash of the password, to be stored.
    renewed_hash: str | None = None
    # The factor that makes this sign-in `aal2`.
    factor_id: str | None = None
    opener: Opener | None = None
    # Whether an administrative key, or a session of one, has set what the user signs in with.
    by_key: bool = False
    # Addresses that need no notice of the sign-in: it used a message there, or they get another notice.
    without_notice: frozenset[str | None] = frozenset()

    def columns(self, now: datetime) -> dict[str, Any]:
        """Return the columns of a new session about its level, methods and proofs."""
        if opener := self.opener:
            return {
                "aal": opener.session.aal,
                "amr": opener.methods,
                "opened_by": opener.id,
                "factor_id": opener.factor_id,
                "reauthenticated_at": sessions.authenticated_at(opener.session),
                "factor_proved_at": opener.session.factor_proved_at,
                "provider_term": opener.provider_term,
            }
        provider = {"provider": self.provider} if self.provider else {}
        columns = {
            "aal": "aal1",
            "amr": [{"method": self.method} | provider | {"timestamp": int(now.timestamp())}],
            "opened_by": None,
            "factor_id": self.factor_id,
            "reauthenticated_at": self.authenticated_at and min(self.authenticated_at, now),
            "factor_proved_at": None,
            "provider_term": self.provider_term,
        }
        raised = {"aal": "aal2", "reauthenticated_at": now, "factor_proved_at": now}
        return columns | (raised if self.factor_id else {})


@dataclass(frozen=True)
class Outcome:
    """The result of a sign-in: an `IssuedSession`, or an authorization code."""

    session: IssuedSession | None = None
    authorization_code: str | None = None
    redirect_to: str | None = None
    # Whether the link has a code challenge.
    has_challenge: bool = False
    # Further members of the response: `recent_changes`, and `password_removed` by the first proof.
    members: dict[str, Any] = field(default_factory=dict)
    # Another browser requested the link: the application gets nothing.
    is_elsewhere: bool = False
    # The purpose of the link or code.
    purpose: str | None = None


def open_session(
    asked: Asked,
    act: acts.Act,
    person: PersonFacts,
    proof: SignInProof,
    issue: Issue | None = None,
) -> IssuedSession:
    """Open a session of a locked user. `person` has the facts after all other effects of the act.

    Every way to sign in ends here. The session gets its level from the proof. The user gets a notice if the
    sign-in is new.
    """
    if issue:
        issue.confirm(act)
    session_id = issue.session_id if issue else str(uuid.uuid4())
    now, here = act.acted_at, asked.client["network"]
    earlier = queries.select_earlier_sign_ins(act, user_id=person.id, network=here, browser=asked.browser)
    most, policy = asked.settings.sessions_per_user, asked.parts.policy
    for id in sessions.sessions_beyond(person, facts.open_sessions_of(earlier.sessions), most, policy):
        ends.end(act, person.id, id, "too_many_sessions")
    columns = proof.columns(now)
    aal, amr = columns["aal"], columns["amr"]
    lacks_step = levels.lacks_step(person, aal, policy)
    act.later(
        queries.record_sign_in,
        user_id=person.id,
        identity=proof.identity,
        password_hash=proof.renewed_hash,
        # A network is known where every step was passed; but a thief of the cookie may hand a browser's
        # session on.
        network=here if levels.passes_every_step(person, aal) and not proof.opener else None,
    )
    row = queries.insert_session(
        act,
        session_id=session_id,
        user_id=person.id,
        method=proof.method,
        by_key=proof.by_key,
        **asked.device,
        # Without `amr`, a session has passed its `method`, when it began.
        **columns | {"amr": json.dumps(amr) if proof.provider or proof.factor_id or proof.opener else None},
    )
    _notify(asked, act, person, proof, is_known=earlier.is_known, lacks_step=lacks_step)
    return IssuedSession(
        session_id=session_id,
        counter=row.counter,
        aal=aal,
        amr=amr,
        lacks_step=lacks_step,
        issued_at=int(now.timestamp()),
        user_object=row.user_object,
        memberships=row.memberships,
        authenticated_at=row.authenticated_at,
        issue=issue,
    )


def sign_in_user(
    asked: Asked,
    act: acts.Act,
    person: PersonFacts,
    proof: SignInProof,
    issue: Issue | None,
    **details: object,
) -> IssuedSession:
    """Open a session, and write its audit row and its event."""
    session = open_session(asked, act, person, proof, issue)
    details |= {"method": proof.method, "session_id": session.session_id}
    audit.record(act, person.id, person.email, ["signed_in"], ["auth.login"], **details)
    return session


def _notify(
    asked: Asked,
    act: acts.Act,
    person: PersonFacts,
    proof: SignInProof,
    *,
    is_known: bool,
    lacks_step: bool,
) -> None:
    """Notify a user of a sign-in from a new network and browser. One of a browser's session is not new."""
    settings = asked.settings
    address = address_of_notices(person, offers_phone=settings.offers_phone)
    if not settings.notify_sign_in or proof.opener or address in proof.without_notice:
        return
    if counts.is_new_sign_in(person, is_known=is_known):
        outgoing.notify(asked, act, person, "new_sign_in", lacks_step=lacks_step)


def raise_session(
    asked: Asked,
    act: acts.Act,
    user_id: str,
    session_id: str,
    method: str,
    factor_id: str | None,
    issue: Issue | None = None,
) -> IssuedSession:
    """Raise a session of a locked user to `aal2`, and void what carries it (rule 3): its refresh tokens,
    cookie and unused codes.
    """
    columns = {"session_id": session_id, "method": method, "factor_id": factor_id}
    row = queries.raise_session(act, **columns, network=asked.client["network"])
    return IssuedSession(
        **row._asdict(),
        authenticated_at=act.acted_at,
        issue=issue,
        cookie=credentials.renew(asked, act, user_id, session_id),
    )


def token_response(parts: Latchkey, session: IssuedSession, **members: object) -> str:
    """Return the body of the response, as JSON."""
    user = organizations.user_object_for(session, session.standing)
    return json_bodies.encode_with(members | tokens(parts, session), user=user)


def tokens(parts: Latchkey, session: IssuedSession) -> JsonObject:
    access_tokens, claims = parts.access_tokens, compose(parts, session)
    if parts.token_hook:
        claims = answered(session.issue, claims)
    return (_WEAK_PASSWORD if session.is_leaked else {}) | {
        "access_token": access_tokens.sign(claims),
        "token_type": "bearer",
        "expires_in": access_tokens.lifetime,
        "expires_at": session.issued_at + access_tokens.lifetime,
        "refresh_token": parts.refresh_tokens.make(session.session_id, session.counter),
    }


def write_code(
    asked: Asked, act: acts.Act, person: PersonFacts, code_challenge: str, proof: SignInProof
) -> str:
    """Write an authorization code for a sign-in, and return it. The user gets a notice if the sign-in is new.

    `exchange` opens the session, at the level that the session of our pages which issued the code has then,
    else at `aal1`.
    """
    code, now, here = one_time.new_token(), act.acted_at, asked.client["network"]
    earlier = queries.select_earlier_sign_ins(act, user_id=person.id, network=here, browser=asked.browser)
    queries.write_authorization_code(
        act,
        user_id=person.id,
        code_hash=one_time.hash_token(code),
        code_challenge=code_challenge,
        method=proof.method,
        opened_by=proof.opener.id if proof.opener else None,
        provider=proof.provider,
        provider_term=proof.provider_term,
        by_key=proof.by_key,
        authenticated_at=min(proof.authenticated_at or now, now),
        network=here if levels.passes_every_step(person, "aal1") and not proof.opener else None,
        authorization_code_lifetime=constants.AUTHORIZATION_CODE_LIFETIME,
    )
    lacks_step = levels.lacks_step(person, "aal1", asked.parts.policy)
    _notify(asked, act, person, proof, is_known=earlier.is_known, lacks_step=lacks_step)
    return code


def exchange(asked: Asked, code: str, code_challenge: str) -> IssuedSession:
    """Open a session for a code (RFC 7636). Reuse of the code ends the session."""
    code_hash = one_time.hash_token(code)
    issue = _issue_for_code(asked, code_hash, code_challenge)

    def find(on: Runner) -> list[str]:
        row = queries.select_authorization_code(on, code_hash=code_hash)
        return [row.user_id] if row else []

    with acts.on_found(asked.db, find) as (act, owners):
        row = queries.select_authorization_code(act, code_hash=code_hash)
        owner = next(iter(owners), None)
        person = act.read(queries.select_person, user_id=owner, session_id=row and row.opened_by)
        if row is None or person is None:
            raise ApiError("flow_state_not_found")
        verdict = _verdict_on_code(asked, row, person, code_challenge)
        asked.noted.note(user_id=owner if row.expires_at > person.now else None)
        if verdict not in (None, "reused"):
            raise ApiError(verdict)
        if verdict is None:
            proof = _proof_of_code(asked, act, person, row)
            session = sign_in_user(asked, act, person, proof, issue)
            queries.mark_authorization_code_used(act, code_hash=code_hash, session_id=session.session_id)
            return session
        ends.end(act, person.id, row.session_id, "authorization_code_reused")
        audit.record(act, person.id, None, ["authorization_code_reused"], [], session_id=row.session_id)
    raise ApiError("flow_state_not_found")


def _verdict_on_code(
    asked: Asked,
    row: "queries.SelectAuthorizationCode",
    person: PersonFacts,
    code_challenge: str,
) -> str | None:
    return verdict_on_code(
        row,
        person,
        facts.own_session_of(person),
        is_right=hmac.compare_digest(row.code_challenge, code_challenge),
        policy=asked.parts.policy,
    )


def _proof_of_code(
    asked: Asked, act: acts.Act, person: PersonFacts, row: "queries.SelectAuthorizationCode"
) -> SignInProof:
    if row.opened_by:
        return proof_of_browser(act, person, row.opened_by)
    # The code was the sign-in, and has sent the notice.
    address = address_of_notices(person, offers_phone=asked.settings.offers_phone)
    return SignInProof(
        method=row.method,
        provider=row.provider,
        provider_term=row.provider_term,
        authenticated_at=row.authenticated_at if row.method == "oauth" else None,
        by_key=row.is_by_key,
        without_notice=frozenset({address}),
    )


def _issue_for_code(asked: Asked, code_hash: bytes | None, code_challenge: str) -> Issue | None:
    """Ask the token hook about the session of a code, unless `exchange` refuses the code."""
    hook = asked.parts.token_hook
    if hook is None:
        return None
    row, person = queries.select_authorization_code(asked.db, code_hash=code_hash), None
    if row:
        person = queries.select_person(asked.db, user_id=row.user_id, session_id=row.opened_by)
    if not row or not person or _verdict_on_code(asked, row, person, code_challenge) is not None:
        return about_new(asked, hook, None, "")  # asks nothing: there is no user
    return about_new(
        asked,
        hook,
        row.user_id,
        row.method,
        provider=row.provider,
        authenticated_at=row.authenticated_at if row.method == "oauth" else None,
        opener=row.opened_by,
    )


def proof_of_browser(act: acts.Act, person: PersonFacts, session_id: str) -> SignInProof:
    """Return a session on our pages, which `person` was read with, as the proof for an application's."""
    session = found(facts.own_session_of(person), "session_not_found")
    row = queries.select_opener(act, session_id=session_id)
    opener = Opener(
        id=session_id,
        session=session,
        methods=row.methods,
        factor_id=row.factor_id,
        provider_term=row.provider_term,
    )
    return SignInProof(method=session.method, opener=opener, by_key=person.is_session_by_key)
