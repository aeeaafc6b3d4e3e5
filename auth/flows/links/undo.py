"""*This wasn't me*: the owner takes the account back with the link of a notice.

A user with a factor older than seven days must use it: a stolen mailbox must not bypass a factor.
"""

from collections.abc import Callable, Container
from typing import Any, NamedTuple

from psycopg2.errors import UniqueViolation

from auth.core import addresses
from auth.core.factors.webauthn import Assertion
from auth.core.tokens import one_time
from auth.flows.account import removal
from auth.flows.factors import factor_codes
from auth.flows.links.proving import person_of, prove_address, record_mail_proof
from auth.flows.messages.outgoing import notify
from auth.flows.passkeys import assertions
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Runner, acts, queries


class Answer(NamedTuple):
    """The factor that a user gives: a code, or a credential with its verified assertion."""

    code: str = ""
    credential: "queries.ListAskedFactors | None" = None
    assertion: Assertion | None = None


def challenge(asked: Asked, token: str) -> dict[str, Any] | None:
    """Return a challenge with options for the user of a link, or None if the link asks for no credential."""
    known = _credentials(asked, token)
    if not known:
        return None
    # The link proves the mailbox, so user presence is enough, even for passkeys.
    sent, options = asked.parts.relying_party.request_options(known, is_passkey=False)
    row = assertions.write_challenge(asked.db, assertions.SECURITY_KEY, sent, user_id=known[0].user_id)
    return {"challenge_id": row.id, "options": options}


def verify(asked: Asked, token: str, sent: dict[str, Any]) -> Answer:
    """Spend the challenge, and verify the response to it."""
    known = {bytes(row.credential_id or b""): row for row in _credentials(asked, token)}
    if not known:
        raise ApiError("undo.insufficient_aal")
    owner = {"user_id": next(iter(known.values())).user_id}
    challenge = assertions.spend_challenge(asked, sent["challenge_id"], assertions.SECURITY_KEY, **owner)
    row, assertion = assertions.check(asked, sent["credential"], challenge, known.get, is_passkey=False)
    return Answer("", row, assertion)


def asked_factors(asked: Asked, token: str) -> "list[queries.ListAskedFactors]":
    """Return the factors of which the link asks for one, if any."""
    return queries.list_asked_factors(asked.db, token_hash=one_time.hash_token(token))


def _credentials(asked: Asked, token: str) -> "list[queries.ListAskedFactors]":
    return [row for row in asked_factors(asked, token) if row.credential_id is not None]


def take_back(asked: Asked, token: str, answer: Answer, kept: Container[str]) -> str | None:
    """Spend a link, and give the account to the owner of the link's address. Return the address, or None if
    it belongs to another user.

    `kept` are the ids of recent additions that stay.
    """
    token_hash = one_time.hash_token(token)
    asked.noted.note(token_hash=token_hash, type="undo")
    factors = asked_factors(asked, token)
    spend = None
    if factors and answer.code:
        # The verdict is committed before the user is locked; the link gives this network tries of its own.
        network = asked.client["network"]
        with acts.on(asked.db, factors[0].user_id) as act:
            person = person_of(act, factors[0].user_id)
            record_mail_proof(act, person.id, network)
        spend = factor_codes.check_owner(asked, factors, answer.code)
    try:
        with acts.begin(asked.db) as tx:
            # A refusal is raised later, so that the transaction commits the attempt.
            refusal = _refusal(asked, tx, factors, answer, spend)
            if refusal is None:
                queries.lock_users_of_undo(tx, token_hash=token_hash)
                spent = found(queries.spend_undo_link(tx, token_hash=token_hash), "otp_expired")
                added = queries.list_undone(tx, token_hash=token_hash)
                _take_back(asked, tx, spent, [way for way in added if way.id not in kept])
                return spent.target if spent.comes_back else None
    except UniqueViolation:
        raise ApiError("email_exists") from None
    raise refusal


def _refusal(
    asked: Asked,
    tx: acts.Act,
    factors: "list[queries.ListAskedFactors]",
    answer: Answer,
    spend: Callable[[Runner], bool] | None,
) -> ApiError | None:
    """Check the factor that a link asks for. `spend` spends a right code."""
    if not factors:
        return None
    if not answer.assertion:
        # The first page sends no factor. This is not an attempt.
        queries.lock_user(tx, user_id=factors[0].user_id)
        return None if spend and spend(tx) else ApiError("undo.insufficient_aal")
    credential: Any = answer.credential
    user = found(queries.lock_user(tx, user_id=credential.user_id), "user_not_found")
    if not credential.is_removed:
        return assertions.use(tx, credential, answer.assertion, user.email)
    counter, before = answer.assertion.new_sign_count, credential.sign_count
    is_good = counter > before or counter == before == 0 or credential.backup_eligible is not False
    return None if is_good else assertions.counter_fell()


def _take_back(asked: Asked, tx: acts.Act, spent: Any, removed: "list[queries.ListUndone]") -> None:
    """Remove recent additions and everything that gives access, and restore the address."""
    user = found(queries.lock_user(tx, user_id=spent.user_id), "user_not_found")
    ids = [way.id for way in removed]
    queries.remove_ways_to_sign_in(tx, user_id=user.id, ids=ids, providers=[])
    queries.remove_factors(tx, user_id=user.id, ids=ids)
    queries.restore_factors(tx, user_id=user.id)
    queries.forget_factors(tx, user_id=user.id)
    if spent.comes_back:
        _give_back(asked, tx, user, spent.target)
    else:
        removal.check_remaining(asked, tx, user.id)
    queries.set_password(tx, user_id=user.id, password_hash=None)
    queries.end_access(tx, user_id=user.id, session_id=None, reason="change_undone", voids=True)
    queries.forget_mail_proofs(tx, user_id=user.id)
    queries.void_undo_links(tx, user_id=user.id, moment=spent.created_at)
    told = [f"{way.type} {way.label}".strip() for way in removed]
    email = found(queries.lock_user(tx, user_id=user.id), "user_not_found").email
    audit.record(tx, user.id, email, ["change_undone"], ["user.updated"], removed=told)


def _give_back(asked: Asked, tx: acts.Act, user: Any, address: str) -> None:
    kind = addresses.kind_of(address)
    if getattr(user, kind) == address:
        return
    holder = queries.select_holder(tx, address=address, owner_id=user.id)
    if holder:
        queries.remove_ways_to_sign_in(tx, user_id=holder.id, ids=[], providers=[kind])
        email = None if kind == "email" else holder.email
        audit.record(tx, holder.id, email, [f"{kind}_changed"], ["user.updated"], old_address=address)
    if kind == "email" and user.email_proved:
        # Without a link, which could take the account away again.
        notify(asked, tx, user, "email_changed", undo=False, new_email=address)
    prove_address(tx, person_of(tx, user.id), kind, address, "undo")
